"""Learning of networks with a block covariance: one block for all weights, one per layer or one per neuron.

The same steps as `onepass.models.network.propagation` and `onepass.models.network.learning`, row by row; a row that is
not finite is found before anything of it is written. Only the lower triangles of the blocks are read and written. The
belief may be in single or double precision; all else is in double precision.

Before a row the weights may move, ``C <- kept C + diag(added)``. The row is looked at as if they had, and its step
writes both at once: so nothing has to be taken back if the row can't be learned.
"""

import cython
import numpy as np
from cython.cimports.libc.math import fabs, isfinite
from cython.cimports.libc.string import memcpy
from cython.cimports.onepass.engine.network_records import BlockShape, Signals
from cython.cimports.onepass.engine.vector_matches import VectorMatch, as_array, remove_site


class Workspace:
    """Memory for a row's projections on the weights: ``J``, ``c = C J`` and ``information c``, ``(K, p)`` each."""

    def __init__(self, shape: BlockShape):
        n: cython.Py_ssize_t = shape.n_outputs
        size: cython.Py_ssize_t = shape.size
        units: cython.Py_ssize_t = shape.n_units if n > FEW_OUTPUTS else 0
        self.n_outputs, self.size, self.match = n, size, VectorMatch(n)
        self.memory = np.zeros((3 * n + units) * size + n * n + n)
        view: cython.double[::1] = self.memory
        start = cython.address(view[0])
        self.weight_jacobian, self.gain, self.weighted = start, start + n * size, start + 2 * n * size
        self.unit_gain = start + 3 * n * size
        self.cov = self.unit_gain + units * size
        self.values = self.cov + n * n


def learn_blocks(work, shape, rule, noise, sites: "Sites | None", mean, cov):
    """Learn a pass, in place; return the number of rows learned.

    They are all, those up to one that raised an alarm, see `outliers`, or those before one that is not finite.
    ``sites`` stores the contribution of each row; once they are filled, a row's contribution is removed before the row
    is learned again.
    """
    space = Workspace(shape)
    signals = Signals(shape)
    m = cython.address(mean[0])
    c = cython.address(cov[0])
    with cython.nogil:
        learned = _learn_rows(work, shape, rule, noise, sites, m, c, space, signals)
    rule.activation.raise_pending()
    if sites is not None:
        sites.filled = True
    return learned


def look_blocks(row, shape, rule, mean, cov) -> tuple["FloatArray", "FloatArray"]:
    """Means ``(K,)`` and covariance ``(K, K)`` of the outputs of a row ``(d,)``."""
    space = Workspace(shape)
    signals = Signals(shape)
    with cython.nogil:
        x = cython.address(row[0])
        forward(shape, rule.activation, 1.0, cython.NULL, cython.address(mean[0]), cython.address(cov[0]), x, signals)
        project(shape, 1.0, cython.NULL, cython.address(cov[0]), signals, space)
    rule.activation.raise_pending()
    n = shape.n_outputs
    return as_array(signals.mean, n), as_array(space.cov, n * n).reshape(n, n)


def _learn_rows(work, shape, rule, noise, sites, mean, cov, space, signals):
    t: cython.Py_ssize_t
    n_rows = work.order.shape[0]
    added = cython.address(rule.added[0])
    for t in range(n_rows):
        i = work.order[t]
        target = cython.address(work.targets[i, 0])
        x = cython.address(work.rows[i, 0])
        forward(shape, rule.activation, rule.kept, added, mean, cov, x, signals)
        removed = True
        if sites is not None and sites.filled:
            removed = _without_site(i, shape, sites, mean, cov, space, signals)
        project(shape, rule.kept, added, cov, signals, space)
        work.start_row(i, noise)
        density = rule.likelihood.match(signals.mean, space.cov, target, noise, space.match)
        if removed and (not isfinite(density) or not isfinite(magnitude(space, space.match.score))):
            return t
        work.write_down(i, density, rule, signals.mean, space.cov, noise, space.match)
        if not removed:
            continue
        if sites is not None:
            if noise.trust.active or rule.likelihood.may_widen:
                space.match.leave_out_widening(space.cov)
            _keep_site(i, shape, sites, mean, space, signals, space.match)
        step(shape, rule.kept, added, mean, cov, space, space.match)
        work.finish_row(i, rule, signals.mean, space.cov, noise)
        if work.is_first and noise.trust.is_alarmed():
            return t + 1
    return n_rows


