"""Noise that depends on the input: a second head whose output is the log of the noise's variance.

A target ``y ~ N(f, e^a)`` tilts the joint Gaussian belief about the pair ``(f, a)``. Given ``a`` everything about
``f`` is Gaussian and known in closed form, so the moments of the tilted pair are sums over one dimension: over fixed
nodes of ``a``, evenly spaced, where such sums converge as fast as any.

Far-off targets are bounded on both sides: no row moves ``a`` further than the nodes reach, and none pulls ``f`` harder
than one ten deviations away under the widest noise among the nodes.
"""

from typing import NamedTuple

import numpy as np

from onepass._typing import FloatArray

__all__ = [
    "FARTHEST",
    "LEAST_LEFT",
    "LEAST_VARIANCE",
    "LOG_BOUNDS",
    "LOG_WEIGHTS",
    "NODES",
    "PairTilt",
    "noise_given",
    "tilt_pair",
]

NODES = np.linspace(-7.0, 7.0, 43)  # in standard deviations of a
LOG_WEIGHTS = -0.5 * NODES**2 - np.log(np.exp(-0.5 * NODES**2).sum())
# The log noise variance is cut there: targets are of unit scale.
LOG_BOUNDS = (float(np.log(1e-6)), 30.0)
FARTHEST = 10.0  # errors count as at most so many deviations under the widest noise
# One row leaves at least this share of the variance of a; below the second number a counts as known.
LEAST_LEFT, LEAST_VARIANCE = 0.1, 1e-8


class PairTilt(NamedTuple):
    """What a target does to a pair ``(f, a)`` with covariance ``S``: its step ``S pull`` and ``-S drop S``."""

    log_z: float
    pull: FloatArray  # (2,)
    drop: FloatArray  # (2, 2)


def tilt_pair(error: float, cov: FloatArray, log_noise: float) -> PairTilt:
    """Tilt a pair with covariance ``cov`` and ``E a = log_noise`` by a target ``error`` away from ``E f``.

    ``f`` is taken apart into what follows from ``a``, with the slope ``b``, and an independent rest with variance
    ``s``; what is learned about ``a`` and the rest is then put together again.
    """
    var = max(float(cov[1, 1]), LEAST_VARIANCE)
    std, b = np.sqrt(var), cov[0, 1] / var
    s = max(float(cov[0, 0] - b * cov[0, 1]), 0.0)
    total = s + np.exp(np.clip(log_noise + std * NODES, *LOG_BOUNDS))
    limit = FARTHEST * np.sqrt(total[-1])
    near = min(max(error, -limit), limit)
    errors = near - b * std * NODES
    log_share = LOG_WEIGHTS - 0.5 * (np.log(2.0 * np.pi * total) + errors**2 / total)
    top = log_share.max()
    share = np.exp(log_share - top)
    mass = share.sum()
    share /= mass
    away = share @ NODES
    left = max(share @ (NODES - away) ** 2, LEAST_LEFT)
    alpha = share @ (errors / total)
    scatter = errors / total - alpha
    kappa = share @ (1.0 / total - scatter**2)
    cross = -(share @ (scatter * (NODES - away))) / std
    pull = np.array([alpha, away / std - b * alpha])
    mixed = cross - b * kappa
    drop = np.array([[kappa, mixed], [mixed, (1.0 - left) / var - b * (cross + mixed)]])
    # Beyond the limit all is as under the widest noise.
    beyond = 0.5 * (error - near) * (error + near) / total[-1]
    return PairTilt(float(top + np.log(mass) - beyond), pull, drop)


def noise_given(mean: FloatArray, var: FloatArray) -> FloatArray:
    """``E[e^a]`` for ``a ~ N(mean, var)``."""
    return np.asarray(np.exp(np.clip(mean + 0.5 * var, *LOG_BOUNDS)))
