"""Activations made of the normal distribution function: probit and step, with exact closed forms.

``erf`` is a rescaled probit, found in the registry.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr

from onepass._typing import FloatArray
from onepass.activations.base import Moments, Tilt, broadcast
from onepass.activations.sigmoid import tilt_by_probits
from onepass.mathematics.gaussian import gauss_legendre, log_cdf_slopes, pdf, standardise

__all__ = ["Probit", "Step", "probit_variance"]

_TINY = np.finfo(np.float64).tiny
_NODES, _WEIGHTS = gauss_legendre(24)
_ONE = np.ones(1)


@dataclass(frozen=True)
class Probit:
    """The normal distribution function ``Φ(a)``; moments right to 1e-12, relative in all tails.

    Examples
    --------
    >>> float(Probit().moments(0.0, 1e9).mean)
    0.5
    """

    def __call__(self, a: ArrayLike, /) -> FloatArray:
        """Value ``Φ(a)``."""
        return np.asarray(ndtr(np.asarray(a, dtype=np.float64)))

    def moments(self, mean: ArrayLike, var: ArrayLike, /) -> Moments:
        """``E[Φ] = Φ(k mean)`` and ``E[Φ'] = k φ(k mean)`` with ``k = 1/sqrt(1 + var)``."""
        mean, var = broadcast(mean, var)
        k = 1.0 / np.sqrt(1.0 + var)
        return Moments(ndtr(k * mean), probit_variance(mean, var), k * pdf(k * mean))

    def tilt_by_label(self, mean: ArrayLike, var: ArrayLike, label: ArrayLike, /) -> Tilt:
        """Tilt by a label: one probit is a mixture of one."""
        mean, var, label = broadcast(mean, var, label)
        sign = 2.0 * label - 1.0
        tilt = tilt_by_probits(sign * mean, var, _ONE, _ONE)
        kappa = np.minimum(tilt.kappa, 1.0 / (var + 1.0))  # Cramer-Rao: -(log Φ)'' is at most 1
        return Tilt(tilt.log_z, sign * tilt.alpha, kappa, 1.0 - kappa * var)


def probit_variance(mean: FloatArray, var: FloatArray) -> FloatArray:
    """Variance of ``Φ(a)``, as one positive integral.

    It is a difference of Owen's T functions, ``2 [T(h, 1) - T(h, x0)]`` with ``h = mean/sqrt(1 + var)`` and
    ``x0 = 1/sqrt(1 + 2 var)``, which cancels; their integrand over ``[x0, 1]`` does not. It is cut where it has
    dropped by e⁻³².
    """
    h2 = np.minimum(mean**2 / (1.0 + var), 1e5)
    x0 = 1.0 / np.sqrt(1.0 + 2.0 * var)
    drop = 64.0 / np.maximum(h2, 1e-3)
    width = np.minimum(2.0 * var / (1.0 + 2.0 * var) / (1.0 + x0), drop / (x0 + np.sqrt(x0**2 + drop)))
    step = width[..., None] * _NODES
    x = x0[..., None] + step
    integrand = np.exp(-0.5 * h2[..., None] * step * (2.0 * x0[..., None] + step)) / (1.0 + x**2)
    edge = np.exp(-np.minimum(0.5 * h2 * (1.0 + x0**2), 745.0))
    return np.asarray(edge * (integrand @ _WEIGHTS) * width / np.pi)


@dataclass(frozen=True)
class Step:
    """The Heaviside step of Rosenblatt's perceptron: 1 above zero, 0 below, 1/2 at zero."""

    def __call__(self, a: ArrayLike, /) -> FloatArray:
        """Value at ``a``."""
        return np.heaviside(np.asarray(a, dtype=np.float64), 0.5)

    def moments(self, mean: ArrayLike, var: ArrayLike, /) -> Moments:
        """Exact; at ``var = 0`` the slope is 0, also at the jump, where it has no finite value."""
        mean, var = broadcast(mean, var)
        z = standardise(0.0, -mean, var)
        uncertain = var >= _TINY
        slope = np.where(uncertain, pdf(z) / np.sqrt(np.maximum(var, _TINY)), 0.0)
        return Moments(ndtr(z), np.where(uncertain, ndtr(z) * ndtr(-z), 0.0), slope)

    def tilt_by_label(self, mean: ArrayLike, var: ArrayLike, label: ArrayLike, /) -> Tilt:
        """Tilt by a label: the Gaussian cut to one side of zero."""
        mean, var, label = broadcast(mean, var, label)
        sign = 2.0 * label - 1.0
        var = np.maximum(var, _TINY)
        k = 1.0 / np.sqrt(var)
        z = np.clip(sign * k * mean, -1e100, 1e100)
        r, q, left = log_cdf_slopes(z)
        return Tilt(log_ndtr(z), sign * k * r, q / var, left)  # not k² q, which may round to more than 1/var
