from onepass.engine.moments cimport CompiledActivation
from onepass.engine.network_records cimport NetworkRule, TrainingPass
from onepass.engine.rows cimport Real
from onepass.engine.vector_matches cimport NoiseState, VectorMatch

cdef struct Layer:
    # Its form: see LayerForm.
    Py_ssize_t is_kronecker, n_in, n_out, rows, cols, positions, weights, input_root, output_root, patches, pools
    Py_ssize_t pool_size
    # Sizes: pre-activations, and the width of the root over outputs.
    Py_ssize_t units, width
    # Where its memory begins.
    Py_ssize_t z, z_var, patch, patch_var, pairs, pre_mean, pre_var, derivative, jacobian, entering
    Py_ssize_t weight_jacobian, projected
    Py_ssize_t informed, seen, turned, gains, moves, shares, own, own_input, gathered, turned_back

cdef class LayerShape:
    cdef readonly Py_ssize_t n_layers, n_outputs, block, n_memory, n_small
    cdef readonly object table
    cdef object memory, one_row
    cdef Layer* layer
    cdef const int* patch_index
    cdef const int* pool_index

cdef Py_ssize_t _learn_rows(
    TrainingPass work, Py_ssize_t first, Py_ssize_t count, LayerShape shape, NetworkRule rule, NoiseState noise,
    Real* mean, Real* values, Real* memory, double* small, VectorMatch match
) noexcept nogil
cdef void _forward(
    LayerShape shape, CompiledActivation activation, const Real* mean, const Real* values, const double* x, Py_ssize_t t,
    Real* memory, double* outputs, double* scales
) noexcept nogil
cdef double _forward_kronecker(
    Layer* layer, bint is_first, const Real* mean, const Real* values, Py_ssize_t t, Real* memory
) noexcept nogil
cdef void _forward_full(
    Layer* layer, const int* patch_index, bint is_certain, const Real* mean, Real* memory
) noexcept nogil
cdef void _activate(
    Layer* layer, const int* pool_index, CompiledActivation activation, const Real* pre_mean, Real* memory, Real* z,
    Real* z_var
) noexcept nogil
cdef void _backward(LayerShape shape, const Real* mean, Real* memory) noexcept nogil
cdef void _through_weights(
    Layer* layer, const int* patch_index, Py_ssize_t n_outputs, const Real* mean, Real* memory
) noexcept nogil
cdef void _project(
    LayerShape shape, const Real* values, const double* scales, Real* memory, double* cov
) noexcept nogil
cdef void _fill_weight_jacobian(Layer* layer, Py_ssize_t n_outputs, Real* memory) noexcept nogil
cdef void _step(
    Layer* layer, bint is_first, Py_ssize_t n_outputs, Py_ssize_t rank, const double* root, const double* score,
    double scale, Py_ssize_t t, Real* mean, Real* values, Real* memory, double* small
) noexcept nogil
cdef double _share_of_outputs(
    Py_ssize_t rank, double share, const double* squares, const double* signs, double* factor, double* mixed
) noexcept nogil
cdef void _move_root(
    Layer* layer, Py_ssize_t rank, const double* signs, const double* mixed, double share, double stretch, Real* moves,
    Real* values, Real* memory
) noexcept nogil
cdef void _move_own(Layer* layer, Py_ssize_t rank, const double* signs, Real* memory) noexcept nogil
cdef void _move_weights(Layer* layer, double explained, Py_ssize_t t, Real* mean, const Real* values, Real* memory) noexcept nogil
cdef void _limit_step(Py_ssize_t n, const double* cov, VectorMatch match) noexcept nogil
cdef Py_ssize_t _information_root(
    Py_ssize_t n, const double* information, const double* cov, double* left, double* root
) noexcept nogil
cdef Py_ssize_t _signed_root(
    Py_ssize_t n, const double* information, const double* cov, double* work, double* root
) noexcept nogil
cdef void multiply(
    Py_ssize_t n, Py_ssize_t inner, Py_ssize_t width, const Real* first, Py_ssize_t stride, const Real* second,
    Py_ssize_t second_stride, double kept, Real* product
) noexcept nogil
cdef Real _dot(Py_ssize_t n, const Real* first, const Real* second) noexcept nogil
cdef void _multiply_add(Py_ssize_t n, Real factor, const Real* values, Real* total) noexcept nogil
cdef void multiply_transposed(
    Py_ssize_t n, Py_ssize_t inner, Py_ssize_t width, const Real* first, const Real* second, Real* product
) noexcept nogil
cdef void _gemm(
    char transposed, Py_ssize_t rows, Py_ssize_t cols, Py_ssize_t inner, const Real* first, Py_ssize_t first_stride,
    const Real* second, Py_ssize_t second_stride, double kept, Real* product
) noexcept nogil
