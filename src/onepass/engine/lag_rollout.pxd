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

cdef bint _invert(Py_ssize_t n, double* matrix) noexcept nogil
cdef LagBelief posterior(
    const Equations* rows, const double* prior, const Member* member, double noise, double expected, double* mean,
    double* cov
) noexcept nogil
cdef double _residual(const Equations* rows, const double* mean) noexcept nogil
cdef void roll_out(
    const LagBelief* belief, const Py_ssize_t* lags, const double* past, const double* columns, Py_ssize_t horizon,
    double* joint, double* means
) noexcept nogil
cdef void integrate(
    Py_ssize_t difference, Py_ssize_t horizon, Py_ssize_t first, double* joint, double* means
) noexcept nogil
