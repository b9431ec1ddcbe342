from onepass.engine.network_records cimport BlockShape, NetworkRule, CompiledPass
from onepass.engine.rows cimport Real
from onepass.engine.vector_matches cimport NetworkProgress, VectorMatch

cdef class OutputWorkspace:
    cdef object memory
    cdef double* gain
    cdef double* inputs
    cdef double* cov
    cdef double* mean

cdef Py_ssize_t _learn_rows(
    CompiledPass work, BlockShape shape, NetworkRule rule, NetworkProgress noise, Real* mean, Real* cov,
    OutputWorkspace space, VectorMatch match
) noexcept nogil
cdef bint match_row(
    CompiledPass work, Py_ssize_t i, NetworkRule rule, NetworkProgress noise, const double* mean, const double* cov,
    VectorMatch match
) noexcept nogil
cdef void _downdate(Py_ssize_t width, double information, Real* cov, const double* gain) noexcept nogil
