cdef double _weigh(
    Py_ssize_t count, const double* log_densities, Py_ssize_t stride, double switching, double* weights, double* before,
    double* after
) noexcept nogil
cpdef tuple switch_rows(const double[:, ::1] log_densities, double[::1] weights, double switching, double evidence)
