from onepass.engine.network_records cimport BlockShape, NetworkRule, Signals, CompiledPass
from onepass.engine.rows cimport Real
from onepass.engine.vector_matches cimport NetworkProgress, VectorMatch

cdef void _multiply_add(Py_ssize_t n, double factor, const double* values, double* total) noexcept nogil
