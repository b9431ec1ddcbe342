"""What every model has to beat: the mean, the last value, and the value at the same time one period earlier.

They need no columns, no settings and no library, so they are scored wherever a model is. An error bar of a model says
little if the last value alone comes closer.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onepass._typing import FloatArray

__all__ = ["LAST", "MEAN", "PERIODS", "SAME_TIME", "References"]

MEAN, LAST, SAME_TIME = "mean", "last value", "same time last period"
PERIODS = (7, 12, 24, 48, 52, 96, 144, 168, 288, 336, 365, 672, 1440)
"""Rows per period that are tried: days of a week, months of a year, hours, half hours, quarters of an hour, ..."""

Guesses = dict[str, FloatArray]


@dataclass
class References:
    """Predictions of targets ``(n, k)``, from the targets before them alone: a number each, or one-hot classes.

    The period is the one, among `PERIODS`, whose values have come closest so far; it is tried once two of it have
    been seen. Of classes, probabilities are predicted: the class of the last row, or of the row one period earlier,
    is as probable as it has come again so far, and the rest is shared out as the classes have come.

    Parameters
    ----------
    start : array, ``(k,)``
        The mean before there is any target.
    are_classes : bool

    Examples
    --------
    >>> week = np.arange(70.0)[:, None] % 7
    >>> found = References(np.zeros(1)).predict_then_learn(week)
    >>> float(found["same time last period"][20, 0]), float(found["last value"][20, 0]), float(week[20, 0])
    (6.0, 5.0, 6.0)
    """

    start: FloatArray
    are_classes: bool = False
    n: int = 0
    _past: FloatArray = field(init=False)  # the last targets, at most as many as the longest period
    _sum: FloatArray = field(init=False)
    _errors: FloatArray = field(init=False)  # summed, of the value 1 row earlier and of each period

    def __post_init__(self) -> None:
        self._past = np.empty((0, len(self.start)))
        self._sum = np.zeros(len(self.start))
        self._errors = np.zeros(len(_LAGS))

    @property
    def period(self) -> int | None:
        """Rows of the best period so far; None before there are enough."""
        best = int(self._best(np.array([self.n]), self._errors[None])[0])
        return _LAGS[best] if best else None

    def learn(self, y: FloatArray) -> None:
        """Take in more targets."""
        self.predict_then_learn(y)

    def predict_then_learn(self, y: FloatArray) -> Guesses:
        """Predict each target from all before it."""
        n, known = len(y), len(self._past)
        whole = np.concatenate([self._past, y])
        earlier = np.full((len(_LAGS), *y.shape), np.nan)
        for place, lag in enumerate(_LAGS):
            first = max(lag - known, 0)
            if first < n:
                earlier[place, first:] = whole[known + first - lag : known + n - lag]
        errors = np.nan_to_num(np.square(earlier - y).sum(axis=2)).T  # (n, lags)
        errors = self._errors + np.concatenate([np.zeros((1, len(_LAGS))), errors.cumsum(axis=0)])
        seen, sums = self.n + np.arange(n), self._sum + np.concatenate([np.zeros_like(y[:1]), y.cumsum(axis=0)])
        best = self._best(seen, errors[:-1])
        mean = self._mean(seen, sums[:-1])
        picks = {LAST: np.zeros(n, dtype=int), SAME_TIME: best}
        found = {
            name: self._finished(earlier[pick, np.arange(n)], mean, self._agreement(pick, seen, errors[:-1]))
            for name, pick in picks.items()
        }
        self._past, self._sum, self._errors = whole[-_LAGS[-1] :], sums[-1], errors[-1]
        self.n += n
        return {MEAN: mean, **found}

    def predict_ahead(self, places: Any) -> Guesses:
        """Predict targets that are so many rows ahead (0: the next one) of those taken in, and learn nothing."""
        seen = np.full(len(places), self.n)
        errors = np.broadcast_to(self._errors, (len(places), len(_LAGS)))
        mean = self._mean(seen, np.broadcast_to(self._sum, (len(places), len(self._sum))))
        found = {MEAN: mean}
        for name, lag in ((LAST, 1), (SAME_TIME, self.period or 1)):
            pick = np.full(len(places), _LAGS.index(lag))
            value = np.full_like(mean, np.nan)
            if self.n >= lag:
                value = self._past[len(self._past) - lag + np.asarray(places, dtype=int) % lag]
            found[name] = self._finished(value, mean, self._agreement(pick, seen, errors))
        return found

    def _best(self, seen: Any, errors: FloatArray) -> Any:
        """The place in `_LAGS` of the best period after so many rows each; 0, the last value, if there is none yet."""
        tried = seen[:, None] >= 2 * np.array(_LAGS)
        mean = np.where(tried, errors / np.maximum(seen[:, None] - np.array(_LAGS), 1), np.inf)
        mean[:, 0] = np.inf
        return np.where(np.isfinite(mean).any(axis=1), mean.argmin(axis=1), 0)

    def _mean(self, seen: Any, sums: FloatArray) -> FloatArray:
        counts = np.asarray(seen)[:, None]
        if self.are_classes:  # each class counts once before it has come
            return np.asarray((sums + 1.0) / (counts + sums.shape[1]))
        return np.where(counts > 0, sums / np.maximum(counts, 1), self.start)

    def _agreement(self, pick: Any, seen: Any, errors: FloatArray) -> FloatArray:
        """Share of earlier values that came again, of classes, ``(n, 1)``: a wrong one has a squared error of 2."""
        compared = np.maximum(seen - np.array(_LAGS)[pick], 0)
        wrong = errors[np.arange(len(pick)), pick] / 2.0
        return np.asarray((compared - wrong + 1.0) / (compared + 2.0))[:, None]

    def _finished(self, value: FloatArray, mean: FloatArray, agreement: FloatArray) -> FloatArray:
        if self.are_classes:
            value = agreement * value + (1.0 - agreement) * mean
        return np.where(np.isnan(value), mean, value)


_LAGS = (1, *PERIODS)
