"""Learning of networks whose covariance is ``D - U U'``: a diagonal, less columns that couple all weights.

See `onepass.beliefs.low_rank`. A row reads ``U`` twice. Forward, ``T_u = Σ z_i U_i`` over the weights of a unit gives
everything at once: the variance ``Σ z² v - T_u'T_u`` of its pre-activation, its covariance ``-T_u'U_w`` with an
outgoing weight, and with the derivatives ``D`` of the outputs ``t = U'J = Σ D_u T_u``. So the outputs' covariance, and
the match, are known before the second reading, for ``c = v J - U t``, in which the mean moves and the new columns are
appended. Rows are learned until there is no room for another one's columns.
"""

import cython
import numpy as np
from cython.cimports.libc.math import isfinite, sqrt
from cython.cimports.onepass.engine.network import backward
from cython.cimports.onepass.engine.network_records import NetworkRule, NetworkShape, Signals
from cython.cimports.onepass.engine.small_matrices import diagonalise, factorise
from cython.cimports.onepass.engine.vector_matches import VectorMatch, as_array

from onepass.engine.vector_matches import LEAST_LEFT

# See onepass.beliefs.low_rank.
_LEAST_SHARE = cython.declare(cython.double, 1e-9)
_LEAST_LEFT = cython.declare(cython.double, LEAST_LEFT)


class LowRankWorkspace:
    """How a network of low rank learns, and memory for a row: ``T`` and ``Σ z² v`` of all units, ``t``, and others.

    Parameters
    ----------
    shape : NetworkShape
    rule : NetworkRule
    capacity : columns that ``U`` has room for
    rounding : share of ``J'D J`` below which an output's variance is not known
    """

    def __init__(self, shape: NetworkShape, rule: NetworkRule, capacity: cython.Py_ssize_t, rounding: cython.double):
        n: cython.Py_ssize_t = shape.n_outputs
        self.shape, self.rule, self.signals, self.match = shape, rule, Signals(shape), VectorMatch(n)
        self.memory = np.zeros(shape.n_units * (capacity + 1) + n * capacity + 6 * n * n + 2 * n + shape.size)
        view: cython.double[::1] = self.memory
        self.capacity, self.rounding = capacity, rounding
        self.units = cython.address(view[0])
        self.own_var = self.units + shape.n_units * capacity
        self.outputs = self.own_var + shape.n_units
        self.cov = self.outputs + n * capacity
        self.left = self.cov + n * n
        self.root = self.left + n * n
        self.factor = self.root + n * n
        self.precision_root = self.factor + n * n
        self.shares = self.precision_root + n * n
        self.gain = self.shares + n * n
        self.slope = self.gain + n
        self.variances = self.slope + n


def learn_low_rank(work, first, noise, space, mean, variance, precision_root, cov_root, used):
    """Learn rows of a pass from ``first`` on, in place; return the number of rows learned.

    They are all, those up to one after which there may be no room for another one's columns or that raised an alarm,
    see `outliers`, or those before one that is not finite.
    """
    count: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, used[0])
    with cython.nogil:
        learned = _learn_rows(
            work,
            first,
            noise,
            space,
            cython.address(mean[0]),
            cython.address(variance[0]),
            cython.address(precision_root[0, 0]),
            cython.address(cov_root[0, 0]),
            cython.address(count),
        )
    used[0] = count
    space.rule.activation.raise_pending()
    return learned


def look_low_rank(row, space, mean, variance, cov_root, used) -> tuple["FloatArray", "FloatArray"]:
    """Means ``(K,)`` and covariance ``(K, K)`` of the outputs of a row ``(d,)``."""
    count: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, used[0])
    m = cython.address(mean[0])
    v = cython.address(variance[0])
    root = cython.address(cov_root[0, 0])
    with cython.nogil:
        _fill_variances(space.shape, v, root, count, space)
        _look(cython.address(row[0]), m, v, root, count, space)
    space.rule.activation.raise_pending()
    n = space.shape.n_outputs
    return as_array(space.signals.mean, n), as_array(space.cov, n * n).reshape(n, n)


def _look(x, mean, variance, cov_root, used, space):
    """Send a row through the network and the derivatives back: the outputs and their covariance."""
    k: cython.Py_ssize_t
    for k in range(space.shape.width[0]):
        space.signals.inputs[1 + k] = x[k]
    _forward(space.shape, space.rule.activation, mean, variance, cov_root, used, space.signals, space)
    backward(space.shape, mean, space.signals)
    _project(space.shape, used, space.signals, space)


