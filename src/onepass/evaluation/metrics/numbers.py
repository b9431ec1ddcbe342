"""Metrics of predicted numbers and counts: errors, predictive densities, and the coverage of intervals."""

import math
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import ndtr, xlogy

from onepass._typing import FloatArray
from onepass.evaluation.metrics.base import Expected, Metric, RowMean, register
from onepass.evaluation.metrics.predictions import SURE, NumberPredictions, Reliability

__all__ = [
    "LEVELS",
    "Coverage50",
    "Coverage80",
    "Coverage95",
    "LogLikelihood",
    "MeanAbsoluteError",
    "NumberCalibrationError",
    "PoissonDeviance",
    "PredictedStd",
    "RootMeanSquaredError",
    "ensemble_crps",
    "gaussian_crps",
]

LEVELS = (0.5, 0.8, 0.95)
"""Of the intervals whose coverage is registered."""
_BINS = 1000  # of the probability integral transform: levels are right to a thousandth


def gaussian_crps(y: FloatArray, mean: FloatArray, std: FloatArray) -> FloatArray:
    """The continuous ranked probability score of Gaussian predictions, in units of the values.

    It is the absolute error where the standard deviation is 0.

    Examples
    --------
    >>> gaussian_crps(np.array([1.0, 1.0]), np.zeros(2), np.array([1.0, 0.0])).round(4).tolist()
    [0.6024, 1.0]
    """
    error = np.abs(y - mean)
    z = error / np.maximum(std, 1e-9 * error + 1e-300)  # no more than 1e9
    density = np.exp(-0.5 * np.square(z)) / np.sqrt(2.0 * np.pi)
    return np.asarray(error * (2.0 * ndtr(z) - 1.0) + std * (2.0 * density - 1.0 / np.sqrt(np.pi)))


def ensemble_crps(y: FloatArray, values: FloatArray) -> FloatArray:
    """The continuous ranked probability score of equally probable values, ``(k, n)``, in units of the values.

    Examples
    --------
    >>> ensemble_crps(np.array([1.0, 0.0]), np.array([[0.0, 0.0], [2.0, 0.0]])).tolist()
    [0.5, 0.0]
    """
    k = len(values)
    apart = (2.0 * np.arange(1, k + 1) - k - 1.0) @ np.sort(values, axis=0) / k**2
    return np.asarray(np.abs(values - y).mean(axis=0) - apart)


class PredictedStd(RowMean[Any]):
    """Mean of the predicted standard deviations: not a score, but shown over time next to the errors."""

    name, title = "std", "predicted std"
    needs_std = True

    @classmethod
    def per_row(cls, rows: Any) -> FloatArray:
        """Predicted standard deviation."""
        return np.asarray(rows.std)


@register("numbers", "counts")
class RootMeanSquaredError(RowMean[NumberPredictions]):
    """Root of the mean squared error."""

    name, title = "rmse", "RMSE"
    unit = "target"
    is_root = True
    expected = Expected(PredictedStd)

    @classmethod
    def per_row(cls, rows: NumberPredictions) -> FloatArray:
        """Squared error."""
        return rows.error**2


@register("numbers", "counts")
class MeanAbsoluteError(RowMean[NumberPredictions]):
    """Mean of the absolute errors."""

    name, title = "mae", "MAE"
    unit = "target"
    expected = Expected(PredictedStd, math.sqrt(2.0 / math.pi))  # of Gaussian errors

    @classmethod
    def per_row(cls, rows: NumberPredictions) -> FloatArray:
        """Absolute error."""
        return np.abs(rows.error)


@register("counts")
class PoissonDeviance(RowMean[NumberPredictions]):
    """Mean Poisson deviance, ``2 (y log(y/mean) - y + mean)``: how far off the means of counts are, small ones too."""

    name, title = "poisson_deviance", "deviance"

    @classmethod
    def per_row(cls, rows: NumberPredictions) -> FloatArray:
        """Deviance; a mean of 0 or less, which no model of counts predicts, is taken for next to nothing."""
        mean = np.maximum(rows.mean, SURE)
        return np.asarray(2.0 * (xlogy(rows.y, rows.y / mean) - rows.y + mean))


@register("numbers", "counts")
class LogLikelihood(RowMean[NumberPredictions]):
    """Mean log predictive density of the targets, in nats."""

    name, title = "log_likelihood", "log-likelihood"
    unit = "nats"
    needs_std = True
    larger_is_better = True

    @classmethod
    def per_row(cls, rows: NumberPredictions) -> FloatArray:
        """Log predictive density."""
        return rows.log_density


class _Coverage(RowMean[NumberPredictions]):
    """Share of targets inside their central interval of one level."""

    needs_std = True
    unit = "share"
    goal: ClassVar[float]
    """The level."""

    @classmethod
    def per_row(cls, rows: NumberPredictions) -> FloatArray:
        """Whether the target lies inside."""
        return np.asarray(rows.inside(cls.goal))

    @classmethod
    def text(cls, value: float) -> str:
        """A share in per cent."""
        return f"{100.0 * value:.1f} %"


@register("numbers", "counts")
class Coverage50(_Coverage):
    """Share of targets inside their central 50 % interval."""

    name, title = "coverage_50", "in 50 %"
    goal = LEVELS[0]


@register("numbers", "counts")
class Coverage80(_Coverage):
    """Share of targets inside their central 80 % interval."""

    name, title = "coverage_80", "in 80 %"
    goal = LEVELS[1]


@register("numbers", "counts")
class Coverage95(_Coverage):
    """Share of targets inside their central 95 % interval."""

    name, title = "coverage_95", "in 95 %"
    goal = LEVELS[2]


@register("numbers", "counts")
class NumberCalibrationError(Metric[NumberPredictions]):
    """Mean difference between the level of central intervals and the share of targets inside, over all levels.

    Kept is a histogram of the targets' places in their predictive distributions (probability integral transform).
    """

    name, title = "calibration_error", "calib. error"
    needs_std = True

    def __init__(self) -> None:
        self._histogram = np.zeros(_BINS)

    def update(self, rows: NumberPredictions) -> Self:
        """Score more rows."""
        places = np.minimum((ndtr(rows.z) * _BINS).astype(np.int64), _BINS - 1)
        self._histogram += np.bincount(places, minlength=_BINS)
        return self

    def get(self) -> float:
        """Mean over the levels 5, 10, ..., 95 %."""
        found = self.reliability()
        return float(np.abs(found.predicted - found.observed).mean())

    def merge(self, other: Self) -> Self:
        """Add the rows of another."""
        self._histogram += other._histogram
        return self

    def places(self, parts: int) -> FloatArray:
        """Rows in each of some equal parts of the predictive distributions, from the lowest on."""
        return np.asarray(self._histogram.reshape(parts, -1).sum(axis=1))

    def reliability(self) -> Reliability:
        """Share of targets inside the central interval of each level."""
        levels = np.linspace(0.05, 0.95, 19)
        n = float(self._histogram.sum())
        below = np.concatenate([[0.0], np.cumsum(self._histogram)]) / max(n, 1.0)
        edges = np.linspace(0.0, 1.0, _BINS + 1)
        low, high = (np.interp(0.5 + side * levels / 2, edges, below) for side in (-1.0, 1.0))
        return Reliability(np.full(len(levels), n), levels, high - low)
