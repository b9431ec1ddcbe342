cdef double _shrunk(double value, double noise) noexcept nogil
cdef void _sort(Py_ssize_t n, double* row) noexcept nogil
