"""Compiled learning of networks whose belief is held in blocks: full, one a layer, one a neuron.

The same steps as `onepass.models.network.propagation` and `onepass.likelihoods.multivariate`, row by row; a row that is
not finite is found before anything of it is written.
"""

from math import isfinite

import numpy as np
from numpy.typing import NDArray

from onepass._typing import FloatArray
from onepass.engine.compiled import compiled
from onepass.engine.heads import learn_scales, note, read, removal
from onepass.engine.moments import moments
from onepass.likelihoods.multivariate import NOISE

__all__ = ["Shape", "fill_slopes", "forward", "learn_blocks"]

Indices = NDArray[np.int64]
Shape = tuple[Indices, ...]
# Up to so many outputs are projected two at a time; more of them unit by unit, in short runs of a unit's weights.
_FEW_OUTPUTS = 6


@compiled
def forward(
    shape: Shape,
    rule: FloatArray,
    mean: FloatArray,
    cov: FloatArray,
    x: FloatArray,
    z: FloatArray,
    z_var: FloatArray,
    steep: FloatArray,
    reach: FloatArray,
    out: FloatArray,
) -> None:
    """Fill the inputs ``z`` of every layer, the outputs' means ``out`` and the slopes ``reach`` in every unit."""
    widths, starts, unit_cov, unit_stride, cuts = shape[0], shape[1], shape[2], shape[3], shape[4]
    n_layers = widths.shape[0] - 1
    for i in range(widths[0]):
        z[0, i] = x[i]
        z_var[0, i] = 0.0
    z[0, widths[0]] = 1.0
    unit = 0
    for layer in range(n_layers):
        n_in, last = widths[layer] + 1, layer == n_layers - 1
        for u in range(widths[layer + 1]):
            w = mean[starts[layer] + u * n_in : starts[layer] + (u + 1) * n_in]
            mu = 0.0
            for i in range(n_in):
                mu += w[i] * z[layer, i]
            if last:
                out[u] = mu
                continue
            var = 0.0
            for i in range(n_in):
                begin = unit_cov[unit] + i * unit_stride[unit]
                row = cov[begin : begin + i + 1]
                cross = 0.0
                for j in range(i):
                    cross += row[j] * z[layer, j]
                var += z[layer, i] * (2.0 * cross + row[i] * z[layer, i])
                var += (w[i] * w[i] + row[i]) * z_var[layer, i]
            z[layer + 1, u], z_var[layer + 1, u], steep[layer, u] = moments(rule, mu, max(var, 0.0))
            unit += 1
        if not last:
            z[layer + 1, widths[layer + 1]] = 1.0
            z_var[layer + 1, widths[layer + 1]] = 0.0
    last, n_outputs = n_layers - 1, widths[n_layers]
    if n_layers > 1 and cuts.shape[0] == 2:
        size, n_in, n_before = cuts[1], widths[last] + 1, widths[last - 1] + 1
        for k in range(n_outputs):
            for h in range(widths[last]):
                begin = (starts[last] + k * n_in + h) * size + starts[last - 1] + h * n_before
                row = cov[begin : begin + n_before]
                cross = 0.0
                for i in range(n_before):
                    cross += row[i] * z[last - 1, i]
                out[k] += steep[last - 1, h] * cross
    for k in range(n_outputs):
        for u in range(n_outputs):
            reach[last, k, u] = 1.0 if k == u else 0.0
    for layer in range(last, 0, -1):
        n_in = widths[layer] + 1
        for k in range(n_outputs):
            for h in range(widths[layer]):
                reach[layer - 1, k, h] = 0.0
            for u in range(widths[layer + 1]):
                slope = reach[layer, k, u]
                if slope != 0.0:
                    w = mean[starts[layer] + u * n_in : starts[layer] + (u + 1) * n_in]
                    for h in range(widths[layer]):
                        reach[layer - 1, k, h] += slope * w[h]
            for h in range(widths[layer]):
                reach[layer - 1, k, h] *= steep[layer - 1, h]


