"""Through a network and back: the moments of its signals, and the expected slope of its outputs in every weight.

Forward, a unit's pre-activation ``a = w'z`` has the mean ``w'z`` and the variance
``z'C z + (w² + diag C)' Var z`` by its own weights' belief and the layer before; the activation's moments take it from
there. Backward, the expected slopes ``A = E[f'(a)]`` are chained through the mean weights: ``D`` of the last layer is
the identity, ``D_l = (D_{l+1} W_{l+1}) A_l``, and the slope of the outputs in the weights of layer ``l`` is
``D_l ⊗ z``. Both are closed forms, row by row independent, and here done for many rows at a time.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from onepass._typing import FloatArray
from onepass.activations import Activation
from onepass.beliefs.blocks import BlockGaussian, LayeredDiagonal

__all__ = ["Signals", "evaluate", "moved", "output_moments", "parts_of_rows", "propagate", "slopes"]

_NUMBERS = 4_000_000  # of slopes held at a time, which bounds the memory of a prediction


class Signals(NamedTuple):
    """What a row leaves behind on its way through a network of ``L`` layers."""

    mean: FloatArray  # of the outputs, (n, K)
    inputs: list[FloatArray]  # means of what enters each layer, a constant 1 last, (n, n_in + 1)
    reach: list[FloatArray]  # D: expected slope of the outputs in each layer's pre-activations, (n, K, n_out)


def propagate(belief: BlockGaussian | LayeredDiagonal, activation: Activation, rows: FloatArray) -> Signals:
    """Send rows ``(n, d)`` through the network and the slopes back."""
    weights = belief.layout.layers(belief.mean)
    blocks = belief.unit_blocks() if isinstance(belief, BlockGaussian) else None
    variances = belief.layout.layers(belief.marginal_variances())
    z, z_var = _with_one(rows), np.zeros((len(rows), rows.shape[1] + 1))
    inputs, steepness = [z], []
    for layer, weight in enumerate(weights[:-1]):
        own = _quadratic(z, blocks[layer]) if blocks is not None else z**2 @ variances[layer].T
        pre_var = own + z_var @ (weight**2 + variances[layer]).T
        output = activation.moments(z @ weight.T, np.maximum(pre_var, 0.0))
        steepness.append(output.slope)
        z, z_var = _with_one(output.mean), np.hstack([output.var, np.zeros((len(rows), 1))])
        inputs.append(z)
    mean = z @ weights[-1].T
    joint = belief.last_hidden_with_outgoing() if isinstance(belief, BlockGaussian) else None
    if joint is not None:  # a unit and its outgoing weight vary together: E[w z] = E[w] E[z] + A cov(w, a)
        mean = mean + np.einsum("nh,khi,ni->nk", steepness[-1], joint, inputs[-2], optimize=True)
    reach = [np.broadcast_to(np.eye(mean.shape[1]), (len(rows), mean.shape[1], mean.shape[1]))]
    for weight, steep in zip(weights[:0:-1], steepness[::-1], strict=True):
        reach.insert(0, (reach[0] @ weight[:, :-1]) * steep[:, None, :])
    return Signals(np.asarray(mean, dtype=np.float64), inputs, reach)


def slopes(belief: BlockGaussian | LayeredDiagonal, signals: Signals) -> FloatArray:
    """``J``: the expected slope of every output in every weight, ``(n, K, p)``."""
    n, n_outputs = signals.mean.shape
    flat = np.empty((n, n_outputs, belief.layout.size))
    for view, reach, z in zip(belief.layout.layers(flat), signals.reach, signals.inputs, strict=True):
        view[...] = reach[..., None] * z[:, None, None, :]
    return flat


def parts_of_rows(belief: BlockGaussian | LayeredDiagonal, n: int) -> Iterator[slice]:
    """Parts of ``n`` rows, each small enough for what its signals and slopes take."""
    layout = belief.layout
    numbers = max(layout.widths) if isinstance(belief, LayeredDiagonal) else layout.size
    chunk = max(_NUMBERS // (numbers * layout.widths[-1]), 1)
    for start in range(0, n, chunk):
        yield slice(start, start + chunk)


def moved(signals: Signals, gaps: list[FloatArray]) -> FloatArray:
    """``J gap``: how far weights that are off their means by ``gaps``, a layer each, move the outputs, ``(n, K)``."""
    total = np.zeros_like(signals.mean)
    for gap, reach, z in zip(gaps, signals.reach, signals.inputs, strict=True):
        total += np.einsum("nko,no->nk", reach, z @ gap.T)
    return total


def output_moments(
    belief: BlockGaussian | LayeredDiagonal, activation: Activation, rows: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Means and covariances of the outputs, ``(n, K)`` and ``(n, K, K)``."""
    n_outputs = belief.layout.widths[-1]
    means, covs = np.empty((len(rows), n_outputs)), np.empty((len(rows), n_outputs, n_outputs))
    for part in parts_of_rows(belief, len(rows)):
        signals = propagate(belief, activation, rows[part])
        means[part] = signals.mean
        if isinstance(belief, LayeredDiagonal):
            covs[part] = _independent_covariance(belief, signals)
        else:
            covs[part] = belief.project(slopes(belief, signals))[1]
    return means, covs


def _independent_covariance(belief: LayeredDiagonal, signals: Signals) -> FloatArray:
    """``J'CJ`` without ever forming J: a unit's weights add ``D² Σ z² Var w``."""
    total = np.zeros((*signals.mean.shape, signals.mean.shape[1]))
    for variance, reach, z in zip(belief.layout.layers(belief.variance), signals.reach, signals.inputs, strict=True):
        total += (reach * (z**2 @ variance.T)[:, None, :]) @ reach.swapaxes(1, 2)
    return total


def evaluate(weights: list[FloatArray], activation: Activation, rows: FloatArray) -> FloatArray:
    """Outputs ``(n, K)`` of a network with known weights."""
    z = _with_one(rows)
    for weight in weights[:-1]:
        z = _with_one(activation(z @ weight.T))
    return np.asarray(z @ weights[-1].T)


def _with_one(rows: FloatArray) -> FloatArray:
    return np.hstack([rows, np.ones((len(rows), 1))])


def _quadratic(z: FloatArray, blocks: FloatArray) -> FloatArray:
    """``z'C z`` for rows ``(n, i)`` and blocks ``(u, i, i)``: ``(n, u)``."""
    return np.stack([((z @ block) * z).sum(axis=1) for block in blocks], axis=1)
