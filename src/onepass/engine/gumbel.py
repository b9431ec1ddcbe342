"""The distribution of an uncertain logit plus a Gumbel variable, of which the largest tells the class.

With ``a ~ N(m, v)``, its distribution function at ``u`` is ``F = E exp(-e^(a - u))``, a function of ``x = m - u`` and
of ``v``. A narrow logit is a few atoms (Gauss-Hermite), whose Gumbel variables keep their exact tails; for a wide one
the Gumbel variable is a mixture of Gaussians, made by ``scripts/fit_gumbel.py``, and ``F`` a sum of ``Φ``.

A row takes hundreds of these sums. Exponential and ``Φ`` are therefore polynomials without branches, right to 3e-8, so
that the loops run in vector registers.
"""

import cython
import numpy as np
from cython.cimports.libc.math import exp, fabs, log, sqrt
from cython.cimports.scipy.special.cython_special import erfcx
from numpy.polynomial.hermite_e import hermegauss

_WIDE = cython.declare(cython.double, 1.0)  # from this variance on the mixture serves; it was fitted there
# A Gumbel variable plus a standard normal one as a mixture of Gaussians: their weights, centres and variances.
MIXTURE = np.array(
    (
        (
            0.0001352603205965733,
            0.0025844368043276586,
            0.018842051768896778,
            0.08046667768609596,
            0.22189790768070922,
            0.36001067100879575,
            0.263636719799782,
            0.05242627493079594,
        ),
        (
            -7.193941748344805,
            -5.394798496677638,
            -3.837543114843187,
            -2.5085453054397084,
            -1.3751849392428945,
            -0.4112022300912058,
            0.40628710740123714,
            1.1051157445419926,
        ),
        (
            8.394280852270901,
            4.852124918612787,
            3.17426025124132,
            2.24714363042088,
            1.7105343660468821,
            1.403416418667569,
            1.2331887143510523,
            1.1399880149261201,
        ),
    )
)
_WEIGHTS = cython.declare(cython.double[8])
_CENTRES = cython.declare(cython.double[8])
_VARIANCES = cython.declare(cython.double[8])
for _i in range(8):
    _WEIGHTS[_i], _CENTRES[_i], _VARIANCES[_i] = MIXTURE[0, _i], MIXTURE[1, _i], MIXTURE[2, _i]
_TAIL = cython.declare(
    cython.double[11],
    [
        0.09973556780668531,
        0.09973617728018873,
        0.09347606951192262,
        0.08146097705791049,
        0.060019407598977774,
        0.05933666403386894,
        -0.020723147719392595,
        0.07858729888597979,
        -0.06509026800147326,
        0.011723296654061587,
        0.001737969270355266,
    ],
)
_SQRT_HALF = cython.declare(cython.double, 0.7071067811865476)
_SQRT_2_OVER_PI = cython.declare(cython.double, 0.7978845608028654)
_INV_SQRT_2PI = cython.declare(cython.double, 0.3989422804014327)
_GUMBEL_MEAN = cython.declare(cython.double, 0.5772156649015329)
_GUMBEL_VAR = cython.declare(cython.double, 1.6449340668482264)
_LARGEST_POWER = cython.declare(cython.double, 600.0)  # e to it is finite, and so far out nothing is left
_FAR = cython.declare(cython.double, 6.5)  # from where on the mixture's tail, which is not exponential, is not used
_DEEP = cython.declare(cython.double, -8.0)  # deviations below which Φ is scaled, so that it does not underflow
_NODES = cython.declare(cython.double[48])  # of rules with 8, 16 and 24
_NODE_WEIGHTS = cython.declare(cython.double[48])
for _start, _count in ((0, 8), (8, 16), (24, 24)):
    _nodes, _weights = hermegauss(_count)
    for _i in range(_count):
        _NODES[_start + _i], _NODE_WEIGHTS[_start + _i] = _nodes[_i], _weights[_i] * _INV_SQRT_2PI


def _rule(var):
    """Where the Gauss-Hermite rule for a narrow logit starts, and its number of nodes: errors stay below 5e-6."""
    if var <= 0.1:
        return 0, 8
    if var <= 0.5:
        return 8, 16
    return 24, 24


