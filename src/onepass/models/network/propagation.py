"""Forward and backward pass: moments of a network's signals, and expected derivatives of its outputs in all weights.

Forward, a unit's pre-activation ``a = w'z`` has the mean ``w'z`` and the variance ``z'C z + (w² + diag C)' Var z``,
with ``C`` the covariance of its weights and ``z`` the outputs of the layer before; the activation's moments follow.
Backward, the expected derivatives ``A = E[f'(a)]`` are chained through the mean weights: ``D`` of the last layer is the
identity, ``D_l = (D_{l+1} W_{l+1}) A_l``, and the derivative of the outputs in the weights of layer ``l`` is ``D_l ⊗
z``. Both are closed forms, independent for each row, and computed for many rows at a time.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from onepass._typing import FloatArray
from onepass.activations import Activation
from onepass.beliefs.network import NetworkBelief
from onepass.layers.layout import Layout

__all__ = [
    "Signals",
    "curvature_covariance",
    "evaluate",
    "linear_response",
    "output_moments",
    "parts_of_rows",
    "propagate",
]

_NUMBERS = 4_000_000  # of derivatives at a time, which bounds the memory of a prediction


class Signals(NamedTuple):
    """The intermediate results of rows in a network of ``L`` layers."""

    mean: FloatArray  # of the outputs, (n, K)
    # Means of what enters each layer, a constant 1 first, (n, n_in + 1); of a convolution what each position sees of
    # it, (n, positions, cols).
    inputs: list[FloatArray]
    # D: expected derivative of the outputs in each layer's pre-activations, (n, K, units).
    output_jacobian: list[FloatArray]
    # Of each hidden layer: the variance of its outputs that no linear function of its weights explains, (n, n_out), and
    # the expected derivative of the network's outputs in them, (n, K, n_out).
    residuals: list[FloatArray]
    residual_jacobian: list[FloatArray]

    def weight_jacobian(self, layout: Layout) -> FloatArray:
        """``J``: the expected derivative of every output in every weight, ``(n, K, p)``."""
        n, n_outputs = self.mean.shape
        flat = np.empty((n, n_outputs, layout.size))
        layers = zip(layout.layers(flat), layout.wirings, self.inputs, self.output_jacobian, strict=True)
        for view, wiring, seen, jacobian in layers:
            view[...] = wiring.weight_jacobian(seen, jacobian)
        return flat


def propagate(belief: NetworkBelief, activation: Activation, rows: FloatArray) -> Signals:
    """Send rows ``(n, d)`` through the network and the derivatives back."""
    layout = belief.layout
    weights = layout.layers(belief.mean)
    variances = layout.layers(belief.marginal_variances())
    own_variances = belief.own_variances()
    z, z_var = _with_one(rows), np.zeros((len(rows), rows.shape[1] + 1))
    inputs, expected_derivatives, residuals = [], [], []
    for layer, (wiring, weight) in enumerate(zip(layout.wirings, weights, strict=True)):
        z, z_var = wiring.see(z), wiring.see(z_var)
        inputs.append(z)
        if layer == layout.n_layers - 1:
            break
        pre_var = own_variances[layer](z) + z_var @ (weight**2 + variances[layer]).T
        leaving = wiring.forward(activation, z @ weight.T, pre_var, len(rows))
        expected_derivatives.append(leaving.slope)
        residuals.append(leaving.residual)
        z = _with_one(leaving.mean)
        z_var = np.hstack([np.zeros((len(rows), 1)), leaving.var])
    mean = z @ weights[-1].T
    joint = belief.covariance_with_outgoing()
    if joint is not None:  # a unit and its outgoing weight vary together: E[w z] = E[w] E[z] + A cov(w, a)
        mean = mean + np.einsum("nh,khi,ni->nk", expected_derivatives[-1], joint, inputs[-2], optimize=True)
    jacobian = [np.broadcast_to(np.eye(mean.shape[1]), (len(rows), mean.shape[1], mean.shape[1]))]
    residual_jacobian: list[FloatArray] = []
    for layer in range(layout.n_layers - 1, 0, -1):
        through = layout.wirings[layer].through_weights(weights[layer], jacobian[0])
        residual_jacobian.insert(0, through)
        through = layout.wirings[layer - 1].average_back(through)
        jacobian.insert(0, through * expected_derivatives[layer - 1][:, None, :])
    return Signals(np.asarray(mean, dtype=np.float64), inputs, jacobian, residuals, residual_jacobian)


def parts_of_rows(belief: NetworkBelief, n: int) -> Iterator[slice]:
    """Parts of ``n`` rows, each small enough for what its signals and derivatives take."""
    chunk = max(_NUMBERS // (belief.numbers_per_row * belief.layout.widths[-1]), 1)
    for start in range(0, n, chunk):
        yield slice(start, start + chunk)


def linear_response(signals: Signals, gaps: list[FloatArray]) -> FloatArray:
    """``J gap``: how far weights that are off their means by ``gaps``, one per layer, move the outputs, ``(n, K)``."""
    total = np.zeros_like(signals.mean)
    for gap, jacobian, z in zip(gaps, signals.output_jacobian, signals.inputs, strict=True):
        total += np.einsum("nko,no->nk", jacobian, (z @ gap.T).reshape(len(z), -1))
    return total


def output_moments(belief: NetworkBelief, activation: Activation, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means and covariances of the outputs, ``(n, K)`` and ``(n, K, K)``."""
    n_outputs = belief.layout.widths[-1]
    means, covs = np.empty((len(rows), n_outputs)), np.empty((len(rows), n_outputs, n_outputs))
    for part in parts_of_rows(belief, len(rows)):
        signals = propagate(belief, activation, rows[part])
        means[part], covs[part] = signals.mean, belief.output_covariance(signals)
    return means, covs


def curvature_covariance(belief: NetworkBelief, activation: Activation, rows: FloatArray) -> FloatArray:
    """The covariance of the outputs that a linear function of the weights misses, ``(n, K, K)``.

    A hidden unit varies more than its expected derivative says, ``Var f(a) > A² Var a``, since it may be on either side
    of its kink.
    """
    n_outputs = belief.layout.widths[-1]
    covs = np.zeros((len(rows), n_outputs, n_outputs))
    for part in parts_of_rows(belief, len(rows)):
        signals = propagate(belief, activation, rows[part])
        for residual, jacobian in zip(signals.residuals, signals.residual_jacobian, strict=True):
            covs[part] += (jacobian * residual[:, None]) @ jacobian.swapaxes(1, 2)
    return covs


def evaluate(weights: list[FloatArray], activation: Activation, rows: FloatArray) -> FloatArray:
    """Outputs ``(n, K)`` of a network with known weights."""
    z = _with_one(rows)
    for weight in weights[:-1]:
        z = _with_one(activation(z @ weight.T))
    return np.asarray(z @ weights[-1].T)


def _with_one(rows: FloatArray) -> FloatArray:
    return np.hstack([np.ones((len(rows), 1)), rows])
