# Where the numbers of a scorer are.
cpdef enum:
    AT_N = 0  # values scored
    AT_LOG_SIZE = 1  # of errors, in deviations of the forecaster
    AT_QUIET = 2  # values for which no alarm is raised
    AT_CONFIRMED = 3  # values after a spike that are on its side; -1 where none is in question
    AT_JUMP = 4  # how far it was from what was expected
    AT_BEFORE = 5  # the value before it
    AT_MEAN = 6  # running mean of rarities
    AT_SURPRISES = 7  # logarithms of the quantiles of 10 % and 1 %
    AT_EVIDENCES = 9  # the same
    STATE_SIZE = 11

# What is found about a value.
cpdef enum:
    FOUND_EXPECTED = 0
    FOUND_LOW = 1
    FOUND_HIGH = 2
    FOUND_TAIL = 3
    FOUND_SCORE = 4
    FOUND_KIND = 5
    N_FOUND = 6

cpdef enum:
    NO_ALARM = 0
    SPIKE = 1
    LEVEL = 2
    RUN = 3

cdef double _two_sided(double z) noexcept nogil
cdef double _distance(double tail) noexcept nogil
cdef double _slope(const double* tail) noexcept nogil
cdef double _rarity(const double* tail, double x) noexcept nogil
cdef double _with_rarity(const double* tail, double rarity) noexcept nogil
cdef void _track(double* tail, double x, double n, double rate) noexcept nogil
cdef double _limit(const double* state, int side, double rarest) noexcept nogil
cdef double _score(double* state, double z, int side, double* found) noexcept nogil
cdef bint _has_moved(double* state, double y, double reference) noexcept nogil
cdef int _alarm(double* state, double rarity, double rarest, bint alone, bint moved, double quiet) noexcept nogil
cdef bint _score_constant(double y, double value, double n, double rarest, int side, double* found) noexcept nogil
