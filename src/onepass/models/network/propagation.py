"""Forward and backward pass: moments of a network's signals, and expected derivatives of its outputs in all weights.

Forward, a unit's pre-activation ``a = w'z`` has the mean ``w'z`` and the variance ``z'C z + (w² + diag C)' Var z``,
with ``C`` the covariance of its weights and ``z`` the outputs of the layer before; the activation's moments follow.
Backward, the expected derivatives ``A = E[f'(a)]`` are chained through the mean weights: ``D`` of the last layer is the
identity, ``D_l = (D_{l+1} W_{l+1}) A_l``, and the derivative of the outputs in the weights of layer ``l`` is ``D_l ⊗
z``. Both are closed forms, independent for each row, and computed for many rows at a time.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from onepass._typing import FloatArray
from onepass.activations import Activation
from onepass.beliefs.layout import Layout, Wiring
from onepass.beliefs.structures import Structure

__all__ = [
    "Signals",
    "curvature_covariance",
    "evaluate",
    "linear_response",
    "output_moments",
    "parts_of_rows",
    "propagate",
    "through_weights",
]

_NUMBERS = 4_000_000  # of derivatives at a time, which bounds the memory of a prediction


class Signals(NamedTuple):
    """The intermediate results of rows in a network of ``L`` layers."""

    mean: FloatArray  # of the outputs, (n, K)
    # Means of what enters each layer, a constant 1 last, (n, n_in + 1); of a convolution what each position sees of it,
    # (n, positions, cols).
    inputs: list[FloatArray]
    # D: expected derivative of the outputs in each layer's pre-activations, (n, K, units).
    output_jacobian: list[FloatArray]
    # Of each hidden layer: the variance of its outputs that no linear function of its weights explains, (n, n_out), and
    # the expected derivative of the network's outputs in them, (n, K, n_out).
    residuals: list[FloatArray]
    residual_jacobian: list[FloatArray]

    def layer_jacobian(self, layer: int) -> FloatArray:
        """Expected derivative of every output in the weights of a layer, ``(n, K, rows, cols)``."""
        z, jacobian = self.inputs[layer], self.output_jacobian[layer]
        if z.ndim == 2:
            return np.asarray(jacobian[..., None] * z[:, None, None, :])
        places = jacobian.reshape(*jacobian.shape[:2], z.shape[1], -1)
        return np.asarray(places.swapaxes(2, 3) @ z[:, None])

    def weight_jacobian(self, layout: Layout) -> FloatArray:
        """``J``: the expected derivative of every output in every weight, ``(n, K, p)``."""
        n, n_outputs = self.mean.shape
        flat = np.empty((n, n_outputs, layout.size))
        for layer, view in enumerate(layout.layers(flat)):
            view[...] = self.layer_jacobian(layer)
        return flat


def propagate(structure: Structure, belief: Any, activation: Activation, rows: FloatArray) -> Signals:
    """Send rows ``(n, d)`` through the network and the derivatives back."""
    layout = structure.layout
    weights = layout.layers(belief.mean)
    variances = layout.layers(belief.marginal_variances())
    own_variances = structure.own_variances(belief)
    z, z_var = _with_one(rows), np.zeros((len(rows), rows.shape[1] + 1))
    inputs, expected_derivatives, residuals = [], [], []
    for layer, (wiring, weight) in enumerate(zip(layout.wirings, weights, strict=True)):
        if not wiring.is_dense:
            z, z_var = wiring.see(z), wiring.see(z_var)
        inputs.append(z)
        if layer == layout.n_layers - 1:
            break
        pre_var = own_variances[layer](z) + z_var @ (weight**2 + variances[layer]).T
        output = activation.moments(z @ weight.T, np.maximum(pre_var, 0.0))
        slope, mean, var = (part.reshape(len(rows), -1) for part in (output.slope, output.mean, output.var))
        expected_derivatives.append(slope)
        share = 1.0 / wiring.pool_size
        residual = np.maximum(output.var - np.square(output.slope) * np.maximum(pre_var, 0.0), 0.0)
        residuals.append(wiring.average(residual.reshape(len(rows), -1), share**2))
        z = _with_one(wiring.average(mean, share))
        z_var = np.hstack([wiring.average(var, share**2), np.zeros((len(rows), 1))])
    mean = z @ weights[-1].T
    joint = structure.covariance_with_outgoing(belief)
    if joint is not None:  # a unit and its outgoing weight vary together: E[w z] = E[w] E[z] + A cov(w, a)
        mean = mean + np.einsum("nh,khi,ni->nk", expected_derivatives[-1], joint, inputs[-2], optimize=True)
    jacobian = [np.broadcast_to(np.eye(mean.shape[1]), (len(rows), mean.shape[1], mean.shape[1]))]
    residual_jacobian: list[FloatArray] = []
    for layer in range(layout.n_layers - 1, 0, -1):
        through = through_weights(layout.wirings[layer], weights[layer], jacobian[0])
        residual_jacobian.insert(0, through)
        through = layout.wirings[layer - 1].average_back(through)
        jacobian.insert(0, through * expected_derivatives[layer - 1][:, None, :])
    return Signals(np.asarray(mean, dtype=np.float64), inputs, jacobian, residuals, residual_jacobian)


def through_weights(wiring: Wiring, weight: FloatArray, jacobian: FloatArray) -> FloatArray:
    """Derivatives in a layer's pre-activations ``(n, K, units)`` as those in what enters it, ``(n, K, n_in)``."""
    if wiring.is_dense:
        return np.asarray(jacobian @ weight[:, :-1])
    places = jacobian.reshape(*jacobian.shape[:2], wiring.positions, wiring.rows)
    return wiring.spread(places @ weight[:, :-1])


