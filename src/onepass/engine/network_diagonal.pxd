from onepass.engine.moments cimport CompiledActivation
from onepass.engine.network_records cimport NetworkRule, NetworkShape, Signals, CompiledPass
from onepass.engine.rows cimport Real
from onepass.engine.vector_matches cimport NetworkProgress, VectorLikelihood, VectorMatch

cdef class DiagonalWorkspace:
    cdef object memory
    cdef double* own_var
    cdef double* pre_mean
    cdef double* pre_var
    cdef double* scores
    cdef double* informations
    cdef double* cov

cpdef Py_ssize_t learn_diagonal(
    CompiledPass work, NetworkShape shape, NetworkRule rule, NetworkProgress noise, Real[::1] mean, Real[::1] variance
)
cpdef object look_diagonal(
    const double[::1] row, NetworkShape shape, NetworkRule rule, const Real[::1] mean, const Real[::1] variance
)
cdef void _look(
    NetworkShape shape, CompiledActivation activation, const double* x, const Real* mean, const Real* variance,
    Signals signals, DiagonalWorkspace space
) noexcept nogil
cdef Py_ssize_t _learn_rows(
    CompiledPass work, NetworkShape shape, NetworkRule rule, NetworkProgress noise, Real* mean, Real* variance,
    DiagonalWorkspace space, Signals signals, VectorMatch match
) noexcept nogil
cdef double _match(
    NetworkShape shape, VectorLikelihood likelihood, Signals signals, DiagonalWorkspace space, const double* target,
    NetworkProgress noise, VectorMatch match
) noexcept nogil
cdef void _forward(
    NetworkShape shape, CompiledActivation activation, const Real* mean, const Real* variance, Signals signals,
    DiagonalWorkspace space
) noexcept nogil
cdef void _backward(NetworkShape shape, const Real* mean, Signals signals) noexcept nogil
cdef void _project(NetworkShape shape, Signals signals, DiagonalWorkspace space) noexcept nogil
cdef void _gather(NetworkShape shape, Signals signals, VectorMatch match, DiagonalWorkspace space) noexcept nogil
cdef void _step(
    NetworkShape shape, Signals signals, DiagonalWorkspace space, Real* mean, Real* variance
) noexcept nogil
