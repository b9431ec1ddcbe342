from onepass.engine.matches cimport CompiledLikelihood, Match

cdef class LearningState:
    cdef public double noise, noise_weight, noise_window, log_evidence, n_seen

cdef (double, double, double) learn_scalar(
    CompiledLikelihood likelihood, LearningState state, double mean, double var, double wide, double input_var, double y
) noexcept nogil
