"""Moments of the activations for compiled code, one number at a time: the twins of `onepass.activations`.

An activation, and the rule of learning it is part of, is one array of numbers, the cheapest thing to hand to compiled
code: see `make_rule`.
"""

from math import exp, expm1, log1p, sqrt

import numpy as np

from onepass._typing import FloatArray
from onepass.activations.sigmoid import SCALES, WEIGHTS
from onepass.engine.compiled import compiled
from onepass.engine.special import ndtr, pdf
from onepass.mathematics.gaussian import gauss_hermite, gauss_legendre

__all__ = [
    "EXP",
    "GELU",
    "PAPER_SIGMOID",
    "PIECES",
    "PIECEWISE",
    "PROBIT",
    "SIGMOID",
    "SOFTPLUS",
    "STEP",
    "make_rule",
    "moments",
    "moments_of_rows",
    "sigmoid",
]

SIGMOID, PAPER_SIGMOID, PROBIT, STEP, GELU, SOFTPLUS, EXP, PIECEWISE = range(8)
PIECES = 2  # the column where they begin

_TINY = float(np.finfo(np.float64).tiny)
_NODES, _NODE_WEIGHTS = gauss_hermite(11)
_WIDE_NODES, _WIDE_WEIGHTS = gauss_hermite(21)
_UNIT_NODES, _UNIT_WEIGHTS = gauss_legendre(24)
_SIDE = gauss_legendre(48)
_SIDE_NODES = 36.0 * _SIDE[0] ** 2
_SIDE_VALUES = np.log1p(np.exp(-_SIDE_NODES))
_SIDE_WEIGHTS = 72.0 * _SIDE[0] * _SIDE[1]
_P, _LAMBDA = WEIGHTS, SCALES

Triple = tuple[float, float, float]


def make_rule(
    kind: int,
    activation: int,
    shape: tuple[float, float, float],
    pieces: FloatArray,
    bias: int,
    forgetting: float,
    prior_trace: float,
) -> FloatArray:
    """Lay a rule out in one array, ``(4, 2 + k)``.

    Column 0 holds the kind of tilt, the activation, whether there is a bias, and the forgetting; column 1 the
    activation's inner and outer factor and its offset (``shape``), and the trace of the prior covariance; the rest, a
    column each, slope, intercept, start and end of the pieces of a piecewise linear activation.
    """
    rule = np.zeros((4, PIECES + pieces.shape[1]))
    rule[:, 0] = kind, activation, bias, forgetting
    rule[:, 1] = *shape, prior_trace
    rule[:, PIECES:] = pieces
    return rule


@compiled
def sigmoid(a: float) -> float:
    """``1 / (1 + e^-a)``."""
    if a >= 0.0:
        return 1.0 / (1.0 + exp(-a))
    e = exp(a)
    return e / (1.0 + e)


@compiled
def moments(rule: FloatArray, mean: float, var: float) -> Triple:
    """Mean, variance and expected slope of ``offset + outer f(inner a)``."""
    code, inner, outer = rule[1, 0], rule[0, 1], rule[1, 1]
    m, v = inner * mean, inner * inner * var
    if code == PIECEWISE:
        mu, var_y, slope = _piecewise(rule, m, v)
    elif code == SIGMOID:
        mu, var_y, slope = _sigmoid(m, v)
    elif code == PAPER_SIGMOID:
        mu, var_y, slope = _paper_sigmoid(m, v)
    elif code == PROBIT:
        k = 1.0 / sqrt(1.0 + v)
        mu, var_y, slope = ndtr(k * m), _probit_variance(m, v), k * pdf(k * m)
    elif code == STEP:
        mu, var_y, slope = _step(m, v)
    elif code == GELU:
        mu, var_y, slope = _gelu(m, v)
    elif code == SOFTPLUS:
        mu, var_y, slope = _softplus(m, v)
    else:
        mu = exp(min(max(m + 0.5 * v, -300.0), 300.0))
        std = min(mu * sqrt(expm1(min(v, 300.0))), 1e150)
        var_y, slope = std * std, mu
    return rule[2, 1] + outer * mu, outer * outer * var_y, outer * inner * slope


@compiled
def moments_of_rows(rule: FloatArray, mean: FloatArray, var: FloatArray, out: FloatArray) -> None:
    """Write mean, variance and expected slope of every row to ``out``, ``(3, n)``."""
    for i in range(mean.shape[0]):
        out[0, i], out[1, i], out[2, i] = moments(rule, mean[i], var[i])


