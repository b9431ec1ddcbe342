from onepass.engine.network_records cimport BlockShape, NetworkRule, Signals, TrainingPass
from onepass.engine.rows cimport Real
from onepass.engine.vector_matches cimport NoiseState, VectorMatch

cdef void _multiply_add(Py_ssize_t n, double factor, const double* values, double* total) noexcept nogil
