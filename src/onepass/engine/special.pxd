cimport cython

cdef double pdf(double z) noexcept nogil
cdef double ndtr(double z) noexcept nogil
cdef double log_ndtr(double z) noexcept nogil
cdef double sigmoid(double a) noexcept nogil
cdef (double, double, double) log_cdf_slopes(double z) noexcept nogil
cdef (double, double, double, double) truncated(double lower, double upper) noexcept nogil
cdef double wright_omega(double x) noexcept nogil