@compiled
def fill_slopes(shape: Shape, z: FloatArray, reach: FloatArray, slopes: FloatArray) -> None:
    """``J = D ⊗ z``, ``(K, p)``."""
    widths, starts = shape[0], shape[1]
    for layer in range(widths.shape[0] - 1):
        n_in = widths[layer] + 1
        for k in range(slopes.shape[0]):
            for u in range(widths[layer + 1]):
                row = slopes[k, starts[layer] + u * n_in : starts[layer] + (u + 1) * n_in]
                slope = reach[layer, k, u]
                for i in range(n_in):
                    row[i] = slope * z[layer, i]


@compiled
def _project_one(shape: Shape, cov: FloatArray, slope: FloatArray, gain: FloatArray) -> None:
    """``c = C J`` for one output: every number of the lower triangles is read once."""
    cuts, offsets = shape[4], shape[5]
    gain[:] = 0.0
    for b in range(cuts.shape[0] - 1):
        size = cuts[b + 1] - cuts[b]
        s, g = slope[cuts[b] : cuts[b + 1]], gain[cuts[b] : cuts[b + 1]]
        for i in range(size):
            row = cov[offsets[b] + i * size : offsets[b] + i * size + i + 1]
            here, dot = s[i], 0.0
            for j in range(i):
                dot += row[j] * s[j]
                g[j] += row[j] * here
            g[i] += dot + row[i] * here


@compiled
def _project_two(shape: Shape, cov: FloatArray, s0: FloatArray, s1: FloatArray, g0: FloatArray, g1: FloatArray) -> None:
    """``c = C J`` for two outputs at a time."""
    cuts, offsets = shape[4], shape[5]
    g0[:] = 0.0
    g1[:] = 0.0
    for b in range(cuts.shape[0] - 1):
        low, size = cuts[b], cuts[b + 1] - cuts[b]
        a0, a1, b0, b1 = s0[low:], s1[low:], g0[low:], g1[low:]
        for i in range(size):
            row = cov[offsets[b] + i * size : offsets[b] + i * size + i + 1]
            here0, here1, dot0, dot1 = a0[i], a1[i], 0.0, 0.0
            for j in range(i):
                dot0 += row[j] * a0[j]
                dot1 += row[j] * a1[j]
                b0[j] += row[j] * here0
                b1[j] += row[j] * here1
            b0[i] += dot0 + row[i] * here0
            b1[i] += dot1 + row[i] * here1


@compiled
def _project_many(
    shape: Shape, cov: FloatArray, z: FloatArray, reach: FloatArray, units: FloatArray, gain: FloatArray
) -> None:
    """``c = C J`` for K outputs: since ``J = D ⊗ z``, first ``C`` times ``z`` unit by unit, then times ``D``.

    The first product costs what one output costs, so K outputs are not K times the work.
    """
    widths, starts, unit_layer, first_unit, cuts, offsets = shape[0], shape[1], shape[6], shape[7], shape[4], shape[5]
    n_layers = widths.shape[0] - 1
    block = unit = 0
    for b in range(cuts.shape[0] - 1):
        end = first_unit[b + 1] if b + 2 < cuts.shape[0] else units.shape[0]
        for u in range(first_unit[b], end):
            units[u, cuts[b] : cuts[b + 1]] = 0.0
    for layer in range(n_layers):
        n_in = widths[layer] + 1
        for u in range(widths[layer + 1]):
            begin = starts[layer] + u * n_in
            while begin >= cuts[block + 1]:
                block += 1
            low, stride = cuts[block], cuts[block + 1] - cuts[block]
            for i in range(n_in):
                at, here = begin - low + i, z[layer, i]
                row = cov[offsets[block] + at * stride : offsets[block] + at * stride + at + 1]
                mine = units[unit, low : low + at + 1]
                # The units of this block up to our own, each a run of the row.
                run = 0
                for other in range(first_unit[block], unit + 1):
                    source = z[unit_layer[other]]
                    end = min(widths[unit_layer[other]] + 1, at - run)
                    dot = 0.0
                    for j in range(end):
                        dot += row[run + j] * source[j]
                        mine[run + j] += row[run + j] * here
                    units[other, low + at] += dot
                    run += end
                mine[at] += row[at] * here
            unit += 1
    gain[:] = 0.0
    block = unit = 0
    for layer in range(n_layers):
        for u in range(widths[layer + 1]):
            while starts[layer] + u * (widths[layer] + 1) >= cuts[block + 1]:
                block += 1
            q = units[unit, cuts[block] : cuts[block + 1]]
            for k in range(gain.shape[0]):
                slope, g = reach[layer, k, u], gain[k, cuts[block] : cuts[block + 1]]
                if slope != 0.0:
                    for i in range(q.shape[0]):
                        g[i] += slope * q[i]
            unit += 1


