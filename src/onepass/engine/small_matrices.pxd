cdef double invert(Py_ssize_t n, double* matrix, double* inverse) noexcept nogil
cdef void factorise(Py_ssize_t n, const double* matrix, double* root) noexcept nogil
cdef bint is_positive(Py_ssize_t n, double* matrix) noexcept nogil
cdef void apply(
    Py_ssize_t n, const double* factor, const double* matrix, const double* vector, double* new_matrix, double* new_vector
) noexcept nogil
cdef void divide_by_root(Py_ssize_t n, double* matrix, const double* root) noexcept nogil
cdef void add_square(Py_ssize_t n, const double* matrix, double* total) noexcept nogil
cdef void diagonalise(Py_ssize_t n, double* matrix, double* vectors) noexcept nogil
cdef void _turn(double* first, double* second, double cosine, double sine) noexcept nogil
