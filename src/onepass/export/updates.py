"""How a perceptron learns a target, as graphs: score, information and variance ratio of the belief's step.

These are `onepass.engine.matches` without the log evidence, for learning on a device. The ratio is that of the variance
after the row to the variance before it.
"""

from functools import partial

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from onepass.engine.moments import SCALES, WEIGHTS
from onepass.export.expressions import (
    Expression,
    Function,
    absolute,
    call,
    constant,
    erfc,
    exp,
    log,
    loop,
    maximum,
    minimum,
    sqrt,
    where,
)
from onepass.export.formulas import density, ndtr

__all__ = ["update_function"]

_SQRT_2_OVER_PI = 0.7978845608028654
_FLOOR = 1e-120
_SMALLEST = 2.2250738585072014e-308


def update_function(rule: str) -> Function:
    """The update by a target ``y`` of a pre-activation ``N(mean, var)``."""
    if rule == "linear":
        return Function.of(_number, "update", ("mean", "var", "y", "noise"))
    return Function.of(partial(_label, rule), "update", ("mean", "var", "y"))


# Numbers with Gaussian noise around a linear output.


def _number(mean: Expression, var: Expression, y: Expression, noise: Expression) -> tuple[Expression, ...]:
    """Score, information and variance ratio of a number with Gaussian noise."""
    noise, var = maximum(noise, _FLOOR), maximum(var, maximum(1e-30 * mean * mean, _FLOOR))
    total = noise + var
    return (y - mean) / total, 1.0 / total, noise / total


# Labels.


def _erfcx(x: Expression) -> Expression:
    """``e^(x²) erfc(x)``; far out by its asymptotic series."""
    u = 1.0 / (2.0 * x * x)
    series: Expression = constant(1.0)
    for k in range(12, 0, -1):
        series = 1.0 - (2.0 * k - 1.0) * u * series
    far = series / (x * float(np.sqrt(np.pi)))
    return where(x < 10.0, exp(x * x) * erfc(x), far)


def _log_cdf_slopes(z: Expression) -> tuple[Expression, ...]:
    """First slope of the log of the normal distribution function, minus the second, and one minus that."""
    r = _SQRT_2_OVER_PI / _erfcx(-z * float(np.sqrt(0.5)))
    u = 1.0 / (z * z)
    rest = u * (1.0 + u * (-6.0 + u * (50.0 + u * (-518.0 + 6354.0 * u))))
    q = r * (r + z)
    far = z < -25.0
    return r, where(far, 1.0 - rest, q), where(far, rest, 1.0 - q)


_SLOPES = Function.of(_log_cdf_slopes, "log_cdf_slopes", ("z",))


def _log_ndtr(z: Expression) -> Expression:
    return where(z < -1.0, log(0.5 * _erfcx(-z * float(np.sqrt(0.5)))) - 0.5 * z * z, log(ndtr(z)))


def _label(rule: str, mean: Expression, var: Expression, y: Expression) -> tuple[Expression, ...]:
    """Score, information and variance ratio of a label 0 or 1."""
    sign = 2.0 * y - 1.0
    if rule == "sigmoid":
        score, information = call(_SIGMOID_LABEL, sign * mean, var)
        information = minimum(maximum(information, 0.0), 1.0 / (var + 4.0))
        return sign * score, information, 1.0 - information * var
    if rule == "probit":
        k = 1.0 / sqrt(1.0 + var)
        r, q, _ = call(_SLOPES, sign * k * mean)
        information = minimum(k * k * q, 1.0 / (var + 1.0))
        return sign * k * r, information, 1.0 - information * var
    var = maximum(var, _SMALLEST)
    k = 1.0 / sqrt(var)
    r, q, rest = call(_SLOPES, minimum(maximum(sign * k * mean, -1e100), 1e100))
    return sign * k * r, q / var, rest


def _sigmoid_label(m: Expression, var: Expression) -> tuple[Expression, ...]:
    """Score and information of a label 1 around a sigmoid: by nodes for a small variance, else by probits."""
    small = _label_by_nodes(m, var)
    left = m < -0.5 * var
    score, information = call(_PROBITS, where(left, -(m + var), m), var)
    score = where(left, 1.0 - score, score)
    return where(var <= 0.5, small[0], score), where(var <= 0.5, small[1], information)


def _label_by_nodes(m: Expression, var: Expression) -> tuple[Expression, Expression]:
    """Under the weights of Gauss-Hermite nodes that the label has tilted; fewer nodes serve the smaller variances."""
    e = exp(-absolute(m))
    up, down = where(m < 0.0, e, 1.0) / (1.0 + e), where(m < 0.0, 1.0, e) / (1.0 + e)
    std = sqrt(minimum(var, 0.5))
    found = []
    for count in (5, 11):
        nodes, weights = hermegauss(count)
        nodes[count // 2] = 0.0

        def add(
            gain: Expression, first: Expression, second: Expression, third: Expression, node: Expression, w: Expression
        ) -> tuple[Expression, ...]:
            growth = exp(node * std)
            share = 1.0 / (down + up * growth)
            ratio, rest = growth * share, down * share  # s at the node over s at the mean, and 1 - s
            weight = w * ratio
            return (
                gain + weight,
                first + weight * rest,
                second + weight * rest * rest,
                third + weight * up * ratio * rest,
            )

        gain, first, second, third = loop(add, (0.0, 0.0, 0.0, 0.0), (nodes, weights / np.sqrt(2.0 * np.pi)))
        score = first / gain
        found.append((score, third / gain - (second / gain - score * score)))
    few = var <= 0.02
    return where(few, found[0][0], found[1][0]), where(few, found[0][1], found[1][1])


def _probits(mean: Expression, var: Expression) -> tuple[Expression, ...]:
    """Score and information of a label whose probability is a mixture of probits."""

    def plain(
        total: Expression, first: Expression, second: Expression, weight: Expression, scale: Expression
    ) -> tuple[Expression, ...]:
        k = scale / sqrt(1.0 + scale * scale * var)
        z = k * mean
        slope = weight * k * density(z)
        return total + weight * ndtr(z), first + slope, second + slope * k * z

    total, first, second = loop(plain, (0.0, 0.0, 0.0), (WEIGHTS, SCALES))
    near_score = first / total
    near_information = near_score * near_score + second / total

    def highest(top: Expression, log_weight: Expression, scale: Expression) -> tuple[Expression, ...]:
        k = scale / sqrt(1.0 + scale * scale * var)
        return (maximum(top, log_weight + _log_ndtr(k * mean)),)

    (top,) = loop(highest, (-1e308,), (np.log(WEIGHTS), SCALES))

    def scaled(
        total: Expression,
        first: Expression,
        second: Expression,
        third: Expression,
        log_weight: Expression,
        scale: Expression,
    ) -> tuple[Expression, ...]:
        k = scale / sqrt(1.0 + scale * scale * var)
        z = k * mean
        share = exp(log_weight + _log_ndtr(z) - top)
        r, q, _ = call(_SLOPES, z)
        return total + share, first + share * k * r, second + share * (k * r) * (k * r), third + share * k * k * q

    sums = loop(scaled, (0.0, 0.0, 0.0, 0.0), (np.log(WEIGHTS), SCALES))
    score = sums[1] / sums[0]
    information = sums[3] / sums[0] - (sums[2] / sums[0] - score * score)
    near = mean * mean < 9.0 * var
    return where(near, near_score, score), where(near, near_information, information)


_PROBITS = Function.of(_probits, "probits", ("mean", "var"))
_SIGMOID_LABEL = Function.of(_sigmoid_label, "sigmoid_label", ("mean", "var"))
