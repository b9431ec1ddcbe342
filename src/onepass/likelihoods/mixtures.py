"""Mixtures of Gaussians: what several models that learned the same rows predict together, and an unknown noise."""

from typing import Any

import numpy as np
from scipy.special import ndtri

from onepass._typing import FloatArray
from onepass.engine.mixtures import mixture_quantiles, weights_above

__all__ = [
    "KNOWN",
    "central_interval",
    "likely_weights",
    "mixture_moments",
    "mixture_quantile",
    "mixture_variance",
    "noise_mixture",
    "sum_in_order",
    "weights_for_means",
    "weights_for_variances",
]

# Standard deviations of the log noise, evenly spaced, and their shares.
_NODES = np.linspace(-3.5, 3.5, 15)
KNOWN = 0.02
"""Variance of a log noise that counts as known: what a hundred rows tell."""
_SHARES = np.exp(-0.5 * _NODES**2) / np.exp(-0.5 * _NODES**2).sum()


def mixture_moments(
    weights: FloatArray, means: FloatArray, variances: FloatArray, likely: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of mixtures of ``k`` parts, ``(k, ...) -> (...)``; what the parts disagree about counts.

    The weights are ``(k,)``, or ``(k, n)`` if those of each row differ. The variance may have weights of its own, of
    the ``likely`` parts only: see `likely_weights`.
    """
    mean = weighted_sum(weights_for_means(weights), means)
    return mean, mixture_variance(weights if likely is None else likely, variances + (means - mean) ** 2)


def mixture_variance(weights: FloatArray, variances: FloatArray) -> FloatArray:
    """Weighted sum of the variances of ``k`` parts, ``(k, ...) -> (...)``, without parts of negligible weight."""
    return weighted_sum(weights_for_variances(weights), variances)


def weighted_sum(weights: FloatArray, parts: FloatArray) -> FloatArray:
    """Sum of ``k`` parts, ``(k, ...) -> (...)``, with weights ``(k,)``, or ``(k, n)`` of each row."""
    if weights.ndim == 1:
        return np.asarray(np.tensordot(weights, parts, 1))
    return np.asarray((weights.reshape(*weights.shape, *[1] * (parts.ndim - weights.ndim)) * parts).sum(axis=0))


# Nothing bounds what an improbable part contributes to a moment: a network that went astray, at 1e20 with the weight
# 1e-34, would have all of the variance. So moments are those of the parts that matter. Densities and quantiles, in
# which a part counts by its weight and no more, are those of all parts.


def weights_for_means(weights: FloatArray) -> FloatArray:
    """Weights ``(k, ...)`` of the parts that the mean of a mixture is made of: all but those within rounding of 0."""
    return _weights_above(1e-12, weights)


def weights_for_variances(weights: FloatArray) -> FloatArray:
    """Weights ``(k, ...)`` of the parts that a variance is made of.

    A part of less than one in a million matters only if it is a thousand standard deviations away.
    """
    return _weights_above(1e-6, weights)


def likely_weights(weights: FloatArray) -> FloatArray:
    """Weights ``(k, ...)`` without what is unlikely, for variances where parts may have far too wide a prior.

    A part of one in a thousand whose variance is the prior's would make the variance of a mixture that of its tail
    alone, which says nothing of how far most targets are off.
    """
    return _weights_above(0.02, weights)


def _weights_above(least: float, weights: FloatArray) -> FloatArray:
    """Weights of which those below ``least`` are zero, unless all are; where there are any, the others sum to 1."""
    flat = np.ascontiguousarray(weights, dtype=np.float64).reshape(len(weights), -1)
    return weights_above(least, flat).reshape(weights.shape)


def sum_in_order(terms: FloatArray) -> Any:
    """Sum along the first axis, one after the other, so that a row's result does not depend on the rows next to it."""
    return sum(terms[1:], start=terms[0])


def mixture_quantile(weights: FloatArray, means: FloatArray, stds: FloatArray, level: float) -> FloatArray:
    """Quantile of mixtures of ``k`` Gaussians, ``(k, ...) -> (...)``, to rounding."""
    # Above the median it is minus that of the mirrored mixture, where small probabilities have all their digits.
    side = 1.0 if level <= 0.5 else -1.0
    lower = min(level, 1.0 - level)
    flat = (len(weights), -1)
    parts = np.ascontiguousarray(side * means.reshape(flat)), np.ascontiguousarray(stds.reshape(flat))
    found = mixture_quantiles(np.ascontiguousarray(weights), *parts, lower, float(ndtri(lower)))
    return side * found.reshape(means.shape[1:])


def central_interval(
    weights: FloatArray, means: FloatArray, stds: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Limits of the central interval of mixtures of ``k`` Gaussians, ``(k, ...) -> (...)`` each."""
    low, high = (mixture_quantile(weights, means, stds, 0.5 + side * level / 2) for side in (-1, 1))
    return low, high


def noise_mixture(
    weights: FloatArray, means: FloatArray, variances: FloatArray, noises: FloatArray, log_noise_vars: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights, means and standard deviations of targets whose noise is not quite known.

    ``variances`` and ``noises`` are those of the outputs and of the noise, ``(k, n)``; the log of the latter has the
    variance ``log_noise_vars``, ``(k,)``. Each of the ``k`` parts becomes a mixture over its noise, unless this is
    known well enough for any quantile.
    """
    if (log_noise_vars < KNOWN).all():
        return weights, means, np.sqrt(variances + noises)
    factors = np.exp(np.multiply.outer(_NODES, np.sqrt(log_noise_vars)))[:, :, None]
    totals = variances + noises * factors
    flat = (-1, means.shape[1])
    return (
        np.outer(_SHARES, weights).ravel(),
        np.broadcast_to(means, totals.shape).reshape(flat),
        np.sqrt(totals).reshape(flat),
    )