def prepare_logit(var, terms):
    """Fill what is the same for all ``x``: ``e^deviation`` of the atoms, or one over the Gaussians' deviations."""
    i: cython.Py_ssize_t
    if var > _WIDE:
        for i in range(8):
            terms[i] = 1.0 / sqrt(_VARIANCES[i] + (var - _WIDE))
        return
    start, count = _rule(var)
    std = sqrt(var)
    for i in range(count // 2):  # the nodes come in pairs
        terms[i] = exp(std * _NODES[start + i])
        terms[count - 1 - i] = 1.0 / terms[i]


def scaled_cdf(x, var, terms):
    """``scale`` and ``F e^scale``, so that many can be multiplied before a log is taken, and ``log F``'s derivative."""
    if var > _WIDE:
        scale, cdf, pdf = _gaussians(x, terms)
        return scale, cdf, pdf / cdf
    power, scale, first, second, _ = _atoms(x, var, terms)
    return scale, first, power * second / first


def log_pdf(x, var, terms):
    """``log f`` with ``f = dF/du``, and minus its derivative in ``u``.

    Far below ``u`` by ``f(x) = e^(x + v/2) F(x + v)``, since the mixture's own tail falls too fast there.
    """
    if var <= _WIDE:
        power, scale, _, second, third = _atoms(x, var, terms)
        return x + log(second) - scale, 1.0 - power * third / second
    if x < -max(0.5 * var, _FAR):
        scale, cdf, slope = scaled_cdf(x + var, var, terms)
        return x + 0.5 * var + log(cdf) - scale, 1.0 - slope
    scale, pdf, derivative = _densities(x, terms)
    return log(pdf) - scale, derivative / pdf


def rough_cdf_slopes(x, var):
    """First and minus the second derivative of ``log F`` in ``u``, if the Gumbel variable were Gaussian."""
    inverse = 1.0 / sqrt(var + _GUMBEL_VAR)
    z = -(x + _GUMBEL_MEAN) * inverse
    r = _SQRT_2_OVER_PI / erfcx(-z * _SQRT_HALF)
    return r * inverse, r * (r + z) * inverse * inverse


def rough_pdf_slopes(x, var):
    """The same of ``log f``, with an exponential tail as the Gumbel variable has it."""
    if x < -max(0.5 * var, 1.0):
        slope, bend = rough_cdf_slopes(x + var, var)
        return slope - 1.0, bend
    bend = 1.0 / (var + _GUMBEL_VAR)
    return (x + _GUMBEL_MEAN) * bend, bend


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _exp_below(a: cython.double) -> cython.double:
    """``e^a`` for ``a <= 0``, by a power: e^-180 serves for all that is smaller."""
    r: cython.double = (a if a > -180.0 else -180.0) * 0.00390625
    p: cython.double = 1.0 / 720.0 + r * (1.0 / 5040.0)
    p = 1.0 + r * (1.0 + r * (0.5 + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r * p)))))
    p *= p
    p *= p
    p *= p
    p *= p
    p *= p
    p *= p
    p *= p
    return p * p


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
        share = _NODE_WEIGHTS[start + i] * _exp_below(power * (least - atom))
        first += share
        second += share * atom
        third += share * atom * atom
    return power, power * least, first, second, third


def _gaussians(x, terms):
    """The mixture's distribution function and its density, both times ``e^scale``."""
    z: cython.double[8]
    top = -1e308
    i: cython.Py_ssize_t
    for i in range(8):
        z[i] = (_CENTRES[i] - x) * terms[i]
        top = max(top, z[i])
    scale = 0.5 * top * top if top < _DEEP else 0.0
    cdf = 0.0
    pdf = 0.0
    for i in range(8):
        density = _exp_below(scale - 0.5 * z[i] * z[i])
        t = 1.0 / (1.0 + 0.25 * fabs(z[i]))
        tail = _TAIL[9] + t * _TAIL[10]
        tail = _TAIL[5] + t * (_TAIL[6] + t * (_TAIL[7] + t * (_TAIL[8] + t * tail)))
        tail = t * (_TAIL[0] + t * (_TAIL[1] + t * (_TAIL[2] + t * (_TAIL[3] + t * (_TAIL[4] + t * tail)))))
        tail *= density
        cdf += _WEIGHTS[i] * (tail if z[i] < 0.0 else 1.0 - tail)
        pdf += _WEIGHTS[i] * terms[i] * density
    return scale, cdf, _INV_SQRT_2PI * pdf


def _densities(x, terms):
    """The mixture's density and minus its derivative, both times ``e^scale``."""
    z: cython.double[8]
    nearest = 1e308
    i: cython.Py_ssize_t
    for i in range(8):
        z[i] = (_CENTRES[i] - x) * terms[i]
        nearest = min(nearest, 0.5 * z[i] * z[i])
    pdf = 0.0
    derivative = 0.0
    for i in range(8):
        share = _WEIGHTS[i] * terms[i] * _exp_below(nearest - 0.5 * z[i] * z[i])
        pdf += share
        derivative += share * terms[i] * z[i]
    return nearest, _INV_SQRT_2PI * pdf, _INV_SQRT_2PI * derivative
