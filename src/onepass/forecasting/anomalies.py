"""`AnomalyScorer`: how odd every value of a series is, given all values before it, and which are alarms."""

from collections.abc import Iterable, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onepass._typing import FloatArray
from onepass._validation import ArgumentError, as_floats, as_share, as_whole, one_of
from onepass.engine.anomalies import (
    FOUND_EXPECTED,
    FOUND_HIGH,
    FOUND_KIND,
    FOUND_LOW,
    FOUND_SCORE,
    FOUND_TAIL,
    N_FOUND,
    first_state,
    score_values,
)
from onepass.engine.threads import threads_for
from onepass.files.state import Arrays, Parameters, nested, sized, under
from onepass.forecasting.forecaster import BayesianForecaster
from onepass.forecasting.members import Member
from onepass.forecasting.times import as_times

__all__ = ["KINDS", "AnomalyScorer", "AnomalyScores"]

KINDS = ("", "spike", "level", "run")
"""Kinds of alarms by their number in the compiled code; none comes first."""

_SIDES = {"both": 0, "above": 1, "below": -1}
_MOST_FALSE_ALARMS = 0.1


@dataclass(frozen=True)
class AnomalyScores:
    """What was expected of values, and how odd they are: arrays ``(n,)``, NaN where nothing is known.

    Attributes
    ----------
    expected : the forecast of each value, from those before it
    low, high : limits; a value beyond them is an alarm of its own
    tail : how often a value is this far from what is expected, or farther
    score : 1 less the share of values with as much evidence of an anomaly, those just before included; calibrated from
        0.9 on
    kind : ``"spike"``, ``"level"`` or ``"run"`` where an alarm is raised, else ``""``

    A spike is a value that is far off with nothing odd before it; a level is found when the two values after a spike
    stay there; a run is several values that are odd only together.
    """

    expected: FloatArray
    low: FloatArray
    high: FloatArray
    tail: FloatArray
    score: FloatArray
    kind: NDArray[np.str_]

    @property
    def alarm(self) -> NDArray[np.bool_]:
        """Whether each value raises an alarm."""
        return np.asarray(self.kind != "")

    def __len__(self) -> int:
        return len(self.expected)


