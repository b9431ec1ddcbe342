"""The posterior of a lag regression, and the moments of the values to come.

A value is ``y_t = x_t'w + noise`` where ``x_t`` are lags and columns. Some steps ahead, lags are uncertain themselves,
and depend on the weights. So the joint Gaussian of ``(w, y_1, .., y_k)`` is carried along, one value per step. With
``J`` = (x, then the weights of those lags that lie in the future) and the covariance ``S`` so far,

    c = S J
    mean = x'm + sum over future lags of cov(w_l, y_l)
    variance = J'c + noise + sum over pairs (i, j) of future lags of C_ij cov(y_i, y_j) + cov(w_i, y_j) cov(w_j, y_i),

which are the moments of a sum of products of Gaussian variables; ``c`` is the new row of ``S``. All of it takes
``O(h (d + h)²)`` for ``d`` weights and a horizon ``h``.

Many steps ahead, values are far from Gaussian in one direction of the weights: in the sum ``s`` of those of lags, the
*persistence*. At 1 a root of the regression is 1, and above it courses grow without bound. So the belief is restricted
to ``s <= 1``, and where a shock's later effects depend much on ``s``, it is taken at the nodes of a Gauss rule for the
truncated Gaussian. Given ``s``, weights are Gaussian again: their mean moves along ``C 1 / std(s)``, and their
covariance loses that direction. The values' moments are those of the mixture of the nodes.
"""

import cython
import numpy as np
from cython.cimports.libc.math import sqrt
from cython.cimports.libc.string import memcpy, memset
from cython.cimports.scipy.linalg import cython_lapack
from numpy.polynomial.legendre import leggauss

_LEAST_TIGHTNESS = cython.declare(cython.double, 0.1)  # so that rounding in the sums can't make them indefinite
_MOST_TIGHTNESS = cython.declare(cython.double, 1e3)
_START_SQUARES = cython.declare(cython.double, 0.02)  # which the noise starts with, of targets of variance 1
_START_WEIGHT = cython.declare(cython.double, 2.0)
_LEAST_WEIGHT = cython.declare(cython.double, 3.0)
_LEAST_NOISE = cython.declare(cython.double, 1e-8)
_MOST_VARIANCE = cython.declare(cython.double, 1e12)
_MOST_MEAN = cython.declare(cython.double, 1e6)
_MOST_PERSISTENCE = cython.declare(cython.double, 1.0)
_LEAST_VARIANCE = cython.declare(cython.double, 1e-24)  # of a persistence that is not known exactly
# Nodes are three or five if the effect of a shock differs between the outer ones of three by at least these factors.
_SOME_GROWTH = cython.declare(cython.double, 1.2)
_MUCH_GROWTH = cython.declare(cython.double, 1.5)
_FAR = cython.declare(cython.double, 8.0)  # standard deviations between mean and bound that the table reaches
_ROWS_PER_DEVIATION = cython.declare(cython.double, 8.0)
_RULES = cython.declare(cython.double[:, ::1])


def _truncated_rules() -> "FloatArray":
    """Of standard Gaussians below a bound: the variance, then places and shares of one, three and five nodes.

    A row per bound, from -8 to 8. Nodes are eigenvalues of the Jacobi matrix of the truncated density (Golub and
    Welsch), which follows from its orthogonal polynomials on a fine grid.
    """
    bounds = np.arange(-_FAR, _FAR + 1e-9, 1.0 / _ROWS_PER_DEVIATION)[:, None]
    x, w = leggauss(64)
    lowest = np.minimum(bounds - _FAR, -_FAR)
    z = lowest + (bounds - lowest) * 0.5 * (x + 1.0)
    masses = w * np.exp(0.5 * (np.square(np.minimum(bounds, 0.0)) - np.square(z)))
    masses /= masses.sum(axis=1, keepdims=True)
    apart = z - (masses * z).sum(axis=1, keepdims=True)
    basis, _ = np.linalg.qr(np.sqrt(masses)[:, :, None] * apart[:, :, None] ** np.arange(5))
    jacobi = np.swapaxes(basis, 1, 2) @ (z[:, :, None] * basis)
    found = [np.square(jacobi[:, 0, 1])]
    for n in (1, 3, 5):
        places, vectors = np.linalg.eigh(jacobi[:, :n, :n])
        found += [*places.T, *np.square(vectors[:, 0]).T]
    return np.ascontiguousarray(np.stack(found, axis=1))


