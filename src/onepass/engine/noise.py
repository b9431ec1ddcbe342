"""What all rows together say about a learned noise, and the noise that the weights are learned with.

With Gaussian noise ``z`` around a linear output the precision of the weights is ``P0 + S / z``, where ``S = Σ w x x'``
runs over all rows, also over those that were learned while the noise was misjudged. The belief is kept at one noise,
the *reference* ``s``; when more is known about the noise, all rows are re-weighed at once, by ``P <- P0 + (s / new) (P
- P0)`` and the same for ``P m``, which is a step of forgetting.

What is needed to know the noise exactly are the *ratios* ``ω_j``, the eigenvalues of the covariance in units of the
prior's, ``b_j``, the coordinates of ``m - m0`` along the eigenvectors in these units, and two numbers that rows add up:
their weight ``n`` and the squares ``A`` that the fit has left, prior included. With ``u = z / s``

    A(z) = A + s Σ (u - 1) b_j² / (1 - ω_j + ω_j u)
    log p(rows | z) = -n/2 log(2 π z) - 1/2 Σ log((1 - ω_j + ω_j u) / (ω_j u)) - A(z) / (2 z),

both without cancellation. The log noise starts as ``N(log_start, 2 / start_weight)``; sums over evenly spaced nodes of
the log noise, which converge as fast as any, give its posterior and the evidence of all rows.
"""

import cython
import numpy as np
from cython.cimports.libc.math import INFINITY, exp, fabs, log, sqrt

__all__ = ["NOISE_FLOOR"]

NOISE_FLOOR = 1e-12
_LOG_2PI = cython.declare(cython.double, 1.8378770664093453)
_LOWEST = cython.declare(cython.double, float(np.log(NOISE_FLOOR)))
_HIGHEST = cython.declare(cython.double, 600.0)
_N_NODES = cython.declare(cython.Py_ssize_t, 33)
_MOST_STAGES = cython.declare(cython.Py_ssize_t, 8)
_UNTOLD = cython.declare(cython.double, 1e-6)  # of its variance, a direction has lost, of which rows have told nothing
_LEAST_REFERENCE = cython.declare(cython.double, 1e-9)  # times the first noise, while there are such directions
_COVERED = cython.declare(cython.double, 5.5)  # which they must cover at least
_REACH = cython.declare(cython.double, 7.0)  # standard deviations on either side that the last nodes cover


def squares_left(noise, reference, n, ratios, squares, left):
    """``A(z)``: the squares that the best fit at another noise would leave, at least its distance to the prior."""
    j: cython.Py_ssize_t
    times = noise / reference
    change = 0.0
    least = 0.0
    for j in range(n):
        share = 1.0 / (1.0 - ratios[j] + ratios[j] * times)
        change += squares[j] * share
        least += squares[j] * share * share
    return max(left + (noise - reference) * change, noise * least)


def _log_marginal(log_noise, log_reference, n, ratios, squares, left, weight, log_start, start_precision):
    """Log of the density of all rows and of the log noise, but for the constant of its start."""
    j: cython.Py_ssize_t
    z = exp(log_noise)
    reference = exp(log_reference)
    times = exp(log_noise - log_reference)
    log_volume = 0.0
    for j in range(n):
        log_volume += log((1.0 - ratios[j] + ratios[j] * times) / ratios[j])
    log_volume -= n * (log_noise - log_reference)
    gap = log_noise - log_start
    return -0.5 * (
        weight * (_LOG_2PI + log_noise)
        + log_volume
        + squares_left(z, reference, n, ratios, squares, left) / z
        + gap * gap * start_precision
    )


def marginal_noise(n, ratios, squares, expected, reference, left, weight, log_start, start_weight, guess, guess_std):
    """Mean and variance of the log noise, the log evidence, and the new reference.

    ``ratios`` and ``squares``, ``(n,)``, are ``ω_j`` and ``b_j²``; ``expected`` is room for ``n`` numbers. The nodes
    start around a guess; if the posterior is not there, they start again from the whole range that is possible.
    """
    log_z: cython.double[33]
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    log_reference = log(reference)
    start_precision = 0.5 * start_weight
    total_squares = left  # about the prior mean: what a noise without bound would leave
    for j in range(n):
        total_squares += reference * squares[j] / ratios[j]
    highest = log(max(total_squares, 1e-300) / max(weight, 1e-300)) + 6.0
    highest = min(max(log_start + _REACH * sqrt(2.0 / start_weight), highest), _HIGHEST)
    highest = max(highest, _LOWEST + 1.0)
    half = _REACH * max(guess_std, 0.05)
    low = max(guess - half, _LOWEST)
    high = min(guess + half, highest)
    whole: cython.bint = False
    mean = guess
    var = 0.0
    log_total = 0.0
    for _ in range(_MOST_STAGES):
        if not low < high:
            low = _LOWEST
            high = highest
            whole = True
        step = (high - low) / (_N_NODES - 1)
        top = -INFINITY
        best: cython.Py_ssize_t = 0
        for i in range(_N_NODES):
            log_z[i] = _log_marginal(
                low + i * step, log_reference, n, ratios, squares, left, weight, log_start, start_precision
            )
            if log_z[i] > top:
                top = log_z[i]
                best = i
        at_edge: cython.bint = (best == 0 and low > _LOWEST) or (best == _N_NODES - 1 and high < highest)
        if at_edge and not whole:
            low = _LOWEST
            high = highest
            whole = True
            continue
        mass = 0.0
        mean = 0.0
        for i in range(_N_NODES):
            log_z[i] = exp(log_z[i] - top)
            mass += log_z[i]
            mean += log_z[i] * i
        mean /= mass
        var = 0.0
        for i in range(_N_NODES):
            var += log_z[i] * (i - mean) * (i - mean)
        var /= mass
        mean = low + mean * step
        var *= step * step
        log_total = top + log(mass * step) - 0.5 * log(2.0 * 3.141592653589793 / start_precision)
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
    # The reference at which each direction has the variance that it has on average over the noise.
    new = log_reference
    if n > 0:
        for j in range(n):
            expected[j] = 0.0
            for i in range(_N_NODES):
                times = exp(low + i * step - log_reference)
                expected[j] += log_z[i] * ratios[j] * times / (1.0 - ratios[j] + ratios[j] * times)
            expected[j] /= mass
        new = _matching_reference(low, high, log_reference, n, ratios, expected)
    else:
        new = mean
    return mean, max(var, 1e-8), log_total, _within_reach(exp(new), n, ratios, log_start)


def _within_reach(reference, n, ratios, log_start):
    """The reference, but not far below the first noise while rows have told nothing of a direction.

    In such a direction precisions that differ by many orders of magnitude would be added up, by which rounding errors
    grow.
    """
    j: cython.Py_ssize_t
    for j in range(n):
        if ratios[j] > 1.0 - _UNTOLD:
            return max(reference, _LEAST_REFERENCE * exp(log_start))
    return reference


def _matching_reference(low, high, log_reference, n, ratios, expected):
    """The log noise at which the ratios are as expected, each counting as far as rows have told of its direction."""
    j: cython.Py_ssize_t
    for _ in range(60):
        middle = 0.5 * (low + high)
        times = exp(middle - log_reference)
        gap = 0.0
        for j in range(n):
            gap += (1.0 - ratios[j]) * (ratios[j] * times / (1.0 - ratios[j] + ratios[j] * times) / expected[j] - 1.0)
        if gap < 0.0:
            low = middle
        else:
            high = middle
        if high - low < 1e-9 * (1.0 + fabs(middle)):
            break
    return 0.5 * (low + high)
