"""What a belief about the weights is: it stores ``(m, C)`` and takes the rank-1 step.

For every model, activation and likelihood, learning a row is the same step: with ``c = C J`` and ``v = J'c``, the mean
changes by ``score c`` and the covariance by ``-information c c'``. A belief does not depend on where these two scalars
come from.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from onepass._typing import FloatArray
from onepass.beliefs.rows import RowPlan
from onepass.engine.rows import Rows
from onepass.engine.step import PerceptronProgress

__all__ = ["Belief", "MergeablePart", "Natural", "PerceptronBelief", "Projection", "Weights"]


class Projection(NamedTuple):
    """The variance of ``J'w`` under the belief, equation (7), and its covariance with the weights."""

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


class Weights(Protocol):
    """A Gaussian distribution of weights, as predictions read it."""

    @property
    def mean(self) -> FloatArray:
        """The mean of the weights, ``(p,)``, to be changed in place."""
        ...

    def marginal_variances(self) -> FloatArray:
        """Return the variance of each weight, ``(p,)``."""
        ...

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw weights, ``(n, p)``."""
        ...


class MergeablePart(Protocol):
    """A part of a belief that is independent of the others, in parameters that add up."""

    @property
    def mean(self) -> FloatArray:
        """The mean of its weights."""
        ...

    def natural(self, centre: FloatArray) -> Natural:
        """Restate the belief by its precision, with the mean seen from ``centre``."""
        ...

    @classmethod
    def from_natural(cls, precision: FloatArray, precision_mean: FloatArray, centre: FloatArray) -> Self:
        """Make the belief whose `natural` parameters these are; a ValueError where there is none."""
        ...


class Belief(Weights, Protocol):
    """A belief about weights, in some form of its covariance: what all models rely on.

    A perceptron's is a `PerceptronBelief`, a network's an `onepass.beliefs.network.NetworkBelief`.
    """

    name: ClassVar[str]
    """Of the covariance, in arguments and files."""

    @property
    def cov(self) -> Any:
        """Return the covariance, or its diagonal where that is all there is."""
        ...

    def copy(self) -> Self:
        """Make an independent copy."""
        ...

    def forget(self, keep: float, prior: Any) -> None:
        """Let rows count ``keep`` of what they did and the prior the rest: see `onepass.beliefs.forgetting`."""
        ...

    def drift(self, share: float, prior: Any) -> None:
        """Let the weights move by a share of the prior's variance: ``C <- (1 - share) C + share C0``."""
        ...

    def is_finite(self) -> bool:
        """Whether every number of the state is finite."""
        ...


class PerceptronBelief(Belief, MergeablePart, Protocol):
    """A belief about the weights of one unit, which takes steps of rank 1."""

    keeps_sites: ClassVar[bool]
    """Whether the contribution of a row can be removed again, as ``refine="ep"`` does."""
    keeps_correlations: ClassVar[bool]
    """Whether there is more than the variances."""
    takes_sparse_rows: ClassVar[bool]
    """Whether rows can be sparse."""
    learns_in_blocks: ClassVar[bool]
    """Whether many rows are learned together, by products of matrices."""

    def variances(self, rows: Any, bias: int = 0) -> FloatArray:
        """Variance of ``J'w`` for every row ``J``, ``(n, p - bias) -> (n,)``; a bias is a constant 1 before the row."""
        ...

    def project(self, jacobian: FloatArray) -> Projection:
        """Project the belief on the derivatives ``J`` of an output in the weights: a perceptron's input."""
        ...

    def rank_one_step(self, seen: Projection, score: float, information: float, variance_ratio: float) -> None:
        """Take the step ``m += score c``, ``C -= information c c'``: the paper's equation (22).

        ``variance_ratio`` is ``1 - information v``, to full precision.
        """
        ...

    def prepare(self, plan: RowPlan, n_rows: int) -> None:
        """Take the form in which so many rows are learned, before a copy is made to go back to."""
        ...

    def learn(self, plan: RowPlan, state: PerceptronProgress, rows: Rows) -> int:
        """Learn rows in place by the compiled kernels.

        Returns the number learned, fewer than all if one is not finite.
        """
        ...

    def rescale(self, trust: Any, prior: Any) -> None:
        """Move the scale of the weights as the share of wrong labels has moved: see `onepass.engine.outliers`."""
        ...

    def diffuse(self, process_noise: FloatArray) -> None:
        """Let the weights wander: add ``process_noise`` to their variances."""
        ...

    def export(self) -> tuple[dict[str, Any], dict[str, FloatArray]]:
        """Give all that the belief is, in the very form that it is in, so that learning goes on bit for bit."""
        ...

    @classmethod
    def decode(cls, data: dict[str, Any], arrays: Mapping[str, FloatArray], size: int, dtype: Any) -> Self:
        """Make the belief that `export` has given, of so many weights; a ValueError if it is none."""
        ...
