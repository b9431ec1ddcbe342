"""Probabilities of more than two classes whose logits are uncertain, and the belief about each one's log odds.

The class is the one whose logit plus a Gumbel variable is largest, see `onepass.engine.class_matches`: its probability
is an integral over one dimension. The library looks for the nodes of each row's integral; a graph can't, so that here
they cover all of it, and there are more of them. The two agree as well as either is right: to some 1e-6, and to 1e-4
where logits are uncertain by tens.
"""

from functools import cache
from typing import Any

import numpy as np
from scipy.special import erfcx

from onepass.engine.gumbel import MIXTURE
from onepass.export.expressions import (
    Expression,
    Function,
    absolute,
    call,
    concat,
    constant,
    exp,
    expm1,
    largest,
    log,
    log1p,
    loop,
    maximum,
    minimum,
    part,
    row_sum,
    sqrt,
    where,
)
from onepass.export.formulas import log_odds, sigmoid_function

__all__ = ["class_odds", "fitted_erfc"]

_PI_8 = np.pi / 8.0
_SWEEPS, _NEWTON_STEPS = 10, 4  # as the engine has them
_GRID = 56  # nodes of the largest value
_FINE = 4.0  # distance from the lower end over which they double their own
_ATOMS = np.linspace(-5.6, 5.6, 16)  # of a narrow logit, in standard deviations
_ATOM_WEIGHTS = np.exp(-0.5 * _ATOMS**2) / np.exp(-0.5 * _ATOMS**2).sum()
_NEGLIGIBLE = 1e-30  # a probability below which nothing is distinguished
_WIDE = 1.0  # the variance from which on the mixture serves


@cache
def _erfcx_coefficients(degree: int) -> tuple[float, ...]:
    """``e^(x²) erfc(x)`` for ``x >= 0`` as a polynomial in ``2 / (1 + x / 2) - 1``, lowest power first."""
    points = np.cos(np.pi * (np.arange(400) + 0.5) / 400)
    x = 2.0 * (2.0 / (points + 1.0) - 1.0)
    fit = np.polynomial.Chebyshev.fit(points, erfcx(x), degree, domain=[-1, 1])
    return tuple(np.polynomial.chebyshev.cheb2poly(fit.coef).tolist())


def fitted_erfc(x: Expression, degree: int) -> Expression:
    """``erfc`` by an exponential and a polynomial: right to 1e-8 with a degree of 9, to 1e-11 with 18."""
    size = absolute(x)
    s = 2.0 / (1.0 + 0.5 * size) - 1.0
    total: Any = constant(0.0)
    for coefficient in reversed(_erfcx_coefficients(degree)):
        total = total * s + coefficient
    right = exp(-size * size) * total
    return where(x < 0.0, 2.0 - right, right)


def _largest_value(x: Expression, var: Expression) -> tuple[Expression, ...]:
    """Distribution function and density, at a value x below its mean, of a logit plus a Gumbel variable."""
    std = sqrt(minimum(var, _WIDE))

    def atom(cdf: Expression, pdf: Expression, node: Expression, weight: Expression) -> tuple[Expression, ...]:
        power = exp(minimum(x + std * node, 300.0))
        share = weight * exp(-power)
        return cdf + share, pdf + share * power

    narrow = loop(atom, (0.0, 0.0), (_ATOMS, _ATOM_WEIGHTS))
    more = maximum(var - _WIDE, 0.0)

    def gaussian(
        cdf: Expression, pdf: Expression, weight: Expression, centre: Expression, own: Expression
    ) -> tuple[Expression, ...]:
        inverse = 1.0 / sqrt(own + more)
        z = (centre - x) * inverse
        below = 0.5 * fitted_erfc(-np.sqrt(0.5) * z, 9)
        return cdf + weight * below, pdf + weight * inverse * 0.3989422804014327 * exp(-0.5 * z * z)

    wide = loop(gaussian, (0.0, 0.0), tuple(MIXTURE))
    return tuple(where(var <= _WIDE, one, other) for one, other in zip(narrow, wide, strict=True))


_LARGEST_VALUE = Function.of(_largest_value, "largest_value", ("x", "var"))


def _odds_centre(wanted: Expression, var: Expression) -> tuple[Expression, ...]:
    """The mean of an uncertain logit whose probability has these log odds."""

    def newton(at: Expression) -> tuple[Expression, ...]:
        odds, slope = log_odds(at, var)
        return (at - (odds - wanted) / slope,)

    # In far tails one probit for the sigmoid overshoots: there the tail is Gaussian, as wide as the logit is uncertain.
    size = absolute(wanted)
    start = size * sqrt(1.0 + _PI_8 * var)
    start = where(size < 15.0, start, minimum(start, size + sqrt(2.0 * size * var)))
    return loop(newton, (where(wanted < 0.0, -start, start),), count=_NEWTON_STEPS)


_ODDS_CENTRE = Function.of(_odds_centre, "odds_centre", ("wanted", "var"))


def class_odds(
    means: list[Expression], covs: dict[tuple[int, int], Expression]
) -> tuple[Expression, Expression, Expression]:
    """Probabilities of the classes, and mean and variance of the log odds of each, ``K`` numbers each."""
    n = len(means)
    if n == 2:
        return _two_classes(means, covs)
    rows = [concat([_entry(covs, j, k) for k in range(n)]) for j in range(n)]
    p = _probabilities(means, covs, rows).called("probabilities")
    others = [maximum(row_sum(concat([part(p, k, k + 1) for k in range(n) if k != j])), _NEGLIGIBLE) for j in range(n)]
    odds_vars = []
    for j, rest in enumerate(others):
        gap = concat([part(p, k, k + 1) / rest if k != j else constant([-1.0]) for k in range(n)])
        if _is_diagonal(covs):
            total = row_sum(gap * gap * concat([covs[k, k] for k in range(n)]))
        else:
            total = row_sum(concat([part(gap, k, k + 1) * row_sum(own * gap) for k, own in enumerate(rows)]))
        odds_vars.append(maximum(total, 0.0))
    odds_var = concat(odds_vars).called("odds_var")
    wanted = log(maximum(p, _NEGLIGIBLE)) - log(concat(others))
    return p, call(_ODDS_CENTRE, wanted, odds_var)[0], odds_var


