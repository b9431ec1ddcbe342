"""Metrics of predicted classes: hits, scores of the probabilities, and their calibration.

The area under the ROC curve needs the order of all probabilities. It is kept as histograms of the log odds, fine enough
for three digits and more, in memory that does not grow with the rows.
"""

from typing import Any, Self

import numpy as np

from onepass._typing import FloatArray
from onepass.evaluation.metrics.base import Expected, Metric, RowMean, register
from onepass.evaluation.metrics.predictions import SURE, ClassPredictions, Reliability

__all__ = [
    "Accuracy",
    "BrierScore",
    "ClassCalibrationError",
    "Confidence",
    "LogLoss",
    "RocAuc",
    "TopClassCalibrationError",
]

_RANKS = 8192
_LARGEST_LOGIT = 20.0


class Confidence(RowMean[ClassPredictions]):
    """Probability of the most probable class: the accuracy that the model expects."""

    name = title = "confidence"
    unit = "share"

    @classmethod
    def per_row(cls, rows: ClassPredictions) -> FloatArray:
        """Of each row."""
        return rows.of_best


@register("classes")
class Accuracy(RowMean[ClassPredictions]):
    """Share of rows whose most probable class is the true one."""

    name, title = "accuracy", "accuracy"
    unit = "share"
    larger_is_better = True
    expected = Expected(Confidence)

    @classmethod
    def per_row(cls, rows: ClassPredictions) -> FloatArray:
        """Whether the most probable class is the true one."""
        return np.asarray(rows.is_right)


@register("classes")
class LogLoss(RowMean[ClassPredictions]):
    """Mean of the negative log probabilities of the true classes, in nats.

    Of a model that takes some labels for wrong it is that of the labels as they come, wrong ones among them.
    """

    name, title = "log_loss", "log-loss"
    unit = "nats"

    @classmethod
    def per_row(cls, rows: ClassPredictions) -> FloatArray:
        """Negative log probability of each label."""
        return rows.surprise


@register("classes")
class BrierScore(RowMean[ClassPredictions]):
    """Mean squared difference of probabilities and truth: of the second of two classes, or summed over more."""

    name, title = "brier", "Brier"

    @classmethod
    def per_row(cls, rows: ClassPredictions) -> FloatArray:
        """Squares summed over all classes; those of two classes are equal, and one of them counts."""
        return rows.squared_error / 2.0 if rows.n_classes == 2 else rows.squared_error


@register("classes")
class RocAuc(Metric[ClassPredictions]):
    """Area under the ROC curve; for more than two classes the mean of each class against the rest.

    Not defined as long as a class has not occurred, or no other one.
    """

    name, title = "roc_auc", "ROC AUC"
    larger_is_better = True

    def __init__(self) -> None:
        self._ranks = np.zeros((0, 2, _RANKS))  # of each class against the rest: rows of the rest, rows of the class

    def update(self, rows: ClassPredictions) -> Self:
        """Score more rows."""
        classes = [1] if rows.n_classes == 2 else range(rows.n_classes)
        counts = [self._counted(rows.probabilities[:, k], rows.index == k) for k in classes]
        self._add(np.array(counts))
        return self

    @staticmethod
    def _counted(p: FloatArray, positive: Any) -> FloatArray:
        safe = np.clip(p, SURE, 1.0 - SURE)
        logits = np.log(safe / (1.0 - safe))
        places = ((logits + _LARGEST_LOGIT) * (_RANKS / (2.0 * _LARGEST_LOGIT))).astype(np.int64).clip(0, _RANKS - 1)
        return np.bincount(places + _RANKS * positive, minlength=2 * _RANKS).reshape(2, _RANKS).astype(np.float64)

    def _add(self, ranks: FloatArray) -> None:
        self._ranks = self._ranks + ranks if len(self._ranks) else ranks

    def get(self) -> float | None:
        """Share of pairs of a row of the class and one of the rest that are in the right order."""
        areas = []
        for negative, positive in self._ranks:
            pairs = negative.sum() * positive.sum()
            if not pairs:
                return None
            below = np.cumsum(negative) - 0.5 * negative
            areas.append(float(positive @ below / pairs))
        return float(np.mean(areas)) if areas else None

    def merge(self, other: Self) -> Self:
        """Add the rows of another."""
        if len(other._ranks):
            self._add(other._ranks)
        return self


@register("classes")
class ClassCalibrationError(Metric[ClassPredictions]):
    """Mean difference between predicted probabilities and observed frequencies, over bins weighted by their rows.

    Judged is the probability of the second of two classes, or of the most probable one of more.
    """

    name, title = "calibration_error", "calib. error"

    def __init__(self, bins: int = 20) -> None:
        self._sums = np.zeros((3, bins))  # of 1, of the probabilities, of what was observed

    @classmethod
    def judged(cls, rows: ClassPredictions) -> tuple[FloatArray, Any]:
        """Probability of an event for each row, and whether it came true."""
        if rows.n_classes == 2:
            return rows.probabilities[:, 1], rows.index == 1
        return rows.of_best, rows.is_right

    def update(self, rows: ClassPredictions) -> Self:
        """Score more rows."""
        p, came_true = self.judged(rows)
        bins = self._sums.shape[1]
        places = np.minimum((p * bins).astype(np.int64), bins - 1)
        for row, weights in enumerate((None, p, came_true.astype(np.float64))):
            self._sums[row] += np.bincount(places, weights, minlength=bins)
        return self

    def get(self) -> float:
        """Mean over all rows."""
        found = self.reliability()
        return float(np.abs(found.predicted - found.observed) @ found.rows / max(self._sums[0].sum(), 1.0))

    def merge(self, other: Self) -> Self:
        """Add the rows of another with as many bins."""
        self._sums += other._sums
        return self

    def reliability(self) -> Reliability:
        """Predicted probability and observed frequency in each bin that has rows."""
        rows, predicted, observed = self._sums
        filled = rows > 0
        counts = rows[filled]
        return Reliability(counts, predicted[filled] / counts, observed[filled] / counts)


class TopClassCalibrationError(ClassCalibrationError):
    """The same, judged by the most probable class even of two: the expected calibration error of the literature."""

    @classmethod
    def judged(cls, rows: ClassPredictions) -> tuple[FloatArray, Any]:
        """Probability of the most probable class, and whether it was the true one."""
        return rows.of_best, rows.is_right
