"""Mixtures of Gaussians: what several models that learned the same rows predict together, and an unknown noise."""

import numpy as np
from scipy.special import ndtri

from onepass._typing import FloatArray
from onepass.engine.mixtures import mixture_quantiles

__all__ = ["KNOWN", "likely_weights", "mixture_moments", "mixture_quantile", "noise_mixture", "relevant_weights", "weighted_sum"]

# Standard deviations of the log noise, evenly spaced, and their shares.
_NODES = np.linspace(-3.5, 3.5, 15)
_UNLIKELY, _NEGLIGIBLE = 0.02, 1e-6
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
    mean = weighted_sum(weights, means)
    return mean, weighted_sum(weights if likely is None else likely, variances + (means - mean) ** 2)


def relevant_weights(weights: FloatArray) -> FloatArray:
    """Weights ``(k, ...)`` of the parts that moments are made of: without those of less than one in a million.

    Moments have no bound on what an improbable part contributes: one that has gone astray, at 1e20 with the weight
    1e-34, would have all of the variance. Densities and quantiles, in which it counts by its weight, keep it.
    """
    negligible = weights < _NEGLIGIBLE
    kept = np.where(negligible, 0.0, weights)
    # Others stay as they are, to the last bit.
    return np.asarray(kept / np.where(negligible.any(axis=0), sum(kept[1:], start=kept[0]), 1.0))


def weighted_sum(weights: FloatArray, parts: FloatArray) -> FloatArray:
    """Sum of ``k`` parts, ``(k, ...) -> (...)``, with weights ``(k,)``, or ``(k, n)`` of each row.

    Only parts of relevant weight count.
    """
    weights = relevant_weights(weights)
    if weights.ndim == 1:
        return np.asarray(np.tensordot(weights, parts, 1))
    return np.asarray((weights.reshape(*weights.shape, *[1] * (parts.ndim - 2)) * parts).sum(axis=0))


def likely_weights(weights: FloatArray) -> FloatArray:
    """Weights ``(k, ...)`` without what is unlikely, for variances.

    A part of one in a thousand whose variance is the prior's would make the variance of a mixture that of its tail
    alone, which says nothing of how far most targets are off. Densities and quantiles have it all.
    """
    likely = np.where(weights < _UNLIKELY, 0.0, weights)
    # Summed one part after the other, so that a row's result does not depend on the rows beside it.
    return np.asarray(likely / sum(likely[1:], start=likely[0]))


def mixture_quantile(weights: FloatArray, means: FloatArray, stds: FloatArray, level: float) -> FloatArray:
    """Quantile of mixtures of ``k`` Gaussians, ``(k, ...) -> (...)``, to rounding."""
    # Above the median it is minus that of the mirrored mixture, where small probabilities have all their digits.
    side = 1.0 if level <= 0.5 else -1.0
    lower = min(level, 1.0 - level)
    flat = (len(weights), -1)
    parts = np.ascontiguousarray(side * means.reshape(flat)), np.ascontiguousarray(stds.reshape(flat))
    found = mixture_quantiles(np.ascontiguousarray(weights), *parts, lower, float(ndtri(lower)))
    return side * found.reshape(means.shape[1:])


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