_RULES = _truncated_rules()


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

    ``prior`` begins with 1 and continues with a mean and a precision, or begins with 0: then the prior is the member's
    own, in units of the noise. ``noise`` is where to begin, 0 if unknown.

    How far the weights of this series are from the mean of the member's own prior, compared with what that expects, is
    learned as well: the precision is multiplied by MacKay's estimate, as if ``expected`` more weights had been seen
    that are just as far.
    """
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    _: cython.int
    p = rows.p
    given: cython.bint = prior[0] == 1.0
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
        unit = tightness / used
        for i in range(p):
            pull[i] = rows.targets[i] / used
            for j in range(p):
                cov[i * p + j] = rows.matrix[i * p + j] / used
        for i in range(p):
            if given:
                for j in range(p):
                    entry = precision[i * p + j]
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
            if given:
                for j in range(p):
                    left += precision[i * p + j] * cov[i * p + j]
            else:
                left += unit * own[i] * cov[i * p + i]
                distance += own[i] * (mean[i] - start[i]) * (mean[i] - start[i])
        free = max(rows.weight - (p - left) + _START_WEIGHT, _LEAST_WEIGHT)
        found.noise = max((_residual(rows, mean) + _START_SQUARES) / free, _LEAST_NOISE)
        if not given:
            tightness = (n_scaled - left + expected) / (distance / found.noise + expected)
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


def roll_out(belief, lags, past, columns, difference, horizon, joint, means, mixed):
    """Fill the means of the values to come, and their covariance: the last ``horizon`` rows and columns of ``joint``.

    ``joint`` is ``(p + horizon, p + horizon)``. ``past`` has the last values (or differences), most recent first;
    ``columns`` those of the rows to come, one row after the other. Differences are added up, from 0. The belief becomes
    that in weights whose persistence is at most 1. ``mixed`` is memory for ``(1 + horizon) * horizon`` numbers.
    """
    a: cython.Py_ssize_t
    k: cython.Py_ssize_t
    p = belief.p
    size = p + horizon
    values = joint + p * (size + 1)
    along: cython.double[512]  # how weights move per standard deviation of the persistence
    centre: cython.double[512]
    nodes: Nodes
    _place_nodes(belief, lags, difference, horizon, along, cython.address(nodes))
    for a in range(p):
        centre[a] = belief.mean[a]
    _add_outer(p, nodes.within - 1.0, along, belief.cov)
    memset(mixed, 0, (1 + horizon) * horizon * cython.sizeof(cython.double))
    seen = 0.0
    middle = 0.0
    for k in range(nodes.n):
        for a in range(p):
            belief.mean[a] = centre[a] + nodes.places[k] * along[a]
        _course(belief, lags, past, columns, horizon, joint, means)
        seen += nodes.shares[k]
        middle += nodes.shares[k] * nodes.places[k]
        _mix(nodes.shares[k] / seen, horizon, size, values, means, mixed)
    for a in range(p):
        belief.mean[a] = centre[a] + middle * along[a]
    _add_outer(p, nodes.variance - nodes.within, along, belief.cov)
    for a in range(horizon):
        means[a] = mixed[a]
        memcpy(values + a * size, mixed + (1 + a) * horizon, horizon * cython.sizeof(cython.double))
    _integrate(difference, horizon, size, values, means)


def _place_nodes(belief, lags, difference, horizon, along, found):
    """Where to put weights ``along`` the line on which the persistence moves: as many places as the horizon needs."""
    a: cython.Py_ssize_t
    b: cython.Py_ssize_t
    p = belief.p
    persistence = 0.0
    variance = 0.0
    for a in range(p):
        along[a] = 0.0
        for b in range(belief.n_lags):
            along[a] += belief.cov[a * p + b]
        if a < belief.n_lags:
            persistence += belief.mean[a]
            variance += along[a]
    if not variance > _LEAST_VARIANCE:
        for a in range(p):
            along[a] = 0.0
        _fill_nodes(1, _FAR, found)
        return
    deviation = sqrt(variance)
    for a in range(p):
        along[a] /= deviation
    bound = (_MOST_PERSISTENCE - persistence) / deviation
    _fill_nodes(3, bound, found)
    growth = _size_of_shock(belief, lags, difference, horizon, along, found.places[2]) / _size_of_shock(
        belief, lags, difference, horizon, along, found.places[0]
    )
    if growth < _SOME_GROWTH:
        _fill_nodes(1, bound, found)
    elif not growth < _MUCH_GROWTH:
        _fill_nodes(5, bound, found)


def _fill_nodes(n, bound, found):
    """Nodes of the standard Gaussian below a bound; a single one keeps the variance."""
    k: cython.Py_ssize_t
    scale = -_FAR / bound if bound < -_FAR else 1.0  # so far away the distribution is close to an exponential one
    at = (min(max(bound, -_FAR), _FAR) + _FAR) * _ROWS_PER_DEVIATION
    row: cython.Py_ssize_t = min(cython.cast(cython.Py_ssize_t, at), _RULES.shape[0] - 2)
    rule: cython.double[19]
    for k in range(19):
        rule[k] = _RULES[row, k] + (at - row) * (_RULES[row + 1, k] - _RULES[row, k])
    found.variance = rule[0] * scale * scale
    found.within = found.variance if n == 1 else 0.0
    found.n = n
    first = 1 if n == 1 else 3 if n == 3 else 9
    for k in range(n):
        found.places[k] = rule[first + k] if scale == 1.0 else bound + (rule[first + k] + _FAR) * scale
        found.shares[k] = rule[first + n + k]


def _size_of_shock(belief, lags, difference, horizon, along, place):
    """Root of the sum of squares of what one shock adds to the values after it, with weights at a place."""
    h: cython.Py_ssize_t
    a: cython.Py_ssize_t
    effects: cython.double[1024]
    total = 0.0
    for h in range(horizon):
        effects[h] = 1.0 if h == 0 else 0.0
        for a in range(belief.n_lags):
            if lags[a] > h:
                break
            effects[h] += (belief.mean[a] + place * along[a]) * effects[h - lags[a]]
    for h in range(horizon):
        if 0 < difference <= h:
            effects[h] += effects[h - difference]
        total += effects[h] * effects[h]
    return sqrt(total)


def _mix(share, horizon, size, cov, means, mixed):
    """Give means and a covariance, whose rows are ``size`` apart, this share in the mixture of those so far."""
    a: cython.Py_ssize_t
    b: cython.Py_ssize_t
    for a in range(horizon):
        row = mixed + (1 + a) * horizon
        apart = (1.0 - share) * (means[a] - mixed[a])
        for b in range(horizon):
            row[b] += share * (cov[a * size + b] + apart * (means[b] - mixed[b]) - row[b])
    for a in range(horizon):
        mixed[a] += share * (means[a] - mixed[a])


def _add_outer(n, factor, vector, matrix):
    """Add a vector's products with itself to a matrix."""
    if factor == 0.0:
        return
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    for i in range(n):
        for j in range(n):
            matrix[i * n + j] += factor * vector[i] * vector[j]


