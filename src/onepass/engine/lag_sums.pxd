cimport cython

# Where the numbers of a series are in its record. Lists follow: see `Plan`.
cpdef enum:
    AT_LENGTH = 0  # values so far, with those that are missing
    AT_OBSERVED = 1
    AT_ORIGIN = 2  # what is subtracted from values
    AT_LOG_ORIGIN = 3
    AT_POSITIVE = 4  # whether all values so far are above 0
    AT_LOWEST = 5
    AT_HIGHEST = 6
    AT_LAST = 7  # the last observed value
    AT_EVIDENCE = 8
    AT_STEP = 9  # how many values have come since the pending forecasts were made; -1 without any
    AT_SCORED = 10  # how many forecasts have been scored
    AT_ERROR_SIZE = 11  # running size of errors one step ahead, in predicted deviations
    AT_RUN = 12  # how many values in a row were far away, negative if below
    AT_MISSING = 13  # how many values in a row are missing
    AT_CHANGES = 14  # sum of the seasonal changes' sizes
    AT_N_CHANGES = 15
    AT_OUTLIERS = 16
    AT_PHASE = 17  # of the first value, in steps
    AT_SIZE = 18  # sum of the earlier forecasts' mean errors, relative to those of the population, the last ones most
    AT_READY = 19  # whether there are weights of members
    AT_FAR = 20  # sum of the errors of values in a row that were far away
    AT_SIZED = 21  # sum of those forecasts' weights
    AT_SQUARED_ERRORS = 22  # of forecasts several steps ahead, running sum
    AT_FORECASTS = 23  # their running sum, of those above 0
    HEAD = 24

cdef enum:
    KIND_INPUT = 3  # of a column: see `Plan`
    VIEW_LENGTH = 0
    VIEW_MEAN = 1
    VIEW_SQUARES = 2
    VIEW_HEAD = 3
    MEMBER_WEIGHT = 0  # sum of the rows' weights
    MEMBER_FILLED = 1  # sum of the variances of values that were missing
    MEMBER_TIER = 2  # how many of the lags are in use, as an index of tiers; -1 for none
    MEMBER_NOISE = 3  # of the last posterior, standardised
    MEMBER_STD = 4  # of an error one step ahead, in the view's units; 0 before the first posterior
    MEMBER_HEAD = 5

# Values (or their logarithms), or differences of them.
cdef struct SeriesView:
    bint logarithm
    Py_ssize_t difference
    Py_ssize_t longest  # lag of its members
    double* state
    double* past  # most recent first, longest + 2
    double* first  # the first ones, longest

cdef struct Member:
    Py_ssize_t view
    Py_ssize_t n_lags
    Py_ssize_t n_columns
    Py_ssize_t longest
    Py_ssize_t n_tiers
    double rate
    const Py_ssize_t* lags
    const Py_ssize_t* kinds
    const double* frequencies
    const Py_ssize_t* tiers  # largest lag, number of lags, and where the prior is, of each
    const double* start  # of weights of lags, then of columns: the prior while none is learned
    const double* precision
    double* state
    double* products  # of a row's target with the value k steps earlier, k = 0..longest
    double* mixed  # (1 + n_lags, n_columns): of target and lags with columns
    double* columns  # (n_columns, n_columns)
    double* weights  # of the last posterior, in the view's units

# A member's rows as normal equations in standardised units; the matrices belong to the caller.
cdef struct Equations:
    Py_ssize_t p
    Py_ssize_t n_lags
    Py_ssize_t n_inputs  # the last columns
    Py_ssize_t longest
    double centre
    double scale
    double weight
    double squares  # of the targets
    double* matrix  # (p, p)
    double* targets  # (p,)

@cython.final
cdef class Plan:
    cdef readonly Py_ssize_t n_views, n_members, horizon, n_tests, n_inputs, longest_difference, season, pause, input_memory
    cdef readonly Py_ssize_t size, most_weights, longest
    cdef readonly Py_ssize_t at_past, at_log_past, at_shares, at_pending, at_combined, at_errors, at_phases, at_inputs
    cdef readonly object settings
    cdef readonly double outliers
    cdef readonly object n_weights
    cdef const Py_ssize_t[:, ::1] _views
    cdef const Py_ssize_t[:, ::1] _members
    cdef const double[::1] rates
    cdef const Py_ssize_t[::1] lags
    cdef const Py_ssize_t[::1] kinds
    cdef const double[::1] frequencies
    cdef const double[::1] start
    cdef const double[::1] precision
    cdef const Py_ssize_t[:, ::1] tiers
    cdef SeriesView view(self, Py_ssize_t number, double* record) noexcept nogil
    cdef Member member(self, Py_ssize_t number, double* record) noexcept nogil

cdef void fill_columns(
    const Member* member, double time, const double* inputs, const double* before, double* columns
) noexcept nogil
cdef const double* _before(Py_ssize_t difference, const double* inputs, Py_ssize_t n_inputs) noexcept nogil
cdef double input_scale(const Member* member, Py_ssize_t column) noexcept nogil
cdef void _scale(Equations* found, Py_ssize_t at, double scale) noexcept nogil
cdef void push(Plan plan, double* record, double plain, double logarithm, double variance, double* space) noexcept nogil
cdef bint _push_view(Plan plan, SeriesView* view, double* record, double value) noexcept nogil
cdef void _add_row(
    const Member* member, const SeriesView* view, Py_ssize_t tier, const double* past, const double* columns
) noexcept nogil
cdef void _rebuild(Plan plan, Member* member, SeriesView* view, double* record, double* space) noexcept nogil
cdef Equations equations(
    const Member* member, const SeriesView* view, Py_ssize_t tier, double* matrix, double* targets
) noexcept nogil
cdef void _lag_products(const Member* member, const SeriesView* view, Equations* found) noexcept nogil
cdef void _shift(Py_ssize_t n, double* values, double value) noexcept nogil
