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
from onepass.beliefs.layout import Layout
from onepass.beliefs.structures import Structure

__all__ = ["Signals", "evaluate", "linear_response", "output_moments", "parts_of_rows", "propagate"]

_NUMBERS = 4_000_000  # of derivatives at a time, which bounds the memory of a prediction


class Signals(NamedTuple):
    """The intermediate results of rows in a network of ``L`` layers."""

    mean: FloatArray  # of the outputs, (n, K)
    inputs: list[FloatArray]  # means of what enters each layer, a constant 1 last, (n, n_in + 1)
    output_jacobian: list[
        FloatArray
    ]  # D: expected derivative of the outputs in each layer's pre-activations, (n, K, n_out)

    def weight_jacobian(self, layout: Layout) -> FloatArray:
        """``J``: the expected derivative of every output in every weight, ``(n, K, p)``."""
        n, n_outputs = self.mean.shape
        flat = np.empty((n, n_outputs, layout.size))
        for view, jacobian, z in zip(layout.layers(flat), self.output_jacobian, self.inputs, strict=True):
            view[...] = jacobian[..., None] * z[:, None, None, :]
        return flat


def propagate(structure: Structure, belief: Any, activation: Activation, rows: FloatArray) -> Signals:
    """Send rows ``(n, d)`` through the network and the derivatives back."""
    layout = structure.layout
    weights = layout.layers(belief.mean)
    variances = layout.layers(belief.marginal_variances())
    own_variances = structure.own_variances(belief)
    z, z_var = _with_one(rows), np.zeros((len(rows), rows.shape[1] + 1))
    inputs, expected_derivatives = [z], []
    for layer, weight in enumerate(weights[:-1]):
        pre_var = own_variances[layer](z) + z_var @ (weight**2 + variances[layer]).T
        output = activation.moments(z @ weight.T, np.maximum(pre_var, 0.0))
        expected_derivatives.append(output.slope)
        z, z_var = _with_one(output.mean), np.hstack([output.var, np.zeros((len(rows), 1))])
        inputs.append(z)
    mean = z @ weights[-1].T
    joint = structure.covariance_with_outgoing(belief)
    if joint is not None:  # a unit and its outgoing weight vary together: E[w z] = E[w] E[z] + A cov(w, a)
        mean = mean + np.einsum("nh,khi,ni->nk", expected_derivatives[-1], joint, inputs[-2], optimize=True)
    jacobian = [np.broadcast_to(np.eye(mean.shape[1]), (len(rows), mean.shape[1], mean.shape[1]))]
    for weight, derivative in zip(weights[:0:-1], expected_derivatives[::-1], strict=True):
        jacobian.insert(0, (jacobian[0] @ weight[:, :-1]) * derivative[:, None, :])
    return Signals(np.asarray(mean, dtype=np.float64), inputs, jacobian)


def parts_of_rows(structure: Structure, n: int) -> Iterator[slice]:
    """Parts of ``n`` rows, each small enough for what its signals and derivatives take."""
    chunk = max(_NUMBERS // (structure.numbers_per_row * structure.layout.widths[-1]), 1)
    for start in range(0, n, chunk):
        yield slice(start, start + chunk)


def linear_response(signals: Signals, gaps: list[FloatArray]) -> FloatArray:
    """``J gap``: how far weights that are off their means by ``gaps``, one per layer, move the outputs, ``(n, K)``."""
    total = np.zeros_like(signals.mean)
    for gap, jacobian, z in zip(gaps, signals.output_jacobian, signals.inputs, strict=True):
        total += np.einsum("nko,no->nk", jacobian, z @ gap.T)
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


def evaluate(weights: list[FloatArray], activation: Activation, rows: FloatArray) -> FloatArray:
    """Outputs ``(n, K)`` of a network with known weights."""
    z = _with_one(rows)
    for weight in weights[:-1]:
        z = _with_one(activation(z @ weight.T))
    return np.asarray(z @ weights[-1].T)


def _with_one(rows: FloatArray) -> FloatArray:
    return np.hstack([rows, np.ones((len(rows), 1))])