def _without_site(row, shape, sites, mean, cov, space, signals):
    """Remove a row's site, if it can be: linearised at the belief with the row, seen from the belief without."""
    k: cython.Py_ssize_t
    n = shape.n_outputs
    for k in range(n):
        fill_weight_jacobian(shape, signals, k, space.weight_jacobian + k * shape.size)
    _linear_response(space, mean)
    for k in range(n):
        signals.mean[k] -= space.values[k]
    _copy_site(shape, sites.removed, cython.address(sites.signals[row, 0]), False)
    project(shape, 1.0, cython.NULL, cov, sites.removed, space)  # sites are kept only of weights that don't move
    _linear_response(space, mean)
    removed = remove_site(
        space.cov,
        cython.address(sites.precision[row, 0, 0]),
        cython.address(sites.h[row, 0]),
        space.values,
        space.match,
    )
    if removed:
        step(shape, 1.0, cython.NULL, mean, cov, space, space.match)
    for k in range(n):
        fill_weight_jacobian(shape, signals, k, space.weight_jacobian + k * shape.size)
    _linear_response(space, mean)
    for k in range(n):
        signals.mean[k] += space.values[k]
    return removed


def _keep_site(row, shape, sites, mean, space, signals, match):
    """Store the contribution of a row: its linearisation, the precision, and ``h = precision J'm + shift``."""
    k: cython.Py_ssize_t
    m: cython.Py_ssize_t
    n = shape.n_outputs
    _copy_site(shape, signals, cython.address(sites.signals[row, 0]), True)
    _linear_response(space, mean)
    for k in range(n):
        h = match.shift[k]
        for m in range(n):
            sites.precision[row, k, m] = match.precision[k * n + m]
            h += match.precision[k * n + m] * space.values[m]
        sites.h[row, k] = h


def forward(shape, activation, kept, added, mean, cov, x, signals):
    """Send a row through the network and the expected derivatives back; ``added`` is NULL where it is 0."""
    layer: cython.Py_ssize_t
    i: cython.Py_ssize_t
    u: cython.Py_ssize_t
    unit: cython.Py_ssize_t = 0
    last = shape.n_layers - 1
    for i in range(shape.width[0]):
        signals.inputs[1 + i] = x[i]
    for layer in range(shape.n_layers):
        n_in = shape.width[layer] + 1
        z = signals.layer_inputs(layer)
        z_var = signals.input_var + layer * signals.widest
        for u in range(shape.width[layer + 1]):
            weights = mean + shape.start[layer] + u * n_in
            pre_mean = 0.0
            for i in range(n_in):
                pre_mean += weights[i] * z[i]
            if layer == last:
                signals.mean[u] = pre_mean
                continue
            own = cov + shape.unit_offset[unit]
            moved = added if added == cython.NULL else added + shape.start[layer] + u * n_in
            pre_var = _unit_variance(n_in, weights, kept, moved, own, shape.unit_stride[unit], z, z_var)
            z_mean, var, derivative = activation.at(pre_mean, pre_var)
            z[signals.widest + 1 + u] = z_mean
            z_var[signals.widest + 1 + u] = var
            signals.expected_derivative[layer * signals.widest + u] = derivative
            unit += 1
    if shape.n_layers > 1 and shape.n_blocks == 1:
        _add_correlations(shape, kept, cov, signals)
    backward(shape, mean, signals)


