"""Gaussian integrals, per number: the moments of activations and likelihoods are sums of them.

The density, the mass and the moments of a standard normal over an interval, and the derivatives of ``log Φ``. Each has
a tail in which the textbook formula loses all its digits, so each is here once, in a form that is accurate there.
"""

import cython
from cython.cimports.libc.math import erfc, exp, fabs, log, sqrt
from cython.cimports.scipy.special.cython_special import erfcx as scipy_erfcx
from cython.cimports.scipy.special.cython_special import log_ndtr as scipy_log_ndtr
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import leggauss

_SQRT_HALF = cython.declare(cython.double, sqrt(0.5))
_SQRT_2_OVER_PI = cython.declare(cython.double, 0.7978845608028654)
_INV_SQRT_2PI = cython.declare(cython.double, 0.3989422804014327)
_LOG_SQRT_2PI = cython.declare(cython.double, 0.9189385332046728)
_HUGE = cython.declare(cython.double, 1e150)  # squares to something finite
for _i, (_node, _weight) in enumerate(zip(*hermegauss(5), strict=True)):
    FEW_HERMITE[_i], FEW_HERMITE_WEIGHTS[_i] = _node if _i != 2 else 0.0, _weight * _INV_SQRT_2PI
for _i, (_node, _weight) in enumerate(zip(*hermegauss(11), strict=True)):
    HERMITE[_i], HERMITE_WEIGHTS[_i] = _node if _i != 5 else 0.0, _weight * _INV_SQRT_2PI
for _i, (_node, _weight) in enumerate(zip(*leggauss(32), strict=True)):
    UNIT[_i], UNIT_WEIGHTS[_i] = 0.5 * (_node + 1.0), 0.5 * _weight


def pdf(z):
    """Density of the standard normal."""
    return _INV_SQRT_2PI * exp(-0.5 * z * z)


def ndtr(z):
    """Distribution function of the standard normal."""
    return 0.5 * erfc(-z * _SQRT_HALF)


def log_ndtr(z):
    """Log of `ndtr`, finite in the tail."""
    return scipy_log_ndtr(z)


def sigmoid(a):
    """``1 / (1 + e^-a)``."""
    e = exp(-fabs(a))
    return 1.0 / (1.0 + e) if a >= 0.0 else e / (1.0 + e)


def log_cdf_slopes(z):
    """First slope ``r = φ/Φ`` of ``log Φ``, minus the second, ``q = r (r + z)``, a number in (0, 1), and ``1 - q``."""
    # erfcx overflows to infinity for z > 37, where the right answer is r = 0.
    r = _SQRT_2_OVER_PI / scipy_erfcx(-z * _SQRT_HALF)
    if z < -25.0:  # r + z cancels: the asymptotic series in 1/z²
        u = 1.0 / (z * z)
        rest = u * (1.0 + u * (-6.0 + u * (50.0 + u * (-518.0 + 6354.0 * u))))
        return r, 1.0 - rest, rest
    q = r * (r + z)
    return r, q, 1.0 - q


def truncated(lower, upper):
    """Log mass, mean, variance and one minus the variance of the standard normal cut to ``[lower, upper]``.

    A wide interval near the centre has the closed form. One that is narrow or out in a tail loses its digits in it;
    there the density over the interval, cut where it has dropped by e⁻³⁶, is so smooth that 32 Gauss-Legendre nodes
    give mean and variance to rounding, at any distance.
    """
    if lower < -38.5 and upper > 38.5:
        return 0.0, 0.0, 1.0, 0.0
    lower = min(max(lower, -_HUGE), _HUGE)
    upper = min(max(upper, -_HUGE), _HUGE)
    flip: cython.bint = lower + upper < 0.0  # work in the right tail
    near = -upper if flip else lower
    end = -lower if flip else upper
    if near > 3.0 or end - near < 1.0:
        width = end - near
        if near > 0.0:
            width = min(width, 72.0 / (max(near, 1e-3) + sqrt(near * near + 72.0)))
        total = 0.0
        first = 0.0
        second = 0.0
        for i in range(32):
            x = width * UNIT[i]
            density = exp(-x * (near + 0.5 * x)) * UNIT_WEIGHTS[i]
            total += density
            first += density * UNIT[i]
        centre = first / total
        for i in range(32):
            x = width * UNIT[i]
            second += exp(-x * (near + 0.5 * x)) * UNIT_WEIGHTS[i] * (UNIT[i] - centre) * (UNIT[i] - centre)
        mean = near + width * centre
        var = width * width * second / total
        shrinkage = 1.0 - var
        log_mass = log(max(width * total, 1e-300)) - _LOG_SQRT_2PI - 0.5 * near * near
    else:
        density_near = pdf(near)
        density_end = pdf(end)
        mass = max(ndtr(-near) - ndtr(-end), 1e-300)
        mean = (density_near - density_end) / mass
        lever = min(max(near, -40.0), 40.0) * density_near - min(end, 40.0) * density_end
        shrinkage = mean * mean - lever / mass
        var = 1.0 - shrinkage
        log_mass = log(mass)
    return log_mass, (-mean if flip else mean), var, shrinkage


def wright_omega(x):
    """Solve ``w + log w = x`` for ``w > 0``."""
    if x < -30.0:
        return exp(x)
    w = x - log(x) if x > 2.0 else (0.567 + 0.41 * x if x > -1.0 else exp(x))
    for _ in range(6):  # Halley's steps: each triples the digits
        gap = w + log(w) - x
        slope = 1.0 + 1.0 / w
        w -= gap / (slope + 0.5 * gap / (w * w * slope))
    return w
