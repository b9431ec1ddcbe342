cdef enum:
    N_PROBITS = 8

cdef double[8] PROBIT_WEIGHTS
cdef double[8] PROBIT_SCALES

cdef class CompiledActivation:
    cdef readonly bint identity  # whether it is f(a) = a
    cdef (double, double, double) at(self, double mean, double var) noexcept nogil
    cpdef tuple one(self, double mean, double var)
    cpdef object moments(self, const double[::1] mean, const double[::1] var)

cdef class RescaledMoments(CompiledActivation):
    cdef CompiledActivation base
    cdef double inner, outer, offset

cdef class NarrowedMoments(CompiledActivation):
    cdef CompiledActivation base
    cdef double share

cdef class PiecewiseMoments(CompiledActivation):
    cdef readonly int n_pieces
    cdef double[:, ::1] pieces

cdef class SigmoidMoments(CompiledActivation):
    pass

cdef class PaperSigmoidMoments(CompiledActivation):
    pass

cdef class ProbitMoments(CompiledActivation):
    pass

cdef class StepMoments(CompiledActivation):
    pass

cdef class GeluMoments(CompiledActivation):
    pass

cdef class SoftplusMoments(CompiledActivation):
    pass

cdef class ExponentialMoments(CompiledActivation):
    pass

cdef class PythonMoments(CompiledActivation):
    cdef object activation
    cdef object error

cdef double _mass(double low, double low_tail, double high, double high_tail) noexcept nogil
cdef (double, double) _tail_and_slope(double mean, double var) noexcept nogil
cdef (double, double, double) _sigmoid_moments(double mean, double var) noexcept nogil
cdef double _probit_variance(double mean, double var) noexcept nogil
cdef (double, double, double) _mirror(double mean, double var, double low, double low_var, double low_slope) noexcept nogil
