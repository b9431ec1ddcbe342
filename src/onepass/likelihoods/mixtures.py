"""Mixtures of Gaussians: what several models that learned the same rows predict together, and an unknown noise."""

from typing import Any

import numpy as np
from scipy.special import ndtri

from onepass._typing import FloatArray
from onepass.engine.mixtures import mixed_moments, mixed_predictions, mixture_quantiles, weights_above

__all__ = [
    "KNOWN",
    "central_interval",
    "counted_weights",
    "mixture_mean",
    "mixture_moments",
    "mixture_prediction",
    "mixture_quantile",
    "noise_mixture",
    "sum_in_order",
]

# Standard deviations of the log noise, evenly spaced, and their shares.
_NODES = np.linspace(-3.5, 3.5, 15)
KNOWN = 0.02
"""Variance of a log noise that counts as known: what a hundred rows tell."""
_ROUNDING = 1e-12  # of weights that add up to 1
_SHARES = np.exp(-0.5 * _NODES**2) / np.exp(-0.5 * _NODES**2).sum()


def mixture_moments(weights: FloatArray, means: FloatArray, variances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of mixtures of ``k`` parts, ``(k, ...) -> (...)``; what the parts disagree about counts.

    The weights are ``(k,)``, or ``(k, n)`` if those of each row differ.
    """
    mean, var = mixed_moments(*(_flat(part) for part in (_counted(weights, means), means, variances)))
    return mean.reshape(means.shape[1:]), var.reshape(means.shape[1:])


def mixture_prediction(weights: FloatArray, parts: FloatArray) -> FloatArray:
    """What mixtures of ``k`` models predict, ``(5, ...)``, from the fields of their predictions, ``(5, k, ...)``.

    Of the outputs and the pre-activations these are the moments of `mixture_moments`, of the noise variance its mean.
    """
    _, k, *shape = parts.shape
    if weights.ndim > 1:
        weights = weights[:, 0] if not shape else weights.reshape(*weights.shape, *[1] * (len(shape) - 1))
        weights = np.ascontiguousarray(np.broadcast_to(weights, (k, *shape)))
    flat = np.ascontiguousarray(parts, dtype=np.float64).reshape(5, k, -1)
    return np.asarray(mixed_predictions(_ROUNDING, weights.reshape(k, -1), flat).reshape(5, *shape))


def mixture_mean(weights: FloatArray, parts: FloatArray) -> FloatArray:
    """Weighted mean of ``k`` parts, ``(k, ...) -> (...)``, with weights ``(k,)``, or ``(k, n)`` of each row."""
    weights = _counted(weights, parts)
    return np.asarray(sum_in_order(weights.reshape(*weights.shape, *[1] * (parts.ndim - weights.ndim)) * parts))


def _counted(weights: FloatArray, parts: FloatArray) -> FloatArray:
    """The counted weights ``(k,)``, or of each of the numbers that parts have if those of each row differ."""
    if parts.ndim < weights.ndim:  # of one row
        weights = weights[:, 0]
    counted = counted_weights(weights)
    if 1 < counted.ndim < parts.ndim:  # of rows with several outputs each
        return np.broadcast_to(counted.reshape(*counted.shape, *[1] * (parts.ndim - counted.ndim)), parts.shape)
    return counted


def _flat(parts: FloatArray) -> FloatArray:
    return np.ascontiguousarray(parts, dtype=np.float64).reshape(len(parts), -1)


def counted_weights(weights: FloatArray) -> FloatArray:
    """Weights ``(k, ...)`` of the parts that moments are made of: all but those within rounding of 0.

    Densities and quantiles are those of all parts, each of which counts by its weight and no more. Nothing bounds what
    a part contributes to a moment: a network that went astray, at 1e20 with the weight 1e-34, would have all of the
    variance, though its weight is nothing but rounding.
    """
    return weights_above(_ROUNDING, _flat(weights)).reshape(weights.shape)


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
