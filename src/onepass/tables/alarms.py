"""Alarms while a model learns: rows whose target it does not believe, and rows at which the truth has changed.

Both are judged just before a row is learned, by what was learned from the rows before it.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from onepass._typing import FloatArray
from onepass.estimators.rows import Rows
from onepass.tables.model import TabularModel
from onepass.tables.targets import ClassTarget, CountTarget, NumberTarget

__all__ = ["CHANGE", "OUTLIER", "Alarm", "AlarmDetector", "AlarmRule", "can_detect"]

OUTLIER, CHANGE = "outlier", "change"
_SURE = 0.5  # probability from which on an alarm is raised
_OVER = 0.1  # and below which a change is over, so that the next one is reported


class Alarm(NamedTuple):
    """A reported row, and why."""

    line: int
    kind: str
    """``"outlier"`` or ``"change"``."""
    probability: float
    target: str
    """As it is in the table."""
    predicted: str
    """The expected number, or the most probable class."""


def can_detect(model: TabularModel) -> bool:
    """Whether a model can tell of anything: that it doubts a target, sets an absurd number aside, or sees a change."""
    judges = isinstance(model.target, NumberTarget) and not isinstance(model.target, CountTarget)
    return judges or bool(model.estimator.outliers) or model.estimator.drift == "auto"


class AlarmRule:
    """When predictions raise an alarm.

    Parameters
    ----------
    changing : bool
        Whether the last row before was part of a change that has been reported.

    Examples
    --------
    >>> rule, none = AlarmRule(), np.zeros(4)
    >>> rule.alarms(none, np.array([0.0, 0.8, 0.6, 0.0])), rule.alarms(np.array([0.7]), np.array([0.9]))
    ([(1, 'change', 0.8)], [(0, 'outlier', 0.7), (0, 'change', 0.9)])
    """

    def __init__(self, *, changing: bool = False) -> None:
        self.changing: bool = changing

    def alarms(self, outlier_probability: FloatArray, change_probability: FloatArray) -> list[tuple[int, str, float]]:
        """Rows that raise an alarm, why, and with which probability, in their order."""
        found = [(row, OUTLIER) for row in np.flatnonzero(outlier_probability > _SURE).tolist()]
        found += [(row, CHANGE) for row in self._begun(change_probability)]
        probability = {OUTLIER: outlier_probability, CHANGE: change_probability}
        return [(row, kind, float(probability[kind][row])) for row, kind in sorted(found, key=lambda one: one[0])]

    def _begun(self, probability: FloatArray) -> Any:
        """Rows at which a change begins; the next one is reported only once this one is over."""
        if not self.changing and not (probability > _SURE).any():  # as for most rows
            return []
        clear = np.flatnonzero((probability > _SURE) | (probability < _OVER))
        now = probability[clear] > _SURE
        before = np.concatenate([[self.changing], now[:-1]])
        if len(now):
            self.changing = bool(now[-1])
        return clear[now & ~before[: len(now)]].tolist()


class AlarmDetector:
    """Learns rows, and tells of those that raise an alarm.

    Parameters
    ----------
    model : TabularModel
    tell : is given the name of the file and its alarms, block by block
    changing : bool
        Whether the last row before was part of a change that has been reported.
    """

    def __init__(
        self, model: TabularModel, tell: Callable[[str, Sequence[Alarm]], None], *, changing: bool = False
    ) -> None:
        self._rule = AlarmRule(changing=changing)
        self._model, self._tell = model, tell

    @property
    def changing(self) -> bool:
        """Whether the last row was part of a change that has been reported."""
        return self._rule.changing

    def learn(self, rows: Rows, file: str) -> None:
        """Learn rows of a file, in their order."""
        predicted = self._model.predict_then_learn(rows)
        if predicted is None:
            return
        if found := self._rule.alarms(predicted.outlier_probability, predicted.change_probability):
            lines = rows.ids()
            self._tell(
                file,
                [
                    Alarm(lines[row], kind, probability, *self._texts(rows.y[row], predicted.mean[row]))
                    for row, kind, probability in found
                ],
            )

    def _texts(self, y: float, mean: Any) -> tuple[str, str]:
        target = self._model.target
        if isinstance(target, ClassTarget):
            return target.labels[int(y)], target.labels[int(np.argmax(mean))]
        given, expected = target.decode(np.array([y, mean])).tolist()
        return f"{given:.10g}", f"{expected:.6g}"