def _learn_rows(work, first, noise, space, mean, variance, precision_root, cov_root, used):
    t: cython.Py_ssize_t
    k: cython.Py_ssize_t
    n = space.shape.n_outputs
    outputs = space.signals.mean
    n_rows = work.order.shape[0]
    _fill_variances(space.shape, variance, cov_root, used[0], space)
    for t in range(first, n_rows):
        i = work.order[t]
        target = cython.address(work.targets[i, 0])
        x = cython.address(work.rows[i, 0])
        _look(x, mean, variance, cov_root, used[0], space)
        work.start_row(i, noise)
        density = space.rule.likelihood.match(outputs, space.cov, target, noise, space.match)
        total = density
        for k in range(n):
            total += space.match.score[k] + space.cov[k * n + k]
        if not isfinite(total):
            return t - first
        work.write_down(i, density, space.rule, outputs, space.cov, noise, space.match)
        rank = _fill_roots(n, space.match.information, space)
        _step(space.shape, rank, used[0], mean, variance, precision_root, cov_root, space.signals, space)
        used[0] += rank
        work.finish_row(i, space.rule, outputs, space.cov, noise)
        if used[0] + n > space.capacity or (work.is_first and noise.trust.is_alarmed()):
            return t + 1 - first
    return n_rows - first


def _is_deep(shape, layer):
    """Whether the inputs of a layer vary and its units' variances are needed, so that those of its weights are."""
    return 0 < layer < shape.n_layers - 1


def _fill_variances(shape, variance, cov_root, used, space):
    """``v - Σ U²``: the variances of weights by which signals are multiplied that vary themselves.

    Column by column, as `_step` adds them: so rounding does not depend on how calls divide the rows.
    """
    layer: cython.Py_ssize_t
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    for layer in range(shape.n_layers):
        if _is_deep(shape, layer):
            for i in range(shape.start[layer], shape.start[layer + 1]):
                row = cov_root + i * space.capacity
                space.variances[i] = max(variance[i], 0.0)
                for j in range(used):
                    space.variances[i] = max(space.variances[i] - row[j] * row[j], 0.0)


def _forward(shape, activation, mean, variance, cov_root, used, signals, space):
    """Send a row through the network, and fill ``T`` and ``Σ z² v`` of all units."""
    layer: cython.Py_ssize_t
    i: cython.Py_ssize_t
    u: cython.Py_ssize_t
    unit: cython.Py_ssize_t = 0
    last = shape.n_layers - 1
    for layer in range(shape.n_layers):
        n_in = shape.width[layer] + 1
        z = signals.layer_inputs(layer)
        z_var = signals.input_var + layer * signals.widest
        is_deep = _is_deep(shape, layer)
        for u in range(shape.width[layer + 1]):
            begin = shape.start[layer] + u * n_in
            weights = mean + begin
            variances = variance + begin
            pre_mean = 0.0
            own = 0.0
            for i in range(n_in):
                pre_mean += weights[i] * z[i]
                own += z[i] * z[i] * variances[i]
            seen = space.units + unit * space.capacity
            _gather(n_in, used, space.capacity, z, cov_root + begin * space.capacity, seen)
            space.own_var[unit] = own
            unit += 1
            if layer == last:
                signals.mean[u] = pre_mean
                continue
            var = max(own - _dot(used, seen, seen), 0.0)
            if is_deep:
                for i in range(1, n_in):
                    weight: cython.double = weights[i]
                    var += (weight * weight + space.variances[begin + i]) * z_var[i]
            z_mean, z_variance, derivative = activation.at(pre_mean, var)
            z[signals.widest + 1 + u] = z_mean
            z_var[signals.widest + 1 + u] = z_variance
            signals.expected_derivative[layer * signals.widest + u] = derivative
    if shape.n_layers > 1:
        _add_correlations(shape, cov_root, used, signals, space)


def _add_correlations(shape, cov_root, used, signals, space):
    """A unit and its outgoing weight vary together: ``E[w z] = E[w] E[z] + A cov(w, a)``."""
    h: cython.Py_ssize_t
    k: cython.Py_ssize_t
    last = shape.n_layers - 1
    n_in = shape.width[last] + 1
    derivative = signals.expected_derivative + (last - 1) * signals.widest
    hidden = space.units + (shape.n_units - shape.n_outputs - shape.width[last]) * space.capacity
    for k in range(shape.n_outputs):
        outgoing = cov_root + (shape.start[last] + k * n_in + 1) * space.capacity
        for h in range(n_in - 1):
            if derivative[h] != 0.0:
                seen = hidden + h * space.capacity
                signals.mean[k] -= derivative[h] * _dot(used, seen, outgoing + h * space.capacity)


def _project(shape, used, signals, space):
    """``t = U'J`` of all outputs, and their covariance ``Σ D D' Σ z² v - t't``, with what rounding hides of it."""
    c: cython.Py_ssize_t
    layer: cython.Py_ssize_t
    k: cython.Py_ssize_t
    m: cython.Py_ssize_t
    u: cython.Py_ssize_t
    n = shape.n_outputs
    for k in range(n):
        outputs = space.outputs + k * space.capacity
        for c in range(used):
            outputs[c] = 0.0
        seen = space.units
        for layer in range(shape.n_layers):
            n_out = shape.width[layer + 1]
            _gather_more(n_out, used, space.capacity, signals.layer_jacobian(layer, k), seen, outputs)
            seen += n_out * space.capacity
        for m in range(k + 1):
            total = 0.0
            own_var = space.own_var
            for layer in range(shape.n_layers):
                first = signals.layer_jacobian(layer, k)
                second = signals.layer_jacobian(layer, m)
                for u in range(shape.width[layer + 1]):
                    total += first[u] * second[u] * own_var[u]
                own_var += shape.width[layer + 1]
            left = total - _dot(used, outputs, space.outputs + m * space.capacity)
            total = max(left, 0.0) + space.rounding * total if k == m else left
            space.cov[k * n + m] = total
            space.cov[m * n + k] = total