def _unit_variance(n, weights, kept, added, cov, stride, z, z_var):
    """``z'C z + (w² + diag C)' Var z`` of a unit's pre-activation."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    var = 0.0
    weight: cython.double  # in double precision, whatever the belief's: refinement adds and removes these again
    own: cython.double
    for i in range(n):
        row = cov + i * stride
        cross = 0.0
        for j in range(i):
            cross += row[j] * z[j]
        weight = weights[i]
        own = kept * row[i]
        if added != cython.NULL:
            own += added[i]
        var += z[i] * (2.0 * kept * cross + own * z[i])
        var += (weight * weight + own) * z_var[i]
    return max(var, 0.0)


def _add_correlations(shape, kept, cov, signals):
    """A unit and its outgoing weight vary together: ``E[w z] = E[w] E[z] + A cov(w, a)``."""
    i: cython.Py_ssize_t
    h: cython.Py_ssize_t
    k: cython.Py_ssize_t
    last = shape.n_layers - 1
    n_in = shape.width[last] + 1
    n_before = shape.width[last - 1] + 1
    z = signals.layer_inputs(last - 1)
    derivative = signals.expected_derivative + (last - 1) * signals.widest
    for k in range(shape.n_outputs):
        for h in range(shape.width[last]):
            row = cov + (shape.start[last] + k * n_in + 1 + h) * shape.size + shape.start[last - 1] + h * n_before
            cross = 0.0
            for i in range(n_before):
                cross += row[i] * z[i]
            signals.mean[k] += derivative[h] * kept * cross


def backward(shape, mean, signals):
    """Chain the expected derivatives through the mean weights: ``D_{l-1} = (D_l W_l) A_{l-1}``."""
    layer: cython.Py_ssize_t
    h: cython.Py_ssize_t
    k: cython.Py_ssize_t
    u: cython.Py_ssize_t
    last = shape.n_layers - 1
    for k in range(shape.n_outputs):
        after = signals.layer_jacobian(last, k)
        for u in range(shape.n_outputs):
            after[u] = 1.0 if k == u else 0.0
    for layer in range(last, 0, -1):
        n_in = shape.width[layer] + 1
        derivative = signals.expected_derivative + (layer - 1) * signals.widest
        for k in range(shape.n_outputs):
            after = signals.layer_jacobian(layer, k)
            before = signals.layer_jacobian(layer - 1, k)
            for h in range(n_in - 1):
                before[h] = 0.0
            for u in range(shape.width[layer + 1]):
                slope = after[u]
                if slope != 0.0:
                    weights = mean + shape.start[layer] + u * n_in + 1
                    for h in range(n_in - 1):
                        before[h] += slope * weights[h]
            for h in range(n_in - 1):
                before[h] *= derivative[h]


def fill_weight_jacobian(shape, signals, k, jacobian):
    """``J = D ⊗ z`` of output ``k``, ``(p,)``."""
    layer: cython.Py_ssize_t
    i: cython.Py_ssize_t
    u: cython.Py_ssize_t
    for layer in range(shape.n_layers):
        n_in = shape.width[layer] + 1
        z = signals.layer_inputs(layer)
        slope = signals.layer_jacobian(layer, k)
        for u in range(shape.width[layer + 1]):
            part = jacobian + shape.start[layer] + u * n_in
            for i in range(n_in):
                part[i] = slope[u] * z[i]


def project(shape, kept, added, cov, signals, space):
    """``J``, ``c = C J`` and the outputs' covariance ``J'c``.

    Few outputs are projected two at a time. For more of them ``J = D ⊗ z`` is used: first ``C`` times ``z`` unit by
    unit, which costs what one output costs, then times ``D``.
    """
    b: cython.Py_ssize_t
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    m: cython.Py_ssize_t
    n = shape.n_outputs
    size = shape.size
    for k in range(n):
        fill_weight_jacobian(shape, signals, k, space.weight_jacobian + k * size)
    if n > FEW_OUTPUTS:
        _project_units(shape, cov, signals, space.unit_gain)
        _combine_units(shape, signals, space.unit_gain, space.gain)
    else:
        for b in range(shape.n_blocks):
            low = shape.cut[b]
            width = shape.cut[b + 1] - low
            block = cov + shape.offset[b]
            for k in range(0, n - 1, 2):
                s = space.weight_jacobian + k * size + low
                g = space.gain + k * size + low
                _project_two(width, block, s, s + size, g, g + size)
            if n % 2 == 1:
                k = n - 1
                project_one(width, block, space.weight_jacobian + k * size + low, space.gain + k * size + low)
    if added != cython.NULL:
        for k in range(n):
            s = space.weight_jacobian + k * size
            g = space.gain + k * size
            for i in range(size):
                g[i] = kept * g[i] + added[i] * s[i]
    for k in range(n):
        for m in range(k + 1):
            s = space.weight_jacobian + k * size
            g = space.gain + m * size
            total = 0.0
            for i in range(size):
                total += s[i] * g[i]
            if k == m:
                total = max(total, 0.0)
            space.cov[k * n + m] = total
            space.cov[m * n + k] = total


def project_one(size, cov, s, g):
    """``g = C s`` for one block: every number of its lower triangle is read once, four rows at a time."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    for j in range(size):
        g[j] = 0.0
    whole = size - size % 4
    for i in range(0, whole, 4):
        r0 = cov + i * size
        r1 = r0 + size
        r2 = r1 + size
        r3 = r2 + size
        s0 = s[i]
        s1 = s[i + 1]
        s2 = s[i + 2]
        s3 = s[i + 3]
        d0 = 0.0
        d1 = 0.0
        d2 = 0.0
        d3 = 0.0
        for j in range(i):
            here = s[j]
            d0 += r0[j] * here
            d1 += r1[j] * here
            d2 += r2[j] * here
            d3 += r3[j] * here
            g[j] += r0[j] * s0 + r1[j] * s1 + r2[j] * s2 + r3[j] * s3
        g[i] += d0 + r0[i] * s0 + r1[i] * s1 + r2[i] * s2 + r3[i] * s3
        g[i + 1] += d1 + r1[i] * s0 + r1[i + 1] * s1 + r2[i + 1] * s2 + r3[i + 1] * s3
        g[i + 2] += d2 + r2[i] * s0 + r2[i + 1] * s1 + r2[i + 2] * s2 + r3[i + 2] * s3
        g[i + 3] += d3 + r3[i] * s0 + r3[i + 1] * s1 + r3[i + 2] * s2 + r3[i + 3] * s3
    for i in range(whole, size):
        r0 = cov + i * size
        s0 = s[i]
        d0 = 0.0
        for j in range(i):
            d0 += r0[j] * s[j]
            g[j] += r0[j] * s0
        g[i] += d0 + r0[i] * s0


