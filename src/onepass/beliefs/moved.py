"""A belief some rows ahead, before any of these rows is learned: its weights may have moved.

The covariance is then ``k C + (1 - k) C0 + diag(Q)``. So is the variance of every prediction, which needs no matrix of
its own.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from onepass._typing import FloatArray
from onepass.beliefs.base import PerceptronBelief, Weights
from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.rows import RowPlan

__all__ = ["MovedGaussian"]


@dataclass(frozen=True)
class MovedGaussian(Weights):
    """A belief whose weights have moved since the last row, by drift and process noise.

    Examples
    --------
    >>> belief, prior = DiagonalGaussian(np.zeros(1), np.array([0.5])), DiagonalGaussian(np.zeros(1), np.ones(1))
    >>> MovedGaussian(belief, 0.9, prior, np.array([0.25])).marginal_variances()
    array([0.8])
    """

    belief: PerceptronBelief
    kept: float
    """Share of its covariance that is left; the rest is the prior's."""
    prior: Any
    added: FloatArray
    """Variances added to those of the weights, ``(p,)``, or empty."""

    @classmethod
    def after(cls, belief: PerceptronBelief, plan: RowPlan, rows: int) -> Self:
        """Let the weights move as before so many rows."""
        kept = (1.0 - plan.drift) ** rows
        walked = (1.0 - kept) / plan.drift if plan.drift else float(rows)  # the sum of (1 - drift)^i over the rows
        return cls(belief, kept, plan.prior, walked * plan.process_noise)

    @property
    def mean(self) -> FloatArray:
        """The mean of the weights, ``(p,)``."""
        return self.belief.mean

    def marginal_variances(self) -> FloatArray:
        """Return the variance of each weight, ``(p,)``."""
        return np.asarray(sum(share * part.marginal_variances() for share, part in self._parts))

    def variances(self, rows: Any, bias: int = 0) -> FloatArray:
        """Variance of ``J'w`` for every row ``J``, ``(n, p - bias) -> (n,)``; a bias is a constant 1 before the row."""
        return np.asarray(sum(share * part.variances(rows, bias) for share, part in self._parts))

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw weights, ``(n, p)``."""
        moves = (np.sqrt(share) * (part.sample(n, rng) - part.mean) for share, part in self._parts)
        return np.asarray(self.mean + sum(moves))

    def to_belief(self) -> PerceptronBelief:
        """Make the belief itself, in the form in which the one before is."""
        moved = self.belief.copy()
        if self.kept < 1.0:
            moved.drift(1.0 - self.kept, self.prior)
        if len(self.added):
            moved.diffuse(self.added)
        return moved

    @cached_property
    def _parts(self) -> list[tuple[float, Any]]:
        """Independent Gaussians whose covariances add up, each times its share."""
        parts: list[tuple[float, Any]] = [(self.kept, self.belief)]
        if self.kept < 1.0:
            parts.append((1.0 - self.kept, self.prior))
        if len(self.added):
            parts.append((1.0, DiagonalGaussian(np.zeros_like(self.added), self.added)))
        return parts
