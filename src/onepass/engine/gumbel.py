"""The distribution of an uncertain logit plus a Gumbel variable, of which the largest tells the class.

With ``a ~ N(m, v)``, its distribution function at ``u`` is ``F = E exp(-e^(a - u))``, a function of ``x = m - u`` and of
``v``. A narrow logit is a few atoms (Gauss-Hermite), whose Gumbel variables keep their exact tails; for a wide one the
Gumbel variable is a mixture of Gaussians, made by ``scripts/fit_gumbel.py``, and ``F`` a sum of ``Φ``.
"""

import cython
from cython.cimports.libc.math import exp, fabs, log, sqrt
from cython.cimports.scipy.special.cython_special import erfcx
from numpy.polynomial.hermite_e import hermegauss

_WIDE = cython.declare(cython.double, 0.5)  # from this variance on the mixture serves; it was fitted there
_WEIGHTS = cython.declare(
    cython.double[7],
    [
        0.0008984327211295304,
        0.012730941933935248,
        0.0687530968401235,
        0.20851616480934765,
        0.3599909398506814,
        0.28537331860663956,
        0.06373710523814316,
    ],
)
_CENTRES = cython.declare(
    cython.double[7],
    [
        -6.327011440192948,
        -4.298119154209518,
        -2.7443728741866806,
        -1.5071930864991776,
        -0.49721803689440863,
        0.3430962645169202,
        1.054820550079668,
    ],
)
_VARIANCES = cython.declare(
    cython.double[7],
    [
        5.539922640521146,
        3.0129687313258717,
        1.8644260623873532,
        1.2583796958856461,
        0.926693093838407,
        0.7464545131840012,
        0.6491855878662814,
    ],
)
_SQRT_HALF = cython.declare(cython.double, 0.7071067811865476)
_SQRT_2_OVER_PI = cython.declare(cython.double, 0.7978845608028654)
_INV_SQRT_2PI = cython.declare(cython.double, 0.3989422804014327)
_LOG_SQRT_2PI = cython.declare(cython.double, 0.9189385332046728)
_GUMBEL_MEAN = cython.declare(cython.double, 0.5772156649015329)
_GUMBEL_VAR = cython.declare(cython.double, 1.6449340668482264)
_LARGEST_POWER = cython.declare(cython.double, 600.0)  # e to it is finite, and so far out nothing is left
_FAR = cython.declare(cython.double, 6.0)
_DEEP = cython.declare(cython.double, -8.0)  # deviations below which Φ is scaled, so that it does not underflow
_NODES = cython.declare(cython.double[45])
_NODE_WEIGHTS = cython.declare(cython.double[45])
for _row, _count in enumerate((5, 9, 15)):
    _nodes, _weights = hermegauss(_count)
    for _i in range(_count):
        _NODES[15 * _row + _i], _NODE_WEIGHTS[15 * _row + _i] = _nodes[_i], _weights[_i] * _INV_SQRT_2PI


def _rule(var):
    """Where the Gauss-Hermite rule for a narrow logit starts, and its number of nodes: errors stay below 5e-6."""
    if var <= 0.02:
        return 0, 5
    if var <= 0.1:
        return 15, 9
    return 30, 15


def prepare_logit(var, terms):
    """Fill what is the same for all ``x``: ``e^deviation`` of the atoms, or one over the Gaussians' deviations."""
    i: cython.Py_ssize_t
    if var > _WIDE:
        for i in range(7):
            terms[i] = 1.0 / sqrt(_VARIANCES[i] + (var - _WIDE))
        return
    start, count = _rule(var)
    std = sqrt(var)
    for i in range(count):
        terms[i] = exp(std * _NODES[start + i])


def log_cdf(x, var, terms):
    """``log F``, and its derivative in ``u``."""
    if var > _WIDE:
        scale, cdf, pdf, _ = _gaussians(x, terms)
        return log(cdf) - scale, pdf / cdf
    power, scale, first, second, _ = _atoms(x, var, terms)
    return log(first) - scale, power * second / first


def log_pdf(x, var, terms):
    """``log f`` with ``f = dF/du``, and minus its derivative in ``u``.

    Far below ``u`` by ``f(x) = e^(x + v/2) F(x + v)``, since the mixture's own tail falls too fast there.
    """
    if var <= _WIDE:
        _, scale, _, second, third = _atoms(x, var, terms)
        power = exp(min(x, _LARGEST_POWER))
        return x + log(second) - scale, 1.0 - power * third / second
    if x < -min(0.5 * var, _FAR) - _FAR:
        log_f, slope = log_cdf(x + var, var, terms)
        return x + 0.5 * var + log_f, 1.0 - slope
    scale, _, pdf, derivative = _gaussians(x, terms)
    return log(pdf) - scale, derivative / pdf


def rough_slope(x, var):
    """Derivative of ``log F`` in ``u`` and that derivative's own, if the Gumbel variable were Gaussian."""
    inverse = 1.0 / sqrt(var + _GUMBEL_VAR)
    z = -(x + _GUMBEL_MEAN) * inverse
    r = _SQRT_2_OVER_PI / erfcx(-z * _SQRT_HALF)
    return r * inverse, -r * (r + z) * inverse * inverse


def _atoms(x, var, terms):
    """``e^x``, and the sums of ``w a^n exp(-e^x a)`` over the atoms for n = 0, 1, 2, all times ``e^scale``."""
    power = exp(min(x, _LARGEST_POWER))
    start, count = _rule(var)
    least = terms[0]
    first = 0.0
    second = 0.0
    third = 0.0
    i: cython.Py_ssize_t
    for i in range(count):
        atom = terms[i]
        share = _NODE_WEIGHTS[start + i] * exp(-power * (atom - least))
        first += share
        share *= atom
        second += share
        third += share * atom
    return power, power * least, first, second, third


def _gaussians(x, terms):
    """The mixture's distribution function, its density and minus the density's derivative, all times ``e^scale``."""
    z: cython.double[7]
    top = -1e308
    i: cython.Py_ssize_t
    for i in range(7):
        z[i] = (_CENTRES[i] - x) * terms[i]
        top = max(top, z[i])
    scale = 0.5 * top * top if top < _DEEP else 0.0
    cdf = 0.0
    pdf = 0.0
    derivative = 0.0
    for i in range(7):
        density = exp(scale - 0.5 * z[i] * z[i])
        tail = 0.5 * density * erfcx(fabs(z[i]) * _SQRT_HALF)
        cdf += _WEIGHTS[i] * (tail if z[i] < 0.0 else 1.0 - tail)
        share = _WEIGHTS[i] * _INV_SQRT_2PI * terms[i] * density
        pdf += share
        derivative += share * terms[i] * z[i]
    return scale, cdf, pdf, derivative
