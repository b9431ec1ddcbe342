"""Gaussian integrals for compiled code, per number: the twins of `onepass.mathematics.gaussian`, formula by formula."""

from math import erfc, exp, log, log1p, sqrt

import numpy as np

from onepass.engine.compiled import compiled
from onepass.mathematics.gaussian import gauss_legendre

__all__ = ["erfcx", "log_cdf_slopes", "log_ndtr", "ndtr", "pdf", "truncated"]

_SQRT_HALF = sqrt(0.5)
_SQRT_2_PI = sqrt(2.0 / np.pi)
_INV_SQRT_PI = 1.0 / sqrt(np.pi)
_INV_SQRT_2PI = 1.0 / sqrt(2.0 * np.pi)
_LOG_SQRT_2PI = 0.5 * log(2.0 * np.pi)
_NODES, _WEIGHTS = gauss_legendre(32)
_HUGE = 1e150


@compiled
def pdf(z: float) -> float:
    """Density of the standard normal."""
    return _INV_SQRT_2PI * exp(-0.5 * z * z)


@compiled
def ndtr(z: float) -> float:
    """Distribution function of the standard normal."""
    return 0.5 * erfc(-z * _SQRT_HALF)


@compiled
def erfcx(x: float) -> float:
    """``exp(x²) erfc(x)``, by its asymptotic series where the factors leave float64."""
    if x < 25.0:
        return exp(x * x) * erfc(x)
    u = 1.0 / (x * x)
    return _INV_SQRT_PI / x * (1.0 - 0.5 * u * (1.0 - 1.5 * u * (1.0 - 2.5 * u * (1.0 - 3.5 * u))))


@compiled
def log_ndtr(z: float) -> float:
    """Log of `ndtr`, finite in the tail."""
    if z > 0.0:
        return log1p(-0.5 * erfc(z * _SQRT_HALF))
    return log(0.5 * erfcx(-z * _SQRT_HALF)) - 0.5 * z * z


@compiled
def log_cdf_slopes(z: float) -> tuple[float, float, float]:
    """``r = φ/Φ``, ``q = r (r + z)`` and ``1 - q``."""
    r = _SQRT_2_PI / erfcx(-z * _SQRT_HALF)
    if z < -25.0:
        u = 1.0 / (z * z)
        rest = u * (1.0 + u * (-6.0 + u * (50.0 + u * (-518.0 + 6354.0 * u))))
        return r, 1.0 - rest, rest
    q = r * (r + z)
    return r, q, 1.0 - q


@compiled
def truncated(lower: float, upper: float) -> tuple[float, float, float, float]:
    """Log mass, mean, variance and one minus it of the standard normal cut to ``[lower, upper]``."""
    if lower < -38.5 and upper > 38.5:
        return 0.0, 0.0, 1.0, 0.0
    lower = min(max(lower, -_HUGE), _HUGE)
    upper = min(max(upper, -_HUGE), _HUGE)
    flip = lower + upper < 0.0
    near, end = (-upper, -lower) if flip else (lower, upper)
    if near > 3.0 or end - near < 1.0:
        width = end - near
        if near > 0.0:
            width = min(width, 72.0 / (max(near, 1e-3) + sqrt(near * near + 72.0)))
        total = first = second = 0.0
        for node, weight in zip(_NODES, _WEIGHTS):  # noqa: B905 (compiled code has no strict)
            x = width * node
            density = exp(-x * (near + 0.5 * x)) * weight
            total += density
            first += density * node
        centre = first / total
        for node, weight in zip(_NODES, _WEIGHTS):  # noqa: B905
            x = width * node
            second += exp(-x * (near + 0.5 * x)) * weight * (node - centre) ** 2
        mean, var = near + width * centre, width * width * second / total
        shrinkage = 1.0 - var
        log_mass = log(max(width * total, 1e-300)) - _LOG_SQRT_2PI - 0.5 * near * near
    else:
        density_near, density_end = pdf(near), pdf(end)
        mass = max(ndtr(-near) - ndtr(-end), 1e-300)
        mean = (density_near - density_end) / mass
        lever = min(max(near, -40.0), 40.0) * density_near - min(end, 40.0) * density_end
        shrinkage = mean * mean - lever / mass
        var, log_mass = 1.0 - shrinkage, log(mass)
    return log_mass, -mean if flip else mean, var, shrinkage
