from onepass.engine.rows cimport Prior, PerceptronRule
from onepass.engine.step cimport PerceptronProgress

# Where in a record each number of its head stands, and where the head ends.
cpdef enum:
    AT_NOISE, AT_NOISE_WEIGHT, AT_EVIDENCE, AT_SEEN, AT_LARGEST, AT_PRIOR, AT_TOUCHED, HEAD

# Where each number stands behind the belief of keys whose rows are re-weighed, and how many these are.
cpdef enum:
    OF_REFERENCE, OF_SQUARES, OF_WEIGHT, OF_COPIES, OF_TRUSTED_COPIES, OF_LOG_START, OF_START_WEIGHT, OF_LAST_LOG_NOISE,
    OF_LAST_SEEN, OF_LAST_NOISE_WEIGHT, OF_TOTAL, N_REWEIGHED

# Rows of the array behind a `Projection`.
cdef enum:
    PROJECTED_MEAN, PROJECTED_VAR, PROJECTED_NOISE, PROJECTED_NOISE_WEIGHT, PROJECTED_DISTRUST

cpdef Py_ssize_t learn_fleet(
    const double[:, ::1] X, const double[::1] y, object weights, const long long[::1] slots,
    const long long[::1] order, PerceptronRule rule, double noise_window, double clock, double[:, ::1] records,
    double[:, ::1] out
)
cdef Prior _prior_of(PerceptronRule rule, const double* record, Py_ssize_t p) noexcept nogil
cdef Py_ssize_t _end_of_belief(Py_ssize_t p) noexcept nogil
cdef PerceptronProgress _state_of(double noise_window, Py_ssize_t n_behind)
cdef void _read(const double* record, Py_ssize_t p, bint reweighs, PerceptronProgress state) noexcept nogil
cdef void _write(double* record, Py_ssize_t p, bint reweighs, PerceptronProgress state) noexcept nogil
cdef void _answer_alarm(double* record, Prior prior, PerceptronProgress state, double* space) noexcept nogil
cdef void _return_to_prior(double* record, Prior prior, PerceptronProgress state) noexcept nogil
cdef const double* _record_ahead(
    const double* record, long long rows, Py_ssize_t p, bint reweighs, PerceptronRule rule, PerceptronProgress state, double* later,
    double* space
) noexcept nogil
cpdef object project_fleet(
    const double[:, ::1] X, const long long[::1] slots, const long long[::1] ahead, PerceptronRule rule,
    const double[:, ::1] records, const double[::1] prior
)
cpdef object distrust_fleet(
    const double[:, ::1] X, const double[::1] y, const long long[::1] slots, const long long[::1] ahead, PerceptronRule rule,
    const double[:, ::1] records, const double[::1] prior
)
cdef object _project(
    const double[:, ::1] X, const double[::1] y, const long long[::1] slots, const long long[::1] ahead, PerceptronRule rule,
    const double[:, ::1] records, const double[::1] prior
)
cdef Py_ssize_t _home(long long key, Py_ssize_t mask) noexcept nogil
cpdef object find_keys(const long long[::1] keys, const int[::1] table, const long long[::1] slot_keys)
cpdef object put_keys(const long long[::1] slots, int[::1] table, const long long[::1] slot_keys)
cpdef object remove_keys(const long long[::1] slots, int[::1] table, const long long[::1] slot_keys)
