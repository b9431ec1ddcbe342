"""Compiled twin of `onepass.likelihoods.heteroscedastic`: a number and the log of its noise."""

from math import exp, log, pi, sqrt

import numpy as np

from onepass._typing import FloatArray
from onepass.engine.compiled import compiled
from onepass.likelihoods.heteroscedastic import FARTHEST, LEAST_LEFT, LEAST_VARIANCE, LOG_BOUNDS, LOG_WEIGHTS, NODES

__all__ = ["noise_given", "tilt_pair"]

_LOW, _HIGH = LOG_BOUNDS


@compiled
def tilt_pair(
    error: float, f_var: float, both: float, a_var: float, log_noise: float, pull: FloatArray, drop: FloatArray
) -> float:
    """Fill the pair's ``pull`` and ``drop``; the log density."""
    n = NODES.shape[0]
    share, scaled, inverse = np.empty(n), np.empty(n), np.empty(n)
    var = max(a_var, LEAST_VARIANCE)
    std, b = sqrt(var), both / var
    s = max(f_var - b * both, 0.0)
    widest = s + exp(min(max(log_noise + std * NODES[n - 1], _LOW), _HIGH))
    limit = FARTHEST * sqrt(widest)
    near = min(max(error, -limit), limit)
    top = -np.inf
    for i in range(n):
        total = s + exp(min(max(log_noise + std * NODES[i], _LOW), _HIGH))
        inverse[i] = 1.0 / total
        scaled[i] = (near - b * std * NODES[i]) * inverse[i]
        share[i] = LOG_WEIGHTS[i] - 0.5 * (log(2.0 * pi * total) + scaled[i] * scaled[i] * total)
        top = max(top, share[i])
    mass = away = alpha = 0.0
    for i in range(n):
        share[i] = exp(share[i] - top)
        mass += share[i]
        away += share[i] * NODES[i]
        alpha += share[i] * scaled[i]
    away /= mass
    alpha /= mass
    left = kappa = cross = 0.0
    for i in range(n):
        x, u = NODES[i] - away, scaled[i] - alpha
        left += share[i] * x * x
        kappa += share[i] * (inverse[i] - u * u)
        cross -= share[i] * u * x
    left, kappa, cross = max(left / mass, LEAST_LEFT), kappa / mass, cross / (mass * std)
    pull[0], pull[1] = alpha, away / std - b * alpha
    mixed = cross - b * kappa
    drop[0, 0], drop[0, 1], drop[1, 0] = kappa, mixed, mixed
    drop[1, 1] = (1.0 - left) / var - b * (cross + mixed)
    return float(top + log(mass) - 0.5 * (error - near) * (error + near) / widest)


@compiled
def noise_given(mean: float, var: float) -> float:
    """``E[e^a]``."""
    return float(exp(min(max(mean + 0.5 * var, _LOW), _HIGH)))
