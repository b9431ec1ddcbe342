"""Learning of networks whose layers have beliefs of their own: Kronecker ones for wide layers, full ones for small.

The weights ``W`` of a layer have the covariance ``B ⊗ A``, ``A`` over inputs and ``B`` over outputs, or one full
covariance; the filters of a convolution always have a full one. Every covariance is stored as a square root, so that
it can't lose its positive definiteness, in single precision either: ``A = P P'``, ``B = Q Q'`` and, full, ``C = Q Q'``.

With the inputs ``z``, the derivatives ``D`` of the outputs in the layer's pre-activations, score and information ``M``
of the match, ``f = P'z``, ``s = f'f``, ``E = D Q`` and ``N = E E'``, a row moves a Kronecker layer by

    W += (Q E'score) (P f)',    A <- A - c (P f)(P f)',    B <- t (B - b Q E'M E Q'),

    c = tr(N M) / n_out,  b = s / n_in,

the pair of factors that has the least divergence from the joint posterior after one step of moment matching, with the
scale ``t`` at its optimum. A full layer has ``J`` in place of ``D`` and is the same with ``b = t = 1`` and no ``A``.

Of an input that was 0 in all rows nothing is known, whatever is known about the units. So the weights of such idle
inputs of the first layer are not part of the product: they keep the prior's variances, ``B0 ⊗ diag(idle)``. The first
row with a new input is predicted, and moves its weights, by these variances; then the input joins ``A``, and ``n_in``,
with as much variance as leaves no direction vaguer than the prior: see `release`.

Rows are learned in blocks. Within one, ``P`` stays what it was: the block's rows turn ``f`` by ``I - α f f'`` each, and
the products of all rows with ``P`` are taken together where the inputs are known in advance, as those of the first
layer are. The result is that of one row after the other but for rounding. Rows that come one per call are learned in a
block too, which stays open over the calls: see `OpenBlock`.

A row is looked at first: the moments of the outputs and their derivatives, which is also how it is predicted. Then its
step is planned, layer by layer, and only if the numbers of all layers stay finite is anything of the belief written.
"""

from threading import Lock
from typing import NamedTuple

import cython
import numpy as np
from cython.cimports.libc.math import fabs, isfinite, sqrt
from cython.cimports.onepass.engine.network_records import CompiledPass, NetworkRule
from cython.cimports.onepass.engine.rows import Real
from cython.cimports.onepass.engine.small_matrices import diagonalise
from cython.cimports.onepass.engine.vector_matches import NetworkProgress, VectorMatch
from cython.cimports.scipy.linalg import cython_blas
from scipy.linalg.blas import dgemm, sgemm

from onepass.engine.vector_matches import LEAST_LEFT

_GEMM = {np.dtype(np.float64): dgemm, np.dtype(np.float32): sgemm}
BLOCK = 32  # rows

# A direction of the outputs is left out of a row's step if the row explains less of its variance than this share of
# what it explains of the first: a row tells of a few classes. Absolute, the bound would stop a long stream's learning.
_LEAST_SHARE = cython.declare(cython.double, 1e-9)
_WORTH_BLAS = cython.declare(cython.Py_ssize_t, 30_000)  # multiplications, for which a call pays
_LEAST_LEFT = cython.declare(cython.double, LEAST_LEFT)
# Standard deviations of the belief, beyond which a row can't move a network with hidden layers: that far it is
# not linear, and steps that take it for linear may grow from row to row without bound.
FARTHEST = 5.0
_FARTHEST = cython.declare(cython.double, FARTHEST)
_ROUNDING = cython.declare(cython.double, 1e-10)  # of what elimination leaves of zero, relative to the first pivot
# Of weights and of the squares of roots: what is below it is finite after another row, whatever rounding adds.
_LARGEST_SINGLE = cython.declare(cython.double, 1e37)
_LARGEST_DOUBLE = cython.declare(cython.double, 1e307)


class LayerForm(NamedTuple):
    """What a layer looks like: its weights, and how its inputs and outputs are wired."""

    is_kronecker: bool  # whether its covariance is ``B ⊗ A``, or else full
    n_in: int  # numbers that enter it
    rows: int  # of its matrix of weights
    cols: int  # the bias first
    patches: object  # for every position the inputs that its weights see, (positions, cols - 1)
    pools: object  # for every pre-activation the output that it is averaged into, or -1
    pool_size: int  # how many make one average

    @property
    def n_out(self) -> int:
        """Numbers that leave it."""
        return int(self.pools.max()) + 1

    @property
    def width(self) -> int:
        """Rows of the root over its outputs, or over all its weights."""
        return self.rows if self.is_kronecker else self.rows * self.cols

    @property
    def n_numbers(self) -> int:
        """Of its covariance's roots, and of the prior's variances of a Kronecker layer: idle inputs, and outputs."""
        if not self.is_kronecker:
            return self.width**2
        return self.rows**2 + self.cols**2 + self.cols + self.rows


class _Places:
    """Gives out places in an array, one after the other."""

    def __init__(self):
        self.end = 0

    def take(self, count):
        """The first of so many places."""
        start, self.end = self.end, self.end + count
        return start


@cython.cfunc
def _place(layer: cython.pointer(Layer), is_first: cython.bint, n: cython.Py_ssize_t, memory):
    """Give a layer its memory for the rows of a block, with ``n`` outputs."""
    patched = 0 if layer.is_kronecker else layer.positions * layer.cols
    pairs = 0 if layer.is_kronecker else layer.cols * (layer.cols + 1) // 2
    seen = BLOCK * layer.cols if layer.is_kronecker else 0
    looks_ahead = is_first and layer.is_kronecker
    layer.z, layer.z_var = memory.take(layer.n_in + 1), memory.take(layer.n_in + 1)
    layer.patch, layer.patch_var, layer.pairs = memory.take(patched), memory.take(patched), memory.take(pairs)
    layer.pre_mean = memory.take(BLOCK * layer.units if looks_ahead else layer.units)
    layer.pre_var, layer.derivative = memory.take(layer.units), memory.take(layer.units)
    layer.jacobian, layer.entering = memory.take(n * layer.units), memory.take(n * layer.n_in)
    layer.weight_jacobian, layer.projected = memory.take(n * layer.width), memory.take(n * layer.width)
    layer.informed = memory.take((n + 1) * layer.width)
    layer.seen, layer.turned, layer.gains = memory.take(seen), memory.take(seen), memory.take(seen)
    layer.moves = memory.take(BLOCK * layer.rows if looks_ahead else layer.width)
    layer.shares = memory.take(BLOCK)
    layer.own = memory.take(layer.rows if layer.is_kronecker else layer.rows * pairs)
    layer.own_input = memory.take(layer.cols)
    layer.gathered, layer.turned_back = memory.take((n + 1) * layer.width), memory.take(n * layer.width)