def parts_of_rows(structure: Structure, n: int) -> Iterator[slice]:
    """Parts of ``n`` rows, each small enough for what its signals and derivatives take."""
    chunk = max(_NUMBERS // (structure.numbers_per_row * structure.layout.widths[-1]), 1)
    for start in range(0, n, chunk):
        yield slice(start, start + chunk)


def linear_response(signals: Signals, gaps: list[FloatArray]) -> FloatArray:
    """``J gap``: how far weights that are off their means by ``gaps``, one per layer, move the outputs, ``(n, K)``."""
    total = np.zeros_like(signals.mean)
    for gap, jacobian, z in zip(gaps, signals.output_jacobian, signals.inputs, strict=True):
        total += np.einsum("nko,no->nk", jacobian, (z @ gap.T).reshape(len(z), -1))
    return total


def output_moments(
    structure: Structure, belief: Any, activation: Activation, rows: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Means and covariances of the outputs, ``(n, K)`` and ``(n, K, K)``."""
    n_outputs = structure.layout.widths[-1]
    means, covs = np.empty((len(rows), n_outputs)), np.empty((len(rows), n_outputs, n_outputs))
    for part in parts_of_rows(structure, len(rows)):
        signals = propagate(structure, belief, activation, rows[part])
        means[part], covs[part] = signals.mean, structure.output_covariance(belief, signals)
    return means, covs


def curvature_covariance(structure: Structure, belief: Any, activation: Activation, rows: FloatArray) -> FloatArray:
    """The covariance of the outputs that a linear function of the weights misses, ``(n, K, K)``.

    A hidden unit varies more than its expected derivative says, ``Var f(a) > A² Var a``, since it may be on either side
    of its kink.
    """
    n_outputs = structure.layout.widths[-1]
    covs = np.zeros((len(rows), n_outputs, n_outputs))
    for part in parts_of_rows(structure, len(rows)):
        signals = propagate(structure, belief, activation, rows[part])
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
    return np.hstack([rows, np.ones((len(rows), 1))])
