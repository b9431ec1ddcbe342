from onepass.engine.moments cimport CompiledActivation
from onepass.engine.network_records cimport NetworkRule, NetworkShape, Signals, CompiledPass
from onepass.engine.rows cimport Real
from onepass.engine.vector_matches cimport NetworkProgress, VectorMatch

ctypedef fused Left:
    float
    double

cdef class LowRankWorkspace:
    cdef NetworkShape shape
    cdef NetworkRule rule
    cdef Signals signals
    cdef VectorMatch match
    cdef Py_ssize_t capacity
    cdef double rounding
    cdef object memory
    cdef double* units
    cdef double* own_var
    cdef double* outputs
    cdef double* cov
    cdef double* left
    cdef double* root
    cdef double* factor
    cdef double* precision_root
    cdef double* shares
    cdef double* gain
    cdef double* slope
    cdef double* variances

cpdef Py_ssize_t learn_low_rank(
    CompiledPass work, Py_ssize_t first, NetworkProgress noise, LowRankWorkspace space, Real[::1] mean, Real[::1] variance,
    Real[:, ::1] precision_root, Real[:, ::1] cov_root, Real[::1] used
)
cpdef object look_low_rank(
    const double[::1] row, LowRankWorkspace space, const Real[::1] mean, const Real[::1] variance,
    const Real[:, ::1] cov_root, const Real[::1] used
)
cdef void _look(
    const double* x, const Real* mean, const Real* variance, const Real* cov_root, Py_ssize_t used,
    LowRankWorkspace space
) noexcept nogil
cdef Py_ssize_t _learn_rows(
    CompiledPass work, Py_ssize_t first, NetworkProgress noise, LowRankWorkspace space, Real* mean, const Real* variance,
    Real* precision_root, Real* cov_root, Py_ssize_t* used
) noexcept nogil
cdef bint _is_deep(NetworkShape shape, Py_ssize_t layer) noexcept nogil
cdef void _fill_variances(
    NetworkShape shape, const Real* variance, const Real* cov_root, Py_ssize_t used, LowRankWorkspace space
) noexcept nogil
cdef void _forward(
    NetworkShape shape, CompiledActivation activation, const Real* mean, const Real* variance, const Real* cov_root,
    Py_ssize_t used, Signals signals, LowRankWorkspace space
) noexcept nogil
cdef void _add_correlations(
    NetworkShape shape, const Real* cov_root, Py_ssize_t used, Signals signals, LowRankWorkspace space
) noexcept nogil
cdef void _project(NetworkShape shape, Py_ssize_t used, Signals signals, LowRankWorkspace space) noexcept nogil
cdef Py_ssize_t _fill_roots(Py_ssize_t n, const double* information, LowRankWorkspace space) noexcept nogil
cdef void _step(
    NetworkShape shape, Py_ssize_t rank, Py_ssize_t used, Real* mean, const Real* variance,
    Real* precision_root, Real* cov_root, Signals signals, LowRankWorkspace space
) noexcept nogil
cdef void _gather(
    Py_ssize_t n, Py_ssize_t width, Py_ssize_t stride, const double* factors, const Real* rows, double* total
) noexcept nogil
cdef void _gather_more(
    Py_ssize_t n, Py_ssize_t width, Py_ssize_t stride, const double* factors, const Real* rows, double* total
) noexcept nogil
cdef double _dot(Py_ssize_t n, const Left* first, const Real* second) noexcept nogil
