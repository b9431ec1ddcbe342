"""How good predictions were that were made just before each row was learned, in constant memory.

Scores take rows as they come: errors, log densities, the calibration of intervals and probabilities, and all of them
over time. Ranks are kept as histograms of the log odds, fine enough for the area under the ROC curve to be right to
three digits and more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from onepass._typing import FloatArray

__all__ = ["LEVELS", "ClassScores", "Curve", "NumberScores", "Reliability", "scores_for"]

LEVELS = (0.5, 0.8, 0.95)
_SEGMENTS = 256
_FIRST_SEGMENT = 16  # rows
_RANKS = 8192
_LARGEST_LOGIT = 20.0
_BINS = 20
_PIT_BINS = 1000
_SURE = 1e-15  # a probability of 0 or 1 is taken for this much less sure


class Curve:
    """Sums of some numbers a row, over segments of equal length that double when there are too many of them.

    Examples
    --------
    >>> curve = Curve(2)
    >>> curve.add(np.ones((100, 2)))
    >>> curve.rows.tolist()
    [16, 32, 48, 64, 80, 96, 100]
    """

    def __init__(self, size: int) -> None:
        self._sums = np.zeros((_SEGMENTS, size))
        self._width = _FIRST_SEGMENT
        self._n = 0

    def add(self, numbers: FloatArray) -> None:
        """Take the numbers of more rows, ``(n, size)``."""
        end = self._n + len(numbers)
        while end > _SEGMENTS * self._width:
            pairs = self._sums.reshape(_SEGMENTS // 2, 2, -1).sum(axis=1)
            self._sums[: _SEGMENTS // 2], self._sums[_SEGMENTS // 2 :] = pairs, 0.0
            self._width *= 2
        first = self._n // self._width
        last = (end - 1) // self._width
        starts = np.maximum(np.arange(first, last + 1) * self._width - self._n, 0)
        if len(numbers):
            self._sums[first : last + 1] += np.add.reduceat(numbers, starts, axis=0)
        self._n = end

    @property
    def rows(self) -> FloatArray:
        """Rows up to the end of each segment, ``(s,)``."""
        ends = np.arange(1, -(-self._n // self._width) + 1) * self._width
        return np.minimum(ends, self._n)

    @property
    def sums(self) -> FloatArray:
        """Sums over each segment, ``(s, size)``."""
        return self._sums[: len(self.rows)]

    @property
    def means(self) -> FloatArray:
        """Means over each segment, ``(s, size)``."""
        counts = np.diff(self.rows, prepend=0)
        return self.sums / counts[:, None]


@dataclass(frozen=True)
class Reliability:
    """How often what was foretold came true: for each bin its rows, what was foretold on average, what happened."""

    rows: FloatArray
    foretold: FloatArray
    happened: FloatArray


class NumberScores:
    """Scores of predicted numbers.

    Parameters
    ----------
    with_std : bool
        Whether the model foretells how sure it is.
    """

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "rmse",
        "mae",
        "log_likelihood",
        "coverage_50",
        "coverage_80",
        "coverage_95",
        "std",
    )

    def __init__(self, *, with_std: bool = True) -> None:
        self.n = 0
        self.with_std = with_std
        self.curve = Curve(len(self.COLUMNS))
        self._pit = np.zeros(_PIT_BINS)

    def add(self, y: FloatArray, mean: FloatArray, std: FloatArray | None = None) -> None:
        """Take more rows: targets, and what was foretold for them."""
        gap = y - mean
        numbers = np.zeros((len(y), len(self.COLUMNS)))
        numbers[:, 0], numbers[:, 1] = gap**2, np.abs(gap)
        if std is not None:
            z = gap / std
            numbers[:, 2] = -0.5 * (np.log(2.0 * np.pi) + z**2) - np.log(std)
            for place, level in enumerate(LEVELS, 3):
                numbers[:, place] = np.abs(z) <= ndtri(0.5 + level / 2)
            numbers[:, 6] = std
            places = np.minimum((ndtr(z) * _PIT_BINS).astype(np.int64), _PIT_BINS - 1)
            self._pit += np.bincount(places, minlength=_PIT_BINS)
        self.curve.add(numbers)
        self.n += len(y)

    def summary(self) -> dict[str, float]:
        """All scores by name."""
        means = self.curve.sums.sum(axis=0) / max(self.n, 1)
        scores = {"rmse": float(np.sqrt(means[0])), "mae": float(means[1])}
        if self.with_std:
            scores |= {name: float(value) for name, value in zip(self.COLUMNS[2:6], means[2:6], strict=True)}
            reliability = self.reliability()
            scores["calibration_error"] = float(np.abs(reliability.foretold - reliability.happened).mean())
        return scores

    def over_time(self) -> dict[str, FloatArray]:
        """Scores over each segment, by name."""
        means = self.curve.means
        columns = dict(zip(self.COLUMNS, means.T, strict=True))
        columns["rmse"] = np.sqrt(columns["rmse"])
        return columns if self.with_std else {name: columns[name] for name in ("rmse", "mae")}

    def reliability(self) -> Reliability:
        """Of central intervals: the share of targets inside, by level."""
        levels = np.linspace(0.05, 0.95, 19)
        below = np.concatenate([[0.0], np.cumsum(self._pit)]) / max(self._pit.sum(), 1.0)
        edges = np.linspace(0.0, 1.0, _PIT_BINS + 1)
        low, high = (np.interp(0.5 + side * levels / 2, edges, below) for side in (-1.0, 1.0))
        return Reliability(np.full(len(levels), float(self.n)), levels, high - low)


class ClassScores:
    """Scores of predicted probabilities of ``n_classes`` classes."""

    COLUMNS: ClassVar[tuple[str, ...]] = ("accuracy", "log_loss", "brier", "std")

    def __init__(self, n_classes: int) -> None:
        self.n = 0
        self.n_classes = n_classes
        self.curve = Curve(len(self.COLUMNS))
        self._ranks = np.zeros((n_classes if n_classes > 2 else 1, 2, _RANKS))
        self._bins = np.zeros((3, _BINS))

    def add(self, y: Any, probabilities: FloatArray, std: FloatArray | None = None) -> None:
        """Take more rows: indices of the classes, ``(n, K)`` probabilities, and how unsure these are."""
        index = np.asarray(y, dtype=np.int64)
        n = len(index)
        of_truth = probabilities[np.arange(n), index]
        best = probabilities.argmax(axis=1)
        numbers = np.zeros((n, len(self.COLUMNS)))
        numbers[:, 0] = best == index
        numbers[:, 1] = -np.log(np.maximum(of_truth, _SURE))
        # The sum over all classes; for two it is twice the square of either.
        numbers[:, 2] = np.square(probabilities).sum(axis=1) - 2.0 * of_truth + 1.0
        if std is not None:
            numbers[:, 3] = std
        self.curve.add(numbers)
        if self.n_classes == 2:
            self._rank(0, probabilities[:, 1], index == 1)
            self._judge(probabilities[:, 1], index == 1)
        else:
            for k in range(self.n_classes):
                self._rank(k, probabilities[:, k], index == k)
            self._judge(probabilities[np.arange(n), best], best == index)
        self.n += n

    def _rank(self, k: int, p: FloatArray, positive: Any) -> None:
        safe = np.clip(p, _SURE, 1.0 - _SURE)
        logits = np.log(safe / (1.0 - safe))
        places = ((logits + _LARGEST_LOGIT) * (_RANKS / (2.0 * _LARGEST_LOGIT))).astype(np.int64).clip(0, _RANKS - 1)
        counts = np.bincount(places + _RANKS * positive, minlength=2 * _RANKS)
        self._ranks[k] += counts.reshape(2, _RANKS)

    def _judge(self, p: FloatArray, happened: Any) -> None:
        places = np.minimum((p * _BINS).astype(np.int64), _BINS - 1)
        for row, weights in enumerate((None, p, happened.astype(np.float64))):
            self._bins[row] += np.bincount(places, weights, minlength=_BINS)

    def summary(self) -> dict[str, float]:
        """All scores by name."""
        means = self.curve.sums.sum(axis=0) / max(self.n, 1)
        scores = {name: float(value) for name, value in zip(self.COLUMNS[:3], means[:3], strict=True)}
        if self.n_classes == 2:
            scores["brier"] /= 2.0  # of two classes the usual score looks at one
        area = self._area()
        if area is not None:
            scores["roc_auc"] = area
        reliability = self.reliability()
        gaps = np.abs(reliability.foretold - reliability.happened)
        scores["calibration_error"] = float(gaps @ reliability.rows / max(self.n, 1))
        return scores

    def _area(self) -> float | None:
        """Area under the ROC curve, of each class against the rest on average; None if a class never came."""
        areas = []
        for negative, positive in self._ranks:
            pairs = negative.sum() * positive.sum()
            if pairs:
                below = np.cumsum(negative) - 0.5 * negative
                areas.append(float(positive @ below / pairs))
        return float(np.mean(areas)) if len(areas) == len(self._ranks) else None

    def over_time(self) -> dict[str, FloatArray]:
        """Scores over each segment, by name."""
        columns = dict(zip(self.COLUMNS, self.curve.means.T, strict=True))
        if self.n_classes == 2:
            columns["brier"] = columns["brier"] / 2.0
        return columns

    def reliability(self) -> Reliability:
        """Of the second of two classes, or of the most probable of more."""
        rows, foretold, happened = self._bins
        kept = rows > 0
        counts = rows[kept]
        return Reliability(counts, foretold[kept] / counts, happened[kept] / counts)


def scores_for(labels: Sequence[str], *, with_std: bool = True) -> NumberScores | ClassScores:
    """Scores that suit a target: classes with these labels, or numbers."""
    return ClassScores(len(labels)) if labels else NumberScores(with_std=with_std)
