cdef enum:
    N_NODES = 33
    N_STEPS = 4

# How a row changes with the noise: Lanczos's tridiagonal matrix, whose last entry below is 0, and the coordinates of
# R P0 (m - m0) in its basis, times the length of r. Without a step the row is taken not to change.
cdef struct Response:
    Py_ssize_t n
    double[N_STEPS] diagonal
    double[N_STEPS] below
    double[N_STEPS] pull

# What all rows say: T, whose last entry below is 0, b'b, and the log determinant of Ω in all its directions.
cdef struct AllRows:
    Py_ssize_t n
    const double* diagonal
    const double* below
    double square
    double log_det
    double n_directions

cdef (double, double) respond(const Response* response, double times) noexcept nogil
cdef void _eliminate(
    const AllRows* all_rows, Py_ssize_t n_nodes, const double* times, double* log_det, double* change, double* least
) noexcept nogil
cdef double squares_left(const AllRows* all_rows, double noise, double reference, double left) noexcept nogil
cdef (double, double, double, double) marginal_noise(
    const AllRows* all_rows, double reference, double left, double weight, double log_start, double start_weight,
    double guess, double guess_std
) noexcept nogil
cdef double _matching_reference(
    const AllRows* all_rows, double low, double step, const double* share, const double* volume, double mean
) noexcept nogil
cdef double _within_reach(const AllRows* all_rows, double reference, double log_start) noexcept nogil
cdef void tridiagonalise(Py_ssize_t n, double* matrix, double* below, double* space) noexcept nogil
