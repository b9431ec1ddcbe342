cdef double _quantile(
    Py_ssize_t k, Py_ssize_t stride, const double* weights, const double* means, const double* stds, double level,
    double z
) noexcept nogil
cdef (double, double) _distribution(
    Py_ssize_t k, Py_ssize_t stride, const double* weights, const double* means, const double* stds, double x
) noexcept nogil