def _project_two(size, cov, s0, s1, g0, g1):
    """``g = C s`` for one block and two outputs, two rows at a time."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    for j in range(size):
        g0[j] = 0.0
        g1[j] = 0.0
    for i in range(0, size - 1, 2):
        upper = cov + i * size
        lower = upper + size
        upper0 = s0[i]
        upper1 = s1[i]
        lower0 = s0[i + 1]
        lower1 = s1[i + 1]
        d00 = 0.0
        d01 = 0.0
        d10 = 0.0
        d11 = 0.0
        for j in range(i):
            d00 += upper[j] * s0[j]
            d01 += upper[j] * s1[j]
            d10 += lower[j] * s0[j]
            d11 += lower[j] * s1[j]
            g0[j] += upper[j] * upper0 + lower[j] * lower0
            g1[j] += upper[j] * upper1 + lower[j] * lower1
        g0[i] += d00 + upper[i] * upper0 + lower[i] * lower0
        g1[i] += d01 + upper[i] * upper1 + lower[i] * lower1
        g0[i + 1] += d10 + lower[i] * upper0 + lower[i + 1] * lower0
        g1[i + 1] += d11 + lower[i] * upper1 + lower[i + 1] * lower1
    if size % 2 == 1:
        i = size - 1
        upper = cov + i * size
        d00 = 0.0
        d01 = 0.0
        for j in range(i):
            d00 += upper[j] * s0[j]
            d01 += upper[j] * s1[j]
            g0[j] += upper[j] * s0[i]
            g1[j] += upper[j] * s1[i]
        g0[i] += d00 + upper[i] * s0[i]
        g1[i] += d01 + upper[i] * s1[i]


def _project_units(shape, cov, signals, units):
    """``C`` times the inputs ``z`` of each unit alone, ``(units, p)``, of which only its own block is filled."""
    b: cython.Py_ssize_t
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    unit: cython.Py_ssize_t
    other: cython.Py_ssize_t
    for b in range(shape.n_blocks):
        low = shape.cut[b]
        width = shape.cut[b + 1] - low
        first = shape.first_unit[b]
        for unit in range(first, shape.first_unit[b + 1]):
            mine = units + unit * shape.size + low
            for j in range(width):
                mine[j] = 0.0
        at: cython.Py_ssize_t = 0  # the row within the block
        for unit in range(first, shape.first_unit[b + 1]):
            layer = shape.unit_layer[unit]
            mine = units + unit * shape.size + low
            z = signals.layer_inputs(layer)
            for i in range(shape.width[layer] + 1):
                row = cov + shape.offset[b] + at * width
                here = z[i]
                # The units of this block up to our own, each a run of the row.
                run: cython.Py_ssize_t = 0
                for other in range(first, unit + 1):
                    source = signals.layer_inputs(shape.unit_layer[other])
                    end = min(shape.width[shape.unit_layer[other]] + 1, at - run)
                    part = row + run
                    target = mine + run
                    dot = 0.0
                    for j in range(end):
                        dot += part[j] * source[j]
                        target[j] += part[j] * here
                    units[other * shape.size + low + at] += dot
                    run += end
                mine[at] += row[at] * here
                at += 1


def _combine_units(shape, signals, units, gain):
    """``c = C J``, ``(K, p)``, from what `_project_units` gave, by ``J = D ⊗ z``."""
    b: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    u: cython.Py_ssize_t
    layer: cython.Py_ssize_t
    unit: cython.Py_ssize_t = 0
    for j in range(shape.n_outputs * shape.size):
        gain[j] = 0.0
    b = 0
    for layer in range(shape.n_layers):
        for u in range(shape.width[layer + 1]):
            while unit >= shape.first_unit[b + 1]:
                b += 1
            low = shape.cut[b]
            width = shape.cut[b + 1] - low
            mine = units + unit * shape.size + low
            for k in range(shape.n_outputs):
                slope = signals.layer_jacobian(layer, k)[u]
                if slope != 0.0:
                    target = gain + k * shape.size + low
                    for j in range(width):
                        target[j] += slope * mine[j]
            unit += 1


def step(shape, kept, added, mean, cov, space, match):
    """Take the rank-K step ``m += c score``, ``C <- kept C + diag(added) - c information c'``.

    No variance becomes negative.
    """
    b: cython.Py_ssize_t
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    m: cython.Py_ssize_t
    n = shape.n_outputs
    size = shape.size
    for k in range(n):
        gain = space.gain + k * size
        weighted = space.weighted + k * size
        score = match.score[k]
        for i in range(size):
            mean[i] += score * gain[i]
            weighted[i] = 0.0
        for m in range(n):
            other = space.gain + m * size
            factor = match.information[k * n + m]
            for i in range(size):
                weighted[i] += factor * other[i]
    for b in range(shape.n_blocks):
        low = shape.cut[b]
        width = shape.cut[b + 1] - low
        block = cov + shape.offset[b]
        if n == 1:
            _downdate_one(width, kept, block, space.weighted + low, space.gain + low)
        else:
            for i in range(width):
                _downdate_row(i + 1, n, size, kept, block + i * width, space.weighted + low + i, space.gain + low)
        for i in range(width):
            own = block + i * (width + 1)
            own[0] = max(own[0] + (0.0 if added == cython.NULL else added[low + i]), 0.0)


def _downdate_one(size, kept, cov, weighted, gain):
    """``C <- kept C - weighted gain'`` on the lower triangle of a block, two rows at a time."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    for i in range(0, size - 1, 2):
        upper = cov + i * size
        lower = upper + size
        a = weighted[i]
        b = weighted[i + 1]
        for j in range(i + 1):
            upper[j] = kept * upper[j] - a * gain[j]
            lower[j] = kept * lower[j] - b * gain[j]
        lower[i + 1] = kept * lower[i + 1] - b * gain[i + 1]
    if size % 2 == 1:
        lower = cov + (size - 1) * size
        b = weighted[size - 1]
        for j in range(size):
            lower[j] = kept * lower[j] - b * gain[j]


