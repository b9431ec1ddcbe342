"""What all rows together say about a learned noise, and the noise that the weights are learned with.

With Gaussian noise ``z`` around a linear output the precision of the weights is ``P0 + S / z``, where ``S = Σ w x x'``
runs over all rows, also over those that were learned while the noise was misjudged. The belief is kept at one noise,
the *reference* ``s``; when more is known about the noise, all rows are re-weighed at once, by ``P <- P0 + (s / new) (P
- P0)`` and the same for ``P m``, which is a step of forgetting.

In units of the prior, the covariance is ``Ω`` and the mean's distance from the prior's ``b``. At a noise ``z = u s``
both follow from ``F = I - Ω + u Ω``: the covariance is ``u Ω F^-1`` and the distance ``F^-1 b``. With the weight ``n``
of all rows and the squares ``A`` that the fit has left, prior included,

    A(z) = A + s (u - 1) b'F^-1 b
    log p(rows | z) = -n/2 log(2 π z) - 1/2 log(|F| / |u Ω|) - A(z) / (2 z),

both without cancellation. In an orthogonal basis whose first vector is along ``b``, ``Ω`` is a tridiagonal ``T``, and a
single elimination per noise gives the determinant of ``F`` and the quadratic form. The log noise starts as
``N(log_start, 2 / start_weight)``; sums over evenly spaced nodes of the log noise, which converge as fast as any, give
its posterior and the evidence of all rows.

What a single row's variance and error would be at another noise has the same form: with ``C = R'R`` and ``M`` the
matrix ``Ω`` in the coordinates ``r = R x`` of the row, ``v(z) = u r'F^-1 r`` and ``e(z) = e + (u - 1) r'F^-1 R P0 (m -
m0)``. A few steps of Lanczos's method from ``r`` are enough, see `Response`; one is exact for a single weight.
"""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, exp, log, sqrt
from cython.cimports.onepass.engine.special import LOG_2PI

__all__ = ["NOISE_FLOOR"]

NOISE_FLOOR = 1e-12
_LOWEST = cython.declare(cython.double, float(np.log(NOISE_FLOOR)))
_HIGHEST = cython.declare(cython.double, 600.0)
_MOST_STAGES = cython.declare(cython.Py_ssize_t, 8)
_UNSEEN = cython.declare(cython.double, 1e-6)  # share of its variance that a direction without data has lost at most
_LEAST_REFERENCE = cython.declare(cython.double, 1e-9)  # times the first noise, while there are such directions
_COVERED = cython.declare(cython.double, 5.5)  # which they must cover at least
_REACH = cython.declare(cython.double, 7.0)  # standard deviations on either side that the last nodes cover


def respond(response, times):
    """How a row changes at ``times`` the reference: the factor of its variance, and what is added to its error.

    By elimination from the last step to the first; no pivot is below the smallest eigenvalue.
    """
    if response.n == 0:
        return 1.0, 0.0
    i: cython.Py_ssize_t
    more = times - 1.0
    least = min(times, 1.0)
    inverse = 0.0
    pulled = 0.0
    for i in range(response.n - 1, -1, -1):
        link = more * response.below[i]
        ratio = link * inverse
        entry = response.diagonal[i]
        pulled = response.pull[i] - ratio * pulled
        inverse = 1.0 / max(1.0 - entry + entry * times - link * ratio, least)
    return times * inverse, more * pulled * inverse


def _eliminate(all_rows, n_nodes, times, log_det, change, least):
    """Fill ``log |F|``, ``b'F^-1 b`` and ``b'F^-2 b`` at some noises, up to `N_NODES`, in units of the reference."""
    inverse: cython.double[N_NODES]
    product: cython.double[N_NODES]
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    for k in range(n_nodes):
        inverse[k] = 0.0
        product[k] = 1.0
        log_det[k] = 0.0
        least[k] = 0.0
    for i in range(all_rows.n - 1, -1, -1):
        entry = all_rows.diagonal[i]
        below = all_rows.below[i] * all_rows.below[i]
        for k in range(n_nodes):
            more = times[k] - 1.0
            ratio = more * more * below * inverse[k]
            least[k] = 1.0 + ratio * inverse[k] * least[k]
            pivot = max(1.0 - entry + entry * times[k] - ratio, min(times[k], 1.0))
            inverse[k] = 1.0 / pivot
            product[k] *= pivot
        if i % 4 == 0:
            for k in range(n_nodes):
                log_det[k] += log(product[k])
                product[k] = 1.0
    for k in range(n_nodes):
        change[k] = all_rows.square * inverse[k]
        least[k] *= change[k] * inverse[k]


