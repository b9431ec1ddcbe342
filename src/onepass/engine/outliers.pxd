cimport cython

cdef enum:
    N_WIDE = 5  # ways in which a number's noise may be larger
    N_WAYS = 6  # these, and that it is trusted
    N_TRUST = 9  # numbers of a `Trust`
    N_GUARD = 4  # of one that expects no outliers
    SOON = 100  # rows after an alarm

cdef double NOISE_SCALES[5]
cdef double log_rarity(double log_scale) noexcept nogil
cdef double far_log_density(double error, double var) noexcept nogil

@cython.final
cdef class Trust:
    cdef readonly bint active
    cdef readonly double distrust, suspicion, calm, noise_scale, n_far, far_square
    cdef double counts[6]
    cdef double last[6]
    cdef bint blank
    cdef double weight(self) noexcept nogil
    cdef double outlier_share(self) noexcept nogil
    cdef void note(self, const double* shares, bint blank) noexcept nogil
    cdef bint judges(self) noexcept nogil
    cdef bint is_far(self, double error, double var, double largest) noexcept nogil
    cdef void note_near(self) noexcept nogil
    cdef void note_far(self, double error) noexcept nogil
    cdef void count_far(self) noexcept nogil
    cdef double largest_square(self, double largest, double square, double var) noexcept nogil
    cdef void learn(self) noexcept nogil
    cdef double far_off(self) noexcept nogil
    cpdef bint is_alarmed(self) noexcept nogil
    cpdef double calm_down(self) noexcept nogil
    cpdef void assign(self, Trust other) noexcept nogil
    cdef void read(self, const double* numbers) noexcept nogil
    cdef void write(self, double* numbers) noexcept nogil
