"""Test-then-train evaluation: a model, and the baselines it is compared with, predict every row before learning it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from onepass._extras import is_installed
from onepass._messages import first_line
from onepass._typing import FloatArray
from onepass.estimators.batch import PredictedRows
from onepass.estimators.scaling import zero_for_nan
from onepass.evaluation.baselines import TunedBaseline, installed_baselines
from onepass.evaluation.held_out import HeldOut
from onepass.evaluation.metrics import (
    REGISTRY,
    ClassPredictions,
    CountPredictions,
    Coverage95,
    LogLoss,
    LogNormalPredictions,
    MetricSet,
    NumberPredictions,
    OverTime,
    PredictedStd,
    RootMeanSquaredError,
    Task,
)
from onepass.evaluation.worst_row import WorstRow
from onepass.tables.model import TabularModel
from onepass.tables.readers.errors import StreamError
from onepass.tables.rows import Rows
from onepass.tables.targets import ClassTarget, CountTarget, LogTarget, NumberTarget, Target

__all__ = ["BELIEVED", "OURS", "Scores", "Trial", "own_predictions", "task_of"]

OURS = "onepass"
_FEW = 200  # rows, of which a quarter says little
BELIEVED = "onepass, rows believed"
"""The same model, scored on those rows alone whose target it holds for true when it sees it."""


@dataclass(frozen=True)
class Scores:
    """The metrics of one model over the whole stream, and over its segments."""

    total: MetricSet
    over_time: OverTime

    @classmethod
    def of(cls, task: Task, *, with_std: bool) -> "Scores":
        """Start with no rows; ``with_std`` if the model says how sure it is."""
        total = MetricSet(task, with_std=with_std)
        return cls(total, OverTime([*total.row_means, *([PredictedStd] if with_std else [])]))

    def update(self, predicted: NumberPredictions | ClassPredictions) -> None:
        """Score more rows."""
        self.total.update(predicted)
        self.over_time.update(predicted)


class Trial:
    """Test-then-train over a stream of rows.

    Parameters
    ----------
    model : TabularModel
        Learns every row.
    compare : bool
        Have the baselines predict and learn the same rows, each with the setting that was best so far.
    split : HeldOut, optional
        Rows that are not learned, and alone are scored; without, every row is scored before it is learned.
    """

    def __init__(self, model: TabularModel, *, compare: bool = False, split: HeldOut | None = None) -> None:
        self.model = model
        self.split = split
        self.rows: int = 0
        self.task: Task = task_of(model.target)
        self.ours: Scores = Scores.of(self.task, with_std=True)
        self.believed: Scores = Scores.of(self.task, with_std=True)
        """Scores of the rows whose target is believed; others, which may be of any size, say little."""
        self.worst: WorstRow = WorstRow(LogLoss if self.task == "classes" else RootMeanSquaredError)
        self.n_outliers: int = 0
        self._doubts = bool(model.estimator.outliers)
        self._set_aside_before = model.n_set_aside
        self.baselines: list[tuple[TunedBaseline, Scores]] = []
        if compare:
            found = installed_baselines(len(model.labels), tuple(getattr(model.estimator, "hidden_layer_sizes", ())))
            self.baselines = [(baseline, Scores.of(self.task, with_std=False)) for baseline in found]
        self.failed: dict[str, str] = {}
        """Why baselines gave up, by name."""

    @property
    def passes(self) -> int:
        """How often the rows have to come: with a test split a second time, to be tested."""
        return 1 if self.split is None else 2

    @property
    def n_set_aside(self) -> int:
        """Rows that the model has counted but not learned, since their target was absurdly far off."""
        return max(self.model.n_set_aside - self._set_aside_before, 0)

    def add(self, rows: Rows, file: str = "", turn: int = 0) -> None:
        """Predict rows of a file, score the predictions, learn the rows.

        With a test split rows are learned in the first pass, but for the test rows, which are scored in the second.
        """
        if self.split is None:
            self._score(rows, file, self.model.predict_then_learn(rows))
            return
        tests = self.split.are_tests(len(rows.y), turn)
        if turn == 0:
            self.model.learn(rows.at(np.flatnonzero(~tests)))
        elif self.model.n_rows:
            held_out = rows.at(np.flatnonzero(tests))
            self._score(held_out, file, self.model.predict_and_score(held_out))

    def _score(self, rows: Rows, file: str, predicted: PredictedRows | None) -> None:
        if predicted is None:
            return
        self.rows += len(rows.y)
        ours = own_predictions(self.model.target, rows.y, predicted, doubts=self._doubts)
        self.ours.update(ours)
        self.worst.update(ours, file, rows.line_numbers)
        if self._doubts:
            self._add_believed(rows.y, predicted)
        for baseline, scores in self.baselines:
            try:
                guess = baseline.predict_then_learn(zero_for_nan(rows.X), rows.y, rows.weights)
            except (ValueError, ArithmeticError) as error:  # e.g. weights that have grown out of all bounds
                self.failed[baseline.name] = first_line(error)
                continue
            scores.update(self._their_predictions(rows.y, guess))
        self.baselines = [(one, scores) for one, scores in self.baselines if one.name not in self.failed]

    def _add_believed(self, y: FloatArray, predicted: PredictedRows) -> None:
        believed = predicted.outlier_probability <= 0.5
        self.n_outliers += int((~believed).sum())
        if believed.any():
            part = PredictedRows(*(column[believed] for column in predicted))
            self.believed.update(own_predictions(self.model.target, y[believed], part, doubts=True))

    def check(self) -> None:
        """Raise an error if no row was scored."""
        if not self.rows:
            raise StreamError("no row could be scored: there are no rows, or all were rejected")

    def scores(self) -> dict[str, dict[str, float]]:
        """Scores of every model, by name."""
        scores = {OURS: self.ours.total.get()}
        if 0 < self.n_outliers < self.rows:
            scores[BELIEVED] = self.believed.total.get()
        return scores | {one.name: scores.total.get() for one, scores in self.baselines}

    def comparison_notes(self) -> list[str]:
        """Which baselines are missing, and what the others don't use of the rows, in words."""
        if not self.baselines:
            return []
        notes, weight, by = [], self.model.weight, self.model.by
        if not is_installed("river"):
            notes.append("models of River are left out, which is not installed: pip install 'onepass-learn[river]'")
        unweighted = [one.name for one, _ in self.baselines if not one.takes_weights]
        if weight is not None and unweighted:
            notes.append(f"rows count once, whatever their {weight}, for {' and '.join(unweighted)}: no weights there")
        if by is not None:
            notes.append(f"those compared have one model for all values of {by}, which they don't see")
        return notes

    def settings(self) -> dict[str, str]:
        """Settings of the baselines that have predicted best so far, by name."""
        return {baseline.name: baseline.setting for baseline, _ in self.baselines}

    def coverage_words(self) -> str:
        """How many targets lay inside the 95 % interval, quarter by quarter; nothing for classes and few rows."""
        if self.task == "classes" or self.rows < _FEW:
            return ""
        shares = self.ours.over_time.quarters()[Coverage95.name]
        listed = ", ".join(f"{100.0 * share:.1f}" for share in shares)
        return f"inside the 95 % interval, quarter by quarter of the rows: {listed} %"

    def over_time(self) -> dict[str, list[float]]:
        """Our scores over segments of the stream."""
        segments = {name: values.tolist() for name, values in self.ours.over_time.segments().items()}
        return {"rows": self.ours.over_time.rows.tolist(), **segments}

    def table(self) -> list[tuple[str, ...]]:
        """Scores as text: a row of headings, then one row per model."""
        scores = self.scores()
        names = list(scores[OURS])
        head = ("", *(self.title(name) for name in names))
        return [head, *((model, *(self._text(name, found) for name in names)) for model, found in scores.items())]

    def title(self, name: str) -> str:
        """Heading of a metric."""
        return REGISTRY[self.task][name].title

    def _text(self, name: str, found: dict[str, Any]) -> str:
        return REGISTRY[self.task][name].text(found[name]) if name in found else "-"

    def _their_predictions(self, y: FloatArray, guess: FloatArray) -> NumberPredictions | ClassPredictions:
        """Means, or probabilities, of a baseline with their targets; numbers in the target's own units."""
        target = self.model.target
        if not isinstance(target, NumberTarget):
            return ClassPredictions(y, guess)
        return NumberPredictions(target.decode(y), target.decode(guess))


