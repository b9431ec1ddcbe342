from onepass.engine.lag_sums cimport Member, Plan, SeriesView

cimport cython

# What the errors of all series tell about intervals: see `empty_sizing`.
cpdef enum:
    SIZING_SCORED = 0
    SIZING_SERIES = 1
    SIZING_RATIO = 2
    SIZING_YOUNG = 3
    SIZING_HEAD = 4

@cython.final
cdef class ForecastWorkspace:
    cdef readonly Py_ssize_t horizon
    cdef readonly object arrays
    cdef double far
    cdef readonly double expected, expected_std
    cdef double[::1] matrix, targets, mean, cov, joint, mixed, past, columns, inputs, space, ends, devs, shares
    cdef double[:, ::1] means, deviations
    cdef double[:, ::1] correlation

cdef bint _forecast_member(
    Plan plan, Py_ssize_t number, double* record, const double* priors, const double* inputs, ForecastWorkspace work,
    bint keep, double* means, double* devs
) noexcept nogil
cdef void _keep_belief(
    const Member* member, const SeriesView* view, Py_ssize_t n_lags, const double* mean, double noise, double centre,
    double scale
) noexcept nogil
cdef double _error(Plan plan, const double* record, Py_ssize_t member, Py_ssize_t horizon) noexcept nogil
cdef void _weigh(Plan plan, const double* record, Py_ssize_t horizon, double* shares) noexcept nogil
cdef double _ratio(const double* record, const double* sizing) noexcept nogil
cdef Py_ssize_t _phase(Plan plan, const double* record, Py_ssize_t ahead) noexcept nogil
cdef double _spread(Plan plan, const double* record, const double* sizing, Py_ssize_t step) noexcept nogil
cdef void _start_forecasts(
    Plan plan, double* record, const double* priors, const double* sizing, ForecastWorkspace work
) noexcept nogil
cdef void _score(Plan plan, double* record, const double* sizing, double y, bint held_back) noexcept nogil
cdef double _in_deviations(Plan plan, const double* record, Py_ssize_t h) noexcept nogil
cdef double _size_rate(double n, double n_series) noexcept nogil
cdef double _quantile_rate(double n, double n_series) noexcept nogil
cdef bint _was_young(const double* record, Py_ssize_t since) noexcept nogil
cdef double _outside(
    Plan plan, const double* record, double quantile, Py_ssize_t first, Py_ssize_t stop
) noexcept nogil
cdef void _finish(Plan plan, double* record, double* sizing) noexcept nogil
cdef void _learn_phases(Plan plan, double* record, const double* sizes, double ratio) noexcept nogil
cdef (double, double) _one_ahead(Plan plan, double* record, ForecastWorkspace work) noexcept nogil
cdef (double, double) _accept(double* record, double y, double mean, double std, double far) noexcept nogil
cdef void _shift_pending(Plan plan, double* record, double shift) noexcept nogil
cdef void _learn(
    Plan plan, double* record, double y, const double* inputs, const double* priors, double* sizing, ForecastWorkspace work
) noexcept nogil
