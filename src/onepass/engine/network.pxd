from onepass.engine.network_records cimport BlockShape, NetworkRule, NetworkShape, Signals, Sites, CompiledPass
from onepass.engine.moments cimport CompiledActivation
from onepass.engine.rows cimport Real
from onepass.engine.vector_matches cimport NetworkProgress, VectorMatch

cdef enum:
    FEW_OUTPUTS = 6

cdef class Workspace:
    cdef Py_ssize_t n_outputs, size
    cdef VectorMatch match
    cdef object memory
    cdef double* weight_jacobian
    cdef double* gain
    cdef double* weighted
    cdef double* unit_gain
    cdef double* cov
    cdef double* values

cpdef Py_ssize_t learn_blocks(
    CompiledPass work, BlockShape shape, NetworkRule rule, NetworkProgress noise, Sites sites, Real[::1] mean, Real[::1] cov
)
cpdef object look_blocks(
    const double[::1] row, BlockShape shape, NetworkRule rule, const Real[::1] mean, const Real[::1] cov
)
cdef Py_ssize_t _learn_rows(
    CompiledPass work, BlockShape shape, NetworkRule rule, NetworkProgress noise, Sites sites, Real* mean, Real* cov,
    Workspace space, Signals signals
) noexcept nogil
cdef bint _without_site(
    Py_ssize_t row, BlockShape shape, Sites sites, Real* mean, Real* cov, Workspace space, Signals signals
) noexcept nogil
cdef void _keep_site(
    Py_ssize_t row, BlockShape shape, Sites sites, const Real* mean, Workspace space, Signals signals, VectorMatch match
) noexcept nogil
cdef void forward(
    BlockShape shape, CompiledActivation activation, double kept, const double* added, const Real* mean, const Real* cov,
    const double* x, Signals signals
) noexcept nogil
cdef double _unit_variance(
    Py_ssize_t n, const Real* weights, double kept, const double* added, const Real* cov, Py_ssize_t stride,
    const double* z, const double* z_var
) noexcept nogil
cdef void _add_correlations(BlockShape shape, double kept, const Real* cov, Signals signals) noexcept nogil
cdef void backward(NetworkShape shape, const Real* mean, Signals signals) noexcept nogil
cdef void fill_weight_jacobian(NetworkShape shape, Signals signals, Py_ssize_t k, Real* jacobian) noexcept nogil
cdef void project(
    BlockShape shape, double kept, const double* added, const Real* cov, Signals signals, Workspace space
) noexcept nogil
cdef void project_one(
    Py_ssize_t size, const Real* cov, const double* s, double* g
) noexcept nogil
cdef void _project_two(
    Py_ssize_t size, const Real* cov, const double* s0, const double* s1, double* g0, double* g1
) noexcept nogil
cdef void _project_units(BlockShape shape, const Real* cov, Signals signals, double* units) noexcept nogil
cdef void _combine_units(BlockShape shape, Signals signals, const double* units, double* gain) noexcept nogil
cdef void step(
    BlockShape shape, double kept, const double* added, Real* mean, Real* cov, Workspace space, VectorMatch match
) noexcept nogil
cdef void _downdate_one(
    Py_ssize_t size, double kept, Real* cov, const double* weighted, const double* gain
) noexcept nogil
cdef void _downdate_row(
    Py_ssize_t n, Py_ssize_t n_outputs, Py_ssize_t stride, double kept, Real* row, const double* weighted,
    const double* gain
) noexcept nogil
cdef void _linear_response(Workspace space, const Real* mean) noexcept nogil
cdef double magnitude(Workspace space, const double* score) noexcept nogil
cdef void move_towards(BlockShape shape, Real* cov, double share, const double* prior_var) noexcept nogil
cdef void _copy_site(NetworkShape shape, Signals signals, double* site, bint keeps) noexcept nogil
cdef double* _copy(Py_ssize_t n, double* values, double* site, bint keeps) noexcept nogil
