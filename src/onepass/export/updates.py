"""How a perceptron learns a target, as graphs: score, information and variance ratio of the belief's step.

These are `onepass.engine.matches` and, for a noise that is learned, `onepass.engine.step`, without the log evidence:
for learning on a device. The ratio is that of the variance after the row to the variance before it.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from onepass._typing import FloatArray
from onepass.engine.moments import SCALES, WEIGHTS
from onepass.engine.step import NOISE_FLOOR
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
_LOG_2PI = 1.8378770664093453
_FLOOR = 1e-120
_SMALLEST = 2.2250738585072014e-308
_LOWEST, _HIGHEST = float(np.log(NOISE_FLOOR)), 600.0  # of the log noise
_CAUTION = 1.4  # deviations above its mean of the log noise that weights are learned with
_KNOWN, _FAMILIAR, _VAGUE = 0.15, 0.6, 1.0  # deviations of the log noise that choose its nodes


def update_function(rule: str, learns_noise: bool) -> Function:
    """The update by a target ``y`` of a pre-activation ``N(mean, var)``, and of the noise where it is learned."""
    if rule == "linear":
        both = ("mean", "var", "y", "noise")
        if learns_noise:
            return Function.of(_number_and_noise, "update", (*both, "noise_weight"))
        return Function.of(_number, "update", both)
    return Function.of(partial(_label, rule), "update", ("mean", "var", "y"))


# Numbers with Gaussian noise around a linear output.


def _number(mean: Expression, var: Expression, y: Expression, noise: Expression) -> tuple[Expression, ...]:
    """Score, information and variance ratio of a number with Gaussian noise."""
    noise, var = maximum(noise, _FLOOR), maximum(var, maximum(1e-30 * mean * mean, _FLOOR))
    total = noise + var
    return (y - mean) / total, 1.0 / total, noise / total


def _log_density(mean: Expression, var: Expression, y: Expression, noise: Expression) -> Expression:
    total = maximum(noise, _FLOOR) + maximum(var, maximum(1e-30 * mean * mean, _FLOOR))
    residual = y - mean
    return -0.5 * (minimum(residual * (residual / total), 1e300) + log(total) + _LOG_2PI)


def _noise_nodes() -> tuple[tuple[FloatArray, FloatArray], ...]:
    """Nodes of the log noise in standard deviations and their weights: while it is vague, rough, familiar and known."""
    even = [np.linspace(-5.5, 5.5, 61), np.linspace(-5.0, 5.0, 15)]
    rules = [(nodes, np.exp(-0.5 * nodes**2)) for nodes in even] + [hermegauss(7), hermegauss(2)]
    return tuple((nodes, weights / weights.sum()) for nodes, weights in rules)


def _number_and_noise(
    mean: Expression, var: Expression, y: Expression, noise: Expression, noise_weight: Expression
) -> tuple[Expression, ...]:
    """The same, and the noise with the rows it rests on after the target."""
    log_noise, std = log(noise), sqrt(2.0 / noise_weight)

    def noise_at(node: Expression | float) -> Expression:
        return exp(minimum(maximum(log_noise + std * node, _LOWEST), _HIGHEST))

    means, weights = [], []
    for nodes, shares in _noise_nodes():
        move, mass, spread = _moved_noise(mean, var, y, noise_at, nodes, np.log(shares))
        means.append(move)
        weights.append(minimum(noise_weight * mass / maximum(spread, 1e-3), noise_weight + 2.0))
    known, familiar, rough = std < _KNOWN, std < _FAMILIAR, std < _VAGUE
    score, information, ratio = _number(mean, var, y, noise_at(where(known, 1.0, _CAUTION)))
    share = minimum(maximum(ratio, 0.0), 1.0)
    weights[3] = noise_weight + share * share  # two nodes have no variance to speak of: what is to be expected

    def chosen(values: list[Expression]) -> Expression:
        return where(known, values[3], where(familiar, values[2], where(rough, values[1], values[0])))

    return score, information, ratio, noise_at(chosen(means)), chosen(weights)


def _moved_noise(
    mean: Expression,
    var: Expression,
    y: Expression,
    noise_at: Callable[[Expression], Expression],
    nodes: FloatArray,
    log_shares: FloatArray,
) -> tuple[Expression, Expression, Expression]:
    """Mean of the nodes given the target, in standard deviations, their mass, and its product with their variance."""

    def log_share(node: Expression, log_weight: Expression) -> Expression:
        return log_weight + _log_density(mean, var, y, noise_at(node))

    def highest(top: Expression, node: Expression, log_weight: Expression) -> tuple[Expression, ...]:
        return (maximum(top, log_share(node, log_weight)),)

    (top,) = loop(highest, (-1e308,), (nodes, log_shares))

    def first(mass: Expression, total: Expression, node: Expression, log_weight: Expression) -> tuple[Expression, ...]:
        share = exp(log_share(node, log_weight) - top)
        return mass + share, total + share * node

    mass, total = loop(first, (0.0, 0.0), (nodes, log_shares))
    move = total / mass

    def second(spread: Expression, node: Expression, log_weight: Expression) -> tuple[Expression, ...]:
        gap = node - move
        return (spread + exp(log_share(node, log_weight) - top) * gap * gap,)

    (spread,) = loop(second, (0.0,), (nodes, log_shares))
    return move, mass, spread


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
