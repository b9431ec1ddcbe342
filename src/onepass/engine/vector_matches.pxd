from onepass.engine.matches cimport CompiledLikelihood
from onepass.engine.outliers cimport Trust

cdef enum:
    N_NODES = 43
    MOST_NODES = 256  # of the integral over classes

cdef class NetworkProgress:
    cdef readonly object noise, noise_weight, scale, scale_weight, usual_var, largest
    cdef public Trust trust
    cdef public double row_weight, row_evidence, log_evidence
    cdef public Py_ssize_t n_seen
    cdef double factor  # by which the noise is larger, for the moment
    cdef double* noise_of
    cdef double* noise_weight_of
    cdef double* scale_of
    cdef double* scale_weight_of
    cdef double* usual_var_of
    cdef double* largest_of
    cdef double widened_scale(self, Py_ssize_t k) noexcept nogil
    cdef bint is_calibrated(self) noexcept nogil
    cdef double calibrated_var(self, Py_ssize_t k, double var, double noise, double scale, double times) noexcept nogil

cdef class VectorMatch:
    cdef Py_ssize_t size
    cdef object memory
    cdef double log_density
    cdef double* score
    cdef double* information
    cdef double* shift
    cdef double* precision
    cdef double* vector
    cdef double* log_p
    cdef double* variances
    cdef double* centre
    cdef double* first
    cdef double* second
    cdef double* third
    cdef double* terms
    cdef double* node_weights
    cdef double* slopes
    cdef double* mixed_score
    cdef double* mixed_information
    cdef double* own_information
    cdef double* copy_mean
    cdef double* copy_shift
    cdef double* copy_cov
    cdef double* copy_precision
    cdef object likely_memory
    cdef Py_ssize_t* likely  # which classes have terms of their own
    cdef Py_ssize_t n_likely
    # The other classes, together: see `class_matches.keep_likely`.
    cdef double unlikely
    cdef double unlikely_square
    cdef double origin
    cdef double coarsest

    cdef void leave_out_widening(self, const double* cov) noexcept nogil
    cdef void clear(self) noexcept nogil

cdef class VectorLikelihood:
    cdef readonly Py_ssize_t n_outputs, size, n_columns
    cdef bint copies_in_closed_form
    cdef readonly bint may_widen  # whether a target that is trusted may make outputs less certain
    cdef double match_once(
        self, const double* mean, const double* cov, const double* target, NetworkProgress state, VectorMatch out
    ) noexcept nogil
    cdef double match_power(
        self, const double* mean, const double* cov, const double* target, NetworkProgress state, VectorMatch out
    ) noexcept nogil
    cdef double match_copies(
        self, const double* mean, const double* cov, const double* target, NetworkProgress state, VectorMatch out
    ) noexcept nogil
    cdef double set_aside(
        self, const double* mean, const double* cov, const double* target, NetworkProgress state, VectorMatch out
    ) noexcept nogil
    cdef void step_of_copies(self, const double* cov, VectorMatch out) noexcept nogil
    cdef double match(
        self, const double* mean, const double* cov, const double* target, NetworkProgress state, VectorMatch out
    ) noexcept nogil
    cdef double match_trusted(
        self, const double* mean, const double* cov, const double* target, NetworkProgress state, VectorMatch out
    ) noexcept nogil
    cdef bint is_unobserved(self, const double* target) noexcept nogil
    cdef double match_nothing(self, NetworkProgress state, VectorMatch out) noexcept nogil
    cdef double match_separate(
        self, const double* mean, const double* cov, const double* target, NetworkProgress state, VectorMatch out
    ) noexcept nogil
    cdef (double, double) note_uninformative(self, double log_z, const double* target, NetworkProgress state) noexcept nogil
    cdef double log_uninformative(self, const double* target) noexcept nogil
    cdef double wrong_given_uninformative(self, const double* target) noexcept nogil
    cdef double doubt(
        self, double log_z, const double* mean, const double* cov, const double* target, NetworkProgress state,
        VectorMatch out
    ) noexcept nogil
    cdef void move_noise(
        self, const double* mean, const double* cov, const double* target, NetworkProgress state, double gain, double bound
    ) noexcept nogil
    cdef double expected_noise(
        self, const double* mean, const double* cov, NetworkProgress state, Py_ssize_t k
    ) noexcept nogil
    cdef void marginals(self, const double* mean, const double* cov, double* centre, double* var, VectorMatch out) noexcept nogil
    cdef void update_noise(
        self, const double* mean, const double* cov, const double* target, NetworkProgress state, double gain, double bound
    ) noexcept nogil
    cdef void describe(
        self, const double* mean, const double* cov, NetworkProgress state, double* record, VectorMatch out
    ) noexcept nogil
    cdef void keep(self, const double* mean, const double* cov, NetworkProgress state, double* into) noexcept nogil
    cdef void calibrate(self, double* mean, double* cov, NetworkProgress state, double times) noexcept nogil
    cdef double score_kept(
        self, double* row, const double* noise_scale, const double* target, NetworkProgress state, VectorMatch out
    ) noexcept nogil
    cdef bint accepts(self, const double* target) noexcept nogil
    cpdef raise_pending(self)

cdef class NoisyNumbers(VectorLikelihood):
    cdef void calibrate_cov(self, double* cov, NetworkProgress state, double times) noexcept nogil
    cdef (double, double) noise_change(
        self, double expected, double square, double total, NetworkProgress state, Py_ssize_t k
    ) noexcept nogil

    cdef double log_share(
        self, Py_ssize_t way, double log_z, const double* mean, const double* cov, const double* target,
        NetworkProgress state, VectorMatch out
    ) noexcept nogil

    cdef double calibrated(
        self, double log_z, const double* mean, const double* cov, const double* target, NetworkProgress state,
        VectorMatch out
    ) noexcept nogil

cdef class GaussianOutputs(NoisyNumbers):
    pass

cdef class HeteroscedasticOutputs(NoisyNumbers):
    cdef readonly double log_noise, log_noise_var

cdef class SeparateOutputs(VectorLikelihood):
    cdef CompiledLikelihood one
    cdef (double, double) match_noise(
        self, double mean, double var, double y, NetworkProgress state, Py_ssize_t k
    ) noexcept nogil

cdef struct PairMatch:
    double log_z
    double score
    double log_noise_score
    double information
    double cross_information
    double log_noise_information

cdef PairMatch match_pair(
    double error, double f_var, double cross, double a_var, double log_noise
) noexcept nogil
cdef double log_copies(double error, double var, double noise, double weight) noexcept nogil
cdef double noise_given(double mean, double var) noexcept nogil
cdef bint remove_site(
    const double* cov, const double* precision, const double* h, const double* values, VectorMatch out
) noexcept nogil
cdef void temper(Py_ssize_t n, double weight, const double* cov, VectorMatch out) noexcept nogil
cdef void subtract_information(
    Py_ssize_t n, const double* cov, const double* information, double* left, double* space
) noexcept nogil
cdef void temper_separate(Py_ssize_t n, double weight, const double* cov, VectorMatch out) noexcept nogil
cdef void carry_over(
    double factor, const double* matrix, const double* vector, const double* cov, double* new_matrix,
    double* new_vector, VectorMatch space
) noexcept nogil
cdef void fill_site(const double* cov, VectorMatch out) noexcept nogil
cdef double _add(double keep, double old, double own, double new) noexcept nogil
cdef object as_array(const double* values, Py_ssize_t n)