def _course(belief, lags, past, columns, horizon, joint, means):
    """Fill the covariance of Gaussian weights and the values to come, and the means of the values."""
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
        for a in range(n_ahead):
            for b in range(n_ahead):
                var += belief.cov[a * p + b] * joint[(n - lags[a]) * size + n - lags[b]]
                var += joint[a * size + n - lags[b]] * joint[b * size + n - lags[a]]
        own[n] = min(max(var, 0.0), _MOST_VARIANCE)
        factor = sqrt(own[n] / var) if var > _MOST_VARIANCE else 1.0  # so that covariances remain possible ones
        for r in range(n):
            own[r] *= factor
            joint[r * size + n] = own[r]
        means[i] = min(max(mean, -_MOST_MEAN), _MOST_MEAN)


def _integrate(difference, horizon, size, cov, means):
    """Add differences up to values: those of step h to those of step h - difference; rows are ``size`` apart."""
    if difference == 0:
        return
    h: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for h in range(difference, horizon):
        means[h] += means[h - difference]
        for k in range(horizon):
            cov[h * size + k] += cov[(h - difference) * size + k]
    for k in range(horizon):
        for h in range(difference, horizon):
            cov[k * size + h] += cov[k * size + h - difference]


def check_size(p, horizon):
    """Refuse more weights or steps than there is memory for on the stack."""
    if p > 512 or p + horizon > 1024:
        raise ValueError(f"a member has {p} weights and forecasts {horizon} steps: at most 512 and 1024 together")
    return 0


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

    The persistence, which is the sum of the lags' weights, is at most 1.

    ``past`` has the last values (or differences), most recent first; ``columns``, ``(h, q)``, those of the rows to
    come. Differences are added up, from 0.
    """
    order: cython.Py_ssize_t[::1] = np.array(lags, dtype=np.intp)
    p = mean.shape[0]
    horizon = columns.shape[0]
    check_size(p, horizon)
    belief: LagBelief
    belief.p = p
    belief.n_lags = order.shape[0]
    belief.known = True
    belief.noise = noise
    centre: cython.double[::1] = np.array(mean)
    around: cython.double[:, ::1] = np.array(cov)
    belief.mean = cython.address(centre[0])
    belief.cov = cython.address(around[0, 0])
    mixed: cython.double[::1] = np.empty((1 + horizon) * horizon)
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
        difference,
        horizon,
        cython.address(into[0, 0]),
        cython.address(beside[0]),
        cython.address(mixed[0]),
    )
    return means, joint[p:, p:]
