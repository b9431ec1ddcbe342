from onepass.engine.network cimport Workspace
from onepass.engine.network_records cimport BlockShape, NetworkRule, Signals
from onepass.engine.one_row cimport OneRow
from onepass.engine.vector_matches cimport NetworkProgress, VectorMatch

cdef class _Space:
    cdef Workspace space
    cdef Signals signals
    cdef VectorMatch match

cdef class NetworkRow(OneRow):
    cdef BlockShape shape
    cdef NetworkRule rule
    cdef NetworkProgress noise, scored_noise
    cdef VectorMatch scored
    cdef double[::1] kept
    cdef double[::1] mean, cov, target
    # Those after a step of forgetting that comes before the next row, and the number of rows seen before it.
    cdef double[::1] faded_mean, faded_cov
    cdef Py_ssize_t period, faded_at
    cdef object fade
    cdef double* now_mean
    cdef double* now_cov
    cdef double noise_gain, density
    cdef _Space learning, looking
    cdef object lock
    cdef bint is_next(self, const double[::1] x) except -1
    cdef bint take_target(self, object y) except -1
    cdef void see(self, const double[::1] x, _Space space) noexcept nogil