class LayerShape:
    """The positions of each layer's numbers in the mean, in the roots and in the memory of a block of rows."""

    def __init__(self, forms):
        self.table, self.n_layers, self.n_outputs = forms, len(forms), forms[len(forms) - 1].n_out
        layers = np.zeros((len(forms), cython.sizeof(Layer) // cython.sizeof(cython.Py_ssize_t)), dtype=np.intp)
        patches = np.concatenate([form.patches.ravel() for form in forms]).astype(np.intc)
        pools = np.concatenate([form.pools for form in forms]).astype(np.intc)
        self.memory = (layers, patches, pools)
        view: cython.Py_ssize_t[:, ::1] = layers
        self.layer = cython.cast(cython.pointer(Layer), cython.address(view[0, 0]))
        index: cython.const[cython.int][::1] = patches
        self.patch_index = cython.address(index[0])
        index = pools
        self.pool_index = cython.address(index[0])
        weights, values, patch, pool, memory = _Places(), _Places(), _Places(), _Places(), _Places()
        number: cython.Py_ssize_t
        for number, form in enumerate(forms):
            layer = cython.address(self.layer[number])
            layer.is_kronecker, layer.pool_size = bool(form.is_kronecker), form.pool_size
            layer.n_in, layer.n_out, layer.positions = form.n_in, form.n_out, len(form.patches)
            layer.rows, layer.cols, layer.width = form.rows, form.cols, form.width
            layer.units = layer.rows * layer.positions
            layer.weights = weights.take(layer.rows * layer.cols)
            layer.input_root = values.take(layer.cols * layer.cols if layer.is_kronecker else 0)
            layer.output_root = values.take(layer.width * layer.width)
            layer.idle = values.take(layer.cols if layer.is_kronecker else 0)
            layer.prior_outputs = values.take(layer.rows if layer.is_kronecker else 0)
            layer.patches, layer.pools = patch.take(form.patches.size), pool.take(len(form.pools))
            _place(layer, number == 0, self.n_outputs, memory)
        self.n_memory = memory.end
        # Outputs and their covariance, the scale of each layer, root and signs, three matrices of a step; its plans.
        n = self.n_outputs
        self.plans = n + n * n + self.n_layers + (n + 1) * n + 3 * n * n
        self.n_small = self.plans + cython.sizeof(Plan) // cython.sizeof(cython.double) * self.n_layers

    def __reduce__(self):
        return LayerShape, (self.table,)


class _Arrays:
    """The numbers of a Kronecker layer as matrices, for the products of all rows of a block."""

    def __init__(self, layer: Layer, mean, values, memory):
        block, rows, cols = BLOCK, layer.rows, layer.cols
        self.weights = _matrix(mean, layer.weights, rows, cols)
        self.root = _matrix(values, layer.input_root, cols, cols)
        self.seen, self.turned, self.gains = (
            _matrix(memory, start, block, cols) for start in (layer.seen, layer.turned, layer.gains)
        )
        self.shares = memory[layer.shares : layer.shares + block]

    def move_root(self, count):
        """Turn the root over the inputs by all rows of a block."""
        shared = self.gains[:count] * self.shares[:count, None]
        _subtract_product(self.root, shared, self.seen[:count])


class _FirstArrays(_Arrays):
    """Those of the first layer, whose inputs are known before a block begins."""

    def __init__(self, layer: Layer, mean, values, memory):
        _Arrays.__init__(self, layer, mean, values, memory)
        self.moves = _matrix(memory, layer.moves, BLOCK, layer.rows)
        self.pre_mean = _matrix(memory, layer.pre_mean, BLOCK, layer.rows)
        self.output_root = _matrix(values, layer.output_root, layer.rows, layer.rows)
        # Those of the inputs, without the bias.
        self.input_part = self.root[1:, 1:]
        self.idle = values[layer.idle + 1 : layer.idle + layer.cols]
        self.prior_outputs = values[layer.prior_outputs : layer.prior_outputs + layer.rows]

    def new_inputs(self, rows):
        """Which inputs are new in which of the rows ``(n, d)``."""
        return (rows != 0.0) & (self.idle > 0.0)

    def release(self, inputs):
        """Let inputs join the product; call `end_release` once the first row with them was learned or refused."""
        release(inputs, self.input_part, self.output_root, self.idle, self.prior_outputs)

    def end_release(self, inputs, is_learned):
        """Forget that inputs were idle, or that they were released."""
        if is_learned:
            self.idle[inputs] = 0.0
        else:
            self.input_part[inputs, inputs] = 0.0

    def look_ahead(self, rows):
        """The products of all rows of a block with the layer's numbers as they are before the block."""
        count = len(rows)
        z = np.ones((count, rows.shape[1] + 1), dtype=self.root.dtype)
        z[:, 1:] = rows
        np.matmul(z, self.root, out=self.seen[:count])
        np.matmul(z, self.weights.T, out=self.pre_mean[:count])

    def move_weights(self, count):
        """Move the weights by all rows of a block, and fill their gains ``A z``."""
        np.matmul(self.turned[:count], self.root.T, out=self.gains[:count])
        _subtract_product(self.weights, -self.moves[:count], self.gains[:count])


def release(inputs, input_root, output_root, idle, prior_outputs) -> None:
    """Give idle inputs the largest variances in ``A`` for which ``B ⊗ A`` is nowhere above ``B0 ⊗ diag(idle)``."""
    unknown = prior_outputs > 0.0
    if inputs.size == 0 or not unknown.any():
        return
    relative = output_root[unknown] / np.sqrt(prior_outputs[unknown, None])
    largest = np.linalg.eigvalsh(relative @ relative.T).max()
    input_root[inputs, inputs] = np.sqrt(idle[inputs] / max(largest, _LEAST_LEFT))


def _subtract_product(total, first, second):
    """``total -= first'second``, without another matrix of that size."""
    # In Fortran's order, in which matrices are taken here for their transposes.
    gemm = _GEMM[total.dtype]
    gemm(-1.0, second.T, first.T, beta=1.0, c=total.T, trans_b=1, overwrite_c=1)


def _matrix(flat, start, rows, cols):
    return flat[start : start + rows * cols].reshape(rows, cols)


class _Block:
    """A block of rows: its memory, and what is done for all of them together."""

    def __init__(self, shape: LayerShape, mean, values):
        self.shape, self.mean, self.values = shape, mean, values
        self.memory, self.small = np.zeros(shape.n_memory, dtype=mean.dtype), np.zeros(shape.n_small)
        self.match = VectorMatch(shape.n_outputs)
        number: cython.Py_ssize_t
        for number in range(shape.n_layers):
            self.memory[shape.layer[number].z] = 1.0
        kronecker = [number for number, form in enumerate(shape.table) if form.is_kronecker]
        numbers = (mean, values, self.memory)
        self.arrays = [(_Arrays if number else _FirstArrays)(shape.layer[number], *numbers) for number in kronecker]
        self.first = self.arrays[0] if 0 in kronecker else None

    def new_inputs(self, rows):
        """Which inputs of the first layer are new in which of the rows ``(n, d)``, if its idle ones are apart."""
        return np.zeros((len(rows), 0), dtype=bool) if self.first is None else self.first.new_inputs(rows)

    def begin(self):
        """Fill what the rows of a block need of the belief as it is before them."""
        _fill_own(self.shape, self.values, self.memory)
        fill_bounds(self.shape, self.mean, self.values, self.small)

    def move_belief(self, count):
        """Let the belief take what the first rows of the block have left to the end."""
        # Nothing here calls a function in Python, so that no interrupt comes between the parts of a belief.
        if count == 0:
            return
        if self.first is not None:
            turn_back(self.shape, count, self.memory)
            self.first.move_weights(count)
        for layer in self.arrays:
            layer.move_root(count)


class OpenBlock(_Block):
    """A block that stays open from one call to the next, for rows that come one at a time.

    A row by itself would move the first layer's root, its most numbers by far; here it waits for the others of its
    block. Whoever reads or changes mean and values in any other way has to `close` the block before. Threads may `look`
    at the same time; they wait for each other.

    Parameters
    ----------
    shape : LayerShape
    mean, values : the numbers of a belief, which are changed in place
    """

    def __init__(self, shape: LayerShape, mean, values):
        _Block.__init__(self, shape, mean, values)
        self.n_learned, self.is_begun, self.is_seen = 0, False, False
        self.row, self.lock = np.zeros(shape.table[0].n_in), Lock()

    def look(self, row, rule) -> tuple["FloatArray", "FloatArray"]:
        """Means ``(K,)`` and covariance ``(K, K)`` of the outputs of a row ``(d,)``; nothing of the belief changes."""
        n = self.shape.n_outputs
        with self.lock:
            self._see(row, rule)
            return self.small[:n].copy(), self.small[n : n + n * n].reshape(n, n).copy()

    def _see(self, row, rule):
        """Look at a row, unless it is the one that was looked at last."""
        if self.is_seen and is_same(self.row, row):
            return
        self.is_seen = False
        if not self.is_begun:
            self.begin()
            self.is_begun = True
        numbers = (self.mean, self.values, self.memory, self.small)
        see_row(self.shape, rule, row, self.n_learned, *numbers)
        rule.activation.raise_pending()
        self.row[:] = row
        self.is_seen = True

    def learn(self, work: CompiledPass, rule, noise) -> int:
        """Learn a pass of one row; return 1, or 0 if it is not finite: then nothing of the belief has changed."""
        i = work.order[0]
        row = np.asarray(work.rows[i])
        with self.lock:
            new = self.new_inputs(row[None])[0].nonzero()[0]
            if new.size:
                self._finish()
                self.first.release(new)
            self._see(row, rule)
            self.is_seen = False
            numbers = (self.mean, self.values, self.memory, self.small, self.match)
            learned = learn_seen(work, i, self.n_learned, self.shape, rule, noise, *numbers)
            self.n_learned += learned
            if self.n_learned == BLOCK or new.size:
                self._finish()
            if new.size:
                self.first.end_release(new, learned)
        return learned

    def close(self) -> None:
        """Update the belief with all that its rows said."""
        with self.lock:
            self._finish()

    def _finish(self):
        self.move_belief(self.n_learned)
        self.n_learned, self.is_begun, self.is_seen = 0, False, False


def learn_layers(work: CompiledPass, shape: LayerShape, rule: NetworkRule, noise: NetworkProgress, mean, values) -> int:
    """Learn a pass, in place; return the number of rows learned.

    They are all, those up to one that raised an alarm, see `outliers`, or those before one that is not finite.
    """
    block = _Block(shape, mean, values)
    rows, order = np.asarray(work.rows), np.asarray(work.order)
    n_rows: cython.Py_ssize_t = len(order)
    done: cython.Py_ssize_t = 0
    count: cython.Py_ssize_t
    while done < n_rows:
        taken = rows[order[done : done + BLOCK]]
        is_new = block.new_inputs(taken)
        new = is_new[0].nonzero()[0]
        if new.size:
            block.first.release(new)
            taken = taken[:1]
        elif is_new.any():
            taken = taken[: is_new.any(axis=1).argmax()]
        count = len(taken)
        block.begin()
        if block.first is not None:
            block.first.look_ahead(taken)
        numbers = (mean, values, block.memory, block.small, block.match)
        learned = learn_block(work, done, count, shape, rule, noise, *numbers)
        block.move_belief(learned)
        if new.size:
            block.first.end_release(new, learned)
        done += learned
        if learned < count or (work.is_first and noise.trust.is_alarmed()):
            break
    rule.activation.raise_pending()
    return done


def _fill_own(shape: LayerShape, values, memory):
    """The covariance of each unit's own weights: ``B_uu``, ``A_ii``, or the packed blocks of a full covariance."""
    number: cython.Py_ssize_t
    layer: Layer
    for number, form in enumerate(shape.table):
        layer = shape.layer[number]
        width, cols = form.width, form.cols
        root = values[layer.output_root : layer.output_root + width * width].reshape(width, width)
        if form.is_kronecker:
            memory[layer.own : layer.own + width] = np.square(root).sum(axis=1)
            if number:
                inputs = values[layer.input_root : layer.input_root + cols * cols].reshape(cols, cols)
                memory[layer.own_input : layer.own_input + cols] = np.square(inputs).sum(axis=1)
        elif number < shape.n_layers - 1:
            units = root.reshape(form.rows, cols, width)
            blocks = units @ units.swapaxes(1, 2)
            lower = np.tril_indices(cols)
            packed = blocks[:, lower[0], lower[1]] * np.where(lower[0] == lower[1], 1.0, 2.0)
            memory[layer.own : layer.own + packed.size] = packed.ravel()


def fill_bounds(shape: LayerShape, mean: Real[::1], values: Real[::1], small: cython.double[::1]):
    """How large the numbers of every layer are before a block, for the check that its rows leave them finite.

    And how many inputs are idle, and how many are in the product.
    """
    number: cython.Py_ssize_t
    i: cython.Py_ssize_t
    for number in range(shape.n_layers):
        layer = cython.address(shape.layer[number])
        plan = _plan_of(shape, number, cython.address(small[0]))
        weights = cython.address(mean[layer.weights])
        root = cython.address(values[layer.output_root])
        plan.farthest = sqrt(_dot(layer.rows * layer.cols, weights, weights))
        plan.root_square = _dot(layer.width * layer.width, root, root)
        plan.input_norm = 1.0
        plan.n_idle = 0.0
        plan.n_inner = layer.cols
        if layer.is_kronecker:
            root = cython.address(values[layer.input_root])
            plan.input_norm = sqrt(_dot(layer.cols * layer.cols, root, root))
            for i in range(layer.cols):
                if values[layer.idle + i] > 0.0:
                    plan.n_idle += 1.0
                    if root[i * layer.cols + i] == 0.0:
                        plan.n_inner -= 1.0


def _plan_of(shape, number, small):
    return cython.cast(cython.pointer(Plan), small + shape.plans) + number


def learn_block(
    work: CompiledPass,
    first: cython.Py_ssize_t,
    count: cython.Py_ssize_t,
    shape: LayerShape,
    rule: NetworkRule,
    noise: NetworkProgress,
    mean: Real[::1],
    values: Real[::1],
    memory: Real[::1],
    small: cython.double[::1],
    match: VectorMatch,
):
    """Learn the rows of a block; return how many were."""
    m = cython.address(mean[0])
    v = cython.address(values[0])
    scratch = cython.address(memory[0])
    s = cython.address(small[0])
    t: cython.Py_ssize_t = 0
    with cython.nogil:
        while t < count:
            i = work.order[first + t]
            _look(shape, rule.activation, m, v, cython.address(work.rows[i, 0]), t, scratch, s)
            if not _learn_row(work, i, t, shape, rule, noise, m, v, scratch, s, match):
                break
            t += 1
            if work.is_first and noise.trust.is_alarmed():
                break
    return t


def see_row(
    shape: LayerShape,
    rule: NetworkRule,
    row: cython.const[cython.double][::1],
    t: cython.Py_ssize_t,
    mean: Real[::1],
    values: Real[::1],
    memory: Real[::1],
    small: cython.double[::1],
):
    """Look at a row that no block was prepared for, after ``t`` others of its block."""
    x = cython.address(row[0])
    m = cython.address(mean[0])
    v = cython.address(values[0])
    scratch = cython.address(memory[0])
    s = cython.address(small[0])
    with cython.nogil:
        if shape.layer[0].is_kronecker:
            _enter(cython.address(shape.layer[0]), m, v, x, t, scratch)
        _look(shape, rule.activation, m, v, x, t, scratch, s)


def learn_seen(
    work: CompiledPass,
    i: cython.Py_ssize_t,
    t: cython.Py_ssize_t,
    shape: LayerShape,
    rule: NetworkRule,
    noise: NetworkProgress,
    mean: Real[::1],
    values: Real[::1],
    memory: Real[::1],
    small: cython.double[::1],
    match: VectorMatch,
):
    """Learn a row that was just looked at; return whether it could be."""
    m = cython.address(mean[0])
    v = cython.address(values[0])
    scratch = cython.address(memory[0])
    s = cython.address(small[0])
    with cython.nogil:
        learned = _learn_row(work, i, t, shape, rule, noise, m, v, scratch, s, match)
    return learned


def is_same(one: cython.const[cython.double][::1], other: cython.const[cython.double][::1]):
    """Whether two rows have the same numbers."""
    i: cython.Py_ssize_t = 0
    while i < one.shape[0] and one[i] == other[i]:
        i += 1
    return i == one.shape[0]


def turn_back(shape: LayerShape, count: cython.Py_ssize_t, memory: Real[::1]):
    """Fill what the first layer's root times is each row's gain ``A z``: its ``f``, turned by all rows before it."""
    layer = cython.address(shape.layer[0])
    cols = layer.cols
    t: cython.Py_ssize_t
    j: cython.Py_ssize_t
    for t in range(count):
        turned = cython.address(memory[layer.turned + t * cols])
        f = cython.address(memory[layer.seen + t * cols])
        for j in range(cols):
            turned[j] = f[j]
        for j in range(t - 1, -1, -1):
            f = cython.address(memory[layer.seen + j * cols])
            _multiply_add(cols, -memory[layer.shares + j] * _dot(cols, f, turned), f, turned)


def _enter(layer, mean, values, x, t, memory):
    """The products of a row with the first layer's numbers as they are before the block: see `_FirstArrays`."""
    i: cython.Py_ssize_t
    cols = layer.cols
    z = memory + layer.z
    for i in range(cols - 1):
        z[1 + i] = x[i]
    multiply(1, cols, cols, z, cols, values + layer.input_root, cols, 0.0, memory + layer.seen + t * cols)
    pre_mean = memory + layer.pre_mean + t * layer.rows
    multiply_transposed(layer.rows, cols, 1, mean + layer.weights, z, pre_mean)


def _look(shape, activation, mean, values, x, t, memory, small):
    """Send a row through the network and the derivatives back: the outputs, their covariance, each layer's ``s``."""
    _forward(shape, activation, mean, values, x, t, memory, small)
    _backward(shape, mean, memory)
    _project(shape, values, memory, small)


def _learn_row(work, i, t, shape, rule, noise, mean, values, memory, small, match):
    """Learn a row that was looked at; return False if that is not possible, and then nothing of it is written."""
    k: cython.Py_ssize_t
    number: cython.Py_ssize_t
    n = shape.n_outputs
    outputs = small
    cov = outputs + n
    scales = cov + n * n  # s of every layer
    root = scales + shape.n_layers
    rest = root + (n + 1) * n
    work.start_row(i, noise)
    density = rule.likelihood.match(outputs, cov, cython.address(work.targets[i, 0]), noise, match)
    total = density
    for k in range(n):
        total += match.score[k] + cov[k * n + k]
    if not isfinite(total):
        return False
    work.write_down(i, density, rule, outputs, cov, noise, match)
    if shape.n_layers > 1:
        _limit_step(n, cov, match)
    rank = _information_root(n, match.information, cov, rest, root)
    for number in range(shape.n_layers):
        layer = cython.address(shape.layer[number])
        plan = _plan_of(shape, number, small)
        plan.scale = scales[number]
        if not _plan_step(layer, number == 0, n, rank, root, match.score, t, values, memory, rest, plan):
            return False
    first = _plan_of(shape, 0, small)
    if first.idle_scale > 0.0:
        _move_new_inputs(cython.address(shape.layer[0]), n, match.score, t, mean, values, memory)
    for number in range(shape.n_layers):
        layer = cython.address(shape.layer[number])
        plan = _plan_of(shape, number, small)
        _take_step(layer, number == 0, rank, root + n * n, t, mean, values, memory, plan)
        if not layer.is_kronecker and number < shape.n_layers - 1:
            _move_own(layer, rank, root + n * n, memory)
    work.finish_row(i, rule, outputs, cov, noise)
    return True


def _forward(shape, activation, mean, values, x, t, memory, small):
    """Send a row through the network: moments of every layer, its ``s``, and the means of the outputs."""
    number: cython.Py_ssize_t
    i: cython.Py_ssize_t
    outputs = small
    scales = small + shape.n_outputs + shape.n_outputs * shape.n_outputs
    first = cython.address(shape.layer[0])
    for i in range(first.n_in):
        memory[first.z + 1 + i] = x[i]
    for number in range(shape.n_layers):
        layer = cython.address(shape.layer[number])
        if layer.is_kronecker:
            plan = _plan_of(shape, number, small)
            scales[number] = _forward_kronecker(layer, number == 0, mean, values, t, memory, plan)
        else:
            scales[number] = 1.0
            _forward_full(layer, shape.patch_index, number == 0, mean, memory)
        pre_mean = memory + layer.pre_mean
        if number == 0 and layer.is_kronecker:
            pre_mean += t * layer.units
        if number == shape.n_layers - 1:
            for i in range(shape.n_outputs):
                outputs[i] = pre_mean[i]
        else:
            after = cython.address(shape.layer[number + 1])
            z = memory + after.z + 1
            z_var = memory + after.z_var + 1
            _activate(layer, shape.pool_index, activation, pre_mean, memory, z, z_var)


def _forward_kronecker(layer, is_first, mean, values, t, memory, plan):
    """Means and variances of the pre-activations; returns ``s = z'A z``."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    u: cython.Py_ssize_t
    cols = layer.cols
    rows = layer.rows
    z = memory + layer.z
    z_var = memory + layer.z_var
    f = memory + layer.seen + t * cols
    pre_mean = memory + layer.pre_mean + (t * rows if is_first else 0)
    pre_var = memory + layer.pre_var
    own = memory + layer.own
    part: cython.double
    s: cython.double
    input_square: cython.double
    if not is_first:
        multiply(1, cols, cols, z, cols, values + layer.input_root, cols, 0.0, f)
    for j in range(t):
        before = memory + layer.seen + j * cols
        part = _dot(cols, before, f)
        if is_first:
            _multiply_add(rows, part, memory + layer.moves + j * rows, pre_mean)
        _multiply_add(cols, -memory[layer.shares + j] * part, before, f)
    s = _dot(cols, f, f)
    plan.idle_scale = 0.0
    plan.new_scale = 0.0
    if is_first:
        if plan.n_idle > 0.0:
            for i in range(1, cols):
                if values[layer.idle + i] > 0.0:
                    plan.idle_scale += values[layer.idle + i] * z[i] * z[i]
                    plan.new_scale += f[i] * f[i]
        for u in range(rows):
            pre_var[u] = (s - plan.new_scale) * own[u] + plan.idle_scale * values[layer.prior_outputs + u]
        return s
    input_square = s
    for i in range(1, cols):
        input_square += z_var[i] * memory[layer.own_input + i]
    for u in range(rows):
        weights = mean + layer.weights + u * cols
        total = weights[0] * z[0]
        var = own[u] * input_square
        for i in range(1, cols):
            total += weights[i] * z[i]
            var += weights[i] * weights[i] * z_var[i]
        pre_mean[u] = total
        pre_var[u] = var
    return s


def _forward_full(layer, patch_index, is_certain, mean, memory):
    """Means and variances of the pre-activations at every position, from the patch of inputs that it sees."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    u: cython.Py_ssize_t
    position: cython.Py_ssize_t
    cols = layer.cols
    total: cython.double
    var: cython.double
    pairs = memory + layer.pairs
    n_pairs = cols * (cols + 1) // 2
    for position in range(layer.positions):
        index = patch_index + layer.patches + position * (cols - 1)
        patch = memory + layer.patch + position * cols
        patch_var = memory + layer.patch_var + position * cols
        patch[0] = 1.0
        for i in range(1, cols):
            patch[i] = memory[layer.z + 1 + index[i - 1]]
            patch_var[i] = 0.0
            if not is_certain:
                patch_var[i] = memory[layer.z_var + 1 + index[i - 1]]
        j = 0
        for i in range(cols):
            for u in range(i + 1):
                pairs[j + u] = patch[i] * patch[u]
            if not is_certain:
                pairs[j + i] += patch_var[i]
            j += i + 1
        for u in range(layer.rows):
            weights = mean + layer.weights + u * cols
            total = _dot(cols, weights, patch)
            var = _dot(n_pairs, memory + layer.own + u * n_pairs, pairs)
            if not is_certain:
                for i in range(1, cols):
                    var += weights[i] * weights[i] * patch_var[i]
            memory[layer.pre_mean + position * layer.rows + u] = total
            memory[layer.pre_var + position * layer.rows + u] = var


def _activate(layer, pool_index, activation, pre_mean, memory, z, z_var):
    """Moments of the units, averaged where the layer pools."""
    u: cython.Py_ssize_t
    size: cython.double = layer.pool_size
    share = 1.0 / size
    pools = pool_index + layer.pools
    for u in range(layer.n_out):
        z[u] = 0.0
        z_var[u] = 0.0
    for u in range(layer.units):
        mean, var, derivative = activation.at(pre_mean[u], max(memory[layer.pre_var + u], 0.0))
        memory[layer.derivative + u] = derivative * share
        if pools[u] >= 0:
            z[pools[u]] += share * mean
            z_var[pools[u]] += share * share * var


def _backward(shape, mean, memory):
    """Chain the expected derivatives: ``D_{l-1} = (D_l W_l) A_{l-1}``; of the last layer ``D`` is the identity."""
    number: cython.Py_ssize_t
    k: cython.Py_ssize_t
    u: cython.Py_ssize_t
    n = shape.n_outputs
    last = cython.address(shape.layer[shape.n_layers - 1])
    for k in range(n):
        for u in range(n):
            memory[last.jacobian + k * n + u] = 1.0 if k == u else 0.0
    for number in range(shape.n_layers - 1, 0, -1):
        layer = cython.address(shape.layer[number])
        before = cython.address(shape.layer[number - 1])
        _through_weights(layer, shape.patch_index, n, mean, memory)
        pools = shape.pool_index + before.pools
        derivative = memory + before.derivative
        for k in range(n):
            through = memory + layer.entering + k * layer.n_in
            jacobian = memory + before.jacobian + k * before.units
            if before.pool_size == 1:
                for u in range(before.units):
                    jacobian[u] = through[u] * derivative[u]
            else:
                for u in range(before.units):
                    jacobian[u] = 0.0
                    if pools[u] >= 0:
                        jacobian[u] = through[pools[u]] * derivative[u]


def _through_weights(layer, patch_index, n_outputs, mean, memory):
    """``D W``: the derivatives of the outputs in what enters a layer, ``(K, n_in)``."""
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    u: cython.Py_ssize_t
    position: cython.Py_ssize_t
    cols = layer.cols
    entering = memory + layer.entering
    if layer.positions == 1 and cols - 1 == layer.n_in:
        weights = mean + layer.weights + 1
        multiply(n_outputs, layer.rows, cols - 1, memory + layer.jacobian, layer.rows, weights, cols, 0.0, entering)
        return
    for i in range(n_outputs * layer.n_in):
        entering[i] = 0.0
    for k in range(n_outputs):
        for position in range(layer.positions):
            index = patch_index + layer.patches + position * (cols - 1)
            slopes = memory + layer.jacobian + k * layer.units + position * layer.rows
            for u in range(layer.rows):
                weights = mean + layer.weights + u * cols + 1
                slope = slopes[u]
                for i in range(cols - 1):
                    entering[k * layer.n_in + index[i]] += slope * weights[i]


def _project(shape, values, memory, small):
    """``E`` of every layer, and the outputs' covariance: all ``s E E'``, and for idle inputs ``D B0 D'``."""
    number: cython.Py_ssize_t
    k: cython.Py_ssize_t
    m: cython.Py_ssize_t
    u: cython.Py_ssize_t
    n = shape.n_outputs
    cov = small + n
    scales = cov + n * n
    for k in range(n * n):
        cov[k] = 0.0
    for number in range(shape.n_layers):
        layer = cython.address(shape.layer[number])
        width = layer.width
        jacobian = memory + layer.jacobian
        projected = memory + layer.projected
        if not layer.is_kronecker:
            jacobian = memory + layer.weight_jacobian
            _fill_weight_jacobian(layer, n, memory)
        multiply(n, width, width, jacobian, width, values + layer.output_root, width, 0.0, projected)
        plan = _plan_of(shape, number, small)
        scale = scales[number] - plan.new_scale if layer.is_kronecker else 1.0
        for k in range(n):
            for m in range(k + 1):
                entry: cython.double = _dot(width, projected + k * width, projected + m * width)
                cov[k * n + m] += scale * entry
                if layer.is_kronecker and plan.idle_scale > 0.0:
                    entry = 0.0
                    for u in range(width):
                        entry += jacobian[k * width + u] * jacobian[m * width + u] * values[layer.prior_outputs + u]
                    cov[k * n + m] += plan.idle_scale * entry
    for k in range(n):
        for m in range(k):
            cov[m * n + k] = cov[k * n + m]


def _fill_weight_jacobian(layer, n_outputs, memory):
    """``J``: the derivatives of the outputs in the weights, summed over the positions that share them, ``(K, p)``."""
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    u: cython.Py_ssize_t
    position: cython.Py_ssize_t
    cols = layer.cols
    for i in range(n_outputs * layer.width):
        memory[layer.weight_jacobian + i] = 0.0
    for k in range(n_outputs):
        for position in range(layer.positions):
            patch = memory + layer.patch + position * cols
            slopes = memory + layer.jacobian + k * layer.units + position * layer.rows
            for u in range(layer.rows):
                if slopes[u] != 0.0:
                    _multiply_add(cols, slopes[u], patch, memory + layer.weight_jacobian + k * layer.width + u * cols)


def _limit_step(n, cov, match):
    """Shorten a step that leads farther from the belief's mean than the network is linear."""
    k: cython.Py_ssize_t
    m: cython.Py_ssize_t
    length = 0.0
    for k in range(n):
        for m in range(n):
            length += match.score[k] * cov[k * n + m] * match.score[m]
    if length > _FARTHEST * _FARTHEST:
        for k in range(n):
            match.score[k] *= _FARTHEST / sqrt(length)


def _information_root(n, information, cov, left, root):
    """A root ``R`` of the information ``M = R Σ R'``, ``(n, rank)`` in rows of ``n``, and the signs ``Σ`` after it.

    Returns its rank: directions of which the row explains little compared with the first are left out. A row may make
    some direction less certain, as where it says that the noise is larger, or as one that is distrusted by half may:
    then ``Σ`` has signs below 0, which come first.
    """
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    signs = root + n * n
    for i in range(n * n):
        left[i] = information[i]
        root[i] = 0.0
    least = 0.0
    largest = 0.0
    for k in range(n):
        signs[k] = 1.0
        pivot: cython.Py_ssize_t = -1
        most = least
        for i in range(n):
            share = left[i * n + i] * cov[i * n + i]
            if share < -_ROUNDING * largest:
                return _signed_root(n, information, cov, left, root)
            if share > most:
                pivot, most = i, share
        if pivot < 0:
            return k
        if k == 0:
            largest = most
            least = _LEAST_SHARE * most
        scale = 1.0 / sqrt(left[pivot * n + pivot])
        for i in range(n):
            root[i * n + k] = left[i * n + pivot] * scale
        for i in range(n):
            for j in range(n):
                left[i * n + j] -= root[i * n + k] * root[j * n + k]
    return n


def _signed_root(n, information, cov, work, root):
    """`_information_root` of a matrix that is not definite: by eigenvectors, in units of the outputs' deviations."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    signs = root + n * n
    vectors = work + n * n
    for i in range(n):
        for j in range(n):
            work[i * n + j] = information[i * n + j] * sqrt(cov[i * n + i] * cov[j * n + j])
            root[i * n + j] = 0.0
    diagonalise(n, work, vectors)
    k = 0
    least = 0.0
    for j in range(n):
        least = max(least, _LEAST_SHARE * fabs(work[j * n + j]))
    for sign in (-1.0, 1.0):
        for j in range(n):
            share = sign * work[j * n + j]
            if share > least:
                signs[k] = sign
                for i in range(n):
                    if cov[i * n + i] > 0.0:
                        root[i * n + k] = vectors[i * n + j] * sqrt(share / cov[i * n + i])
                k += 1
    return k


def _plan_step(layer, is_first, n_outputs, rank, root, score, t, values, memory, small, plan):
    """Compute how a row moves one layer's weights and covariance; return whether they stay finite."""
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    m: cython.Py_ssize_t
    width = layer.width
    projected = memory + layer.projected
    informed = memory + layer.informed
    moved = informed + rank * width  # E'score, behind the columns of X
    n_outer: cython.double = layer.rows
    n_inner: cython.double = plan.n_inner
    signs = root + n_outputs * n_outputs
    squares = small
    factor = squares + rank * rank
    mixed = factor + rank * rank
    for i in range(width):
        moved[i] = 0.0
    for k in range(n_outputs):
        _multiply_add(width, score[k], projected + k * width, moved)
    for k in range(rank):
        for i in range(width):
            informed[k * width + i] = 0.0
        for m in range(n_outputs):
            if root[m * n_outputs + k] != 0.0:
                _multiply_add(width, root[m * n_outputs + k], projected + m * width, informed + k * width)
    for k in range(rank):
        for m in range(k + 1):
            entry: cython.double = _dot(width, informed + k * width, informed + m * width)
            squares[k * rank + m] = entry
            squares[m * rank + k] = entry
    scale = plan.scale
    share = scale / n_inner if layer.is_kronecker else 1.0
    explained = 0.0  # c = tr(N M) / n_out
    for k in range(rank):
        explained += signs[k] * squares[k * rank + k] / n_outer
    if layer.is_kronecker and explained * scale > 1.0 - _LEAST_LEFT:
        # By rounding. All of H is shrinkage alike, as the stretch is a difference that c and H have to agree in.
        shrinkage = (1.0 - _LEAST_LEFT) / (explained * scale)
        explained *= shrinkage
        for k in range(rank * rank):
            squares[k] *= shrinkage
    informative = _share_of_outputs(rank, share, squares, signs, factor, mixed)
    stretch = 1.0
    if layer.is_kronecker:
        taken = explained * scale
        rest = 1.0 / (1.0 - taken)
        stretch = (n_inner + taken * rest) * (n_outer + share * informative) - scale * informative * rest
        stretch /= n_inner * n_outer
        memory[layer.shares + t] = 0.0
        if scale > 0.0:
            memory[layer.shares + t] = explained / (1.0 + sqrt(1.0 - taken))
    plan.share = share
    plan.stretch = stretch
    plan.explained = explained
    _gather(layer, rank, signs, mixed, _moves(layer, is_first, t, memory), values, memory, plan)
    if is_first and plan.idle_scale > 0.0:
        plan.way += _way_of_new_inputs(layer, n_outputs, score, values, memory)
    largest = _LARGEST_DOUBLE if Real is cython.double else _LARGEST_SINGLE
    # What is not a number is not below either.
    return plan.farthest + plan.way < largest and plan.root_square + plan.widening < largest


def _take_step(layer, is_first, rank, signs, t, mean, values, memory, plan):
    """Move one layer's weights and covariance as it was planned."""
    i: cython.Py_ssize_t
    moves = _moves(layer, is_first, t, memory)
    plan.farthest += plan.way
    plan.root_square += plan.widening
    _move_root(layer, rank, signs, values, memory, plan)
    if not layer.is_kronecker:
        for i in range(layer.width):
            mean[layer.weights + i] += moves[i]
    elif not is_first:
        _move_weights(layer, plan.explained, t, mean, values, memory)


def _moves(layer, is_first, t, memory):
    """``Q E'score``, which the first layer keeps of every row of a block."""
    return memory + layer.moves + (t * layer.width if is_first and layer.is_kronecker else 0)


def _share_of_outputs(rank, share, squares, signs, factor, mixed):
    """From ``H = X'X`` the ``Y`` with ``(I - X Y X')(I - X Y X')' = I - b X Σ X'``, and ``tr((Σ - b H)⁻¹ H)``.

    With ``C Σ C' = Σ - b H``, lower triangular and with the signs ``Σ`` on its diagonal, it is ``b (Σ + C)⁻¹``. There
    is such a factor, as the signs below 0 come first.
    """
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    trace = 0.0
    for j in range(rank):
        for i in range(j, rank):
            entry = (signs[j] if i == j else 0.0) - share * squares[i * rank + j]
            for k in range(j):
                entry -= factor[i * rank + k] * signs[k] * factor[j * rank + k]
            if i == j:
                factor[j * rank + j] = signs[j] * sqrt(max(signs[j] * entry, _LEAST_LEFT))
            else:
                factor[i * rank + j] = entry / (signs[j] * factor[j * rank + j])
    # tr(Σ C⁻¹ H C'⁻¹) is (tr((I - b Σ H)⁻¹) - rank) / b, which cancels where b H is small; so the columns of C⁻¹ H are
    # solved, then the rows by C'.
    for j in range(rank):
        for i in range(rank):
            entry = squares[i * rank + j]
            for k in range(i):
                entry -= factor[i * rank + k] * mixed[k * rank + j]
            mixed[i * rank + j] = entry / factor[i * rank + i]
    for i in range(rank):
        for j in range(i + 1):
            entry = mixed[i * rank + j]
            for k in range(j):
                entry -= factor[j * rank + k] * mixed[i * rank + k]
            mixed[i * rank + j] = entry / factor[j * rank + j]
        trace += signs[i] * mixed[i * rank + i]
    for j in range(rank):
        for i in range(rank):
            entry = share if i == j else 0.0
            for k in range(j, i):
                entry -= factor[i * rank + k] * mixed[k * rank + j]
            mixed[i * rank + j] = entry / (signs[i] + factor[i * rank + i]) if i >= j else 0.0
    return trace


def _gather(layer, rank, signs, mixed, moves, values, memory, plan):
    """``Q X`` and what follows of it: ``-√t Q X Y``, the ``moves``, and the farthest that they lead."""
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    m: cython.Py_ssize_t
    width = layer.width
    gathered = memory + layer.gathered  # Q X, and Q E'score as its last column, which follows the columns of X
    turned = memory + layer.turned_back  # -√t Q X Y
    columns = rank + 1
    total: cython.double
    length: cython.double = 0.0
    widening: cython.double = 0.0
    root_stretch = sqrt(plan.stretch)
    multiply_transposed(width, width, columns, values + layer.output_root, memory + layer.informed, gathered)
    for i in range(width):
        row = gathered + i * columns
        moves[i] = row[rank]
        length += row[rank] * row[rank]
        widening += plan.share * fabs(_signed_square(rank, signs, row))
        for k in range(rank):
            total = 0.0
            for m in range(k, rank):
                total -= row[m] * mixed[m * rank + k]
            turned[i * rank + k] = root_stretch * total
            widening += fabs(turned[i * rank + k])
    # By Cauchy and Schwarz the gain A z is no longer than √(tr(A) z'A z).
    plan.way = sqrt(length) * (plan.input_norm * sqrt(plan.scale) if layer.is_kronecker else 1.0)
    plan.widening = (plan.stretch - 1.0) * plan.root_square + plan.stretch * widening


def _signed_square(rank, signs, row):
    """``x'Σ x``."""
    k: cython.Py_ssize_t
    square: cython.double = 0.0
    for k in range(rank):
        square += signs[k] * row[k] * row[k]
    return square


def _move_root(layer, rank, signs, values, memory, plan):
    """``Q <- √t Q (I - X Y X')``, and the variances that it has for each unit."""
    i: cython.Py_ssize_t
    width = layer.width
    gathered = memory + layer.gathered
    turned = memory + layer.turned_back
    if layer.is_kronecker:
        for i in range(width):
            square = _signed_square(rank, signs, gathered + i * (rank + 1))
            memory[layer.own + i] = max(plan.stretch * (memory[layer.own + i] - plan.share * square), 0.0)
    root = values + layer.output_root
    multiply(width, rank, width, turned, rank, memory + layer.informed, width, sqrt(plan.stretch), root)


def _move_own(layer, rank, signs, memory):
    """The covariance of each unit's own weights, packed, after a step of a full layer: ``C -= (Q X) Σ (Q X)'``."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    u: cython.Py_ssize_t
    own = memory + layer.own
    columns = rank + 1
    for u in range(layer.rows):
        gathered = memory + layer.gathered + u * layer.cols * columns
        for i in range(layer.cols):
            for j in range(i + 1):
                total = 0.0
                for k in range(rank):
                    total += signs[k] * gathered[i * columns + k] * gathered[j * columns + k]
                own[j] -= total if i == j else 2.0 * total
            own += i + 1


def _move_weights(layer, explained, t, mean, values, memory):
    """``W += (Q E'score) g'`` with the gain ``g = A z`` of a row, and the diagonal of ``A``."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    u: cython.Py_ssize_t
    cols = layer.cols
    turned = memory + layer.turned
    gain = memory + layer.gains + t * cols
    f = memory + layer.seen + t * cols
    for i in range(cols):
        turned[i] = f[i]
    for j in range(t - 1, -1, -1):
        f = memory + layer.seen + j * cols
        _multiply_add(cols, -memory[layer.shares + j] * _dot(cols, f, turned), f, turned)
    for i in range(cols):
        gain[i] = _dot(cols, values + layer.input_root + i * cols, turned)
        memory[layer.own_input + i] = max(memory[layer.own_input + i] - explained * gain[i] * gain[i], 0.0)
    for u in range(layer.rows):
        _multiply_add(cols, memory[layer.moves + u], gain, mean + layer.weights + u * cols)


def _prior_move(layer, u, n_outputs, score, values, memory):
    """``B0 D'score`` of a unit."""
    k: cython.Py_ssize_t
    slope: cython.double = 0.0
    for k in range(n_outputs):
        slope += score[k] * memory[layer.jacobian + k * layer.rows + u]
    return slope * values[layer.prior_outputs + u]


def _way_of_new_inputs(layer, n_outputs, score, values, memory):
    """The length of ``(B0 D'score) (idle z)'``."""
    i: cython.Py_ssize_t
    u: cython.Py_ssize_t
    over_units: cython.double = 0.0
    over_inputs: cython.double = 0.0
    for u in range(layer.rows):
        over_units += _prior_move(layer, u, n_outputs, score, values, memory) ** 2
    for i in range(1, layer.cols):
        over_inputs += (values[layer.idle + i] * memory[layer.z + i]) ** 2
    return sqrt(over_units * over_inputs)


def _move_new_inputs(layer, n_outputs, score, t, mean, values, memory):
    """``W += (B0 D'score) (idle z)'`` for the new inputs of a row, less what the product that they have joined adds."""
    i: cython.Py_ssize_t
    u: cython.Py_ssize_t
    cols = layer.cols
    moves = _moves(layer, True, t, memory)
    for u in range(layer.rows):
        slope = _prior_move(layer, u, n_outputs, score, values, memory)
        for i in range(1, cols):
            idle = values[layer.idle + i]
            if idle > 0.0 and memory[layer.z + i] != 0.0:
                own = values[layer.input_root + i * cols + i]
                mean[layer.weights + u * cols + i] += (slope * idle - moves[u] * own * own) * memory[layer.z + i]


def multiply(n, inner, width, first, stride, second, second_stride, kept, product):
    """``kept`` times the product's place plus ``first second``, ``(n, inner)`` and ``(inner, width)`` matrices.

    Small ones by loops, four rows of the second at a time; large ones by BLAS, where rows are columns.
    """
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    if n > 1 and n * inner * width >= _WORTH_BLAS:
        _gemm(78, width, n, inner, second, second_stride, first, stride, kept, product)
        return
    own: Real = kept
    for j in range(n * width):
        product[j] = own * product[j] if own != 0.0 else 0.0
    whole = inner - inner % 4
    for i in range(0, whole, 4):
        r0 = second + i * second_stride
        r1 = r0 + second_stride
        r2 = r1 + second_stride
        r3 = r2 + second_stride
        for k in range(n):
            factor = first + k * stride + i
            a0 = factor[0]
            a1 = factor[1]
            a2 = factor[2]
            a3 = factor[3]
            if a0 == 0.0 and a1 == 0.0 and a2 == 0.0 and a3 == 0.0:  # dark pixels, units that are off
                continue
            row = product + k * width
            for j in range(width):
                row[j] += a0 * r0[j] + a1 * r1[j] + a2 * r2[j] + a3 * r3[j]
    for i in range(whole, inner):
        for k in range(n):
            _multiply_add(width, first[k * stride + i], second + i * second_stride, product + k * width)


def multiply_transposed(n, inner, width, first, second, product):
    """``first second'``, of ``(n, inner)`` and ``(width, inner)`` matrices."""
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    if n * inner * width >= _WORTH_BLAS and width > 1:
        _gemm(84, width, n, inner, second, inner, first, inner, 0.0, product)
        return
    for i in range(n):
        for k in range(width):
            product[i * width + k] = _dot(inner, first + i * inner, second + k * inner)


def _gemm(transposed, rows, cols, inner, first, first_stride, second, second_stride, kept, product):
    """BLAS's product, in single or double precision."""
    m: cython.int = rows
    n: cython.int = cols
    k: cython.int = inner
    lda: cython.int = first_stride
    ldb: cython.int = second_stride
    one: Real = 1.0
    beta: Real = kept
    plain: cython.char = 78  # N
    if Real is cython.double:
        cython_blas.dgemm(
            cython.address(transposed),
            cython.address(plain),
            cython.address(m),
            cython.address(n),
            cython.address(k),
            cython.address(one),
            cython.cast(cython.p_double, first),  # BLAS takes no const
            cython.address(lda),
            cython.cast(cython.p_double, second),
            cython.address(ldb),
            cython.address(beta),
            product,
            cython.address(m),
        )
    else:
        cython_blas.sgemm(
            cython.address(transposed),
            cython.address(plain),
            cython.address(m),
            cython.address(n),
            cython.address(k),
            cython.address(one),
            cython.cast(cython.p_float, first),  # BLAS takes no const
            cython.address(lda),
            cython.cast(cython.p_float, second),
            cython.address(ldb),
            cython.address(beta),
            product,
            cython.address(m),
        )


def _dot(n, first, second):
    j: cython.Py_ssize_t
    total: Real = 0.0
    for j in range(n):
        total += first[j] * second[j]
    return total


def _multiply_add(n, factor, values, total):
    """``total += factor values``."""
    j: cython.Py_ssize_t
    for j in range(n):
        total[j] += factor * values[j]
