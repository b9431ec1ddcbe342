"""Data structures of the loops of networks: the shape of a network, a pass over rows, sites, signals."""

import cython
import numpy as np

from onepass.engine.vector_matches import OUTPUT_RECORD_SIZE


class NetworkShape:
    """The position of each layer's weights in one long vector.

    Parameters
    ----------
    widths : inputs, units of each hidden layer, outputs
    starts : where each layer's weights begin, and the end
    """

    def __init__(self, widths, starts):
        widths, starts = np.array(widths, dtype=np.intp), np.array(starts, dtype=np.intp)
        self.memory = (widths, starts)
        self.width, self.start, self.n_layers = _address(widths), _address(starts), len(widths) - 1
        self.n_outputs, self.size = self.width[self.n_layers], self.start[self.n_layers]
        self.widest, self.n_units = widths.max() + 1, widths[1:].sum()

    def __reduce__(self):
        return NetworkShape, self.memory[:2]


class BlockShape(NetworkShape):
    """The positions of the weights and of their covariance, which is cut into blocks.

    Weights come neuron after neuron with the bias first; of each block the lower triangle counts, row after row.

    Parameters
    ----------
    widths, starts : as of `NetworkShape`
    unit_starts : where the weights of each unit begin, all layers in order, and the end
    cuts : the weights at which blocks begin, and the end
    """

    def __init__(self, widths, starts, unit_starts, cuts):
        NetworkShape.__init__(self, widths, starts)
        unit_starts, cuts = np.array(unit_starts, dtype=np.intp), np.array(cuts, dtype=np.intp)
        begins = unit_starts[: self.n_units]
        sizes = np.diff(cuts)
        offsets = np.concatenate([[0], np.cumsum(sizes**2)]).astype(np.intp)
        block = np.searchsorted(cuts, begins, side="right") - 1
        stride = np.ascontiguousarray(sizes[block])
        unit_offset = offsets[block] + (begins - cuts[block]) * (stride + 1)
        unit_layer = np.repeat(np.arange(self.n_layers, dtype=np.intp), np.array(widths[1:], dtype=np.intp))
        first_unit = np.searchsorted(unit_starts, cuts).astype(np.intp)
        self.cuts, self.offsets, self.n_blocks = cuts, offsets, len(sizes)
        self.memory = (*self.memory, unit_starts, cuts, offsets, unit_offset, stride, unit_layer, first_unit)
        self.cut, self.offset = _address(cuts), _address(offsets)
        self.unit_offset, self.unit_stride = _address(unit_offset), _address(stride)
        self.unit_layer, self.first_unit = _address(unit_layer), _address(first_unit)

    def __reduce__(self):
        return BlockShape, self.memory[:4]


def _address(values):
    return cython.cast(cython.pointer(cython.Py_ssize_t), cython.address(values[0]))


class NetworkRule:
    """How a network learns a row, apart from its belief.

    Parameters
    ----------
    activation : CompiledActivation
    likelihood : VectorLikelihood
    drift : share of the prior's variance by which the weights move before each row, in [0, 1]
    prior_var : (p,) array
    """

    def __init__(self, activation, likelihood, drift: float, prior_var):
        self.activation, self.likelihood = activation, likelihood
        self.drift, self.prior_var = drift, np.ascontiguousarray(prior_var, dtype=np.float64)
        self.kept, self.added = 1.0 - drift, drift * np.asarray(self.prior_var)

    def __reduce__(self):
        return NetworkRule, (self.activation, self.likelihood, self.drift, np.asarray(self.prior_var))