def squares_left(all_rows, noise, reference, left):
    """``A(z)``: the squares that the best fit at another noise would leave, at least its distance to the prior."""
    log_det: cython.double
    change: cython.double
    least: cython.double
    times = noise / reference
    _eliminate(
        all_rows, 1, cython.address(times), cython.address(log_det), cython.address(change), cython.address(least)
    )
    return max(left + (noise - reference) * change, noise * least)


# What rows have added up at the reference, and the belief about the log noise before the first of them.
_Squares = cython.struct(
    reference=cython.double,
    left=cython.double,
    weight=cython.double,
    log_start=cython.double,
    start_precision=cython.double,
)


def marginal_noise(all_rows, reference, left, weight, log_start, start_weight, guess, guess_std):
    """Mean and variance of the log noise, the log evidence, and the new reference.

    The nodes start around a guess; if the posterior is not there, they start again from the whole range that is
    possible.
    """
    volume: cython.double[N_NODES]
    share: cython.double[N_NODES]
    i: cython.Py_ssize_t
    squares: _Squares = _Squares(
        reference=reference, left=left, weight=weight, log_start=log_start, start_precision=0.5 * start_weight
    )
    highest = _highest_noise(all_rows, cython.address(squares))
    half = _REACH * max(guess_std, 0.05)
    low = max(guess - half, _LOWEST)
    high = min(guess + half, highest)
    whole: cython.bint = False
    mean = guess
    var = 0.0
    log_total = 0.0
    step = 0.0
    for i in range(N_NODES):
        share[i] = 0.0
        volume[i] = 0.0
    for _ in range(_MOST_STAGES):
        if not low < high:
            low = _LOWEST
            high = highest
            whole = True
        step = (high - low) / (N_NODES - 1)
        best: cython.Py_ssize_t = _score_nodes(all_rows, cython.address(squares), low, step, volume, share)
        at_edge: cython.bint = (best == 0 and low > _LOWEST) or (best == N_NODES - 1 and high < highest)
        if at_edge and not whole:
            low = _LOWEST
            high = highest
            whole = True
            continue
        mean, var, log_mass = _average_nodes(low, step, share[best], share)
        log_total = log_mass - 0.5 * log(2.0 * 3.141592653589793 / squares.start_precision)
        std = sqrt(var)
        covered: cython.bint = low <= max(mean - _COVERED * std, _LOWEST) and high >= min(
            mean + _COVERED * std, highest
        )
        if (covered and step <= 0.6 * std) or step < 1e-6:
            break
        half = max(_REACH * std, 1.5 * step)
        low = max(mean - half, _LOWEST)
        high = min(mean + half, highest)
        whole = True
    new = _matching_reference(all_rows, low, step, share, volume, mean)
    return mean, max(var, 1e-8), log_total, _within_reach(all_rows, exp(new), log_start)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _highest_noise(
    all_rows: cython.pointer(cython.const[AllRows]), squares: cython.pointer(cython.const[_Squares])
) -> cython.double:
    """The largest log noise that is possible."""
    times = 1e15  # about the prior mean: what a noise without bound would leave
    volume: cython.double
    change: cython.double
    least: cython.double
    _eliminate(
        all_rows, 1, cython.address(times), cython.address(volume), cython.address(change), cython.address(least)
    )
    most = max(squares.left + squares.reference * times * change, 1e-300)
    highest = log(most / max(squares.weight, 1e-300)) + 6.0
    highest = min(max(squares.log_start + _REACH / sqrt(squares.start_precision), highest), _HIGHEST)
    return max(highest, _LOWEST + 1.0)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _score_nodes(
    all_rows: cython.pointer(cython.const[AllRows]),
    squares: cython.pointer(cython.const[_Squares]),
    low: cython.double,
    step: cython.double,
    volume: cython.p_double,
    share: cython.p_double,
) -> cython.Py_ssize_t:
    """Fill the log posterior at each node, and ``log(|F| / |u Ω|)``; return the best node."""
    times: cython.double[N_NODES]
    change: cython.double[N_NODES]
    least: cython.double[N_NODES]
    i: cython.Py_ssize_t
    best: cython.Py_ssize_t = 0
    log_reference = log(squares.reference)
    for i in range(N_NODES):
        times[i] = exp(low + i * step - log_reference)
    _eliminate(all_rows, N_NODES, times, volume, change, least)
    for i in range(N_NODES):
        log_noise = low + i * step
        noise = exp(log_noise)
        volume[i] -= all_rows.log_det + all_rows.n_directions * (log_noise - log_reference)
        left = max(squares.left + (noise - squares.reference) * change[i], noise * least[i])
        gap = log_noise - squares.log_start
        from_start = gap * gap * squares.start_precision
        share[i] = -0.5 * (squares.weight * (LOG_2PI + log_noise) + volume[i] + left / noise + from_start)
        if share[i] > share[best]:
            best = i
    return best


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _average_nodes(
    low: cython.double, step: cython.double, top: cython.double, share: cython.p_double
) -> tuple[cython.double, cython.double, cython.double]:
    """Mean and variance of the log noise, and the log of the integral; shares become those of the nodes."""
    i: cython.Py_ssize_t
    mass = 0.0
    mean = 0.0
    var = 0.0
    for i in range(N_NODES):
        share[i] = exp(share[i] - top)
        mass += share[i]
        mean += share[i] * i
    mean /= mass
    for i in range(N_NODES):
        share[i] /= mass
        var += share[i] * (i - mean) * (i - mean)
    return low + mean * step, var * step * step, top + log(mass * step)


