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

_RANKS, _FEWEST_RANKS = 8192, 64
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
        first = 1 if rows.n_classes == 2 else 0
        classes = np.arange(first, rows.n_classes)
        n_ranks = max(2 * _RANKS // rows.n_classes, _FEWEST_RANKS)  # the more classes, the fewer of each
        if not len(self._ranks):
            self._ranks = np.zeros((len(classes), 2, n_ranks))
        safe = np.minimum(np.maximum(rows.probabilities[:, first:], SURE), 1.0 - SURE)
        shares = np.log(safe / (1.0 - safe)) / (2.0 * _LARGEST_LOGIT) + 0.5
        places = np.minimum(np.maximum(shares * n_ranks, 0.0), n_ranks - 1).astype(np.int64)
        positive = rows.index[:, None] == classes
        flat = ((classes - first) * 2 + positive) * n_ranks + places
        np.add.at(self._ranks.reshape(-1), flat.ravel(), 1.0)
        return self

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
            self._ranks = self._ranks + other._ranks if len(self._ranks) else other._ranks.copy()
        return self

    def state(self) -> dict[str, Any]:
        """The ranks that have rows, as data that JSON can hold."""
        at = np.flatnonzero(self._ranks)
        return {"shape": list(self._ranks.shape), "at": at.tolist(), "rows": self._ranks.ravel()[at].tolist()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` described."""
        self._ranks = np.zeros(state["shape"])
        self._ranks.reshape(-1)[state["at"]] = state["rows"]


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
