from onepass.engine.switching cimport Switching

cdef class OneRow:
    cdef bint attempt(self, const double[::1] x, object y) except -1
    cdef double score(self) noexcept
    cdef void finish(self) noexcept
    cdef void undo(self) noexcept
    cdef object describe(self, const double[::1] x)
    cpdef raise_pending(self)

cdef class RowMixture:
    cdef list learners
    cdef Switching switching
    cdef double[::1] log_densities
    cdef bint last_first  # where the next row is looked at
    cdef bint call(self, const double[::1] x, object y) except -1
    cdef list describe(self, const double[::1] x)
    cdef void undo(self, Py_ssize_t count) noexcept
