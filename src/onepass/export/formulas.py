"""Mean, variance and expected slope of activations for a Gaussian input, as graphs.

These are the formulas of `onepass.engine.moments`, with the same order of operations as in the compiled code, so both
agree up to rounding. An activation without a formula here, such as one written in Python by a user, can't be exported.
"""

from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import leggauss

from onepass._typing import FloatArray
from onepass.activations import (
    Exponential,
    Gelu,
    Narrowed,
    PaperSigmoid,
    PiecewiseLinear,
    Probit,
    Rescaled,
    Sigmoid,
    Softplus,
    Step,
    activation_text,
)
from onepass.engine.moments import SCALES, WEIGHTS
from onepass.export.expressions import (
    Expression,
    Function,
    above,
    absolute,
    call,
    constant,
    erfc,
    exp,
    expm1,
    log,
    log1p,
    loop,
    maximum,
    minimum,
    sqrt,
    where,
)
from onepass.export.programs import NotExportableError

__all__ = ["activate", "activation_moments", "density", "log_odds", "ndtr", "sigmoid_function"]

Triple = tuple[Expression, Expression, Expression]

_SQRT_HALF = float(np.sqrt(0.5))
_INV_SQRT_2PI = 0.3989422804014327
_TINY = 2.2250738585072014e-308
_FAR = 40.0  # deviations beyond which density and tail are zero
_MAX_EXPONENT = 300.0


