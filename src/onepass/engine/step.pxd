from onepass.engine.matches cimport CompiledLikelihood, Match

cimport cython

@cython.final
cdef class LearningState:
    cdef public double noise, noise_weight, noise_window, log_evidence, n_seen
    cpdef void assign(self, LearningState other) noexcept nogil

cpdef (double, double, double) learn_scalar(
    CompiledLikelihood likelihood, LearningState state, double mean, double var, double wide, double input_var, double y
) noexcept nogil