def _matching_reference(all_rows, low, step, share, volume, mean):
    """The log noise at which the weights have the standard deviation that is typical on average over the noise.

    Typical is the geometric mean, in units of the prior, in the directions that rows have informed; between the nodes
    its log is nearly linear. (To match the variance would leave the mean further off while there are few rows.)
    """
    i: cython.Py_ssize_t
    informed = 2.0 * all_rows.n_directions
    for i in range(all_rows.n):
        informed -= 2.0 * all_rows.diagonal[i]
    if informed < 1e-9:
        return mean
    typical = 0.0
    for i in range(N_NODES):
        typical += share[i] * exp(min((volume[0] - volume[i]) / informed, 700.0))
    target = volume[0] - informed * log(typical)
    for i in range(1, N_NODES):
        if volume[i] <= target:
            # Where rows hardly inform any direction, the difference of two volumes is rounding.
            return low + step * (i - min((target - volume[i]) / max(volume[i - 1] - volume[i], 1e-300), 1.0))
    return mean


def _within_reach(all_rows, reference, log_start):
    """The reference, but not far below the first noise while no row has informed some direction.

    In such a direction precisions that differ by many orders of magnitude would be added up, by which rounding errors
    grow. It shows in an eigenvalue of ``T`` next to 1: then not all pivots of ``(1 - ε) I - T`` are positive.
    """
    i: cython.Py_ssize_t
    pivot = INFINITY
    for i in range(all_rows.n - 1, -1, -1):
        pivot = 1.0 - _UNSEEN - all_rows.diagonal[i] - all_rows.below[i] * all_rows.below[i] / pivot
        if pivot <= 0.0:
            return max(reference, _LEAST_REFERENCE * exp(log_start))
    return reference


def tridiagonalise(n, matrix, below, space):
    """Make a symmetric matrix ``(n, n)`` tridiagonal, of which only the lower triangle is used, by reflections.

    The diagonal stays in its place, what is below it is returned, ``(n - 1,)``; the first vector of the basis stays the
    first coordinate. ``space`` has room for ``2 n`` numbers. Written out here, and not asked of LAPACK, as a model must
    learn the same from the same rows to the last bit.
    """
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    v = space
    w = space + n
    for k in range(n - 1):
        square = 0.0
        for i in range(k + 1, n):
            v[i] = matrix[i * n + k]
            w[i] = 0.0
            square += v[i] * v[i]
        first = v[k + 1]
        below[k] = first
        if square - first * first <= 0.0:
            continue
        below[k] = -sqrt(square) if first >= 0.0 else sqrt(square)
        v[k + 1] = first - below[k]
        scale = 1.0 / (square - first * below[k])  # 2 / v'v
        product = 0.0
        for i in range(k + 1, n - 1, 2):  # two rows at a time
            row = matrix + i * n
            next_row = row + n
            here = v[i]
            after = v[i + 1]
            total = 0.0
            next_total = 0.0
            for j in range(k + 1, i):
                total += row[j] * v[j]
                next_total += next_row[j] * v[j]
                w[j] += row[j] * here + next_row[j] * after
            w[i] += total + row[i] * here + next_row[i] * after
            w[i + 1] += next_total + next_row[i] * here + next_row[i + 1] * after
        if (n - k) % 2 == 0:  # the last row
            row = matrix + (n - 1) * n
            here = v[n - 1]
            total = row[n - 1] * here
            for j in range(k + 1, n - 1):
                total += row[j] * v[j]
                w[j] += row[j] * here
            w[n - 1] += total
        for i in range(k + 1, n):
            w[i] *= scale
            product += w[i] * v[i]
        product *= 0.5 * scale
        for i in range(k + 1, n):
            w[i] -= product * v[i]
            row = matrix + i * n
            left = v[i]
            right = w[i]
            for j in range(k + 1, i + 1):
                row[j] -= left * w[j] + right * v[j]
