"""What models predict and know of rows: moments, scores, and the posterior of the weights."""

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from onepass._typing import FloatArray
from onepass.engine.outliers import jump_probability
from onepass.engine.step import RowRecord

__all__ = ["LearnedRows", "Parts", "Posterior", "PredictedMoments", "RowScores", "log_noise_var", "one_or_many"]


class PredictedMoments(NamedTuple):
    """What models predict of outputs and targets: numbers for one row, arrays ``(n,)`` or ``(n, K)`` for many."""

    mean: Any
    """``mu_y``, the expected output; for labels the probability of a 1."""
    var: Any
    """``sigma_y²``, the variance of ``f(a)`` that comes from not knowing the weights."""
    pre_mean: Any
    """``mu_a``, the mean of the pre-activation ``a = x'w``, the weighted sum that enters the activation ``f``."""
    pre_var: Any
    """``sigma_a²``, the variance of the pre-activation."""
    noise_var: Any
    """``epsilon``, the variance of the observation noise; ``var + noise_var`` is the variance of ``y``."""

    @classmethod
    def of(cls, columns: Iterable[FloatArray], single: bool) -> Self:
        """Put columns ``(n,)`` together, or the numbers of a ``single`` row."""
        return cls(*(one_or_many(column, single) for column in columns))


class Posterior(NamedTuple):
    """Mean ``(p,)`` and covariance ``(p, p)`` of the weights given all rows; the bias first."""

    mean: FloatArray
    cov: FloatArray


class RowScores(NamedTuple):
    """How well each row was predicted before it was learned, and whether its target was trusted; ``(n,)`` each.

    ``ratios`` and ``noise_shares``, ``(n, K)``, are set only by networks that learn their noise.
    """

    log_densities: FloatArray
    """Log density of each target under its prediction."""
    outliers: FloatArray
    """Probability that the target can't be trusted."""
    changes: FloatArray
    """Probability, given the row, that the relation between inputs and target has just changed."""
    ratios: FloatArray | None = None
    """Squared errors divided by their predicted variances."""
    noise_shares: FloatArray | None = None
    """The share of each predicted variance that is noise."""
    copies: FloatArray | None = None
    """Log density of a row's copies beyond the first, given the first; None where each row counts once."""
    gains: FloatArray | None = None
    """What each row adds to the log evidence; None where that is the log density of all its copies."""

    @property
    def weighted_log_densities(self) -> FloatArray:
        """Log density of as many copies of each target as its row counts for."""
        return self.log_densities if self.copies is None else self.log_densities + self.copies

    @property
    def row_gains(self) -> FloatArray:
        """What each row adds to the log evidence, ``(n,)``."""
        return self.weighted_log_densities if self.gains is None else self.gains

    @classmethod
    def of(cls, record: FloatArray) -> Self:
        """The scores of rows from what a perceptron's kernels have recorded of them."""
        seen = RowRecord.of(record)
        copies = seen.evidence - seen.log_density
        return cls(seen.log_density, seen.distrust, jump_probability(seen.suspicion), copies=copies)


class Parts(NamedTuple):
    """What the components of a model predicted for ``n`` rows, each just before it was learned."""

    weights: FloatArray
    """Their weights before each row, ``(h, n)``."""
    predictions: list[PredictedMoments]
    """One of each component."""
    log_noise_vars: FloatArray
    """How uncertain the log of each component's noise was where predictions leave that out, ``(h, n)``."""

    @classmethod
    def alone(cls, prediction: PredictedMoments, log_noise_var: FloatArray) -> Self:
        """Those of a model that is its only component; the variance of its log noise is ``(n,)``."""
        return cls(np.ones((1, len(log_noise_var))), [prediction], log_noise_var[None])


class LearnedRows(Protocol):
    """Rows that a model has learned, with what each was predicted from.

    A network corrects its predictive scale for the few rows it rests on if it predicts ``alone``. In a mixture it does
    not: there the members' scales differ instead.
    """

    def parts(self, alone: bool) -> Parts:
        """What the components predicted."""

    def densities(self, noise_scale: FloatArray | None) -> FloatArray:
        """Log density of each target, and how far it was distrusted, ``(2, n)``: what the model's ``_scores`` returns.

        With the noise multiplied by the scale of a mixture, ``(n, K)``, where there is one.
        """

    def scores(self, alone: bool) -> RowScores:
        """How well the model predicted."""


def log_noise_var(noise_weight: FloatArray) -> FloatArray:
    """Variance of the log of a learned noise that rests on so many rows, ``(n,)``; 0 where it is fixed."""
    return np.divide(2.0, noise_weight, out=np.zeros(len(noise_weight)), where=noise_weight > 0.0)


def one_or_many(column: FloatArray, single: bool) -> Any:
    """A column ``(n,)``, or the number of a ``single`` row."""
    return float(column[0]) if single else column
