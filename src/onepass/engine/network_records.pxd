from onepass.engine.moments cimport CompiledActivation
from onepass.engine.vector_matches cimport NetworkProgress, VectorLikelihood, VectorMatch

cdef class Signals

cdef class NetworkShape:
    cdef readonly Py_ssize_t n_layers, n_outputs, size, widest, n_units
    cdef tuple memory
    cdef Py_ssize_t* width
    cdef Py_ssize_t* start

cdef class BlockShape(NetworkShape):
    cdef readonly Py_ssize_t n_blocks
    cdef readonly object cuts, offsets
    cdef Py_ssize_t* cut
    cdef Py_ssize_t* offset
    cdef Py_ssize_t* unit_offset
    cdef Py_ssize_t* unit_stride
    cdef Py_ssize_t* unit_layer
    cdef Py_ssize_t* first_unit

cdef class NetworkRule:
    cdef readonly CompiledActivation activation
    cdef readonly VectorLikelihood likelihood
    cdef readonly double drift, kept  # share of the covariance that is left before each row
    cdef const double[::1] prior_var, added  # to the variances before each row

cdef class CompiledPass:
    cdef const double[:, ::1] rows
    cdef const double[:, ::1] targets
    cdef const Py_ssize_t[::1] order
    cdef double[::1] densities
    cdef double[::1] gains
    cdef double[:, ::1] trust
    cdef double[:, :, ::1] record
    cdef double[:, ::1] outputs
    cdef const double[::1] weights
    cdef readonly double noise_gain, noise_bound
    cdef readonly bint keeps_record, keeps_outputs, is_first
    cdef void start_row(self, Py_ssize_t i, NetworkProgress noise) noexcept nogil
    cdef void write_down(
        self, Py_ssize_t i, double density, NetworkRule rule, const double* mean, const double* cov, NetworkProgress noise,
        VectorMatch match
    ) noexcept nogil
    cdef void finish_row(
        self, Py_ssize_t i, NetworkRule rule, const double* mean, const double* cov, NetworkProgress noise
    ) noexcept nogil

cdef class Sites:
    cdef double[:, ::1] signals
    cdef double[:, :, ::1] precision
    cdef double[:, ::1] h
    cdef Signals removed
    cdef public bint filled

cdef class Signals:
    cdef Py_ssize_t n_layers, n_outputs, widest
    cdef object memory
    cdef double* inputs
    cdef double* input_var
    cdef double* expected_derivative
    cdef double* output_jacobian
    cdef double* mean
    cdef double* layer_inputs(self, Py_ssize_t layer) noexcept nogil
    cdef double* layer_jacobian(self, Py_ssize_t layer, Py_ssize_t k) noexcept nogil

cdef Py_ssize_t* _address(const Py_ssize_t[::1] values) noexcept
