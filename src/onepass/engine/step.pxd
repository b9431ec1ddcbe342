from onepass.engine.matches cimport CompiledLikelihood, Match
from onepass.engine.outliers cimport Trust

cimport cython

cdef enum:
    N_VAGUE = 61
    N_ROUGH = 15
    N_FEW = 7
    N_SITE = 4
    N_RECORD = 6
    N_NUMBERS = 5

cdef struct Tilt:
    Match match
    Match cautious
    double log_noise
    double noise_weight

@cython.final
cdef class LearningState:
    cdef public double noise, noise_weight, noise_window, log_evidence, n_seen, log_density
    cdef public Trust trust
    cdef const double[::1] row_weights
    cdef Py_ssize_t n_weighted  # rows of these that have been learned
    cdef double row_weight(self) noexcept nogil
    cpdef void assign(self, LearningState other) noexcept nogil
    cpdef void begin_anew(self) noexcept nogil

cdef Tilt _tilt(
    CompiledLikelihood likelihood, double mean, double var, double y, double log_noise, double std
) noexcept nogil
cpdef (double, double, double) learn_scalar(
    CompiledLikelihood likelihood, LearningState state, double mean, double var, double input_var, double y
) noexcept nogil
cdef (double, double, double) learn_site(
    CompiledLikelihood likelihood, LearningState state, double mean, double var, double input_var, double y, double* site
) noexcept nogil
cdef (double, double, double) _learn_again(
    CompiledLikelihood likelihood, LearningState state, double mean, double var, double input_var, double y, double* site
) noexcept nogil
cdef (double, double) _learned_noise(Tilt tilt, double log_noise, double weight, double trusted) noexcept nogil
cdef (double, double) _tempered_noise(
    LearningState state, double noise, double noise_weight, double row_weight
) noexcept nogil
cdef double _towards(double old, double new) noexcept nogil
cdef (double, double) score_row(
    CompiledLikelihood likelihood, LearningState state, double mean, double var, double y
) noexcept nogil
cpdef object score_rows(
    CompiledLikelihood likelihood, LearningState state, const double[::1] mean, const double[::1] var, const double[::1] y
)
