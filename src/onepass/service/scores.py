"""How well a model has predicted the rows that it then learned: so far, over time, and how well calibrated.

Every row is scored by what was predicted just before it was learned. All of it fits into a few kilobytes however many
rows there were, and goes into snapshots, so that it survives the service. Which metrics there are is decided when a
model is created, and is part of the event that creates it: the same events give the same scores wherever they are
replayed.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.special import ndtr

from onepass.estimators.rows import PredictedRows
from onepass.evaluation.metrics import (
    REGISTRY,
    ClassPredictions,
    Curve,
    NumberPredictions,
    OverTime,
    Task,
    registered,
    row_means,
)
from onepass.events import Event
from onepass.tables.alarms import CHANGE, AlarmRule

__all__ = ["AlarmKind", "Scores", "metrics_now"]

AlarmKind: TypeAlias = Literal["outlier", "set aside"]
"""Why the target of a row was not learned: it is doubted, or absurdly far from what was predicted."""


_BINS = 20
_FEWEST = 48  # rows that recent scores are of, where there are so many: fewer say little
_ALARMS = 100  # that are kept


class Scores:
    """Scores of one model.

    Parameters
    ----------
    task : what kind of target the model predicts
    metrics : names of the metrics, which must be registered; an `UnknownMetricError` names one that is not
    """

    def __init__(self, task: Task, metrics: Sequence[str]) -> None:
        self._is_classes = task == "classes"
        self._over_time = OverTime(row_means(registered(task, metrics)))
        self._bins = np.zeros((_BINS, 3))  # rows, sum of what was predicted, sum of what was observed
        self.outliers: int = 0
        self.set_aside: int = 0
        self.changes: int = 0
        self.alarms: deque[dict[str, Any]] = deque(maxlen=_ALARMS)
        self._rule = AlarmRule()

    def update(self, rows: NumberPredictions | ClassPredictions) -> None:
        """Score rows that have been learned; those of a warm-up, which have no prediction, don't count."""
        numbers = self._over_time.numbers(rows)
        if isinstance(rows, ClassPredictions):
            predicted, observed = rows.of_best, np.asarray(rows.is_right, dtype=np.float64)
        else:
            predicted = observed = ndtr(rows.z)
        sound = np.isfinite(numbers).all(axis=1)
        if not sound.all():
            numbers, predicted, observed = numbers[sound], predicted[sound], observed[sound]
        self._over_time.curve.add(numbers)
        place = np.minimum((predicted * _BINS).astype(int), _BINS - 1)
        np.add.at(self._bins, place, np.column_stack([np.ones(len(place)), predicted, observed]))

    def watch(
        self,
        predicted: PredictedRows,
        events: Sequence[Event],
        target: Callable[[int], str],
        kind: AlarmKind = "outlier",
    ) -> None:
        """Note rows whose target is not trusted, and those at which the relation has changed.

        Parameters
        ----------
        predicted : of the rows, just before they were learned
        events : one for each row, or one for all of them
        target : the target of a row, as people write it
        kind : what the model calls a target that it does not trust
        """
        for row, reason, probability in self._rule.alarms(predicted.outlier_probability, predicted.change_probability):
            if reason == CHANGE:
                self.changes += 1
            elif kind == "outlier":
                self.outliers += 1
            else:
                self.set_aside += 1
            event = events[row % len(events)]
            about = {"version": event.number, "time": event.time, "target": target(row)}
            self.alarms.append({"kind": CHANGE if reason == CHANGE else kind, "probability": probability, **about})

    @property
    def curve(self) -> Curve:
        """Sums over segments of the rows."""
        return self._over_time.curve

    @property
    def n(self) -> int:
        """Rows scored."""
        return int(self.curve.rows[-1]) if len(self.curve.rows) else 0

    @property
    def n_alarms(self) -> int:
        """Alarms of all kinds."""
        return self.outliers + self.set_aside + self.changes

    def sums(self) -> dict[str, float]:
        """What has been counted so far, for those who count changes."""
        return {"scored": self.n, "outlier_alarms": self.outliers, "change_alarms": self.changes}

    def score_sums(self) -> dict[str, float]:
        """The sum over all rows that each metric is the mean of, or the root of the mean."""
        return dict(zip(self._names, self.curve.sums.sum(axis=0).tolist(), strict=False))  # those expected come last

    def total(self) -> dict[str, float]:
        """Scores over all rows."""
        if not self.n:
            return {}
        return self._named(self.curve.sums.sum(axis=0) / self.n)

    def recent(self) -> dict[str, float]:
        """Scores over the last of the segments that make up at least a tenth of the rows, and 48 of them if there are.

        The curves of the page (page/static/js/scores.js) have the same window.
        """
        if not self.n:
            return {}
        ends = self.curve.rows
        first = int(np.searchsorted(ends, min(0.9 * ends[-1], ends[-1] - _FEWEST), side="right"))
        before = int(ends[first - 1]) if first else 0
        return {
            "rows": float(ends[-1] - before),
            **self._named(self.curve.sums[first:].sum(axis=0) / (ends[-1] - before)),
        }

    @property
    def _names(self) -> list[str]:
        return [metric.name for metric in self._over_time.metrics]

    def _named(self, means: Any) -> dict[str, Any]:
        return {name: np.asarray(values).tolist() for name, values in self._over_time.named(means).items()}

    def report(self) -> dict[str, Any]:
        """Everything, for people and programs."""
        return {
            "rows": self.n,
            "metrics": [metric.description() for metric in self._over_time.metrics],
            "scores": self.total(),
            "recent": self.recent(),
            "over_time": {"rows": self.curve.rows.tolist(), **self._named(self.curve.means)},
            "calibration": self.calibration(),
            "alarms": {
                "outliers": self.outliers,
                "set_aside": self.set_aside,
                "changes": self.changes,
                "last": list(self.alarms),
            },
        }

    def calibration(self) -> dict[str, Any]:
        """Of classes how often the most probable one was right, by its probability; of numbers where they fell.

        The place of a number in its predicted distribution is between 0 and 1, and all places are as frequent if the
        distributions are right.
        """
        rows, predicted, observed = self._bins.T
        if not self._is_classes:
            return {"kind": "places", "rows": rows.tolist(), "share": (rows / max(rows.sum(), 1.0)).tolist()}
        some = np.maximum(rows, 1.0)
        return {
            "kind": "reliability",
            "rows": rows.tolist(),
            "predicted": (predicted / some).tolist(),
            "observed": (observed / some).tolist(),
        }

    def state(self) -> dict[str, Any]:
        """All of it as data that JSON can hold."""
        return {
            "metrics": self._names,
            "curve": self.curve.state(),
            "bins": self._bins.tolist(),
            "outliers": self.outliers,
            "set_aside": self.set_aside,
            "changes": self.changes,
            "alarms": list(self.alarms),
            "changing": self._rule.changing,
        }

    @classmethod
    def from_state(cls, task: Task, state: dict[str, Any]) -> "Scores":
        """Make the scores that `state` described."""
        scores = cls(task, state["metrics"])
        scores._over_time.curve = Curve.from_state(state["curve"], len(scores._over_time.columns))
        scores._bins[:] = state["bins"]
        scores.outliers, scores.set_aside = int(state["outliers"]), int(state["set_aside"])
        scores.changes = int(state["changes"])
        scores.alarms.extend(state["alarms"])
        scores._rule = AlarmRule(changing=bool(state["changing"]))
        return scores


def metrics_now(task: Task) -> list[str]:
    """Names of the metrics that a model is scored with if it is created now: all that are means over rows."""
    return [metric.name for metric in row_means(REGISTRY[task].values())]