def _fill_roots(n, information, space):
    """Roots ``E`` of the information ``M`` and ``F`` of the precision it stems from, ``(n, rank)`` in rows of ``n``.

    With ``S = L L'`` and the eigenvalues ``w`` and eigenvectors ``q`` of ``L'M L``, the shares of variances that the
    row explains, the columns are ``M L q / √w`` and the same over ``√(1 - w)``. Directions of which the row explains
    next to nothing are left out, and those that it makes less certain, as a row that is distrusted by half may. Returns
    the rank.
    """
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    rank: cython.Py_ssize_t = 0
    if n == 1:
        share = information[0] * space.cov[0]
        if not share > _LEAST_SHARE:
            return 0
        possible = min(share, 1.0 - _LEAST_LEFT)
        space.root[0] = sqrt(information[0] * (possible / share))
        space.precision_root[0] = space.root[0] / sqrt(1.0 - possible)
        return 1
    lower = space.left
    moved = space.factor
    shares = space.shares
    factorise(n, space.cov, lower)
    for i in range(n):
        for j in range(n):
            moved[i * n + j] = 0.0
            for k in range(j, n):
                moved[i * n + j] += information[i * n + k] * lower[k * n + j]
    for i in range(n):
        for j in range(n):
            shares[i * n + j] = 0.0
            for k in range(i, n):
                shares[i * n + j] += lower[k * n + i] * moved[k * n + j]
    vectors = lower
    diagonalise(n, shares, vectors)
    for j in range(n):
        share = shares[j * n + j]
        if not share > _LEAST_SHARE:
            continue
        possible = min(share, 1.0 - _LEAST_LEFT)  # whatever rounding made of it
        left = sqrt(1.0 - possible)
        for i in range(n):
            entry = 0.0
            for k in range(n):
                entry += moved[i * n + k] * vectors[k * n + j]
            entry *= sqrt(possible) / share
            space.root[i * n + rank] = entry
            space.precision_root[i * n + rank] = entry / left
        rank += 1
    return rank


def _step(shape, rank, used, mean, variance, precision_root, cov_root, signals, space):
    """``c = v J - U t``, weight by weight: ``m += c score``, and the new columns ``c E`` of ``U``, ``J F`` of ``V``."""
    layer: cython.Py_ssize_t
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    r: cython.Py_ssize_t
    u: cython.Py_ssize_t
    n = shape.n_outputs
    gain = space.gain
    slope = space.slope
    score = space.match.score
    for layer in range(shape.n_layers):
        n_in = shape.width[layer] + 1
        z = signals.layer_inputs(layer)
        is_deep = _is_deep(shape, layer)
        for u in range(shape.width[layer + 1]):
            for k in range(n):
                slope[k] = signals.layer_jacobian(layer, k)[u]
            for i in range(n_in):
                at = shape.start[layer] + u * n_in + i
                row = cov_root + at * space.capacity
                moved = 0.0
                for k in range(n):
                    gain[k] = variance[at] * (slope[k] * z[i]) - _dot(used, space.outputs + k * space.capacity, row)
                    moved += score[k] * gain[k]
                mean[at] += moved
                for r in range(rank):
                    column = 0.0
                    precision = 0.0
                    for k in range(n):
                        column += space.root[k * n + r] * gain[k]
                        precision += space.precision_root[k * n + r] * slope[k]
                    row[used + r] = column
                    precision_root[(used + r) * shape.size + at] = precision * z[i]
                    if is_deep:
                        space.variances[at] = max(space.variances[at] - row[used + r] * row[used + r], 0.0)


def _gather(n, width, stride, factors, rows, total):
    """``total = Σ factor row``."""
    j: cython.Py_ssize_t
    for j in range(width):
        total[j] = 0.0
    _gather_more(n, width, stride, factors, rows, total)


def _gather_more(n, width, stride, factors, rows, total):
    """``total += Σ factor row``, four rows at a time."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    whole = n - n % 4
    for i in range(0, whole, 4):
        r0 = rows + i * stride
        r1 = r0 + stride
        r2 = r1 + stride
        r3 = r2 + stride
        a0 = factors[i]
        a1 = factors[i + 1]
        a2 = factors[i + 2]
        a3 = factors[i + 3]
        if a0 == 0.0 and a1 == 0.0 and a2 == 0.0 and a3 == 0.0:
            continue
        for j in range(width):
            total[j] += a0 * r0[j] + a1 * r1[j] + a2 * r2[j] + a3 * r3[j]
    for i in range(whole, n):
        r0 = rows + i * stride
        a0 = factors[i]
        if a0 != 0.0:
            for j in range(width):
                total[j] += a0 * r0[j]


def _dot(n, first, second):
    j: cython.Py_ssize_t
    total: cython.double = 0.0
    for j in range(n):
        total += first[j] * second[j]
    return total
