"""The Gaussian integrals that everything else is built from.

A standard normal density, its mass and its first two moments over an interval: piecewise linear activations
are sums of them. They stand in one place because each has a tail in which the textbook formula loses all its
digits.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

__all__ = ["FAR", "FloatArray", "IntervalMoments", "interval_moments", "pdf", "standardise"]

FloatArray = NDArray[np.float64]

FAR = 40.0  # beyond 40 standard deviations density and tail are zero in float64: exp(-800) underflows
_INV_SQRT_2PI = 1.0 / np.sqrt(2.0 * np.pi)


def pdf(z: ArrayLike) -> FloatArray:
    """Density of the standard normal at ``z``."""
    z = np.asarray(z, dtype=np.float64)
    return np.asarray(_INV_SQRT_2PI * np.exp(-0.5 * np.minimum(np.abs(z), FAR) ** 2), dtype=np.float64)


def standardise(point: ArrayLike, mean: FloatArray, var: FloatArray) -> FloatArray:
    """``(point - mean) / sqrt(var)``, cut off where the normal has no mass left; +-40 or 0 for ``var == 0``."""
    gap = np.asarray(point, dtype=np.float64) - mean
    # A variance of zero is read as one so small that every gap is far: the limit, without a 0/0.
    with np.errstate(over="ignore"):
        z = gap / np.sqrt(np.maximum(var, np.finfo(np.float64).tiny))
    return np.asarray(np.clip(z, -FAR, FAR), dtype=np.float64)


class IntervalMoments(NamedTuple):
    """``∫ φ``, ``∫ z φ`` and ``∫ z² φ`` of the standard normal over an interval."""

    mass: FloatArray
    first: FloatArray
    second: FloatArray


def interval_moments(lower: FloatArray, upper: FloatArray) -> IntervalMoments:
    """Moments of the standard normal over ``[lower, upper]``, both within what `standardise` returns."""
    # An interval in the right tail is mirrored to the left one, where Φ is small and keeps its digits.
    mirrored = lower > 0
    mass = ndtr(np.where(mirrored, -lower, upper)) - ndtr(np.where(mirrored, -upper, lower))
    density_low, density_up = pdf(lower), pdf(upper)
    return IntervalMoments(mass, density_low - density_up, mass + lower * density_low - upper * density_up)
