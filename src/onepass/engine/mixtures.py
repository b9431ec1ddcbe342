"""Mixtures of Gaussians, row by row: which parts of them matter, and their quantiles."""

import cython
import numpy as np
from cython.cimports.libc.math import fabs, log
from cython.cimports.onepass.engine.special import ndtr, pdf

_EXACT = cython.declare(cython.double, 1e-15)  # relative error of a probability that counts as rounding
_LEAST_STD = cython.declare(cython.double, 1e-300)


def weights_above(least: cython.double, weights: cython.const[cython.double][:, ::1]) -> "FloatArray":
    """Weights ``(k, n)`` of which those below ``least`` are zero, unless all are; if any is, the others sum to 1."""
    kept = np.array(weights)
    view: cython.double[:, ::1] = kept
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    for i in range(view.shape[1]):
        most = 0.0
        total = 0.0
        dropped: cython.bint = False
        for j in range(view.shape[0]):
            most = max(most, view[j, i])
        if most < least:
            continue
        for j in range(view.shape[0]):
            if view[j, i] < least:
                view[j, i] = 0.0
                dropped = True
            total += view[j, i]
        if dropped:
            for j in range(view.shape[0]):
                view[j, i] /= total
    return kept


def mixed_moments(
    weights: cython.const[cython.double][:, ::1],
    means: cython.const[cython.double][:, ::1],
    variances: cython.const[cython.double][:, ::1],
) -> "FloatArray":
    """Mean and variance ``(2, n)`` of mixtures of ``k`` parts, ``(k, n)``; what the parts disagree about counts.

    The weights are ``(k, n)``, or ``(k, 1)`` for all rows. Sums go one after the other, so that a row's result
    does not depend on the rows next to it.
    """
    found = np.empty((2, means.shape[1]))
    view: cython.double[:, ::1] = found
    with cython.nogil:
        _mix(weights, means, variances, view)
    return found


def mixed_predictions(
    least: cython.double, weights: cython.const[cython.double][:, ::1], parts: cython.const[cython.double][:, :, ::1]
):
    """What mixtures of ``k`` models predict, ``(5, n)``, from the five fields of their predictions, ``(5, k, n)``.

    These are mean and variance of the output, the same of the pre-activation, and the noise variance, of which the
    mean is taken. Weights below ``least`` don't count, see `weights_above`; their shape is as in `mixed_moments`.
    """
    counted: cython.double[:, ::1] = weights_above(least, weights)
    found = np.empty((5, parts.shape[2]))
    view: cython.double[:, ::1] = found
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    wide: cython.Py_ssize_t = 1 if weights.shape[1] > 1 else 0
    with cython.nogil:
        _mix(counted, parts[0], parts[1], view[:2])
        _mix(counted, parts[2], parts[3], view[2:4])
        for i in range(parts.shape[2]):
            view[4, i] = counted[0, wide * i] * parts[4, 0, i]
            for j in range(1, parts.shape[1]):
                view[4, i] += counted[j, wide * i] * parts[4, j, i]
    return found


def _mix(weights, means, variances, found):
    """Fill the moments of `mixed_moments`."""
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    wide: cython.Py_ssize_t = 1 if weights.shape[1] > 1 else 0
    for i in range(means.shape[1]):
        mean = weights[0, wide * i] * means[0, i]
        for j in range(1, means.shape[0]):
            mean = mean + weights[j, wide * i] * means[j, i]
        var = 0.0
        for j in range(means.shape[0]):
            gap = means[j, i] - mean
            var = var + weights[j, wide * i] * (variances[j, i] + gap * gap)
        found[0, i] = mean
        found[1, i] = var


def mixture_quantiles(
    weights: cython.const[cython.double][:, ::1],
    means: cython.const[cython.double][:, ::1],
    stds: cython.const[cython.double][:, ::1],
    z: cython.const[cython.double][::1],
) -> "FloatArray":
    """Quantiles ``(n,)`` of mixtures of ``k`` Gaussians with means and standard deviations ``(k, n)``.

    ``z`` is the standard normal's own quantile, ``(n,)``, or ``(1,)`` for all; at most 0, where a probability has all
    its digits. The weights are ``(k, n)``, or ``(k, 1)`` for all.
    """
    found = np.empty(means.shape[1])
    view: cython.double[::1] = found
    i: cython.Py_ssize_t
    wide: cython.Py_ssize_t = 1 if weights.shape[1] > 1 else 0
    own: cython.Py_ssize_t = 1 if z.shape[0] > 1 else 0
    with cython.nogil:
        for i in range(means.shape[1]):
            view[i] = _quantile(
                weights.shape[0],
                means.shape[1],
                weights.shape[1],
                cython.address(weights[0, wide * i]),
                cython.address(means[0, i]),
                cython.address(stds[0, i]),
                z[own * i],
            )
    return found


def _quantile(k, stride, step, weights, means, stds, z):
    """Newton's method on the log of the distribution function, between the least and the largest quantile of a part.

    It starts at the quantile of the heaviest part. The log of a Gaussian's distribution function is concave, so that
    from the left no step goes too far; where one does leave the interval, as between parts far apart, it is halved.
    """
    j: cython.Py_ssize_t
    heaviest: cython.Py_ssize_t = 0
    low = means[0] + z * stds[0]
    high = low
    for j in range(1, k):
        own = means[j * stride] + z * stds[j * stride]
        low = min(low, own)
        high = max(high, own)
        if weights[j * step] > weights[heaviest * step]:
            heaviest = j
    x = means[heaviest * stride] + z * stds[heaviest * stride]
    level = ndtr(z)
    while low < high:
        probability, density = _distribution(k, stride, step, weights, means, stds, x)
        excess = log(probability / level) if probability > 0.0 else -1.0
        if fabs(excess) <= _EXACT:
            return x
        if excess < 0.0:
            low = x
        else:
            high = x
        after = x - excess * probability / density if density > 0.0 else low
        if not low < after < high:
            after = 0.5 * low + 0.5 * high
            if not low < after < high:
                return after
        x = after
    return x


def _distribution(k, stride, step, weights, means, stds, x):
    """Distribution function and density of a mixture."""
    j: cython.Py_ssize_t
    probability = 0.0
    density = 0.0
    for j in range(k):
        std = max(stds[j * stride], _LEAST_STD)
        u = (x - means[j * stride]) / std
        probability += weights[j * step] * ndtr(u)
        density += weights[j * step] * pdf(u) / std
    return probability, density
