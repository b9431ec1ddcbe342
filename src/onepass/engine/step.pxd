from onepass.engine.matches cimport CompiledLikelihood, Match
from onepass.engine.noise cimport AllRows, Response
from onepass.engine.outliers cimport N_WAYS, Trust

cimport cython

cdef enum:
    N_VAGUE = 61
    N_ROUGH = 15
    N_FEW = 7

# Columns of what is recorded of a row: see `step.RowRecord`.
cpdef enum:
    RECORD_MEAN, RECORD_VAR, RECORD_NOISE, RECORD_NOISE_WEIGHT, RECORD_LOG_DENSITY, RECORD_DISTRUST, RECORD_SUSPICION
    RECORD_EVIDENCE, RECORD_SIZE

# The contribution of a row: precisions of the factors of J'w and of the log noise, and their shifts (precision times
# mean), then what the row has added to the counts of the `Trust`. The precision is NaN before the row was learned.
cdef struct Site:
    double precision
    double shift
    double noise_precision
    double noise_shift
    double[N_WAYS] counts

# The beliefs about J'w and about the log noise without a row; the share of the precision that is left without it is
# 0 where its site can't be removed.
cdef struct Cavity:
    double left
    double mean
    double var
    double log_noise
    double noise_precision
    double noise_shift

# A match with a noise that is not known, that with a cautious noise, and the belief about the noise after the row.
cdef struct NoiseMatch:
    Match match
    Match cautious
    double log_noise
    double noise_weight

@cython.final
cdef class PerceptronProgress:
    cdef public double noise, noise_weight, noise_window, log_evidence, n_seen, log_density, row_evidence
    cdef public double reference, squares, weight, copies, trusted_copies, log_start, start_weight, last_log_noise, last_seen, last_noise_weight, total, largest
    cdef public Trust trust
    cdef const double[::1] row_weights
    cdef public Py_ssize_t n_weighted  # rows of these that have been learned
    cdef bint pending  # whether the noise is still to be learned from the last row, of which these are kept
    cdef double error, var, input_var, pending_weight
    cdef double square, total_var  # of the last row's error, and what was predicted for it
    cdef double row_weight(self) noexcept nogil
    cpdef void record_row(
        self, double[:, ::1] records, Py_ssize_t i, double mean, double var, double noise, double noise_weight
    ) noexcept nogil
    cdef void count_row(self) noexcept nogil
    cpdef void assign(self, PerceptronProgress other) noexcept nogil
    cpdef void begin_anew(self) noexcept nogil
    cdef void start_over(self) noexcept nogil
    cpdef void start_reweighing(self) noexcept nogil
    cpdef bint is_due(self, Py_ssize_t size) noexcept nogil
    cpdef Py_ssize_t response_steps(self) noexcept nogil
    cdef double new_reference(self, const AllRows* all_rows) noexcept nogil

cdef (double, double) _error_of(
    CompiledLikelihood likelihood, PerceptronProgress state, double mean, double var, double y
) noexcept nogil
cdef (double, double, double) _set_aside(
    PerceptronProgress state, double error, double var, double row_weight
) noexcept nogil
cdef (Py_ssize_t, Py_ssize_t) _nodes_for(double std) noexcept nogil
cdef (double, double, double) _linear_step(
    double mean, double var, double input_var, double y, double noise, double row_weight
) noexcept nogil
cdef (double, double, double) _linear_copies(
    PerceptronProgress state, double mean, double var, double y, double row_weight
) noexcept nogil
cdef void learn_noise(PerceptronProgress state, const Response* response) noexcept nogil
cdef void _read_response(const double[:, ::1] numbers, Response* response) noexcept nogil
cdef (double, double, double) _noise_mixture(
    double e, double v, double input_var, double w, double noise_copies, const Response* response, double s, double noise, double std
) noexcept nogil
cdef (double, double, double) _known_noise_density(
    double e, double v, double input_var, double w, double noise_copies, const Response* response, double s, double noise, double std
) noexcept nogil
cdef double _log_copies(
    double error, double var, double noise, double log_noise, double w, double noise_copies
) noexcept nogil
cdef (double, double, double) _learn_copy(
    CompiledLikelihood likelihood, PerceptronProgress state, double mean, double var, double input_var, double y,
    double row_weight, bint first
) noexcept nogil
cdef NoiseMatch _match_noise(
    CompiledLikelihood likelihood, double mean, double var, double y, double log_noise, double std
) noexcept nogil
cpdef (double, double, double) learn_scalar(
    CompiledLikelihood likelihood, PerceptronProgress state, double mean, double var, double input_var, double y
) noexcept nogil
cdef (double, double, double) _learn_copies(
    CompiledLikelihood likelihood, PerceptronProgress state, double mean, double var, double input_var, double y,
    double row_weight
) noexcept nogil
cdef (double, double, double) learn_row(
    CompiledLikelihood likelihood, PerceptronProgress state, double mean, double var, double input_var, double y, Site* site
) noexcept nogil
cdef Cavity _cavity(PerceptronProgress state, double mean, double var, const Site* site) noexcept nogil
cdef (double, double, double) _learn_again(
    CompiledLikelihood likelihood, PerceptronProgress state, double mean, double var, double input_var, double y, Site* site
) noexcept nogil
cdef bint _replace_noise(PerceptronProgress state, const Cavity* cavity, const Site* new) noexcept nogil
cdef (double, double) _learned_noise(NoiseMatch after, double log_noise, double weight, double trusted) noexcept nogil
cdef (double, double) _tempered_noise(
    PerceptronProgress state, double noise, double noise_weight, double row_weight
) noexcept nogil
cdef double _towards(double old, double new) noexcept nogil
cdef (double, double) score_row(
    CompiledLikelihood likelihood, PerceptronProgress state, double mean, double own_var, double input_var,
    const Response* response, double y
) noexcept nogil
cpdef object score_rows(
    CompiledLikelihood likelihood, PerceptronProgress state, const double[::1] mean, const double[::1] var,
    const double[::1] input_var, const double[:, :, ::1] responses, const double[::1] y
)
