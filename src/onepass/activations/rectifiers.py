"""Smooth rectifiers: GELU and softplus.

Both obey ``f(a) = a + f(-a)``, so their moments are computed for negative means, where they are small and
keep their digits, and mirrored.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtr

from onepass._typing import FloatArray
from onepass.activations.base import Moments, broadcast
from onepass.activations.probit import probit_variance
from onepass.activations.sigmoid import Sigmoid
from onepass.mathematics.gaussian import gauss_hermite, gauss_legendre, pdf

__all__ = ["Gelu", "Softplus"]

_UNIT_NODES, _UNIT_WEIGHTS = gauss_legendre(24)
_NODES, _NODE_WEIGHTS = gauss_hermite(21)
# log(1 + e^-a) and the measure on nodes that crowd towards 0; beyond 36 it is below rounding.
_SIDE = gauss_legendre(48)
_SIDE_NODES = 36.0 * _SIDE[0] ** 2
_SIDE_VALUES = np.log1p(np.exp(-_SIDE_NODES))
_SIDE_WEIGHTS = 72.0 * _SIDE[0] * _SIDE[1]


def _mirror(mean: FloatArray, var: FloatArray, low: Moments) -> Moments:
    """Moments at ``mean`` from those at ``-|mean|`` of a function with ``f(a) = a + f(-a)``."""
    positive = mean > 0
    return Moments(
        np.where(positive, mean + low.mean, low.mean),
        np.where(positive, np.maximum(var + low.var - 2.0 * var * low.slope, 0.0), low.var),
        np.where(positive, 1.0 - low.slope, low.slope),
    )


@dataclass(frozen=True)
class Gelu:
    """``a Φ(a)``: moments right to 1e-10 of ``|f(mean)| + std`` and its square.

    Examples
    --------
    >>> print(f"{Gelu().moments(0.0, 1.0).mean:.4f}")
    0.2821
    """

    def __call__(self, a: ArrayLike, /) -> FloatArray:
        """Value ``a Φ(a)``."""
        a = np.asarray(a, dtype=np.float64)
        return np.asarray(a * ndtr(a))

    def moments(self, mean: ArrayLike, var: ArrayLike, /) -> Moments:
        """Mean and slope by Stein's lemma; the variance by two routes, each sound where the other cancels."""
        mean, var = broadcast(mean, var)
        n = -np.abs(mean)
        k = 1.0 / np.sqrt(1.0 + var)
        cdf, density = ndtr(k * n), pdf(k * n)
        mu_y = n * cdf + var * k * density
        slope = cdf + n * k**3 * density
        by_series = _gelu_variance_small(n, np.minimum(var, 1.0), slope)
        # E[a² Φ²] by Stein's lemma, with E[Φ²] = Φ(k n)² + Var Φ.
        s = np.sqrt(1.0 + var * k**2)
        inner = n * k**2 / s
        square = cdf**2 + probit_variance(n, var)
        second = (
            (n**2 + var) * square
            + 4.0 * n * var * k * density * ndtr(inner)
            + 2.0 * var**2 * k**3 * density * (pdf(inner) / s - n * ndtr(inner))
        )
        var_y = np.where(var <= 1.0, by_series, np.maximum(second - mu_y**2, 0.0))
        return _mirror(mean, var, Moments(mu_y, var_y, slope))


def _gelu_variance_small(n: FloatArray, var: FloatArray, slope: FloatArray) -> FloatArray:
    """``var (E f')² + var² ∫ (1 - r) E[f''(X) f''(Y)] dr`` over correlations ``r`` of X and Y; ``f'' = (2 - a²) φ(a)``.

    All terms are positive. The nodes are in ``1 - r``, cut where the exponential has dropped by e⁻³².
    """
    n2 = np.minimum(n**2, 1e5)
    width = np.minimum(1.0, 32.0 * (1.0 + 2.0 * var) ** 2 / (np.maximum(var, 1e-12) * (n2 + 32.0 * (1.0 + 2.0 * var))))
    q = (var * width)[..., None] * _UNIT_NODES
    plus, minus = 1.0 + 2.0 * var[..., None] - q, 1.0 + q
    m = n2[..., None] / plus**2
    along, across = 1.0 - 1.0 / plus, q / minus
    tau, cov = 0.5 * (along + across), 0.5 * (along - across)
    fourth = (2.0 - m - tau) ** 2 + 4.0 * m * cov + 2.0 * cov**2
    kernel = np.exp(-np.minimum(n2[..., None] / plus, 745.0)) / np.sqrt(plus * minus) * fourth
    return np.asarray(var * slope**2 + var * width * ((kernel * q) @ _UNIT_WEIGHTS) / (2.0 * np.pi))


@dataclass(frozen=True)
class Softplus:
    """``log(1 + e^a)``, the integral of the sigmoid: moments right to 2e-7 of ``|f(mean)| + std`` and its square.

    Examples
    --------
    >>> print(f"{Softplus().moments(0.0, 1.0).mean:.4f}")
    0.8061
    """

    def __call__(self, a: ArrayLike, /) -> FloatArray:
        """Value ``log(1 + e^a)``."""
        return np.asarray(np.logaddexp(0.0, np.asarray(a, dtype=np.float64)))

    def moments(self, mean: ArrayLike, var: ArrayLike, /) -> Moments:
        """Slope by the sigmoid's mean; the rest by nodes around the mean, or as ReLU plus a correction near zero."""
        mean, var = broadcast(mean, var)
        n = -np.abs(mean)
        # Far left f is nearly e^a, and the nodes stay good for longer.
        small = (var <= 1.0) | ((var <= 4.0) & (n < -4.0 * (1.0 + var)))
        # f(n + h) - f(n) = log1p(s(n) expm1(h)): no cancellation.
        rise = np.log1p(expit(n)[..., None] * np.expm1(_NODES * np.sqrt(np.where(small, var, 0.0))[..., None]))
        shift = rise @ _NODE_WEIGHTS
        by_nodes = (self(n) + shift, (rise - shift[..., None]) ** 2 @ _NODE_WEIGHTS)
        by_relu = _softplus_by_relu(n, np.where(small, 1.0, var))
        mu_y, var_y = (np.where(small, a, b) for a, b in zip(by_nodes, by_relu, strict=True))
        slope = Sigmoid().moments(n, var).mean
        # Var f >= var (E f')² always; far out it is all that is left of the difference.
        return _mirror(mean, var, Moments(mu_y, np.maximum(var_y, var * slope**2), slope))


def _softplus_by_relu(n: FloatArray, var: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of ``max(a, 0) + log(1 + e^-|a|)``: the ReLU exactly, the rest on fixed nodes."""
    std = np.sqrt(var)
    z = n / std
    right, left = (pdf((side * _SIDE_NODES - n[..., None]) / std[..., None]) / std[..., None] for side in (1, -1))
    relu_mean = np.maximum(std * pdf(z) + n * ndtr(z), 0.0)
    relu_square = np.maximum((n**2 + var) * ndtr(z) + n * std * pdf(z), 0.0)
    mean = relu_mean + (right + left) @ (_SIDE_WEIGHTS * _SIDE_VALUES)
    square = (
        relu_square
        + right @ (2.0 * _SIDE_WEIGHTS * _SIDE_NODES * _SIDE_VALUES)
        + (right + left) @ (_SIDE_WEIGHTS * _SIDE_VALUES**2)
    )
    return mean, np.maximum(square - mean**2, 0.0)