def _hermite(count: int) -> tuple[FloatArray, FloatArray]:
    nodes, weights = hermegauss(count)
    nodes[count // 2] = 0.0
    return nodes, weights * _INV_SQRT_2PI


def _legendre(count: int) -> tuple[FloatArray, FloatArray]:
    nodes, weights = leggauss(count)
    return 0.5 * (nodes + 1.0), 0.5 * weights


def density(z: Expression) -> Expression:
    """Density of the standard normal."""
    return _INV_SQRT_2PI * exp(-0.5 * z * z)


def ndtr(z: Any) -> Expression:
    """Distribution function of the standard normal."""
    return 0.5 * erfc(-(z * _SQRT_HALF))


def _sigmoid(a: Any) -> Expression:
    e = exp(-absolute(a))
    return where(a < 0.0, e / (1.0 + e), 1.0 / (1.0 + e))


def _cut(value: Any, low: float, high: float) -> Expression:
    return minimum(maximum(value, low), high)


def activation_moments(activation: Any, mean: Expression, var: Expression) -> Triple:
    """Moments of ``f(a)`` for ``a ~ N(mean, var)``, per number of a row."""
    if isinstance(activation, Rescaled):
        inner, outer = activation.inner, activation.outer
        base_mean, base_var, slope = activation_moments(activation.base, inner * mean, inner * inner * var)
        return activation.offset + outer * base_mean, outer * outer * base_var, outer * inner * slope
    if isinstance(activation, Narrowed):
        return activation_moments(activation.base, mean, activation.share * var)
    if isinstance(activation, PiecewiseLinear) and activation.pieces.shape[1] == 1:
        rise, intercept = (float(part) for part in activation.pieces[:2, 0])
        return rise * mean + intercept, rise * rise * var, constant(rise)
    found = call(_function_of(activation), mean, var)
    return found[0], found[1], found[2]


def activate(activation: Any, a: Expression) -> Expression:
    """Value ``f(a)`` of an activation that rises, for the limits of an interval."""
    if isinstance(activation, (Sigmoid, PaperSigmoid)):
        return _sigmoid(a)
    if isinstance(activation, Probit):
        return ndtr(a)
    return where(a < 0.0, 0.0, where(above(a, 0.0), 1.0, 0.5))  # the step


@cache
def _function_of(activation: Any) -> Function:
    """The formula of an activation; one function for all activations that are equal."""
    two = ("mean", "var")
    if isinstance(activation, PiecewiseLinear):
        return Function.of(partial(_piecewise, activation.pieces), "piecewise_moments", two)
    for kind, formula, name in _FORMULAS:
        if isinstance(activation, kind):
            return Function.of(formula, name, two)
    raise NotExportableError(
        f"the activation {activation_text(activation)} is not built in and can't be exported: use a named activation "
        "or a PiecewiseLinear"
    )


def _piecewise(pieces: FloatArray, mean: Expression, var: Expression) -> Triple:
    """Straight pieces: the moments of a Gaussian cut to each of them, summed."""
    slopes, intercepts, _, ends = pieces.tolist()
    std, scale = sqrt(var), sqrt(maximum(var, _TINY))
    # Mass, difference of densities and the integral of z² of every piece.
    cuts = [_cut((end - mean) / scale, -_FAR, _FAR) for end in ends[:-1]]
    zero = constant(0.0)
    edges = [(constant(-_FAR), zero, zero), *((z, density(z), ndtr(-absolute(z))) for z in cuts)]
    edges.append((constant(_FAR), zero, zero))
    masses, drops, seconds = [], [], []
    for (low, low_density, low_tail), (high, high_density, high_tail) in pairwise(edges):
        mass = where(
            above(low, 0.0),
            low_tail - high_tail,
            where(above(high, 0.0), 1.0 - high_tail - low_tail, high_tail - low_tail),
        )
        masses.append(mass)
        drops.append(low_density - high_density)
        seconds.append(mass + low * low_density - high * high_density)
    total, slope = zero, zero
    for k, (mass, drop) in enumerate(zip(masses, drops, strict=True)):
        total = total + (slopes[k] * mean + intercepts[k]) * mass + slopes[k] * std * drop
        slope = slope + slopes[k] * mass
    variance = zero
    for k, (mass, drop, second) in enumerate(zip(masses, drops, seconds, strict=True)):
        gap = slopes[k] * mean + intercepts[k] - total
        variance = variance + (gap * gap * mass + 2.0 * gap * (slopes[k] * std * drop))
        variance = variance + slopes[k] * slopes[k] * var * second
    return total, maximum(variance, 0.0), slope


def _tail_and_slope(mean: Expression, var: Expression) -> tuple[Expression, ...]:
    """``E[s(-a)]`` and ``E[s'(a)]`` of the sigmoid ``s``, by a mixture of probits."""

    def step(tail: Expression, slope: Expression, weight: Expression, scale: Expression) -> tuple[Expression, ...]:
        k = scale / sqrt(1.0 + scale * scale * var)
        return tail + weight * ndtr(-k * mean), slope + weight * k * density(k * mean)

    return loop(step, (0.0, 0.0), (WEIGHTS, SCALES))


_PROBITS = Function.of(_tail_and_slope, "tail_and_slope", ("mean", "var"))


def _sigmoid_moments(mean: Expression, var: Expression) -> Triple:
    """The sigmoid: by nodes for a small variance, else by a mixture of probits, shifted where the tail is left."""
    n = -absolute(mean)
    low_small, var_small, slope_small = _small_sigmoid(n, var)
    scale = exp(n + 0.5 * var)
    tail, tail_slope = call(_PROBITS, n + var, var)
    low_left = scale * tail
    far_tail, far_slope = call(_PROBITS, n + 2.0 * var, var)
    second = where(n < -1.5 * var, exp(2.0 * (n + var)) * (far_tail - far_slope), scale * tail_slope)
    low_mid, slope_mid = call(_PROBITS, -n, var)
    small, left = var <= 0.5, n < -0.5 * var
    low = where(small, low_small, where(left, low_left, low_mid))
    variance = where(left, second - low_left * low_left, low_mid - slope_mid - low_mid * low_mid)
    slope = where(left, low_left - second, slope_mid)
    return (
        where(above(mean, 0.0), 1.0 - low, low),
        where(small, var_small, maximum(variance, 0.0)),
        where(small, slope_small, slope),
    )


def _small_sigmoid(n: Expression, var: Expression) -> Triple:
    """Moments of the sigmoid at a mean below zero by eleven Gauss-Hermite nodes."""
    up, down, std = _sigmoid(n), _sigmoid(-n), sqrt(minimum(var, 0.5))
    nodes, weights = _hermite(11)

    def increment(node: Expression) -> Expression:
        growth = expm1(node * std)
        return up * down * growth / (1.0 + up * growth)

    def first(shift: Expression, slope: Expression, node: Expression, weight: Expression) -> tuple[Expression, ...]:
        d = increment(node)
        return shift + weight * d, slope + weight * (up + d) * (down - d)

    shift, slope = loop(first, (0.0, 0.0), (nodes, weights))

    def second(total: Expression, node: Expression, weight: Expression) -> tuple[Expression, ...]:
        gap = increment(node) - shift
        return (total + weight * gap * gap,)

    (variance,) = loop(second, (0.0,), (nodes, weights))
    return up + shift, variance, slope


def _paper_sigmoid(mean: Expression, var: Expression) -> Triple:
    """The sigmoid as the paper approximates it: one scaled probit."""
    lam2 = np.pi / 8.0
    lam, t = float(np.sqrt(lam2)), sqrt(1.0 + lam2 * var)
    up = _sigmoid(mean / t)
    return up, up * _sigmoid(-mean / t) * (lam2 * var / (t * (t + 1.0))), lam / t * density(lam * mean / t)


def _probit_variance(mean: Expression, var: Expression) -> tuple[Expression, ...]:
    """Variance of the normal distribution function, as one positive integral."""
    nodes, weights = _legendre(24)
    h2 = minimum(mean * mean / (1.0 + var), 1e5)
    x0 = 1.0 / sqrt(1.0 + 2.0 * var)
    drop = 64.0 / maximum(h2, 1e-3)
    width = minimum(2.0 * var / (1.0 + 2.0 * var) / (1.0 + x0), drop / (x0 + sqrt(x0 * x0 + drop)))

    def add(total: Expression, node: Expression, weight: Expression) -> tuple[Expression, ...]:
        away = width * node
        at = x0 + away
        return (total + weight * exp(-0.5 * h2 * away * (2.0 * x0 + away)) / (1.0 + at * at),)

    (total,) = loop(add, (0.0,), (nodes, weights))
    return (exp(-minimum(0.5 * h2 * (1.0 + x0 * x0), 745.0)) * total * width / np.pi,)


_PROBIT_VARIANCE = Function.of(_probit_variance, "probit_variance", ("mean", "var"))


def _probit(mean: Expression, var: Expression) -> Triple:
    """The normal distribution function."""
    k = 1.0 / sqrt(1.0 + var)
    (variance,) = call(_PROBIT_VARIANCE, mean, var)
    return ndtr(k * mean), variance, k * density(k * mean)


def _step(mean: Expression, var: Expression) -> Triple:
    """The step: 1 above zero, 0 below."""
    scale = sqrt(maximum(var, _TINY))
    z = _cut(mean / scale, -_FAR, _FAR)
    known = var < _TINY
    return ndtr(z), where(known, 0.0, ndtr(z) * ndtr(-z)), where(known, 0.0, density(z) / scale)


def _mirrored(mean: Expression, var: Expression, low: Triple) -> Triple:
    """Moments at ``mean`` from those at ``-|mean|`` of a function with ``f(a) = a + f(-a)``."""
    right = above(mean, 0.0)
    mean_low, var_low, slope_low = low
    return (
        where(right, mean + mean_low, mean_low),
        where(right, maximum(var + var_low - 2.0 * var * slope_low, 0.0), var_low),
        where(right, 1.0 - slope_low, slope_low),
    )


def _gelu(mean: Expression, var: Expression) -> Triple:
    """``a`` times the normal distribution function: by Stein's lemma, the variance by two routes."""
    n, k = -absolute(mean), 1.0 / sqrt(1.0 + var)
    cdf, pdf = ndtr(k * n), density(k * n)
    mu, slope = n * cdf + var * k * pdf, cdf + n * k * k * k * pdf
    n2, wide = minimum(n * n, 1e5), 1.0 + 2.0 * var
    width = minimum(1.0, 32.0 * wide * wide / (maximum(var, 1e-12) * (n2 + 32.0 * wide)))

    def add(total: Expression, node: Expression, weight: Expression) -> tuple[Expression, ...]:
        q = var * width * node
        plus, minus = wide - q, 1.0 + q
        m = n2 / (plus * plus)
        along, across = 1.0 - 1.0 / plus, q / minus
        tau, cov = 0.5 * (along + across), 0.5 * (along - across)
        away = 2.0 - m - tau
        fourth = away * away + 4.0 * m * cov + 2.0 * cov * cov
        return (total + weight * q * exp(-minimum(n2 / plus, 745.0)) / sqrt(plus * minus) * fourth,)

    (total,) = loop(add, (0.0,), _legendre(24))
    narrow = var * slope * slope + var * width * total / (2.0 * np.pi)
    s = sqrt(1.0 + var * k * k)
    inner = n * k * k / s
    (probit_var,) = call(_PROBIT_VARIANCE, n, var)
    square = cdf * cdf + probit_var
    second = (
        (n * n + var) * square
        + 4.0 * n * var * k * pdf * ndtr(inner)
        + 2.0 * var * var * k * k * k * pdf * (density(inner) / s - n * ndtr(inner))
    )
    variance = where(var <= 1.0, narrow, maximum(second - mu * mu, 0.0))
    return _mirrored(mean, var, (mu, variance, slope))


def _softplus(mean: Expression, var: Expression) -> Triple:
    """``log(1 + e^a)``: by nodes around the mean, or as a rectifier plus a correction near zero."""
    n, std = -absolute(mean), sqrt(var)
    slope = call(sigmoid_function(), n, var)[0]
    near = where(var <= 1.0, 1.0, where(var <= 4.0, where(n < -4.0 * (1.0 + var), 1.0, 0.0), 0.0))
    s = _sigmoid(n)
    safe = sqrt(minimum(var, 4.0))
    nodes, weights = _hermite(21)

    def first(shift: Expression, node: Expression, weight: Expression) -> tuple[Expression, ...]:
        return (shift + weight * log1p(s * expm1(node * safe)),)

    (shift,) = loop(first, (0.0,), (nodes, weights))

    def second(total: Expression, node: Expression, weight: Expression) -> tuple[Expression, ...]:
        gap = log1p(s * expm1(node * safe)) - shift
        return (total + weight * gap * gap,)

    (narrow_var,) = loop(second, (0.0,), (nodes, weights))
    points, values, shares = _sides()
    width = maximum(std, 0.5)  # the other way is taken for less
    z = n / width

    def side(
        mu: Expression, square: Expression, point: Expression, value: Expression, weight: Expression
    ) -> tuple[Expression, ...]:
        right, left = density((point - n) / width) / width, density((-point - n) / width) / width
        both = (right + left) * weight
        return mu + both * value, square + (right * 2.0 * weight * point * value + both * value * value)

    start = (
        maximum(width * density(z) + n * ndtr(z), 0.0),
        maximum((n * n + var) * ndtr(z) + n * width * density(z), 0.0),
    )
    wide_mean, square = loop(side, start, (points, values, shares))
    is_near = above(near, 0.5)
    mu = where(is_near, log1p(exp(n)) + shift, wide_mean)
    variance = where(is_near, narrow_var, maximum(square - wide_mean * wide_mean, 0.0))
    return _mirrored(mean, var, (mu, maximum(variance, var * slope * slope), slope))


def _sides() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Nodes that crowd towards zero, ``log(1 + e^-node)`` and the weights of the integral from 0 to 36."""
    nodes, weights = leggauss(48)
    unit = 0.5 * (nodes + 1.0)
    points = 36.0 * unit**2
    return points, np.log1p(np.exp(-points)), 72.0 * unit * 0.5 * weights


def _exponential(mean: Expression, var: Expression) -> Triple:
    """``e^a``, a log-normal; exponents are cut."""
    rate = exp(_cut(mean + 0.5 * var, -_MAX_EXPONENT, _MAX_EXPONENT))
    std = minimum(rate * sqrt(expm1(minimum(var, _MAX_EXPONENT))), 1e150)
    return rate, std * std, rate


_FORMULAS: tuple[tuple[Any, Any, str], ...] = (
    (Sigmoid, _sigmoid_moments, "sigmoid_moments"),
    (PaperSigmoid, _paper_sigmoid, "paper_sigmoid_moments"),
    (Probit, _probit, "probit_moments"),
    (Step, _step, "step_moments"),
    (Gelu, _gelu, "gelu_moments"),
    (Softplus, _softplus, "softplus_moments"),
    (Exponential, _exponential, "exp_moments"),
)


def sigmoid_function() -> Function:
    """The moments of the sigmoid, by which labels and classes are predicted."""
    return _function_of(Sigmoid())


def log_odds(mean: Expression, var: Expression) -> tuple[Expression, Expression]:
    """Log odds of a label whose logit is uncertain, and their derivative in its mean."""
    low, _, slope = call(sigmoid_function(), -absolute(mean), var)
    right = above(mean, 0.0)
    won, lost = where(right, 1.0 - low, low), where(right, low, 1.0 - low)
    return log(won) - log(lost), slope / (won * lost)
