"""Compiled learning of networks with independent weights: work and memory in proportion to their number.

The slopes in the weights are never formed. A layer's weights lie input by input, all units side by side, so that inner
loops run over the units and an input that is zero, such as a dark pixel, is skipped.
"""

from math import isfinite

import numpy as np
from numpy.typing import NDArray

from onepass._typing import FloatArray
from onepass.engine.compiled import compiled
from onepass.engine.heads import learn_scales, note, read
from onepass.engine.moments import moments
from onepass.likelihoods.multivariate import NOISE

__all__ = ["learn_independent"]

Indices = NDArray[np.int64]


@compiled
def _forward(
    widths: Indices,
    starts: Indices,
    rule: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    z: FloatArray,
    own: FloatArray,
    steep: FloatArray,
    out: FloatArray,
) -> None:
    """Fill each layer's inputs ``z``, the variance ``own`` of each unit by its weights, and the outputs' means."""
    n_layers = widths.shape[0] - 1
    z_var, pre_mean, pre_var = np.zeros(z.shape[1]), np.empty(z.shape[1]), np.empty(z.shape[1])
    for layer in range(n_layers):
        n_in, n_out, start = widths[layer] + 1, widths[layer + 1], starts[layer]
        z[layer, n_in - 1] = 1.0
        z_var[n_in - 1] = 0.0
        q = own[layer]
        for u in range(n_out):
            pre_mean[u] = q[u] = pre_var[u] = 0.0
        for i in range(n_in):
            value, spread = z[layer, i], z_var[i]
            if value == 0.0 and spread == 0.0:
                continue
            square = value * value
            w = mean[start + i * n_out : start + (i + 1) * n_out]
            v = variance[start + i * n_out : start + (i + 1) * n_out]
            for u in range(n_out):
                pre_mean[u] += value * w[u]
                q[u] += square * v[u]
            if spread > 0.0:
                for u in range(n_out):
                    pre_var[u] += spread * (w[u] * w[u] + v[u])
        if layer == n_layers - 1:
            for u in range(n_out):
                out[u] = pre_mean[u]
        else:
            for u in range(n_out):
                z[layer + 1, u], z_var[u], steep[layer, u] = moments(rule, pre_mean[u], q[u] + pre_var[u])


@compiled
def _backward(
    widths: Indices, starts: Indices, mean: FloatArray, steep: FloatArray, reach: FloatArray, n_outputs: int
) -> None:
    """Chain the expected slopes: ``D_{l-1} = (D_l W_l) A``."""
    n_layers = widths.shape[0] - 1
    for k in range(n_outputs):
        for u in range(n_outputs):
            reach[n_layers - 1, k, u] = 1.0 if k == u else 0.0
    for layer in range(n_layers - 1, 0, -1):
        n_out = widths[layer + 1]
        for h in range(widths[layer]):
            w = mean[starts[layer] + h * n_out : starts[layer] + (h + 1) * n_out]
            for k in range(n_outputs):
                if layer == n_layers - 1:
                    total = w[k] * 1.0
                else:
                    total, slope = 0.0, reach[layer, k]
                    for u in range(n_out):
                        total += slope[u] * w[u]
                reach[layer - 1, k, h] = total * steep[layer - 1, h]


