"""Expectations under a Gaussian by brute force: the second route to every moment formula."""

from collections.abc import Callable, Iterable

import numpy as np

from onepass.gaussian import FloatArray

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def gaussian_panels(mean: float, var: float, breaks: Iterable[float] = ()) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights with ``sum(w * f(nodes)) = E[f(a)]`` for ``a ~ N(mean, var)``.

    Composite Gauss-Legendre with panels finer than both the Gaussian and functions that bend on a scale of one,
    and an edge at every break.
    """
    std = np.sqrt(var)
    low, high = mean - 13 * std, mean + 13 * std
    edges = np.concatenate([np.linspace(low, high, 80), np.linspace(-60, 60, 241), list(breaks)])
    edges = np.unique(edges[(edges >= low) & (edges <= high)])
    half = np.diff(edges)[:, None] / 2
    nodes = (edges[:-1, None] + half + half * _NODES).ravel()
    weights = (half * _WEIGHTS).ravel()
    return nodes, weights * np.exp(-0.5 * ((nodes - mean) / std) ** 2) / (std * np.sqrt(2 * np.pi))


def moments(
    f: Callable[[FloatArray], FloatArray], mean: float, var: float, breaks: Iterable[float] = ()
) -> tuple[float, float, float]:
    """Mean and variance of ``f(a)``, and its slope ``cov(a, f(a)) / var``."""
    a, w = gaussian_panels(mean, var, breaks)
    y = f(a)
    mu_y = float(w @ y)
    return mu_y, float(w @ (y - mu_y) ** 2), float(w @ ((a - mean) * (y - mu_y))) / var


def tilted(
    likelihood: Callable[[FloatArray], FloatArray], mean: float, var: float, breaks: Iterable[float] = ()
) -> tuple[float, float]:
    """Mean and variance of the density proportional to ``likelihood(a) N(a; mean, var)``."""
    a, w = gaussian_panels(mean, var, breaks)
    w = w * likelihood(a)
    w = w / w.sum()
    centre = float(w @ a)
    return centre, float(w @ (a - centre) ** 2)
