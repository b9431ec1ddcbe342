"""The probability that each arm has the highest score, exactly, where scores are independent Gaussians.

That is how probable Thompson sampling is to choose each arm. Of arm ``k`` it is the integral of its density times the
probability that all others are below,

    P_k = ∫ φ((t - m_k)/s_k)/s_k ∏_{j≠k} Φ((t - m_j)/s_j) dt,

on one grid shared by all arms. Its panels are as narrow as the narrowest arm near them, so that arms may differ in
their deviations by any factor; Gauss-Hermite nodes of one arm would miss another that is much narrower.
"""

import numpy as np
from scipy.special import log_ndtr

from onepass._typing import FloatArray

__all__ = ["best_probabilities"]

_REACH = 6.5  # standard deviations beyond which an arm is left out: 4e-11 of its probability
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_WIDTH = 3.0  # of a panel, in standard deviations of the narrowest arm near it: an error below 1e-7 with eight nodes
_NARROWEST = 1e-9  # standard deviation, relative to the range of all scores, below which an arm counts as this wide
_LOG_ROOT_2PI = 0.5 * np.log(2.0 * np.pi)


def best_probabilities(means: FloatArray, stds: FloatArray) -> FloatArray:
    """Probability that each of several independent Gaussian scores is the highest, ``(K,)``.

    Parameters
    ----------
    means, stds : (K,) arrays
        A standard deviation of 0 is a score that is known; of known scores that are equal each is the highest as often.

    Examples
    --------
    >>> best_probabilities(np.array([0.0, 1.0, 1.0]), np.array([1.0, 1.0, 0.001])).round(3)
    array([0.108, 0.471, 0.421])
    """
    lowest = (means - _REACH * stds).max()
    near = np.flatnonzero(means + _REACH * stds >= lowest)
    result = np.zeros(len(means))
    if len(near) == 1:
        result[near] = 1.0
        return result
    means, stds = means[near] - means[near].max(), stds[near]  # of scores far from 0 the differences count
    span = (means + _REACH * stds).max() - (means - _REACH * stds).max()
    if span == 0.0:  # all of them are known and equal
        result[near] = 1.0 / len(near)
        return result
    exponent = -int(np.frexp(span)[1])  # differences of any magnitude become about 1, without rounding
    means, stds = np.ldexp(means, exponent), np.maximum(np.ldexp(stds, exponent), _NARROWEST)
    highest = (means + _REACH * stds).max()
    nodes, weights = _grid((means - _REACH * stds).max(), highest, means, stds)
    z = (nodes[:, None] - means) / stds
    below = log_ndtr(z)
    # All others are below: the logs of all but one, as the sum over all would lose those that are far below it.
    others = below.sum(axis=1, keepdims=True) - below
    densities = np.exp(others - 0.5 * z * z - _LOG_ROOT_2PI) / stds
    found = weights @ densities
    result[near] = found / found.sum()
    return result


def _grid(start: float, stop: float, means: FloatArray, stds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights of panels, each as wide as the arms near it allow."""
    edges = [start]
    while edges[-1] < stop:
        t = edges[-1]
        width = _WIDTH * np.maximum(stds, np.abs(t - means) / _REACH).min()
        edges.append(min(t + width, stop) if t + width > t else stop)
    left = np.array(edges[:-1])
    half = 0.5 * np.diff(edges)
    nodes = (left + half)[:, None] + half[:, None] * _NODES
    return nodes.ravel(), (half[:, None] * _WEIGHTS).ravel()