@compiled
def learn_independent(
    X: FloatArray,
    Y: FloatArray,
    order: Indices,
    widths: Indices,
    starts: Indices,
    rule: FloatArray,
    settings: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    scales: FloatArray,
    record: FloatArray,
    densities: FloatArray,
) -> int:
    """Learn the rows in ``order``; how many could be. The arguments are those of `onepass.engine.network`."""
    kind, forgetting, prior_trace = int(settings[0]), settings[1], settings[2]
    n_layers, n_outputs = widths.shape[0] - 1, widths[widths.shape[0] - 1]
    wide = 1
    for layer in range(n_layers + 1):
        wide = max(wide, widths[layer] + 1)
    z, own, steep = np.zeros((n_layers, wide)), np.zeros((n_layers, wide)), np.zeros((n_layers, wide))
    reach = np.zeros((n_layers, n_outputs, wide))
    pulls, drops = np.zeros((n_layers, wide)), np.zeros((n_layers, wide))
    out, pull, shift = np.zeros(n_outputs), np.zeros(n_outputs), np.zeros(n_outputs)
    out_cov, drop, precision = (
        np.zeros((n_outputs, n_outputs)),
        np.zeros((n_outputs, n_outputs)),
        np.zeros((n_outputs, n_outputs)),
    )
    for t in range(order.shape[0]):
        row = order[t]
        if forgetting < 1.0 and variance.sum() <= forgetting * prior_trace:
            for p in range(variance.shape[0]):
                variance[p] /= forgetting
        for i in range(widths[0]):
            z[0, i] = X[row, i]
        _forward(widths, starts, rule, mean, variance, z, own, steep, out)
        _backward(widths, starts, mean, steep, reach, n_outputs)
        out_cov[:] = 0.0
        for layer in range(n_layers):
            q = own[layer]
            for k in range(n_outputs):
                for m in range(k + 1):
                    if layer == n_layers - 1:
                        total = q[k] if k == m else 0.0
                    else:
                        total, a, b = 0.0, reach[layer, k], reach[layer, m]
                        for u in range(widths[layer + 1]):
                            total += a[u] * b[u] * q[u]
                    out_cov[k, m] += total
        for k in range(n_outputs):
            for m in range(k):
                out_cov[m, k] = out_cov[k, m]
        density = read(kind, out, out_cov, Y[row], scales[NOISE], pull, drop, precision, shift)
        if not isfinite(density) or not _is_finite(pull):
            return t
        densities[row] = density
        note(kind, record, row, out, out_cov, scales)
        _gather(widths, reach, pull, drop, pulls, drops)
        _apply(widths, starts, z, pulls, drops, mean, variance)
        learn_scales(kind, scales, out, out_cov, Y[row], settings[3], settings[4])
    return len(order)


@compiled
def _is_finite(values: FloatArray) -> bool:
    total = 0.0
    for k in range(values.shape[0]):
        total += values[k] * 0.0
    return total == 0.0


@compiled
def _gather(
    widths: Indices, reach: FloatArray, pull: FloatArray, drop: FloatArray, pulls: FloatArray, drops: FloatArray
) -> None:
    """What the outputs' step is for each unit: ``D'pull`` and the diagonal of ``D'drop D``."""
    n_layers, n_outputs = widths.shape[0] - 1, pull.shape[0]
    for k in range(n_outputs):
        pulls[n_layers - 1, k], drops[n_layers - 1, k] = pull[k], drop[k, k]
    mixed = np.empty(reach.shape[2])
    for layer in range(n_layers - 1):
        n_out = widths[layer + 1]
        for u in range(n_out):
            pulls[layer, u] = drops[layer, u] = 0.0
        for k in range(n_outputs):
            d = reach[layer, k]
            for u in range(n_out):
                pulls[layer, u] += d[u] * pull[k]
                mixed[u] = drop[k, k] * d[u]
            for m in range(k):
                other, factor = reach[layer, m], 2.0 * drop[k, m]
                for u in range(n_out):
                    mixed[u] += factor * other[u]
            for u in range(n_out):
                drops[layer, u] += d[u] * mixed[u]


@compiled
def _apply(
    widths: Indices,
    starts: Indices,
    z: FloatArray,
    pulls: FloatArray,
    drops: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
) -> None:
    """Move every weight that the row touches."""
    for layer in range(widths.shape[0] - 1):
        n_out = widths[layer + 1]
        up, down = pulls[layer], drops[layer]
        for i in range(widths[layer] + 1):
            value = z[layer, i]
            if value == 0.0:
                continue
            square, at = value * value, starts[layer] + i * n_out
            w, v = mean[at : at + n_out], variance[at : at + n_out]
            for u in range(n_out):
                w[u] += value * v[u] * up[u]
                v[u] *= max(1.0 - square * v[u] * down[u], 0.0)
