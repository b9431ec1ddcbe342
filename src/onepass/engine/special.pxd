cimport cython

cdef extern from *:
    """
    #define ONEPASS_LOG_2PI 1.8378770664093453
    """
    const double LOG_2PI "ONEPASS_LOG_2PI"

# Nodes and weights of the expectation under a standard normal (Gauss-Hermite, the middle node exactly zero), and of
# the integral over [0, 1] (Gauss-Legendre).
cdef double[5] FEW_HERMITE
cdef double[5] FEW_HERMITE_WEIGHTS
cdef double[11] HERMITE
cdef double[11] HERMITE_WEIGHTS
cdef double[32] UNIT
cdef double[32] UNIT_WEIGHTS

cdef double pdf(double z) noexcept nogil
cdef double ndtr(double z) noexcept nogil
cdef double log_ndtr(double z) noexcept nogil
cdef double sigmoid(double a) noexcept nogil
cdef (double, double, double) log_cdf_slopes(double z) noexcept nogil
cdef (double, double, double, double) truncated(double lower, double upper) noexcept nogil
cdef double wright_omega(double x) noexcept nogil