@compiled
def _downdate_one(shape: Shape, cov: FloatArray, gain: FloatArray, weighted: FloatArray) -> None:
    """``C -= c' weighted`` for one output."""
    cuts, offsets = shape[4], shape[5]
    for b in range(cuts.shape[0] - 1):
        low, size = cuts[b], cuts[b + 1] - cuts[b]
        g = gain[low : low + size]
        for i in range(size):
            row, factor = cov[offsets[b] + i * size : offsets[b] + i * size + i + 1], weighted[low + i]
            for j in range(i + 1):
                row[j] -= factor * g[j]
            row[i] = max(row[i], 0.0)


@compiled
def _downdate(shape: Shape, cov: FloatArray, gain: FloatArray, weighted: FloatArray) -> None:
    """``C -= c' weighted`` on the lower triangles, four outputs at a time."""
    cuts, offsets = shape[4], shape[5]
    n_outputs = gain.shape[0]
    for b in range(cuts.shape[0] - 1):
        low, size = cuts[b], cuts[b + 1] - cuts[b]
        for i in range(size):
            row = cov[offsets[b] + i * size : offsets[b] + i * size + i + 1]
            k = 0
            while k + 4 <= n_outputs:
                a0, a1, a2, a3 = (
                    weighted[k, low + i],
                    weighted[k + 1, low + i],
                    weighted[k + 2, low + i],
                    weighted[k + 3, low + i],
                )
                g0, g1, g2, g3 = gain[k, low:], gain[k + 1, low:], gain[k + 2, low:], gain[k + 3, low:]
                for j in range(i + 1):
                    row[j] -= a0 * g0[j] + a1 * g1[j] + a2 * g2[j] + a3 * g3[j]
                k += 4
            if k + 2 <= n_outputs:
                a0, a1 = weighted[k, low + i], weighted[k + 1, low + i]
                g0, g1 = gain[k, low:], gain[k + 1, low:]
                for j in range(i + 1):
                    row[j] -= a0 * g0[j] + a1 * g1[j]
                k += 2
            if k < n_outputs:
                a0, g0 = weighted[k, low + i], gain[k, low:]
                for j in range(i + 1):
                    row[j] -= a0 * g0[j]
            row[i] = max(row[i], 0.0)


@compiled
def _multiply(shape: Shape, cov: FloatArray, factor: float) -> None:
    for i in range(cov.shape[0]):
        cov[i] *= factor


@compiled
def _trace(shape: Shape, cov: FloatArray) -> float:
    cuts, offsets = shape[4], shape[5]
    trace = 0.0
    for b in range(cuts.shape[0] - 1):
        size = cuts[b + 1] - cuts[b]
        for i in range(size):
            trace += cov[offsets[b] + i * size + i]
    return trace


