"""The posterior of a lag regression, and the joint Gaussian of its weights and the values to come.

A value is ``y_t = x_t'w + noise`` where ``x_t`` are lags and columns. Some steps ahead, lags are uncertain themselves,
and depend on the weights. So the joint Gaussian of ``(w, y_1, .., y_k)`` is carried along, one value per step. With
``J`` = (x, then the weights of those lags that lie in the future) and the covariance ``S`` so far,

    c = S J
    mean = x'm + sum over future lags of cov(w_l, y_l)
    variance = J'c + noise + sum over pairs (i, j) of future lags of C_ij cov(y_i, y_j) + cov(w_i, y_j) cov(w_j, y_i),

which are the moments of a sum of products of Gaussian variables; ``c`` is the new row of ``S``. All of it takes
``O(h (d + h)²)`` for ``d`` weights and a horizon ``h``.
"""

import cython
import numpy as np
from cython.cimports.scipy.linalg import cython_lapack

_LEAST_TIGHTNESS = cython.declare(cython.double, 0.1)  # so that rounding in the sums can't make them indefinite
_MOST_TIGHTNESS = cython.declare(cython.double, 1e3)
_START_SQUARES = cython.declare(cython.double, 0.02)  # which the noise starts with, of targets of variance 1
_START_WEIGHT = cython.declare(cython.double, 2.0)
_LEAST_WEIGHT = cython.declare(cython.double, 3.0)
_LEAST_NOISE = cython.declare(cython.double, 1e-8)
_MOST_VARIANCE = cython.declare(cython.double, 1e12)
_MOST_MEAN = cython.declare(cython.double, 1e6)


def _invert(n, matrix):
    """Put the inverse of a positive definite matrix into both triangles; False if it is not positive definite."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    size: cython.int = n
    info: cython.int = 0
    lower: cython.char = 76  # L
    cython_lapack.dpotrf(
        cython.address(lower), cython.address(size), matrix, cython.address(size), cython.address(info)
    )
    if info != 0:
        return False
    cython_lapack.dpotri(
        cython.address(lower), cython.address(size), matrix, cython.address(size), cython.address(info)
    )
    for i in range(n):  # its columns are our rows: what is lower there is upper here
        for j in range(i + 1, n):
            matrix[j * n + i] = matrix[i * n + j]
    return info == 0


def posterior(rows, prior, member, noise, expected, mean, cov):
    """The posterior of the weights, at the noise under which the rows are most probable.

    ``prior`` is NULL, or begins with 1 and continues with a mean and a precision. Without one the prior is the
    member's own, in units of the noise. ``noise`` is where to begin, 0 if unknown.

    How far the weights of this series are from the prior's mean, compared with what the prior expects, is learned as
    well: the precision is multiplied by MacKay's estimate, as if ``expected`` more weights had been seen that are just
    as far.
    """
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    _: cython.int
    p = rows.p
    given: cython.bint = prior != cython.NULL and prior[0] == 1.0
    found: LagBelief
    found.p = p
    found.n_lags = rows.n_lags
    found.mean = mean
    found.cov = cov
    found.known = True
    found.noise = noise if noise > 0.0 else (_START_SQUARES + rows.squares) / (rows.weight + _START_WEIGHT)
    start: cython.double[512]  # more than any member has weights: see `Plan`
    own: cython.double[512]
    pull: cython.double[512]
    for i in range(p):
        at = i if i < rows.n_lags else member.n_lags + i - rows.n_lags
        own[i] = member.precision[at]
        start[i] = prior[1 + i] if given else member.start[at]
    precision = prior + 1 + p  # only if given
    n_scaled = p if given else p - rows.n_inputs  # the member's own prior of inputs is as good as none
    used = found.noise
    tightness = 1.0
    n_rounds: cython.int = N_ROUNDS if given and noise <= 0.0 else N_WARM_ROUNDS  # of an iteration
    for _ in range(n_rounds):
        used = found.noise
        unit = tightness if given else tightness / used
        for i in range(p):
            pull[i] = rows.targets[i] / used
            for j in range(p):
                cov[i * p + j] = rows.matrix[i * p + j] / used
        for i in range(p):
            if given:
                for j in range(p):
                    entry = unit * precision[i * p + j]
                    cov[i * p + j] += entry
                    pull[i] += entry * start[j]
            else:
                entry = (unit if i < n_scaled else 1.0 / used) * own[i]
                cov[i * p + i] += entry
                pull[i] += entry * start[i]
        if not _invert(p, cov):
            found.known = False
            return found
        for i in range(p):
            total = 0.0
            for j in range(p):
                total += cov[i * p + j] * pull[j]
            mean[i] = total
        left = 0.0  # the weights that the prior determines, and not the rows
        distance = 0.0
        for i in range(n_scaled):
            apart = mean[i] - start[i]
            if given:
                for j in range(p):
                    left += unit * precision[i * p + j] * cov[i * p + j]
                    distance += precision[i * p + j] * apart * (mean[j] - start[j])
            else:
                left += unit * own[i] * cov[i * p + i]
                distance += own[i] * apart * apart
        free = max(rows.weight - (p - left) + _START_WEIGHT, _LEAST_WEIGHT)
        found.noise = max((_residual(rows, mean) + _START_SQUARES) / free, _LEAST_NOISE)
        if not given:
            distance /= found.noise
        tightness = (n_scaled - left + expected) / (distance + expected)
        tightness = min(max(tightness, _LEAST_TIGHTNESS), _MOST_TIGHTNESS)
    if not given:
        for i in range(p * p):
            cov[i] *= found.noise / used
    return found


def _residual(rows, mean):
    """The squares that weights leave."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    total = rows.squares
    for i in range(rows.p):
        fitted = 0.0
        for j in range(rows.p):
            fitted += rows.matrix[i * rows.p + j] * mean[j]
        total += mean[i] * (fitted - 2.0 * rows.targets[i])
    return max(total, 0.0)


