"""The Gaussian integrals that everything else is built from.

The density, the mass and the moments of a standard normal over an interval, and the slopes of ``log Φ``: activations
and observation models are sums of them. They stand in one place because each has a tail in which the textbook formula
loses all its digits.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx, ndtr

from onepass._typing import FloatArray

__all__ = [
    "FAR",
    "IntervalMoments",
    "Truncated",
    "gauss_hermite",
    "gauss_legendre",
    "interval_moments",
    "log_cdf_slopes",
    "pdf",
    "standardise",
    "truncated",
]

FAR = 40.0  # beyond 40 standard deviations density and tail are zero in float64: exp(-800) underflows
_INV_SQRT_2PI = 1.0 / np.sqrt(2.0 * np.pi)
_TINY = np.finfo(np.float64).tiny


def pdf(z: ArrayLike) -> FloatArray:
    """Density of the standard normal at ``z``."""
    z = np.asarray(z, dtype=np.float64)
    return np.asarray(_INV_SQRT_2PI * np.exp(-0.5 * np.minimum(np.abs(z), FAR) ** 2), dtype=np.float64)


def standardise(point: ArrayLike, mean: FloatArray, var: FloatArray) -> FloatArray:
    """``(point - mean) / sqrt(var)``, cut off where the normal has no mass left; +-40 or 0 for ``var == 0``."""
    gap = np.asarray(point, dtype=np.float64) - mean
    # A variance of zero is read as one so small that every gap is far: the limit, without a 0/0.
    with np.errstate(over="ignore"):
        z = gap / np.sqrt(np.maximum(var, _TINY))
    return np.asarray(np.clip(z, -FAR, FAR), dtype=np.float64)


def gauss_legendre(n: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of the integral over ``[0, 1]``."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return 0.5 * (nodes + 1.0), 0.5 * weights


def gauss_hermite(n: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of the expectation under a standard normal; ``n`` odd, the middle node exactly zero."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    nodes[n // 2] = 0.0
    return nodes, weights / weights.sum()


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


def log_cdf_slopes(z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """First slope ``r = φ/Φ`` of ``log Φ``, minus the second, ``q = r (r + z)``, a number in (0, 1), and ``1 - q``."""
    # erfcx overflows to infinity for z > 37, where the right answer is r = 0.
    r = np.sqrt(2.0 / np.pi) / erfcx(-np.maximum(z, -1e100) / np.sqrt(2.0))
    far = z < -25.0  # where r + z cancels: the asymptotic series in 1/z²
    u = 1.0 / np.where(far, z, 1.0) ** 2
    series = u * (1.0 + u * (-6.0 + u * (50.0 + u * (-518.0 + 6354.0 * u))))
    rest = np.where(far, series, 1.0 - r * (r + np.where(far, 0.0, z)))
    return r, 1.0 - rest, rest


class Truncated(NamedTuple):
    """A standard normal cut to an interval: the log of its mass there, its mean, its variance and one minus it."""

    log_mass: FloatArray
    mean: FloatArray
    var: FloatArray
    shrinkage: FloatArray


_HUGE = 1e150  # squares to something finite
_UNIT_NODES, _UNIT_WEIGHTS = gauss_legendre(32)


def truncated(lower: FloatArray, upper: FloatArray) -> Truncated:
    """Cut the standard normal to ``[lower, upper]``, two arrays of one shape; infinities are allowed.

    A wide interval near the centre has the closed form. One that is narrow or out in a tail loses its digits in it;
    there the density over the interval, cut where it has dropped by e⁻³⁶, is so smooth that 32 Gauss-Legendre nodes
    give mean and variance to rounding, at any distance.
    """
    lower, upper = np.clip(lower, -_HUGE, _HUGE), np.clip(upper, -_HUGE, _HUGE)
    flip = lower + upper < 0  # work in the right tail
    near, end = np.where(flip, -upper, lower), np.where(flip, -lower, upper)

    density_near, density_end = pdf(near), pdf(end)
    mass = np.maximum(ndtr(-near) - ndtr(-end), 1e-300)
    mean = (density_near - density_end) / mass
    lever = np.clip(near, -FAR, FAR) * density_near - np.minimum(end, FAR) * density_end
    shrinkage = mean**2 - lever / mass
    var = 1.0 - shrinkage
    log_mass = np.log(mass)

    hard = (near > 3.0) | (end - near < 1.0)
    if hard.any():
        start = near[hard]
        cut = np.where(start > 0, 72.0 / (np.maximum(start, 1e-3) + np.sqrt(start**2 + 72.0)), np.inf)
        width = np.minimum(end[hard] - start, cut)
        x = width[..., None] * _UNIT_NODES
        density = np.exp(-x * (start[..., None] + 0.5 * x)) * _UNIT_WEIGHTS
        total = density.sum(axis=-1)
        centre = density @ _UNIT_NODES / total
        spread = (density * (_UNIT_NODES - centre[..., None]) ** 2).sum(axis=-1) / total
        mean[hard] = start + width * centre
        var[hard] = width**2 * spread
        shrinkage[hard] = 1.0 - var[hard]
        log_mass[hard] = np.log(np.maximum(width * total, 1e-300) * _INV_SQRT_2PI) - 0.5 * start**2
    return Truncated(log_mass, np.where(flip, -mean, mean), var, shrinkage)
