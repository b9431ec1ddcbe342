from onepass.engine.vector_matches cimport VectorLikelihood, VectorMatch

cdef class CategoricalOutputs(VectorLikelihood):
    cdef void class_gradients(self, const double* mean, const double* cov, VectorMatch out) noexcept nogil
    cdef bint leaves_enough(self, const double* information, const double* cov, VectorMatch out) noexcept nogil

cdef (double, double) pair_odds(double mean, double var) noexcept nogil
cdef void normalise(Py_ssize_t n, double* log_p) noexcept nogil
