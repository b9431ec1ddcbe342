"""Piecewise linear activations, exact for any number of pieces: the footnote of the paper's Section II.

On each piece all densities are Gaussians truncated to an interval, those of the exact update, too: the product of the
belief about ``a`` and a Gaussian likelihood of ``s a + b`` is again a Gaussian.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from onepass._typing import FloatArray
from onepass._validation import as_floats, as_nonnegative
from onepass.activations.base import ClosedForm
from onepass.engine.matches import CompiledLikelihood, NoisyPieces
from onepass.engine.moments import PiecewiseMoments

__all__ = ["PiecewiseLinear", "max_linear"]


class PiecewiseLinear(ClosedForm):
    """A continuous, piecewise linear function, with exact moments.

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
    Each piece contributes the moments of a Gaussian truncated to an interval. The rounding error is below 3e-13 of
    ``|f(mean)| + std`` for the mean, and below 1e-12 of its square for the variance.

    Examples
    --------
    >>> from onepass import PiecewiseLinear
    >>> hard_tanh = PiecewiseLinear(slopes=[0, 1, 0], knots=[-1, 1])
    >>> hard_tanh([-3.0, 0.5, 3.0])
    array([-1. ,  0.5,  1. ])
    >>> float(hard_tanh.moments(0.0, 1e6).mean)
    0.0
    """

    exact: ClassVar[dict[str, type[CompiledLikelihood]]] = {"gaussian": NoisyPieces}

    def __init__(self, slopes: Sequence[float], knots: Sequence[float], value_at_zero: float = 0.0) -> None:
        self.slopes: FloatArray = _flat(slopes, "slopes").copy()
        self.knots: FloatArray = _flat(knots, "knots").copy()
        self.value_at_zero: float = float(as_floats(value_at_zero, "value_at_zero"))
        if len(self.slopes) != len(self.knots) + 1:
            raise ValueError(
                f"slopes must have one entry more than knots, got {len(self.slopes)} slopes and {len(self.knots)} knots"
            )
        if (np.diff(self.knots) <= 0).any():
            raise ValueError(f"knots must increase from left to right, got {self.knots.tolist()}")
        # Neighbours meet at their knot: s_i k + b_i = s_{i+1} k + b_{i+1} fixes all intercepts but one.
        intercepts = np.concatenate(([0.0], np.cumsum(-np.diff(self.slopes) * self.knots)))
        piece_at_zero = int(np.searchsorted(self.knots, 0.0))
        self.intercepts: FloatArray = intercepts + (self.value_at_zero - intercepts[piece_at_zero])
        self.compiled: PiecewiseMoments = PiecewiseMoments(self.pieces)

    @property
    def pieces(self) -> FloatArray:
        """Slope, intercept, start and end of the pieces, ``(4, k)``; neighbours of one slope joined."""
        bends = np.concatenate(([True], np.diff(self.slopes) != 0.0))
        starts = np.concatenate(([-np.inf], self.knots))[bends]
        return np.array([self.slopes[bends], self.intercepts[bends], starts, np.append(starts[1:], np.inf)])

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


def max_linear(alpha: float, beta: float) -> PiecewiseLinear:
    """Make the paper's ``max(alpha a, beta a)`` with ``0 <= alpha <= 1`` and ``alpha <= beta``.

    Examples
    --------
    >>> from onepass import max_linear
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
