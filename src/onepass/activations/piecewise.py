"""Piecewise linear activations, exact for any number of pieces: the footnote of the paper's Section II.

On each piece everything is a Gaussian cut to an interval, for the moments as for the exact update: the product of the
belief about ``a`` and a Gaussian reading of ``s a + b`` is again a Gaussian.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from onepass._typing import FloatArray
from onepass._validation import as_floats, as_nonnegative
from onepass.activations.base import Moments, Tilt, broadcast
from onepass.mathematics.gaussian import FAR, interval_moments, standardise, truncated

__all__ = ["PiecewiseLinear", "max_linear"]

_TINY = 1e-120  # the square of its inverse stays within float64


class PiecewiseLinear:
    """A continuous function of straight pieces, with exact moments.

    Piece ``i`` has slope ``slopes[i]`` and ends where piece ``i + 1`` begins, at ``knots[i]``.

    Parameters
    ----------
    slopes : sequence of k floats
        From left to right.
    knots : sequence of k - 1 increasing floats
    value_at_zero : float
        ``f(0)``, which places the function vertically.

    Notes
    -----
    Each piece contributes the moments of a Gaussian cut to an interval. Relative to ``|f(mean)| + std`` the error
    is below 3e-13 (mean), and relative to its square below 1e-12 (variance).

    Examples
    --------
    >>> hard_tanh = PiecewiseLinear(slopes=[0, 1, 0], knots=[-1, 1])
    >>> hard_tanh([-3.0, 0.5, 3.0])
    array([-1. ,  0.5,  1. ])
    >>> float(hard_tanh.moments(0.0, 1e6).mean)
    0.0
    """

    def __init__(self, slopes: Sequence[float], knots: Sequence[float], value_at_zero: float = 0.0) -> None:
        self.slopes = _flat(slopes, "slopes").copy()
        self.knots = _flat(knots, "knots").copy()
        self.value_at_zero = float(as_floats(value_at_zero, "value_at_zero"))
        if len(self.slopes) != len(self.knots) + 1:
            raise ValueError(
                f"slopes must have one entry more than knots, got {len(self.slopes)} slopes and {len(self.knots)} knots"
            )
        if (np.diff(self.knots) <= 0).any():
            raise ValueError(f"knots must increase from left to right, got {self.knots.tolist()}")
        # Neighbours meet at their knot: s_i k + b_i = s_{i+1} k + b_{i+1} fixes all intercepts but one.
        intercepts = np.concatenate(([0.0], np.cumsum(-np.diff(self.slopes) * self.knots)))
        piece_at_zero = int(np.searchsorted(self.knots, 0.0))
        self.intercepts = intercepts + (self.value_at_zero - intercepts[piece_at_zero])
        self._starts = np.concatenate(([-np.inf], self.knots))
        self._ends = np.concatenate((self.knots, [np.inf]))

    @property
    def pieces(self) -> FloatArray:
        """Slope, intercept, start and end of the pieces, ``(4, k)``; neighbours of one slope joined."""
        bends = np.concatenate(([True], np.diff(self.slopes) != 0.0))
        ends = np.concatenate((self._starts[bends][1:], [np.inf]))
        return np.array([self.slopes[bends], self.intercepts[bends], self._starts[bends], ends])

    def __repr__(self) -> str:
        return (
            f"PiecewiseLinear(slopes={self.slopes.tolist()}, knots={self.knots.tolist()}, "
            f"value_at_zero={self.value_at_zero})"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PiecewiseLinear) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __call__(self, a: ArrayLike, /) -> FloatArray:
        """Value at ``a``."""
        a = np.asarray(a, dtype=np.float64)
        piece = np.searchsorted(self.knots, a)
        return np.asarray(self.slopes[piece] * a + self.intercepts[piece])

    def moments(self, mean: ArrayLike, var: ArrayLike, /) -> Moments:
        """Moments summed over the pieces; with two of them equations (my_pwl) to (backward_sigmaya-pwl)."""
        mean, var = (value[..., None] for value in broadcast(mean, var))  # pieces along the last axis
        std = np.sqrt(var)
        ends = standardise(self.knots, mean, var)
        outside = np.full((*ends.shape[:-1], 1), FAR)
        mass, first, second = interval_moments(
            np.concatenate([-outside, ends], axis=-1), np.concatenate([ends, outside], axis=-1)
        )
        at_mean = self.slopes * mean + self.intercepts
        mu_y = (at_mean * mass + self.slopes * std * first).sum(axis=-1)
        # Centred on the mean before squaring: E[f²] - mean² would cancel.
        gap = at_mean - mu_y[..., None]
        var_y = (gap**2 * mass + 2.0 * gap * self.slopes * std * first + self.slopes**2 * var * second).sum(axis=-1)
        return Moments(mu_y, np.maximum(var_y, 0.0), (self.slopes * mass).sum(axis=-1))

    def tilt_by_noise(self, mean: ArrayLike, var: ArrayLike, y: ArrayLike, noise: float, /) -> Tilt:
        """Tilt by ``N(y; f(a), noise)``: on each piece a product of Gaussians, cut to the piece."""
        return self._tilt(mean, var, y, noise)[0]

    def expected_square(self, mean: ArrayLike, var: ArrayLike, y: ArrayLike, noise: float, /) -> FloatArray:
        """``E[(y - f(a))²]`` under that tilted density: what one row says about the noise."""
        return self._tilt(mean, var, y, noise)[1]

    def _tilt(self, mean: ArrayLike, var: ArrayLike, y: ArrayLike, noise: float) -> tuple[Tilt, FloatArray]:
        mean, var, y = (value[..., None] for value in broadcast(mean, var, y))
        noise = max(noise, _TINY)
        # A variance that is nothing beside the mean would overflow the distance to a knot; nor can it be learned.
        floor = np.maximum(1e-30 * np.maximum(np.abs(mean), np.abs(self.knots).max(initial=0.0)) ** 2, _TINY)
        v = np.maximum(var, floor)
        total = noise + self.slopes**2 * v
        residual = y - self.intercepts - self.slopes * mean
        std = np.sqrt(v) * np.sqrt(noise / total)
        centre = mean + v * self.slopes * residual / total
        cut = truncated((self._starts - centre) / std, (self._ends - centre) / std)
        log_parts = cut.log_mass - 0.5 * (
            np.minimum(residual * (residual / total), 1e300) + np.log(2.0 * np.pi * total)
        )
        top = log_parts.max(axis=-1, keepdims=True)
        parts = np.exp(np.maximum(log_parts - top, -745.0)) * (log_parts - top > -700.0)
        z = parts.sum(axis=-1, keepdims=True)
        share = parts / z
        # Each piece's own slopes of log Z, and what the pieces' disagreement adds: kappa < 0 where y widens the belief.
        alphas = np.where(share > 0, self.slopes * residual / total + std / v * cut.mean, 0.0)
        kappas = self.slopes**2 / total + noise / total * cut.shrinkage / v
        alpha = (share * alphas).sum(axis=-1)
        spread = (share * (alphas - alpha[..., None]) ** 2).sum(axis=-1)
        kappa = np.minimum((share * kappas).sum(axis=-1) - spread, 1.0 / v[..., 0])
        left = (share * (noise / total) * cut.var).sum(axis=-1) + v[..., 0] * spread
        log_z, known = (top + np.log(z))[..., 0], (var < floor)[..., 0]
        tilt = Tilt(log_z, np.where(known, 0.0, alpha), np.where(known, 0.0, kappa), np.where(known, 1.0, left))
        gap = np.where(share > 0, residual * (noise / total) - self.slopes * std * cut.mean, 0.0)
        return tilt, (share * (gap**2 + (self.slopes * std) ** 2 * cut.var)).sum(axis=-1)


def max_linear(alpha: float, beta: float) -> PiecewiseLinear:
    """Make the paper's ``max(alpha a, beta a)`` with ``0 <= alpha <= 1`` and ``alpha <= beta``.

    Examples
    --------
    >>> relu = max_linear(0.0, 1.0)
    >>> relu([-2.0, 2.0])
    array([0., 2.])
    """
    alpha, beta = as_nonnegative(alpha, "alpha"), as_nonnegative(beta, "beta")
    if alpha > 1.0:
        raise ValueError(f"alpha must be in [0, 1], got {alpha}")
    if alpha > beta:
        raise ValueError(f"alpha must not exceed beta, got alpha={alpha} and beta={beta}")
    return PiecewiseLinear([alpha, beta], [0.0])


def _flat(values: Sequence[float], name: str) -> FloatArray:
    array = as_floats(values, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must be a flat sequence of numbers, got shape {array.shape}")
    return array
