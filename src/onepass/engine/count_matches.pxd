from onepass.engine.matches cimport CountLikelihood, Match

cdef class PoissonCount(CountLikelihood):
    pass

cdef class NegativeBinomialCount(CountLikelihood):
    pass

cdef Match count_match(double mean, double var, double y, double dispersion) noexcept nogil
cdef double _log_normaliser(double y, double shape) noexcept nogil
cdef (double, double) _side(double h, double p, double trials, double var) noexcept nogil
cdef double _mode(double mean, double var, double y, double dispersion) noexcept nogil
cdef double _width(double side, double p, double trials, double var) noexcept nogil