def own_predictions(
    target: Target, y: FloatArray, predicted: PredictedRows, *, doubts: bool
) -> NumberPredictions | ClassPredictions:
    """What a model predicted just before it learned targets ``y``, and these, in the target's own units.

    ``doubts``: whether the model expects outliers.
    """
    task = task_of(target)
    if task == "classes":
        best = predicted.mean.argmax(axis=1)
        std = np.sqrt(predicted.epistemic[np.arange(len(best)), best])
        observed = predicted.log_density if doubts else None  # else that of the mean
        return ClassPredictions(y, predicted.mean, std, observed)
    std = predicted.std
    if task == "counts":
        moments = {"mean": predicted.mean, "var": predicted.epistemic, "noise_var": predicted.aleatoric}
        return CountPredictions(y=y, std=std, log_densities=predicted.log_density, **moments)
    assert isinstance(target, NumberTarget)
    own_mean, own_std = target.moments(predicted.mean, std, predicted.aleatoric)
    density = target.log_density(y, predicted.log_density)
    if isinstance(target, LogTarget):
        logs = {"log_mean": predicted.mean * target.scale + target.centre, "log_std": std * target.scale}
        return LogNormalPredictions(target.decode(y), own_mean, own_std, density, **logs)
    return NumberPredictions(target.decode(y), own_mean, own_std, density)


def task_of(target: Target) -> Task:
    """What kind of target it is."""
    if isinstance(target, ClassTarget):
        return "classes"
    return "counts" if isinstance(target, CountTarget) else "numbers"
