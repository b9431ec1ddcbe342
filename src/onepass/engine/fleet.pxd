from onepass.engine.rows cimport RowRule
from onepass.engine.step cimport LearningState

# Where in a record each number of its head stands, and where the head ends.
cpdef enum:
    AT_NOISE, AT_NOISE_WEIGHT, AT_EVIDENCE, AT_SEEN, AT_PRIOR, AT_TOUCHED, HEAD

cpdef Py_ssize_t learn_fleet(
    const double[:, ::1] X, const double[::1] y, const long long[::1] slots, const long long[::1] order, RowRule rule,
    double noise_window, double clock, double[:, ::1] records, double[:, ::1] out
)
cdef const double* _prior_of(RowRule rule, const double* record) noexcept nogil
cdef Py_ssize_t _trust_place(Py_ssize_t p) noexcept nogil
cdef LearningState _state_of(double noise_window, Py_ssize_t n_trust)
cdef void _read(const double* record, Py_ssize_t p, LearningState state) noexcept nogil
cdef void _write(double* record, Py_ssize_t p, LearningState state) noexcept nogil
cdef void _return_to_prior(double* record, Py_ssize_t p, const double* prior) noexcept nogil
cpdef object distrust_fleet(
    const double[:, ::1] X, const double[::1] y, const long long[::1] slots, RowRule rule, const double[:, ::1] records,
    const double[::1] prior
)
cpdef object project_fleet(
    const double[:, ::1] X, const long long[::1] slots, int bias, const double[:, ::1] records, const double[::1] prior
)
cdef Py_ssize_t _home(long long key, Py_ssize_t mask) noexcept nogil
cpdef object find_keys(const long long[::1] keys, const int[::1] table, const long long[::1] slot_keys)
cpdef object put_keys(const long long[::1] slots, int[::1] table, const long long[::1] slot_keys)
cpdef object remove_keys(const long long[::1] slots, int[::1] table, const long long[::1] slot_keys)
