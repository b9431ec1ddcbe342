"""How well a served model has predicted the rows that it then learned: its scores, its calibration and its alarms.

Every row is scored by what was predicted just before it was learned. All of it is of limited size however many rows
there were, and goes into snapshots, so that it survives the service. Which metrics there are is decided when a model is
created, and is part of the event that creates it: the same events give the same scores wherever they are replayed.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from onepass.estimators.rows import PredictedRows
from onepass.evaluation.metrics import (
    ClassPredictions,
    NumberCalibrationError,
    NumberPredictions,
    Scores,
    Task,
    TopClassCalibrationError,
    registered,
)
from onepass.events import Event
from onepass.tables.alarms import CHANGE, AlarmRule

__all__ = ["AlarmKind", "ServedScores"]

AlarmKind: TypeAlias = Literal["outlier", "set aside"]
"""Why the target of a row was not learned: it is doubted, or absurdly far from what was predicted."""


_PARTS = 20  # of predictive distributions, in which targets are counted
_ALARMS = 100  # that are kept


class ServedScores(Scores):
    """Scores of one served model.

    Parameters
    ----------
    task : what kind of target the model predicts
    metrics : names of the metrics, which must be registered; an `UnknownMetricError` names one that is not
    """

    def __init__(self, task: Task, metrics: Sequence[str]) -> None:
        self._is_classes = task == "classes"
        calibrated = TopClassCalibrationError if self._is_classes else NumberCalibrationError
        super().__init__(registered(task, metrics), also=[calibrated])
        self.outliers: int = 0
        self.set_aside: int = 0
        self.changes: int = 0
        self.alarms: deque[dict[str, Any]] = deque(maxlen=_ALARMS)
        self._rule = AlarmRule()

    def update(self, rows: NumberPredictions | ClassPredictions) -> Self:
        """Score rows that have been learned; those of a warm-up, which have no prediction, don't count."""
        numbers = self.numbers(rows)
        sound = np.isfinite(numbers).all(axis=1)
        return self.add(rows, numbers) if sound.all() else self.add(rows.at(sound), numbers[sound])

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
    def n_alarms(self) -> int:
        """Alarms of all kinds."""
        return self.outliers + self.set_aside + self.changes

    def counted(self) -> dict[str, float]:
        """What has been counted so far, for those who count changes."""
        return {"scored": self.n, "outlier_alarms": self.outliers, "change_alarms": self.changes}

    def report(self) -> dict[str, Any]:
        """Everything, for people and programs."""
        alarms = {"outliers": self.outliers, "set_aside": self.set_aside, "changes": self.changes}
        return super().report() | {
            "calibration": self.calibration(),
            "alarms": {**alarms, "last": list(self.alarms)},
        }

    def calibration(self) -> dict[str, Any]:
        """Of classes how often the most probable one was right, by its probability; of numbers where they fell.

        The place of a number in its predicted distribution is between 0 and 1, and all places are as frequent if the
        distributions are right.
        """
        if not self._is_classes:
            rows = self[NumberCalibrationError].places(_PARTS)
            return {"kind": "places", "rows": rows.tolist(), "share": (rows / max(rows.sum(), 1.0)).tolist()}
        found = self[TopClassCalibrationError].reliability()
        numbers = {"rows": found.rows, "predicted": found.predicted, "observed": found.observed}
        return {"kind": "reliability", **{name: values.tolist() for name, values in numbers.items()}}

    def state(self) -> dict[str, Any]:
        """All of it as data that JSON can hold."""
        return super().state() | {
            "outliers": self.outliers,
            "set_aside": self.set_aside,
            "changes": self.changes,
            "alarms": list(self.alarms),
            "changing": self._rule.changing,
        }

    def restore(self, state: dict[str, Any]) -> Self:
        """Go on from what `state` described, of scores with the same metrics."""
        self.outliers, self.set_aside = int(state["outliers"]), int(state["set_aside"])
        self.changes = int(state["changes"])
        self.alarms.extend(state["alarms"])
        self._rule = AlarmRule(changing=bool(state["changing"]))
        return super().restore(state)
