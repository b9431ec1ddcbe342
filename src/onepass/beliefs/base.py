"""What a belief about the weights is: it stores ``(m, C)`` and takes the rank-1 step.

For every model, activation and likelihood, learning a row is the same step: with ``c = C J`` and ``v = J'c``, the mean
changes by ``score c`` and the covariance by ``-information c c'``. A belief does not depend on where these two scalars
come from.
"""

from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from onepass._typing import FloatArray
from onepass.beliefs.rows import RowPlan, Rows
from onepass.engine.step import LearningState

__all__ = ["Belief", "Natural", "Projection"]


class Projection(NamedTuple):
    """The variance of ``J'w`` under the belief, and its covariance with the weights."""

    var: float  # v = J'C J
    gain: FloatArray  # c = C J, (p,)
    coords: FloatArray  # J in the coordinates of the belief's own form, (p,)


class Natural(NamedTuple):
    """A Gaussian in the parameters that add up when beliefs are multiplied, in float64."""

    precision: FloatArray
    """``P``, the inverse of the covariance: ``(p, p)``, or ``(p,)`` of independent weights.

    Of a matrix-normal belief it is the partial traces of ``P``, see `onepass.beliefs.kronecker`."""
    precision_mean: FloatArray
    """``P (m - centre)``, of the shape of ``m``."""
    log_volume: float
    """Log of the integral of ``exp(precision_mean'u - u'P u/2)`` over ``u``, but for a constant."""


class Belief(Protocol):
    """A belief about the weights in some structure of its covariance."""

    name: ClassVar[str]
    """Of the structure, in arguments and files."""

    @property
    def mean(self) -> FloatArray:
        """The mean of the weights, ``(p,)``, to be changed in place."""
        ...

    @property
    def cov(self) -> FloatArray:
        """Return the covariance, or its diagonal where that is all there is."""
        ...

    def copy(self) -> Self:
        """Make an independent copy."""
        ...

    def marginal_variances(self) -> FloatArray:
        """Return the variance of each weight, ``(p,)``."""
        ...

    def variances(self, rows: Any, bias: int = 0) -> FloatArray:
        """Variance of ``J'w`` for every row ``J``, ``(n, p - bias) -> (n,)``; a bias is a constant 1 before the row."""
        ...

    def project(self, slope: FloatArray) -> Projection:
        """Project the belief on the direction ``J = slope``."""
        ...

    def rank_one_step(self, seen: Projection, score: float, information: float, variance_ratio: float) -> None:
        """Take the step ``m += score c``, ``C -= information c c'``.

        ``variance_ratio`` is ``1 - information v``, to full precision.
        """
        ...

    def prepare(self, plan: RowPlan, n_rows: int) -> None:
        """Take the form in which so many rows are learned, before a copy is made to go back to."""
        ...

    def learn(self, plan: RowPlan, state: LearningState, rows: Rows) -> int:
        """Learn rows in place by the compiled kernels.

        Returns the number learned, fewer than all if one is not finite.
        """
        ...

    def forget(self, keep: float, prior: Any) -> None:
        """Let rows count ``keep`` of what they did and the prior the rest: see `onepass.beliefs.forgetting`."""
        ...

    def rescale(self, trust: Any, prior: Any) -> None:
        """Move the scale of the weights as the share of wrong labels has moved: see `onepass.engine.outliers`."""
        ...

    def drift(self, share: float, prior: Any) -> None:
        """Let the weights move by a share of the prior's variance: ``C <- (1 - share) C + share C0``."""
        ...

    def diffuse(self, process_noise: FloatArray) -> None:
        """Let the weights wander: add ``process_noise`` to their variances."""
        ...

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw weights, ``(n, p)``."""
        ...

    def natural(self, centre: FloatArray) -> Natural:
        """Restate the belief by its precision, with the mean seen from ``centre``."""
        ...

    @classmethod
    def from_natural(cls, precision: FloatArray, precision_mean: FloatArray, centre: FloatArray) -> Self:
        """Make the belief whose `natural` parameters these are; a ValueError where there is none."""
        ...

    def export(self) -> tuple[dict[str, Any], dict[str, FloatArray]]:
        """Give all that the belief is, in the very form that it is in, so that learning goes on bit for bit."""
        ...

    def is_finite(self) -> bool:
        """Whether every number of the state is finite."""
        ...
