cdef double _log_marginal(
    double log_noise, double log_reference, Py_ssize_t n, const double* ratios, const double* squares, double left, double weight,
    double log_start, double start_precision
) noexcept nogil
cdef (double, double, double, double) marginal_noise(
    Py_ssize_t n, const double* ratios, const double* squares, double* expected, double reference, double left,
    double weight, double log_start, double start_weight, double guess, double guess_std
) noexcept nogil
cdef double squares_left(
    double noise, double reference, Py_ssize_t n, const double* ratios, const double* squares, double left
) noexcept nogil
cdef double _matching_reference(
    double low, double high, double log_reference, Py_ssize_t n, const double* ratios, const double* expected
) noexcept nogil
cdef double _within_reach(double reference, Py_ssize_t n, const double* ratios, double log_start) noexcept nogil