def _entry(covs: dict[tuple[int, int], Expression], j: int, k: int) -> Expression:
    return covs.get((min(j, k), max(j, k)), constant([0.0]))


def _is_diagonal(covs: dict[tuple[int, int], Expression]) -> bool:
    return all(j == k for j, k in covs)


def _two_classes(
    means: list[Expression], covs: dict[tuple[int, int], Expression]
) -> tuple[Expression, Expression, Expression]:
    """The log odds of two classes are the difference of their logits."""
    var = maximum(covs[0, 0] + covs[1, 1] - 2.0 * _entry(covs, 0, 1), 0.0)
    odds_mean, odds_var = concat([means[0] - means[1], means[1] - means[0]]), concat([var, var])
    return call(sigmoid_function(), odds_mean, odds_var)[0], odds_mean, odds_var


def _probabilities(
    means: list[Expression], covs: dict[tuple[int, int], Expression], rows: list[Expression]
) -> Expression:
    n = len(means)
    if _is_diagonal(covs):
        centres, variances = means, [maximum(covs[k, k], 0.0) for k in range(n)]
    else:
        centres, variances = _independent(means, covs, rows)
    stds = [sqrt(var) for var in variances]
    # Where all of the distribution of the largest value lies: its lower end is that of any class.
    low = largest(concat([m - 3.2 - 5.0 * std for m, std in zip(centres, stds, strict=True)]))
    high = largest(concat([m + 15.0 + 4.0 * std for m, std in zip(centres, stds, strict=True)]))
    # Nodes lie the wider apart the farther they are from the lower end: what is narrow and matters is near it.
    stretch = (log1p((high - low) / _FINE) * np.linspace(0.0, 1.0, _GRID)).called("stretch")
    u = (low + _FINE * expm1(stretch)).called("u")
    logs, slopes = [], []
    for centre, var in zip(centres, variances, strict=True):
        cdf, pdf = call(_LARGEST_VALUE, centre - u, var)
        cdf = maximum(cdf, 1e-300)
        logs.append(log(cdf))
        slopes.append(pdf / cdf)
    weight = exp(sum(logs[1:], start=logs[0]) + stretch).called("weight")
    shares = concat([row_sum(slope * weight) for slope in slopes]).called("shares")
    return shares / row_sum(shares)


def _independent(
    means: list[Expression], covs: dict[tuple[int, int], Expression], rows: list[Expression]
) -> tuple[list[Expression], list[Expression]]:
    """Means and variances of the independent logits that stand for correlated ones: see the engine's ``separate``."""
    n = len(means)
    diagonal = concat([covs[k, k] for k in range(n)]).called("logit_var")
    gaps = [part(diagonal, j, j + 1) + diagonal - 2.0 * rows[j] for j in range(n)]
    sums = concat([row_sum(maximum(gap, 0.0)) for gap in gaps]).called("sums")
    start = maximum((sums - row_sum(sums) / (2.0 * (n - 1))) / (n - 2), 0.0).called("start")
    mean = concat(means)
    weight = (_rough(mean, start) + 0.3 / n).called("rough")
    pulls = [row_sum(weight * gap) for gap in gaps]
    single = [[part(whole, j, j + 1) for j in range(n)] for whole in (start, weight)]
    variances = list(call(_sweeps(n), *single[0], *single[1], *pulls))
    var = concat(variances).called("own_var")
    weight = _rough(mean, var).called("share")
    flattened = sqrt(1.0 + _PI_8 * row_sum(2.0 * weight * var))
    moves = 0.5 * (diagonal - var) + weight * var - concat([row_sum(own * weight) for own in rows])
    centre = (mean + moves / flattened).called("centre")
    return [part(centre, j, j + 1) for j in range(n)], variances


def _rough(mean: Expression, var: Expression) -> Expression:
    """Probabilities by logits shrunk as one probit for the sigmoid says."""
    powers = exp((mean - largest(mean)) / sqrt(1.0 + _PI_8 * var))
    return powers / row_sum(powers)


@cache
def _sweeps(n: int) -> Function:
    names = [f"{what}_{j}" for what in ("var", "weight", "pull") for j in range(n)]

    def sweeps(*given: Expression) -> tuple[Expression, ...]:
        """Variances of independent logits whose differences vary as those of the correlated ones, one after another."""
        start, weights, pulls = given[:n], given[n : 2 * n], given[2 * n :]
        total = sum((w * v for w, v in zip(weights[1:], start[1:], strict=True)), start=weights[0] * start[0])

        def sweep(*carried: Expression) -> tuple[Expression, ...]:
            variances, running = list(carried[:n]), carried[n]
            for j in range(n):
                before = variances[j]
                gap = weights[j] * before + pulls[j] - running
                variances[j] = maximum(gap / (1.3 - weights[j]), 0.0)
                running = running + weights[j] * (variances[j] - before)
            return (*variances, running)

        return loop(sweep, (*start, total), count=_SWEEPS)[:n]

    return Function.of(sweeps, "independent_variances", names)