@compiled
def _gains(
    shape: Shape,
    cov: FloatArray,
    z: FloatArray,
    reach: FloatArray,
    slopes: FloatArray,
    units: FloatArray,
    gain: FloatArray,
    out_cov: FloatArray,
) -> None:
    """``J``, ``c = C J`` and ``S = J'c``."""
    fill_slopes(shape, z, reach, slopes)
    n_outputs = gain.shape[0]
    if n_outputs <= _FEW_OUTPUTS:
        for k in range(0, n_outputs - 1, 2):
            _project_two(shape, cov, slopes[k], slopes[k + 1], gain[k], gain[k + 1])
        if n_outputs % 2:
            _project_one(shape, cov, slopes[n_outputs - 1], gain[n_outputs - 1])
    else:
        _project_many(shape, cov, z, reach, units, gain)
    for k in range(n_outputs):
        for m in range(k + 1):
            total, s, g = 0.0, slopes[k], gain[m]
            for i in range(s.shape[0]):
                total += s[i] * g[i]
            if k == m:
                total = max(total, 0.0)
            out_cov[k, m] = total
            out_cov[m, k] = total


@compiled
def _apply(
    shape: Shape,
    mean: FloatArray,
    cov: FloatArray,
    gain: FloatArray,
    weighted: FloatArray,
    pull: FloatArray,
    drop: FloatArray,
) -> None:
    """Take the rank-K step ``m += c pull``, ``C -= c drop c'``."""
    n_outputs = gain.shape[0]
    for k in range(n_outputs):
        w, g = weighted[k], gain[k]
        w[:] = 0.0
        for i in range(g.shape[0]):
            mean[i] += pull[k] * g[i]
        for m in range(n_outputs):
            h, factor = gain[m], drop[k, m]
            for i in range(w.shape[0]):
                w[i] += factor * h[i]
    if n_outputs == 1:
        _downdate_one(shape, cov, gain[0], weighted[0])
    else:
        _downdate(shape, cov, gain, weighted)


@compiled
def _values(slopes: FloatArray, mean: FloatArray, values: FloatArray) -> None:
    """``J'm``."""
    for k in range(slopes.shape[0]):
        total, s = 0.0, slopes[k]
        for i in range(s.shape[0]):
            total += s[i] * mean[i]
        values[k] = total


@compiled
def _magnitude(gain: FloatArray, pull: FloatArray) -> float:
    """Something that is finite if the step is."""
    total = 0.0
    for k in range(gain.shape[0]):
        for i in range(gain.shape[1]):
            total += abs(gain[k, i] * pull[k])
    return total


