cdef void _mix(
    const double[:, ::1] weights, const double[:, ::1] means, const double[:, ::1] variances, double[:, ::1] found
) noexcept nogil
cdef double _quantile(
    Py_ssize_t k, Py_ssize_t stride, Py_ssize_t step, const double* weights, const double* means, const double* stds,
    double z
) noexcept nogil
cdef (double, double) _distribution(
    Py_ssize_t k, Py_ssize_t stride, Py_ssize_t step, const double* weights, const double* means, const double* stds,
    double x
) noexcept nogil