@compiled
def _piecewise(rule: FloatArray, mean: float, var: float) -> Triple:
    k = rule.shape[1] - PIECES
    if k == 1:
        return rule[0, PIECES] * mean + rule[1, PIECES], rule[0, PIECES] ** 2 * var, rule[0, PIECES]
    std = sqrt(var)
    scale = sqrt(max(var, _TINY))
    mu = slope = 0.0
    z, density = -40.0, 0.0
    for i in range(k):
        top = 40.0 if i == k - 1 else min(max((rule[3, PIECES + i] - mean) / scale, -40.0), 40.0)
        density_top = pdf(top)
        mass = ndtr(-z) - ndtr(-top) if z > 0.0 else ndtr(top) - ndtr(z)
        tilt, level = rule[0, PIECES + i], rule[1, PIECES + i]
        mu += (tilt * mean + level) * mass + tilt * std * (density - density_top)
        slope += tilt * mass
        z, density = top, density_top
    var_y = 0.0
    z, density = -40.0, 0.0
    for i in range(k):
        top = 40.0 if i == k - 1 else min(max((rule[3, PIECES + i] - mean) / scale, -40.0), 40.0)
        density_top = pdf(top)
        mass = ndtr(-z) - ndtr(-top) if z > 0.0 else ndtr(top) - ndtr(z)
        tilt = rule[0, PIECES + i]
        gap = tilt * mean + rule[1, PIECES + i] - mu
        second = mass + z * density - top * density_top
        var_y += gap * gap * mass + 2.0 * gap * tilt * std * (density - density_top) + tilt * tilt * var * second
        z, density = top, density_top
    return mu, max(var_y, 0.0), slope


@compiled
def _tail_and_slope(mean: float, var: float) -> tuple[float, float]:
    tail = slope = 0.0
    for i in range(_P.shape[0]):
        k = _LAMBDA[i] / sqrt(1.0 + _LAMBDA[i] ** 2 * var)
        tail += _P[i] * ndtr(-k * mean)
        slope += _P[i] * k * pdf(k * mean)
    return tail, slope


@compiled
def _sigmoid(mean: float, var: float) -> Triple:
    n = -abs(mean)
    if var <= 0.5:
        up, down, std = sigmoid(n), sigmoid(-n), sqrt(var)
        shift = slope = 0.0
        for i in range(_NODES.shape[0]):
            growth = expm1(_NODES[i] * std)
            d = up * down * growth / (1.0 + up * growth)
            shift += _NODE_WEIGHTS[i] * d
            slope += _NODE_WEIGHTS[i] * (up + d) * (down - d)
        var_y = 0.0
        for i in range(_NODES.shape[0]):
            growth = expm1(_NODES[i] * std)
            var_y += _NODE_WEIGHTS[i] * (up * down * growth / (1.0 + up * growth) - shift) ** 2
        low = up + shift
    elif n < -0.5 * var:
        scale = exp(n + 0.5 * var)
        tail, tail_slope = _tail_and_slope(n + var, var)
        low, second = scale * tail, scale * tail_slope
        if n < -1.5 * var:
            deep, deep_slope = _tail_and_slope(n + 2.0 * var, var)
            second = exp(2.0 * (n + var)) * (deep - deep_slope)
        var_y, slope = max(second - low * low, 0.0), low - second
    else:
        low, slope = _tail_and_slope(-n, var)
        var_y = max(low - slope - low * low, 0.0)
    return (1.0 - low if mean > 0.0 else low), var_y, slope


@compiled
def _paper_sigmoid(mean: float, var: float) -> Triple:
    lam2 = np.pi / 8.0
    t = sqrt(1.0 + lam2 * var)
    lam = sqrt(lam2)
    return (
        sigmoid(mean / t),
        sigmoid(mean / t) * sigmoid(-mean / t) * (lam2 * var / (t * (t + 1.0))),
        lam / t * pdf(lam * mean / t),
    )