@compiled
def learn_blocks(
    X: FloatArray,
    Y: FloatArray,
    order: Indices,
    shape: Shape,
    rule: FloatArray,
    settings: FloatArray,
    mean: FloatArray,
    cov: FloatArray,
    scales: FloatArray,
    sites: tuple[FloatArray, ...],
    record: FloatArray,
    densities: FloatArray,
) -> int:
    """Learn the rows in ``order``; how many could be.

    ``settings`` are the head, the forgetting, the prior's trace, the gain and bound of the noise's learning, and what
    to do with sites: 0 nothing, 1 store them, 2 replace them. A site is the row's ``(z, D)`` in one piece, its
    precision, and its ``h``. ``record`` takes each row's mean, variance, noise and scale from before, ``densities`` its
    log density.
    """
    kind, forgetting, prior_trace, refine = int(settings[0]), settings[1], settings[2], int(settings[5])
    widths = shape[0]
    n_layers, n_outputs, size = widths.shape[0] - 1, widths[widths.shape[0] - 1], mean.shape[0]
    wide, n_units = 1, 0
    for layer in range(n_layers + 1):
        wide = max(wide, widths[layer] + 1)
        n_units += widths[layer] if layer else 0
    z, z_var, steep = np.zeros((n_layers, wide)), np.zeros((n_layers, wide)), np.zeros((n_layers, wide))
    reach, old_z, old_reach = np.zeros((n_layers, n_outputs, wide)), z.copy(), np.zeros((n_layers, n_outputs, wide))
    slopes, gain, weighted = np.zeros((n_outputs, size)), np.zeros((n_outputs, size)), np.zeros((n_outputs, size))
    units = np.zeros((n_units if n_outputs > _FEW_OUTPUTS else 0, size))
    out, values, pull, shift = np.zeros(n_outputs), np.zeros(n_outputs), np.zeros(n_outputs), np.zeros(n_outputs)
    out_cov, drop, precision = (
        np.zeros((n_outputs, n_outputs)),
        np.zeros((n_outputs, n_outputs)),
        np.zeros((n_outputs, n_outputs)),
    )
    for t in range(order.shape[0]):
        i = order[t]
        if forgetting < 1.0 and _trace(shape, cov) <= forgetting * prior_trace:
            _multiply(shape, cov, 1.0 / forgetting)
        forward(shape, rule, mean, cov, X[i], z, z_var, steep, reach, out)
        if refine == 2:
            # Linearised where the belief is with the row, then seen from where it is without it.
            fill_slopes(shape, z, reach, slopes)
            _values(slopes, mean, values)
            for k in range(n_outputs):
                out[k] -= values[k]
            _unpack(widths, sites[0][i], old_z, old_reach)
            _gains(shape, cov, old_z, old_reach, slopes, units, gain, out_cov)
            _values(slopes, mean, values)
            if not removal(out_cov, sites[1][i], sites[2][i], values, pull, drop):
                fill_slopes(shape, z, reach, slopes)
                _values(slopes, mean, values)
                for k in range(n_outputs):
                    out[k] += values[k]
                _gains(shape, cov, z, reach, slopes, units, gain, out_cov)
                densities[i] = read(kind, out, out_cov, Y[i], scales[NOISE], pull, drop, precision, shift)
                continue
            _apply(shape, mean, cov, gain, weighted, pull, drop)
            fill_slopes(shape, z, reach, slopes)
            _values(slopes, mean, values)
            for k in range(n_outputs):
                out[k] += values[k]
        _gains(shape, cov, z, reach, slopes, units, gain, out_cov)
        density = read(kind, out, out_cov, Y[i], scales[NOISE], pull, drop, precision, shift)
        if not isfinite(density) or not isfinite(_magnitude(gain, pull)):
            return t
        densities[i] = density
        note(kind, record, i, out, out_cov, scales)
        if refine > 0:
            _pack(widths, sites[0][i], z, reach)
            _values(slopes, mean, values)
            for k in range(n_outputs):
                h = shift[k]
                for m in range(n_outputs):
                    sites[1][i, k, m] = precision[k, m]
                    h += precision[k, m] * values[m]
                sites[2][i, k] = h
        _apply(shape, mean, cov, gain, weighted, pull, drop)
        learn_scales(kind, scales, out, out_cov, Y[i], settings[3], settings[4])
    return len(order)


@compiled
def _pack(widths: Indices, site: FloatArray, z: FloatArray, reach: FloatArray) -> None:
    """Put ``z`` and ``D`` of all layers one behind the other; of the last layer ``D`` is the identity."""
    at, n_layers, n_outputs = 0, widths.shape[0] - 1, reach.shape[1]
    for layer in range(n_layers):
        for i in range(widths[layer]):
            site[at] = z[layer, i]
            at += 1
        for k in range(n_outputs if layer < n_layers - 1 else 0):
            for u in range(widths[layer + 1]):
                site[at] = reach[layer, k, u]
                at += 1


@compiled
def _unpack(widths: Indices, site: FloatArray, z: FloatArray, reach: FloatArray) -> None:
    at, n_layers, n_outputs = 0, widths.shape[0] - 1, reach.shape[1]
    for layer in range(n_layers):
        for i in range(widths[layer]):
            z[layer, i] = site[at]
            at += 1
        z[layer, widths[layer]] = 1.0
        for k in range(n_outputs):
            for u in range(widths[layer + 1]):
                if layer < n_layers - 1:
                    reach[layer, k, u] = site[at]
                    at += 1
                else:
                    reach[layer, k, u] = 1.0 if k == u else 0.0