def roll_out(belief, lags, past, columns, horizon, joint, means):
    """Fill the covariance of weights and values to come, ``(p + horizon, p + horizon)``, and the means of the values.

    ``past`` has the last values, most recent first; ``columns`` those of the rows to come, one row after the other.
    """
    i: cython.Py_ssize_t
    a: cython.Py_ssize_t
    b: cython.Py_ssize_t
    r: cython.Py_ssize_t
    p = belief.p
    n_lags = belief.n_lags
    q = p - n_lags
    size = p + horizon
    row: cython.double[1024]
    for a in range(p):
        for b in range(p):
            joint[a * size + b] = belief.cov[a * p + b]
    for i in range(horizon):
        n = p + i
        for r in range(p, n):
            row[r] = 0.0
        mean = 0.0
        n_ahead: cython.Py_ssize_t = 0  # lags that lie in the future, which are the first ones
        for a in range(n_lags):
            back = lags[a] - 1 - i
            if back >= 0:
                row[a] = past[back]
            else:
                row[a] = means[i - lags[a]]
                row[n - lags[a]] = belief.mean[a]
                mean += joint[a * size + n - lags[a]]
                n_ahead = a + 1
        for a in range(q):
            row[n_lags + a] = columns[i * q + a]
        for a in range(p):
            mean += row[a] * belief.mean[a]
        own = joint + n * size
        for r in range(n):
            own[r] = 0.0
        for r in range(n):
            if row[r] != 0.0:
                factor = row[r]
                other = joint + r * size
                for b in range(n):
                    own[b] += factor * other[b]
        var = belief.noise
        for r in range(n):
            var += row[r] * own[r]
            joint[r * size + n] = own[r]
        for a in range(n_ahead):
            for b in range(n_ahead):
                var += belief.cov[a * p + b] * joint[(n - lags[a]) * size + n - lags[b]]
                var += joint[a * size + n - lags[b]] * joint[b * size + n - lags[a]]
        own[n] = min(max(var, 0.0), _MOST_VARIANCE)
        means[i] = min(max(mean, -_MOST_MEAN), _MOST_MEAN)


def integrate(difference, horizon, first, joint, means):
    """Add differences up to values: those of step h to those of step h - difference.

    The covariance of the values is the last ``horizon`` rows and columns of ``joint``, which begin at ``first``.
    """
    if difference == 0:
        return
    h: cython.Py_ssize_t
    k: cython.Py_ssize_t
    size = first + horizon
    for h in range(difference, horizon):
        means[h] += means[h - difference]
        for k in range(horizon):
            joint[(first + h) * size + first + k] += joint[(first + h - difference) * size + first + k]
    for k in range(horizon):
        row = joint + (first + k) * size + first
        for h in range(difference, horizon):
            row[h] += row[h - difference]


def forecast_regression(
    mean: cython.double[::1],
    cov: cython.double[:, ::1],
    noise: cython.double,
    lags,
    past: cython.double[::1],
    columns: cython.double[:, ::1],
    difference: cython.Py_ssize_t = 0,
) -> "tuple[FloatArray, FloatArray]":
    """Mean ``(h,)`` and covariance ``(h, h)`` of the values to come of one regression, from its belief.

    ``past`` has the last values (or differences), most recent first; ``columns``, ``(h, q)``, those of the rows to
    come. Differences are added up, from 0.
    """
    order: cython.Py_ssize_t[::1] = np.array(lags, dtype=np.intp)
    p = mean.shape[0]
    horizon = columns.shape[0]
    belief: LagBelief
    belief.p = p
    belief.n_lags = order.shape[0]
    belief.known = True
    belief.noise = noise
    belief.mean = cython.address(mean[0])
    belief.cov = cython.address(cov[0, 0])
    joint = np.zeros((p + horizon, p + horizon))
    means = np.zeros(horizon)
    into: cython.double[:, ::1] = joint
    beside: cython.double[::1] = means
    flat: cython.double[::1] = np.append(np.asarray(columns).ravel(), 0.0)
    roll_out(
        cython.address(belief),
        cython.address(order[0]),
        cython.address(past[0]),
        cython.address(flat[0]),
        horizon,
        cython.address(into[0, 0]),
        cython.address(beside[0]),
    )
    integrate(difference, horizon, p, cython.address(into[0, 0]), cython.address(beside[0]))
    return means, joint[p:, p:]
