"""`AnomalyScorer` as one of River's anomaly detectors."""

from collections.abc import Mapping
from typing import Any

from river import base

from onepass import forecasting
from onepass.integrations.river.forecasters import input_names, input_row

__all__ = ["AnomalyScorer"]


class AnomalyScorer(base.SupervisedAnomalyDetector):
    """Scores every value of a series from 0 to 1: `onepass.forecasting.AnomalyScorer` with the interface of River.

    The score is 1 less the share of values with as much evidence of an anomaly, so ``score_one(x, y) > 1 - 1e-4``
    holds for one value in 10,000 while nothing happens. Values without a score, such as the first ones, get 0.

    Parameters
    ----------
    season_length, horizon : see `onepass.BayesianForecaster`
    false_alarms, side, quiet : see `onepass.forecasting.AnomalyScorer`

    Examples
    --------
    >>> import numpy as np
    >>> from onepass.river import AnomalyScorer
    >>> values = np.random.default_rng(0).normal(size=300)
    >>> values[250] = 12.0
    >>> model, scores = AnomalyScorer(), []
    >>> for y in values:
    ...     scores.append(model.score_one(None, y))
    ...     model.learn_one(None, y)
    >>> int(np.argmax(scores)), max(scores) > 1 - 1e-4
    (250, True)
    """

    def __init__(
        self,
        season_length: Any = 1,
        horizon: int | None = None,
        false_alarms: float = 1e-4,
        side: str = "both",
        quiet: int = 20,
    ) -> None:
        self.season_length = season_length
        self.horizon = horizon
        self.false_alarms = false_alarms
        self.side = side
        self.quiet = quiet
        self._model = forecasting.AnomalyScorer(
            season_length, horizon, false_alarms=false_alarms, side=side, quiet=quiet
        )
        self._names: list[Any] | None = None

    def score_one(self, x: Mapping[Any, Any] | None, y: Any) -> float:
        """The score of a value, with the inputs of its step, if it came next."""
        found = self._model.score(float(y), input_row(x or {}, self._known(x)))
        return float(found.score[0]) if found.score[0] == found.score[0] else 0.0

    def learn_one(self, x: Mapping[Any, Any] | None, y: Any) -> None:
        """Learn a value; NaN is a value that is missing."""
        self.score_then_learn_one(x, y)

    def score_then_learn_one(self, x: Mapping[Any, Any] | None, y: float) -> forecasting.AnomalyScores:
        """Score a value and learn it, in half the time of two calls: with its limits, and the alarm that it raises."""
        names = self._known(x)
        found = self._model.score_then_learn(float(y), input_row(x or {}, names))
        self._names = names
        return found

    def _known(self, x: Mapping[Any, Any] | None) -> list[Any]:
        return input_names(x or {}) if self._names is None else self._names
