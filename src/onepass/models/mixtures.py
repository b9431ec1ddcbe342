"""Mixtures of Gaussians, which is what several models that learned the same rows predict together."""

import numpy as np
from scipy.special import ndtr, ndtri

from onepass._typing import FloatArray

__all__ = ["mixture_moments", "mixture_quantile"]


def mixture_moments(weights: FloatArray, means: FloatArray, variances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of mixtures of ``k`` parts, ``(k, ...) -> (...)``; what the parts disagree about counts."""
    mean = np.tensordot(weights, means, 1)
    return mean, np.tensordot(weights, variances + (means - mean) ** 2, 1)


def mixture_quantile(weights: FloatArray, means: FloatArray, stds: FloatArray, level: float) -> FloatArray:
    """Quantile of mixtures of ``k`` Gaussians, ``(k, ...) -> (...)``, by bisection between those of its parts."""
    quantiles = means + ndtri(level) * stds
    low, high = quantiles.min(axis=0), quantiles.max(axis=0)
    for _ in range(60 if len(weights) > 1 else 0):
        middle = 0.5 * (low + high)
        below = np.tensordot(weights, ndtr((middle - means) / np.maximum(stds, 1e-300)), 1) < level
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(0.5 * (low + high))
