from onepass.engine.moments cimport CompiledActivation
from onepass.engine.network_records cimport NetworkRule, CompiledPass
from onepass.engine.rows cimport Real
from onepass.engine.vector_matches cimport NetworkProgress, VectorMatch

cdef struct Layer:
    # Its form: see LayerForm.
    Py_ssize_t is_kronecker, n_in, n_out, rows, cols, positions, weights, input_root, output_root
    # The prior's variances: over idle inputs, 0 for others, and over outputs.
    Py_ssize_t idle, prior_outputs, patches, pools
    Py_ssize_t pool_size
    # Sizes: pre-activations, and the width of the root over outputs.
    Py_ssize_t units, width
    # Where its memory begins.
    Py_ssize_t z, z_var, patch, patch_var, pairs, pre_mean, pre_var, derivative, jacobian, entering
    Py_ssize_t weight_jacobian, projected
    Py_ssize_t informed, seen, turned, gains, moves, shares, own, own_input, gathered, turned_back

cdef struct Plan:
    # How a row moves a layer: its s, the shares c and b, and the scale t; see the module.
    double scale, explained, share, stretch
    # At most so large are the norm of the weights and the square of that of the root over outputs before the row, and
    # so much do they grow by it; and the norm of the root over inputs.
    double farthest, root_square, way, widening, input_norm
    # Inputs that were idle before the block, those in the product; and z'A z of a row's idle inputs by the prior, and
    # of those of them that have joined the product.
    double n_idle, n_inner, idle_scale, new_scale

cdef class LayerShape:
    cdef readonly Py_ssize_t n_layers, n_outputs, plans, n_memory, n_small
    cdef readonly object table
    cdef object memory
    cdef Layer* layer
    cdef const int* patch_index
    cdef const int* pool_index

cdef Plan* _plan_of(LayerShape shape, Py_ssize_t number, double* small) noexcept nogil
cdef void _enter(
    Layer* layer, const Real* mean, const Real* values, const double* x, Py_ssize_t t, Real* memory
) noexcept nogil
cdef void _look(
    LayerShape shape, CompiledActivation activation, const Real* mean, const Real* values, const double* x, Py_ssize_t t,
    Real* memory, double* small
) noexcept nogil
cdef bint _learn_row(
    CompiledPass work, Py_ssize_t i, Py_ssize_t t, LayerShape shape, NetworkRule rule, NetworkProgress noise, Real* mean,
    Real* values, Real* memory, double* small, VectorMatch match
) noexcept nogil
cdef void _forward(
    LayerShape shape, CompiledActivation activation, const Real* mean, const Real* values, const double* x, Py_ssize_t t,
    Real* memory, double* small
) noexcept nogil
cdef double _forward_kronecker(
    Layer* layer, bint is_first, const Real* mean, const Real* values, Py_ssize_t t, Real* memory, Plan* plan
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
    LayerShape shape, const Real* values, Real* memory, double* small
) noexcept nogil
cdef void _fill_weight_jacobian(Layer* layer, Py_ssize_t n_outputs, Real* memory) noexcept nogil
cdef bint _plan_step(
    Layer* layer, bint is_first, Py_ssize_t n_outputs, Py_ssize_t rank, const double* root, const double* score,
    Py_ssize_t t, const Real* values, Real* memory, double* small, Plan* plan
) noexcept nogil
cdef void _take_step(
    Layer* layer, bint is_first, Py_ssize_t rank, const double* signs, Py_ssize_t t, Real* mean, Real* values,
    Real* memory, Plan* plan
) noexcept nogil
cdef Real* _moves(Layer* layer, bint is_first, Py_ssize_t t, Real* memory) noexcept nogil
cdef double _share_of_outputs(
    Py_ssize_t rank, double share, const double* squares, const double* signs, double* factor, double* mixed
) noexcept nogil
cdef void _gather(
    Layer* layer, Py_ssize_t rank, const double* signs, const double* mixed, Real* moves, const Real* values,
    Real* memory, Plan* plan
) noexcept nogil
cdef double _signed_square(Py_ssize_t rank, const double* signs, const Real* row) noexcept nogil
cdef void _move_root(
    Layer* layer, Py_ssize_t rank, const double* signs, Real* values, Real* memory, Plan* plan
) noexcept nogil
cdef void _move_own(Layer* layer, Py_ssize_t rank, const double* signs, Real* memory) noexcept nogil
cdef void _move_weights(Layer* layer, double explained, Py_ssize_t t, Real* mean, const Real* values, Real* memory) noexcept nogil
cdef double _prior_move(
    Layer* layer, Py_ssize_t u, Py_ssize_t n_outputs, const double* score, const Real* values, const Real* memory
) noexcept nogil
cdef double _way_of_new_inputs(
    Layer* layer, Py_ssize_t n_outputs, const double* score, const Real* values, const Real* memory
) noexcept nogil
cdef void _move_new_inputs(
    Layer* layer, Py_ssize_t n_outputs, const double* score, Py_ssize_t t, Real* mean, const Real* values, Real* memory
) noexcept nogil
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