class CompiledPass:
    """A pass over rows as kernels take it: what comes in, and what is written down about each row before it is learned.

    Parameters
    ----------
    work : onepass.models.network.learning.Pass
    order : of the rows of the pass that are to be learned now

    Attributes
    ----------
    rows, targets : (n, d) and (n, columns) arrays
    densities, gains : receive the log density of each target, and of all its copies, (n,) each
    trust : receives how far each row was distrusted, and the log odds of a jump after it, (2, n)
    record : receives what each row was predicted from, (n, 7, K), see `vector_matches.OutputRecord`, or empty
    outputs : receives what each row's density follows from, (n, numbers), see `VectorLikelihood.keep`, or empty
    is_first : whether these rows are new; then learning stops after a row that raises an alarm, see `outliers`
    noise_gain, noise_bound : of the noise's learning, see `onepass.engine.vector_matches.VectorLikelihood.learn_noise`
    weights : of the rows, (n,), above 0; or None where they are all 1
    """

    def __init__(self, work, order):
        self.rows, self.targets = np.ascontiguousarray(work.rows), np.ascontiguousarray(work.targets)
        self.order = np.ascontiguousarray(order, dtype=np.intp)
        self.densities, self.gains, self.trust, self.is_first = work.densities, work.gains, work.trust, work.is_new
        self.keeps_record = work.record is not None
        self.record = work.record if self.keeps_record else np.empty((0, OUTPUT_RECORD_SIZE, 1))
        self.keeps_outputs = work.outputs is not None
        self.outputs = work.outputs if self.keeps_outputs else np.empty((0, 1))
        self.noise_gain, self.noise_bound = work.noise_learning
        self.weights = work.weights

    def start_row(self, i, noise):
        """Weigh the row that comes now."""
        noise.row_weight = 1.0 if self.weights is None else self.weights[i]

    def write_down(self, i, density, rule, mean, cov, noise, match):
        """Write down what a row was predicted from, and how likely its target was."""
        self.densities[i] = density
        self.gains[i] = noise.row_evidence
        if self.keeps_record:
            rule.likelihood.describe(mean, cov, noise, cython.address(self.record[i, 0, 0]), match)
        if self.keeps_outputs:
            rule.likelihood.keep(mean, cov, noise, cython.address(self.outputs[i, 0]))

    def finish_row(self, i, rule, mean, cov, noise):
        """Update what runs along by a row that was matched, and write down how far the row was trusted."""
        target = cython.address(self.targets[i, 0])
        rule.likelihood.update_noise(mean, cov, target, noise, self.noise_gain, self.noise_bound)
        self.trust[0, i] = noise.trust.distrust
        self.trust[1, i] = noise.trust.suspicion


class Sites:
    """The contribution of each row, so that it can be removed: its linearisation, its precision and its ``h``.

    A linearisation is stored as its factors, those of all layers in one piece, not as derivatives in all weights.
    """

    def __init__(self, n: int, shape: NetworkShape):
        k = shape.n_outputs
        n_inputs = shape.width[0] + shape.n_units - k
        self.signals = np.zeros((n, n_inputs + k * (shape.n_units - k)))
        self.precision, self.h = np.zeros((n, k, k)), np.zeros((n, k))
        self.removed = Signals(shape)  # of the row whose contribution is removed now
        self.filled = False


class Signals:
    """The intermediate results of a row in a network, forward and backward, and the memory for them.

    ``inputs`` and ``input_var`` are mean and variance of what enters each layer, a constant 1 first;
    ``expected_derivative`` is ``A = E[f'(a)]`` of each layer's units; ``output_jacobian`` is ``D``, the expected
    derivative of the outputs in each layer's pre-activations; ``mean`` that of the outputs.
    """

    def __init__(self, shape: NetworkShape):
        self.n_layers, self.n_outputs, self.widest = shape.n_layers, shape.n_outputs, shape.widest
        layer: cython.Py_ssize_t
        layers: cython.Py_ssize_t = self.n_layers * self.widest
        self.memory = np.zeros(layers * (3 + self.n_outputs) + self.n_outputs)
        view: cython.double[::1] = self.memory
        start = cython.address(view[0])
        self.inputs, self.input_var, self.expected_derivative = start, start + layers, start + 2 * layers
        self.output_jacobian = start + 3 * layers
        self.mean = self.output_jacobian + self.n_outputs * layers
        for layer in range(self.n_layers):
            self.layer_inputs(layer)[0] = 1.0

    def layer_inputs(self, layer):
        """``z``: what enters a layer, ``(n_in + 1,)``."""
        return self.inputs + layer * self.widest

    def layer_jacobian(self, layer, k):
        """``D``: derivatives of output ``k`` in the layer's pre-activations, ``(n_out,)``."""
        return self.output_jacobian + (layer * self.n_outputs + k) * self.widest
