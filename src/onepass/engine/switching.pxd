cdef double _weigh(
    Py_ssize_t count, const double* log_densities, Py_ssize_t stride, const double* entries, double* weights,
    double* before, double* after
) noexcept nogil

cdef class Switching:
    cdef double[::1] values, entries
    cdef double[:, ::1] memory  # of weights before and after a row
    cdef readonly double log_evidence
    cdef public object posterior
    cdef void learn_row(self, const double[::1] log_densities) noexcept
    cpdef tuple learn(self, const double[:, ::1] log_densities)