def _downdate_row(n, n_outputs, stride, kept, row, weighted, gain):
    """``row <- kept row - Σ_k weighted_k gain_k``, four outputs at a time."""
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t = 0
    if kept != 1.0:
        for j in range(n):
            row[j] *= kept
    while k + 4 <= n_outputs:
        a0 = weighted[k * stride]
        a1 = weighted[(k + 1) * stride]
        a2 = weighted[(k + 2) * stride]
        a3 = weighted[(k + 3) * stride]
        g0 = gain + k * stride
        g1 = g0 + stride
        g2 = g1 + stride
        g3 = g2 + stride
        for j in range(n):
            row[j] -= a0 * g0[j] + a1 * g1[j] + a2 * g2[j] + a3 * g3[j]
        k += 4
    if k + 2 <= n_outputs:
        a0 = weighted[k * stride]
        a1 = weighted[(k + 1) * stride]
        g0 = gain + k * stride
        g1 = g0 + stride
        for j in range(n):
            row[j] -= a0 * g0[j] + a1 * g1[j]
        k += 2
    if k < n_outputs:
        a0 = weighted[k * stride]
        g0 = gain + k * stride
        for j in range(n):
            row[j] -= a0 * g0[j]


def _linear_response(space, mean):
    """``J'm``: what the outputs are to first order in the weights, from none."""
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for k in range(space.n_outputs):
        jacobian = space.weight_jacobian + k * space.size
        total = 0.0
        for i in range(space.size):
            total += jacobian[i] * mean[i]
        space.values[k] = total


