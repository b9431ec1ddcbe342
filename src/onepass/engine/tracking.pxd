cdef class RowTracker:
    cdef const double[::1] probabilities
    cdef const double[::1] rates
    cdef double[::1] ends
    cdef double[::1] location

    cdef void _fill(self, double* found) noexcept


cdef double _shrunk(double value, double noise) noexcept nogil
cdef void _fill(Py_ssize_t q, const double* ends, const double* location, double* out) noexcept nogil
cdef void _move(
    double value,
    double weight,
    const double[::1] probabilities,
    const double[::1] rates,
    const double* quantiles,
    double* ends,
    double* location,
) noexcept nogil
cdef void _sort(Py_ssize_t n, double* row) noexcept nogil