class AnomalyScorer:
    """Scores every value of a series by how unexpected it is, then learns it.

    A `BayesianForecaster` says what is expected one step ahead. How far values may be from it, and how odd several in
    a row may be, is learned from the series itself, so that alarms are as rare as asked for. A value that is very far
    off is not learned until the next ones show whether it was a spike or a new level. The result does not depend on
    how the values were divided into calls.

    Parameters
    ----------
    season_length, horizon, members : see `BayesianForecaster`
    false_alarms : float, above 0 and at most 0.1
        Alarms per value while nothing happens: ``1e-4`` is one in 10,000 values.
    side : "both", "above" or "below"
        Which values may be anomalies: all, or only those above or below what is expected.
    quiet : int
        After an alarm there is no other one until so many values in a row were unsuspicious, except that a spike which
        turns out to be a new level is an alarm once more.
    inputs : sequence of str
        Names of the inputs, if there are any and they are to be known by name: what explains a value at its own time,
        such as a promotion.

    Examples
    --------
    >>> import numpy as np
    >>> from onepass.forecasting import AnomalyScorer
    >>> t = np.arange(600)
    >>> y = 50 + 10 * np.sin(2 * np.pi * t / 24) + np.random.default_rng(1).normal(size=600)
    >>> y[400] += 15
    >>> y[500:] += 20
    >>> found = AnomalyScorer(season_length=24).score_then_learn(y)
    >>> [(int(i), str(found.kind[i])) for i in np.flatnonzero(found.alarm)]
    [(400, 'spike'), (500, 'spike'), (502, 'level')]
    """

    def __init__(
        self,
        season_length: Any = "auto",
        horizon: int | None = None,
        *,
        members: Iterable[Member] | None = None,
        false_alarms: float = 1e-4,
        side: str = "both",
        quiet: int = 20,
        inputs: Sequence[str] = (),
    ) -> None:
        self.false_alarms = as_share(false_alarms, "false_alarms")
        if self.false_alarms > _MOST_FALSE_ALARMS:
            raise ArgumentError("false_alarms", f"must be at most {_MOST_FALSE_ALARMS}, got {self.false_alarms:g}")
        self.side = one_of(side, tuple(_SIDES), "side")
        self.quiet = as_whole(quiet, "quiet")
        self._series = _ScoredSeries(season_length, horizon, members=members, inputs=inputs)
        self._series.settings = -np.log(self.false_alarms), _SIDES[self.side], float(self.quiet)

    def score_then_learn(self, y: ArrayLike, X: Any = None, times: Any = None) -> AnomalyScores:
        """Score each value before it is learned; the arguments are those of `BayesianForecaster.learn`.

        A value that is missing has no score. Neither have the first few values, and there is no alarm among the first
        fifty: nothing is known about the series yet.
        """
        return self._series.scored(y, X, times)

    def learn(self, y: ArrayLike, X: Any = None, times: Any = None) -> Self:
        """Learn values, as `score_then_learn` does, without returning their scores."""
        self.score_then_learn(y, X, times)
        return self

    def score(self, y: ArrayLike, X: Any = None, times: Any = None) -> AnomalyScores:
        """What `score_then_learn` would return, without learning the values."""
        return self._series.scored_only(y, X, times)

    @property
    def forecaster(self) -> BayesianForecaster:
        """The forecaster that says what is expected."""
        return self._series

    @property
    def n_seen(self) -> int:
        """Number of values learned, without those that are missing."""
        return self._series.n_seen

    def __repr__(self) -> str:
        return f"AnomalyScorer(false_alarms={self.false_alarms:g}, side={self.side!r}, n_seen={self.n_seen})"

    def __copy__(self) -> Self:
        return deepcopy(self)  # learning changes arrays in place

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the complete state, as JSON-compatible parameters and arrays: see `onepass.save`."""
        parameters, arrays = self._series.export_state()
        own = {"false_alarms": self.false_alarms, "side": self.side, "quiet": self.quiet, "forecaster": parameters}
        return own, {"state": self._series.state.copy(), **nested("forecaster", arrays)}

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the scorer that `export_state` described."""
        new = cls(false_alarms=parameters["false_alarms"], side=parameters["side"], quiet=parameters["quiet"])
        series = _ScoredSeries.from_state(parameters["forecaster"], under("forecaster", arrays))
        series.settings = new._series.settings
        series.state = as_floats(sized(arrays, "state", new._series.state.shape), "state")
        new._series = series
        return new


class _ScoredSeries(BayesianForecaster):
    """A forecaster that scores the values it learns."""

    settings: tuple[float, int, float]  # -log of the false alarms' rate, the side, the quiet

    def __init__(self, *args: Any, outliers: bool = True, **options: Any) -> None:
        super().__init__(*args, outliers=outliers, **options)
        self.state = first_state()
        self._found = np.zeros((0, N_FOUND))

    def scored(self, y: ArrayLike, X: Any, times: Any) -> AnomalyScores:
        """Learn values, and return their scores."""
        self._found = np.zeros((0, N_FOUND))
        self.learn(y, X, times)
        n = np.size(y)
        rows = np.full((n, N_FOUND), np.nan)
        rows[:, FOUND_KIND] = 0.0
        if len(self._found):
            rows[:] = self._found[self._steps_back(times, n)]
        kinds = np.array(KINDS)[rows[:, FOUND_KIND].astype(np.int64)]
        expected, low, high, tail, score = np.ascontiguousarray(
            rows[:, [FOUND_EXPECTED, FOUND_LOW, FOUND_HIGH, FOUND_TAIL, FOUND_SCORE]].T
        )
        return AnomalyScores(expected, low, high, tail, score, kinds)

    def scored_only(self, y: ArrayLike, X: Any, times: Any) -> AnomalyScores:
        """The scores that values would have."""
        return copy(self).scored(y, X, times)

    def _steps_back(self, times: Any, n: int) -> NDArray[np.int64]:
        """Where the last values are among all steps, from the end: -1 is the last; steps were left out by `times`."""
        if times is None or self._clock is None:
            return np.arange(-n, 0)
        return self._clock.steps(as_times(times, n)) - self._clock.last - 1

    def _learn(self, values: FloatArray, inputs: FloatArray) -> None:
        plan, X = self._prepared(inputs)
        self._found = np.zeros((len(values), N_FOUND))
        rest = self._workspace(plan.horizon), self.state, *self.settings, self._found
        with threads_for(plan.most_weights):
            score_values(plan, values, X, self._record[0], self._priors, self._sizing, *rest)