@compiled
def _probit_variance(mean: float, var: float) -> float:
    h2 = min(mean * mean / (1.0 + var), 1e5)
    x0 = 1.0 / sqrt(1.0 + 2.0 * var)
    drop = 64.0 / max(h2, 1e-3)
    width = min(2.0 * var / (1.0 + 2.0 * var) / (1.0 + x0), drop / (x0 + sqrt(x0 * x0 + drop)))
    total = 0.0
    for i in range(_UNIT_NODES.shape[0]):
        step = width * _UNIT_NODES[i]
        total += _UNIT_WEIGHTS[i] * exp(-0.5 * h2 * step * (2.0 * x0 + step)) / (1.0 + (x0 + step) ** 2)
    return exp(-min(0.5 * h2 * (1.0 + x0 * x0), 745.0)) * total * width / np.pi


@compiled
def _step(mean: float, var: float) -> Triple:
    z = min(max(mean / sqrt(max(var, _TINY)), -40.0), 40.0)
    if var < _TINY:
        return ndtr(z), 0.0, 0.0
    return ndtr(z), ndtr(z) * ndtr(-z), pdf(z) / sqrt(var)


@compiled
def _mirror(mean: float, var: float, low: float, low_var: float, low_slope: float) -> Triple:
    if mean > 0.0:
        return mean + low, max(var + low_var - 2.0 * var * low_slope, 0.0), 1.0 - low_slope
    return low, low_var, low_slope


@compiled
def _gelu(mean: float, var: float) -> Triple:
    n = -abs(mean)
    k = 1.0 / sqrt(1.0 + var)
    cdf, density = ndtr(k * n), pdf(k * n)
    mu = n * cdf + var * k * density
    slope = cdf + n * k**3 * density
    if var <= 1.0:
        n2 = min(n * n, 1e5)
        spread = 1.0 + 2.0 * var
        width = min(1.0, 32.0 * spread * spread / (max(var, 1e-12) * (n2 + 32.0 * spread)))
        total = 0.0
        for i in range(_UNIT_NODES.shape[0]):
            q = var * width * _UNIT_NODES[i]
            plus, minus = spread - q, 1.0 + q
            m = n2 / (plus * plus)
            along, across = 1.0 - 1.0 / plus, q / minus
            tau, cov = 0.5 * (along + across), 0.5 * (along - across)
            fourth = (2.0 - m - tau) ** 2 + 4.0 * m * cov + 2.0 * cov * cov
            total += _UNIT_WEIGHTS[i] * q * exp(-min(n2 / plus, 745.0)) / sqrt(plus * minus) * fourth
        var_y = var * slope * slope + var * width * total / (2.0 * np.pi)
    else:
        s = sqrt(1.0 + var * k * k)
        inner = n * k * k / s
        square = cdf * cdf + _probit_variance(n, var)
        second = (
            (n * n + var) * square
            + 4.0 * n * var * k * density * ndtr(inner)
            + 2.0 * var * var * k**3 * density * (pdf(inner) / s - n * ndtr(inner))
        )
        var_y = max(second - mu * mu, 0.0)
    return _mirror(mean, var, mu, var_y, slope)


@compiled
def _softplus(mean: float, var: float) -> Triple:
    n = -abs(mean)
    slope = _sigmoid(n, var)[0]
    if var <= 1.0 or (var <= 4.0 and n < -4.0 * (1.0 + var)):
        s, std = sigmoid(n), sqrt(var)
        shift = var_y = 0.0
        for i in range(_WIDE_NODES.shape[0]):
            shift += _WIDE_WEIGHTS[i] * log1p(s * expm1(_WIDE_NODES[i] * std))
        for i in range(_WIDE_NODES.shape[0]):
            var_y += _WIDE_WEIGHTS[i] * (log1p(s * expm1(_WIDE_NODES[i] * std)) - shift) ** 2
        mu = log1p(exp(n)) + shift
    else:
        std = sqrt(var)
        z = n / std
        mu = max(std * pdf(z) + n * ndtr(z), 0.0)
        square = max((n * n + var) * ndtr(z) + n * std * pdf(z), 0.0)
        for i in range(_SIDE_NODES.shape[0]):
            right, left = pdf((_SIDE_NODES[i] - n) / std) / std, pdf((-_SIDE_NODES[i] - n) / std) / std
            value, weight = _SIDE_VALUES[i], _SIDE_WEIGHTS[i]
            mu += (right + left) * weight * value
            square += right * 2.0 * weight * _SIDE_NODES[i] * value + (right + left) * weight * value * value
        var_y = max(square - mu * mu, 0.0)
    return _mirror(mean, var, mu, max(var_y, var * slope * slope), slope)
