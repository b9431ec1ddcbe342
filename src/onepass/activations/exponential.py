"""The exponential, the link of Poisson counts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, wrightomega

from onepass._typing import FloatArray
from onepass.activations.base import Moments, Tilt, broadcast
from onepass.mathematics.gaussian import gauss_legendre

__all__ = ["Exponential"]

_MAX_EXPONENT = 300.0
_DROP = 36.0  # e^-36 is below rounding
_NODES, _WEIGHTS = gauss_legendre(32)


@dataclass(frozen=True)
class Exponential:
    """``e^a``, whose moments are those of the log-normal distribution.

    Exponents are cut at 300, so that a hopeless belief gives huge numbers and not infinite ones. The tilted mean and
    variance are right to 1e-6 of the posterior standard deviation.

    Examples
    --------
    >>> print(f"{Exponential().moments(0.0, 2.0).mean:.4f}")
    2.7183
    """

    def __call__(self, a: ArrayLike, /) -> FloatArray:
        """Value ``e^a``."""
        return np.asarray(np.exp(np.minimum(np.asarray(a, dtype=np.float64), _MAX_EXPONENT)))

    def moments(self, mean: ArrayLike, var: ArrayLike, /) -> Moments:
        """``E = e^{mean + var/2}``, which is also the slope, and ``Var = E² (e^var - 1)``."""
        mean, var = broadcast(mean, var)
        rate = np.exp(np.clip(mean + 0.5 * var, -_MAX_EXPONENT, _MAX_EXPONENT))
        std = rate * np.sqrt(np.expm1(np.minimum(var, _MAX_EXPONENT)))
        return Moments(rate, np.minimum(std, 1e150) ** 2, rate)

    def tilt_by_count(self, mean: ArrayLike, var: ArrayLike, count: ArrayLike, /) -> Tilt:
        """Tilt by the Poisson probability of a count.

        The log of the tilted density is concave, so its mass lies on both sides of its mode, each side as wide as the
        density takes to drop by e^-36 and smooth over it. With the likelihood's own slopes, ``y - e^a`` and ``-e^a``,
        nothing cancels: ``alpha = E~[y - e^a]``, ``kappa = E~[e^a] - Var~[e^a]``.
        """
        mean, var, count = broadcast(mean, var, count)
        v = np.clip(var, 1e-20, 1e12)
        # The mode solves (a - mean)/v = y - e^a.
        target = mean + v * count
        mode = target - wrightomega(target + np.log(v))
        rate = np.exp(np.clip(mode, -_MAX_EXPONENT, _MAX_EXPONENT))
        offsets, weights = [], []
        for side in (-1.0, 1.0):
            reach = _reach(rate, v, side)[..., None]
            offsets.append(side * reach * _NODES)
            weights.append(reach * _WEIGHTS)
        h, w = np.concatenate(offsets, axis=-1), np.concatenate(weights, axis=-1)
        w = w * np.exp(-_drop(h, rate[..., None], v[..., None]))
        z = w.sum(axis=-1)
        share = w / z[..., None]
        rise = rate[..., None] * np.expm1(h)  # e^a - e^mode
        centre = (share * rise).sum(axis=-1)
        spread = (share * (rise - centre[..., None]) ** 2).sum(axis=-1)
        kappa = np.clip(rate + centre - spread, 0.0, 1.0 / v)
        peak = count * mode - rate - gammaln(count + 1.0) - 0.5 * (mode - mean) ** 2 / v
        away = (share * h).sum(axis=-1)
        left = (share * (h - away[..., None]) ** 2).sum(axis=-1) / v
        return Tilt(peak + np.log(z) - 0.5 * np.log(2.0 * np.pi * v), (mode - mean) / v - centre, kappa, left)


def _drop(h: FloatArray, rate: FloatArray, var: FloatArray) -> FloatArray:
    """How far the log density lies below its peak at a distance ``h`` from the mode."""
    return np.asarray(rate * (np.expm1(h) - h) + 0.5 * h**2 / var)


def _reach(rate: FloatArray, var: FloatArray, side: float) -> FloatArray:
    """Distance from the mode at which the log density has dropped by 36: Newton's method from beyond it."""
    # Beyond: the Gaussian alone drops as much by sqrt(72 v), and the likelihood alone by these.
    likelihood = (
        np.log1p(_DROP / rate + np.sqrt(2.0 * _DROP / rate))
        if side > 0
        else _DROP / rate + 1.0 + np.sqrt(2.0 * _DROP / rate)
    )
    reach = np.minimum(np.sqrt(2.0 * _DROP * var), likelihood)
    for _ in range(8):
        slope = rate * side * np.expm1(side * reach) + reach / var
        reach = reach - (_drop(side * reach, rate, var) - _DROP) / slope
    return np.asarray(reach)
