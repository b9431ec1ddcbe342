"""Expectations under a Gaussian by brute force: the second route to every closed form."""

import math
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from onepass._typing import FloatArray
from onepass.activations import Activation
from onepass.likelihoods import Likelihood

__all__ = [
    "Tilted",
    "gaussian_panels",
    "grid_posterior",
    "moments",
    "tilted",
    "worst_errors",
    "worst_in_deviations",
    "worst_tail_errors",
]

MEANS = np.linspace(-20, 20, 41)
VARS = np.logspace(-6, 4, 21)

_legendre = cache(np.polynomial.legendre.leggauss)
Function = Callable[[FloatArray], FloatArray]


def _composite(edges: FloatArray, n_nodes: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of the integral over panels between the edges."""
    nodes, weights = _legendre(n_nodes)
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half + half * nodes).ravel(), (half * weights).ravel()


def gaussian_panels(mean: float, var: float, breaks: Iterable[float] = ()) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights with ``sum(w * f(nodes)) = E[f(a)]`` for ``a ~ N(mean, var)``.

    Composite Gauss-Legendre with panels finer than both the Gaussian and functions that bend on a scale of one, and an
    edge at every break; wide enough for functions whose weight lies far out in a tail.
    """
    std = np.sqrt(var)
    low, high = mean - 30 * std, mean + 30 * std
    edges = np.concatenate([np.linspace(low, high, 180), np.linspace(-60, 60, 241), list(breaks)])
    nodes, weights = _composite(np.unique(edges[(edges >= low) & (edges <= high)]), 12)
    return nodes, weights * np.exp(-0.5 * ((nodes - mean) / std) ** 2) / (std * np.sqrt(2 * np.pi))


def moments(f: Function, mean: float, var: float, breaks: Iterable[float] = ()) -> tuple[float, float, float]:
    """Mean and variance of ``f(a)``, and its slope ``cov(a, f(a)) / var``."""
    a, w = gaussian_panels(mean, var, breaks)
    y = f(a)
    mu_y = float(w @ y)
    return mu_y, float(w @ (y - mu_y) ** 2), float(w @ ((a - mean) * (y - mu_y))) / var


def worst_errors(activation: Activation, breaks: tuple[float, ...] = (), absolute: bool = False) -> FloatArray:
    """Largest error of (mean, var, slope) against quadrature over a grid, in units of ``|f(mean)| + std``."""
    worst = np.zeros(3)
    for mean in MEANS:
        for var in VARS:
            truth = moments(activation, mean, var, breaks)
            ours = activation.moments(mean, var)
            scale = 1.0 if absolute else abs(float(activation(mean))) + math.sqrt(var)
            worst = np.maximum(worst, np.abs(np.subtract(ours, truth)) / (scale, scale**2, 1.0))
    return worst


def worst_tail_errors(activation: Activation, derivative: Function) -> FloatArray:
    """Largest error of (mean, var, slope) for means in the left tail, relative to these numbers themselves."""
    worst = np.zeros(3)
    for mean in np.linspace(-20, 0, 11):
        for var in VARS:
            a, w = gaussian_panels(mean, var)
            y = activation(a)
            truth = np.array([w @ y, w @ (y - w @ y) ** 2, w @ derivative(a)])
            worst = np.maximum(worst, np.abs(np.array(activation.moments(mean, var)) - truth) / truth)
    return worst


class Tilted(NamedTuple):
    log_z: float
    mean: float
    var: float


def tilted(log_likelihood: Function, mean: float, var: float, breaks: Iterable[float] = ()) -> Tilted:
    """Log mass, mean and variance of ``p(y|a) N(a; mean, var)``, wherever its mass may lie."""

    def log_density(a: FloatArray) -> FloatArray:
        return np.asarray(log_likelihood(a) - 0.5 * (a - mean) ** 2 / var - 0.5 * np.log(2 * np.pi * var))

    std = np.sqrt(var)
    low, high = mean - 1e3 * std - 100, mean + 1e3 * std + 100
    for _ in range(12):  # close in on where the density is within e^-50 of its peak
        grid = np.unique(np.concatenate([np.linspace(low, high, 2001), list(breaks)]))
        value = log_density(grid)
        inside = np.flatnonzero(value > value.max() - 50)
        low, high = grid[max(inside[0] - 1, 0)], grid[min(inside[-1] + 1, len(grid) - 1)]
    kinks = [b for b in breaks if low < b < high]
    a, w = _composite(np.unique(np.concatenate([np.linspace(low, high, 200), kinks])), 24)
    value = log_density(a)
    top = value.max()
    w = w * np.exp(value - top)
    z = w.sum()
    centre = float(w @ a / z)
    return Tilted(float(top + np.log(z)), centre, float(w @ (a - centre) ** 2 / z))


def worst_in_deviations(
    likelihood: Likelihood,
    activation: Activation,
    log_likelihood: Function,
    y: float,
    means: FloatArray,
    variances: FloatArray,
    breaks: tuple[float, ...] = (),
) -> float:
    """Largest error of the tilted mean, in posterior standard deviations, and of the deviation itself, relative."""
    worst = 0.0
    for mean in means:
        for var in variances:
            truth = tilted(log_likelihood, mean, var, breaks)
            step = likelihood.moment_match(activation, mean, var, y)
            std = math.sqrt(truth.var)
            worst = max(worst, abs(mean + float(step.score) * var - truth.mean) / std)
            worst = max(worst, abs(math.sqrt(var * float(step.variance_ratio)) - std) / std)
            # kappa itself is as good as the difference var - kappa var² can show.
            worst = max(
                worst, abs(var - float(step.information) * var**2 - truth.var) / max(truth.var, 1e-9 * var) * 1e-2
            )
    return worst


def grid_posterior(X: FloatArray, log_likelihood: Any, std: float, axis: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of bias and weight under the exact posterior, on a grid."""
    bias, weight = np.meshgrid(axis, axis, indexing="ij")
    log_p = -0.5 * (bias**2 + weight**2) / std**2
    for i, x in enumerate(X[:, 0]):
        log_p += log_likelihood(i, bias + x * weight)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = np.array([(p * bias).sum(), (p * weight).sum()])
    return mean, np.sqrt([(p * (bias - mean[0]) ** 2).sum(), (p * (weight - mean[1]) ** 2).sum()])
