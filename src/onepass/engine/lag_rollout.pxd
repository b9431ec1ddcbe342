from onepass.engine.lag_sums cimport Equations, Member

cimport cython

cdef enum:
    N_ROUNDS = 3
    N_WARM_ROUNDS = 2

# A member's belief in standardised units: its weights, their covariance and the noise.
cdef struct LagBelief:
    Py_ssize_t p
    Py_ssize_t n_lags
    bint known  # False where there is no positive definite covariance
    double noise
    double* mean
    double* cov  # (p, p)

# Weights on the line along which the persistence moves, in its standard deviations: a rule for its distribution.
cdef struct Nodes:
    Py_ssize_t n
    double variance  # of the persistence
    double within  # and of what a node leaves of it
    double[5] places
    double[5] shares

cdef bint _invert(Py_ssize_t n, double* matrix) noexcept nogil
cdef LagBelief posterior(
    const Equations* rows, const double* prior, const Member* member, double noise, double expected, double* mean,
    double* cov
) noexcept nogil
cdef double _residual(const Equations* rows, const double* mean) noexcept nogil
cdef void roll_out(
    LagBelief* belief, const Py_ssize_t* lags, const double* past, const double* columns, Py_ssize_t difference,
    Py_ssize_t horizon, double* joint, double* means, double* mixed
) noexcept nogil
cdef void _place_nodes(
    const LagBelief* belief, const Py_ssize_t* lags, Py_ssize_t difference, Py_ssize_t horizon, double* along,
    Nodes* found
) noexcept nogil
cdef void _fill_nodes(Py_ssize_t n, double bound, Nodes* found) noexcept nogil
cdef double _size_of_shock(
    const LagBelief* belief, const Py_ssize_t* lags, Py_ssize_t difference, Py_ssize_t horizon, const double* along,
    double place
) noexcept nogil
cdef void _mix(
    double share, Py_ssize_t horizon, Py_ssize_t size, const double* cov, const double* means, double* mixed
) noexcept nogil
cdef void _add_outer(Py_ssize_t n, double factor, const double* vector, double* matrix) noexcept nogil
cdef void _course(
    const LagBelief* belief, const Py_ssize_t* lags, const double* past, const double* columns, Py_ssize_t horizon,
    double* joint, double* means
) noexcept nogil
cdef int check_size(Py_ssize_t p, Py_ssize_t horizon) except -1
cdef void _integrate(
    Py_ssize_t difference, Py_ssize_t horizon, Py_ssize_t size, double* cov, double* means
) noexcept nogil
