from onepass.engine.moments cimport CompiledActivation, PiecewiseMoments
from onepass.engine.outliers cimport Coupling, Trust

cdef struct Match:
    double log_z
    double score
    double information
    double variance_ratio

cdef struct Doubt:
    Match match
    bint uninformative
    double shares[6]  # that the target is trusted, and each way in which it is not
    bint has_coupling  # whether the share of wrong targets is learned together with the scale of the weights
    Coupling coupling

cdef class CompiledLikelihood:
    cdef CompiledActivation activation
    cdef readonly bint linear  # whether the output is the pre-activation itself, with Gaussian noise around it
    cdef readonly bint continuous  # whether there is Gaussian noise, of which equal targets can leave nothing
    cdef Match match(self, double mean, double var, double y, double noise) noexcept nogil
    cdef bint accepts(self, double y) noexcept nogil
    cdef (double, double) error_of(self, double mean, double var, double y) noexcept nogil
    cdef void match_noises(
        self, double mean, double var, double y, Py_ssize_t n, double* noises, Match* matches
    ) noexcept nogil
    cdef double log_uninformative(self, double y) noexcept nogil
    cdef double wrong_given_uninformative(self) noexcept nogil
    cdef Doubt doubt(
        self, Match usual, double mean, double var, double y, double noise, Trust trust
    ) noexcept nogil
    cpdef object match_rows(
        self, const double[::1] mean, const double[::1] var, const double[::1] y, const double[::1] noise
    )
    cpdef raise_pending(self)

cdef class LabelLikelihood(CompiledLikelihood):
    pass

cdef class SigmoidLabel(LabelLikelihood):
    pass

cdef class ProbitLabel(LabelLikelihood):
    pass

cdef class StepLabel(LabelLikelihood):
    pass

cdef class NoiseLikelihood(CompiledLikelihood):
    pass

cdef class NoisyPieces(NoiseLikelihood):
    cdef PiecewiseMoments pieces

cdef class KalmanNoise(NoiseLikelihood):
    pass

cdef class KalmanLabel(LabelLikelihood):
    pass

cdef class CountLikelihood(CompiledLikelihood):
    pass

cdef class KalmanCount(CountLikelihood):
    pass

cdef class PythonLikelihood(CompiledLikelihood):
    cdef object likelihood
    cdef object python_activation
    cdef object error

cdef double copies_now(double left, double whole) noexcept nogil
cdef double copies_after(double left, double part) noexcept nogil
cdef (double, double, double) uninformative_shares(
    double log_z, double log_uninformative, double wrong_share, double wrong_given_uninformative
) noexcept nogil
cdef Doubt uninformative_doubt(
    Match usual, double var, double log_uninformative, double wrong_share, double wrong_given_uninformative
) noexcept nogil
cdef Match sigmoid_label(double mean, double var, double y) noexcept nogil
cdef (double, double, double) _probits(double mean, double var) noexcept nogil
cdef Match _straight(const double[:, ::1] pieces, double mean, double v, double y, double noise) noexcept nogil
cdef Match _piece(const double[:, ::1] pieces, Py_ssize_t i, double mean, double v, double y, double noise) noexcept nogil
cdef Match _kalman(
    double mean, double var, double y, double output_mean, double output_var, double slope, double noise, double log_z,
    double resolution
) noexcept nogil
cdef double log_negative_binomial(double y, double mean, double var) noexcept nogil
