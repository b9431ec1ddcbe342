cimport cython

cdef enum:
    N_WIDE = 5  # ways in which a number's noise may be larger
    N_WAYS = 6  # these, and that it is trusted
    N_COUNTS = 10  # numbers of a `Trust` that add up over rows
    N_TRUST = 17  # numbers of a `Trust`
    N_GUARD = 4  # of one that expects no outliers
    SOON = 100  # rows after an alarm

# What a label says about the share of wrong labels and the log scale of the weights: the derivatives of its log
# probability, and those of the probability over its standard deviation, whose products are the Fisher information.
cdef struct Coupling:
    double share_score
    double scale_score
    double share_root
    double scale_root

cdef double NOISE_SCALES[5]
cdef double log_rarity(double log_scale) noexcept nogil
cdef double far_log_density(double error, double var) noexcept nogil

@cython.final
cdef class Trust:
    cdef readonly bint active
    cdef readonly double distrust, rows, suspicion, rows_since_alarm, recent_share, scale_shift, n_far, far_square
    cdef public bint learns_scale  # whether the scale of the weights is learned with the share of wrong labels
    cdef double counts[6]
    cdef double last[6]
    cdef double square, share_information, cross_information, scale_information, prior_information, last_information
    cdef Coupling coupling
    cdef bint uninformative, has_coupling
    cdef double weight(self) noexcept nogil
    cdef double outlier_share(self) noexcept nogil
    cdef void note(self, const double* shares, bint uninformative, double square) noexcept nogil
    cdef void note_coupling(self, Coupling coupling) noexcept nogil
    cdef bint judges(self) noexcept nogil
    cdef bint is_far(self, double error, double var, double largest) noexcept nogil
    cdef void note_near(self) noexcept nogil
    cdef void note_far(self, double error) noexcept nogil
    cdef void count_far(self) noexcept nogil
    cdef double largest_square(self, double largest, double square, double var) noexcept nogil
    cdef void learn(self) noexcept nogil
    cdef void count_copy(self) noexcept nogil
    cdef void watch(self) noexcept nogil
    cdef void count(self) noexcept nogil
    cdef bint remove_counts(self, const double* site) noexcept nogil
    cdef void add_counts(self, const double* site) noexcept nogil
    cdef void add_to(self, double* site) noexcept nogil
    cdef void replace_counts(self, const double* shares, double share_of_way, double* site) noexcept nogil
    cdef void count_with_scale(self) noexcept nogil
    cdef double correlation(self) noexcept nogil
    cdef double scale_slope(self) noexcept nogil
    cpdef double scale_var(self) noexcept nogil
    cdef bint is_shifted(self) noexcept nogil
    cpdef void finish_shift(self, double prior_information) noexcept nogil
    cdef double far_off(self) noexcept nogil
    cdef double own_share_of_square(self) noexcept nogil
    cpdef bint has_jumped(self) noexcept nogil
    cpdef bint is_alarmed(self) noexcept nogil
    cpdef bint starts_over(self) noexcept nogil
    cpdef void reset_after_jump(self) noexcept nogil
    cpdef void assign(self, Trust other) noexcept nogil
    cdef void read(self, const double* numbers) noexcept nogil
    cdef void write(self, double* numbers) noexcept nogil