def magnitude(space, score):
    """Something that is finite if the step is."""
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    total = 0.0
    for k in range(space.n_outputs):
        gain = space.gain + k * space.size
        for i in range(space.size):
            total += fabs(gain[i] * score[k])
    return total


def move_towards(shape, cov, share, prior_var):
    """Let the weights drift: ``C <- (1 - share) C + share C0``."""
    b: cython.Py_ssize_t
    i: cython.Py_ssize_t
    kept = 1.0 - share
    for i in range(shape.offset[shape.n_blocks]):
        cov[i] *= kept
    for b in range(shape.n_blocks):
        low = shape.cut[b]
        width = shape.cut[b + 1] - low
        block = cov + shape.offset[b]
        for i in range(width):
            block[i * (width + 1)] += share * prior_var[low + i]


def _copy_site(shape, signals, site, keeps):
    """Copy ``z`` and ``D`` of all layers, one behind the other, to a site that keeps them, or from it.

    Of the last layer ``D`` is the identity, which is not kept.
    """
    layer: cython.Py_ssize_t
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    last = shape.n_layers - 1
    for layer in range(shape.n_layers):
        site = _copy(shape.width[layer], signals.layer_inputs(layer) + 1, site, keeps)
        for k in range(shape.n_outputs if layer < last else 0):
            site = _copy(shape.width[layer + 1], signals.layer_jacobian(layer, k), site, keeps)
    if not keeps:
        for k in range(shape.n_outputs):
            for i in range(shape.n_outputs):
                signals.layer_jacobian(last, k)[i] = 1.0 if k == i else 0.0


def _copy(n, values, site, keeps):
    """Copy numbers to a site that keeps them, or from it; return the site's next place."""
    if keeps:
        memcpy(site, values, n * cython.sizeof(cython.double))
    else:
        memcpy(values, site, n * cython.sizeof(cython.double))
    return site + n
