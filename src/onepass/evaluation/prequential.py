"""Test-then-train evaluation: a model, and the baselines it is compared with, predict every row before learning it."""

from typing import Any

import numpy as np

from onepass._extras import is_installed
from onepass._messages import first_line
from onepass._typing import FloatArray
from onepass.estimators.rows import PredictedRows, Rows
from onepass.estimators.scaling import zero_for_nan
from onepass.evaluation.baselines import TunedBaseline, installed_baselines
from onepass.evaluation.held_out import HeldOut, LastRows
from onepass.evaluation.kept_rows import KeptRows
from onepass.evaluation.metrics import (
    REGISTRY,
    ClassPredictions,
    CountPredictions,
    Coverage95,
    LogLoss,
    LogNormalPredictions,
    NumberPredictions,
    PredictedStd,
    RootMeanSquaredError,
    RowMean,
    Scores,
    Task,
)
from onepass.evaluation.read_tally import ReadTally
from onepass.evaluation.references import LAST, MEAN, SAME_TIME, References
from onepass.evaluation.worst_row import WorstRow
from onepass.tables.model import TabularModel
from onepass.tables.readers.errors import StreamError
from onepass.tables.targets import ClassTarget, CountTarget, LogTarget, NumberTarget, Target

__all__ = ["BELIEVED", "OURS", "Trial", "own_predictions", "task_of"]

OURS = "onepass"
_KEPT, _WORST = 2_000, 8  # rows that a report looks at
_FEW = 200  # rows, of which a quarter says little
_FEWEST = 30  # rows, of which all of them do
_EARLY = 20  # first rows of a new model, none of which is blamed for a large error
BELIEVED = "onepass, rows believed"
"""The same model, scored on those rows alone whose target it holds for true when it sees it."""


class Trial:
    """Test-then-train over a stream of rows.

    Parameters
    ----------
    model : TabularModel
        Learns every row.
    compare : bool
        Have the baselines predict and learn the same rows, each with the setting that was best so far.
    split : HeldOut or LastRows, optional
        Rows that are not learned, and alone are scored; without, every row is scored before it is learned.
    """

    def __init__(self, model: TabularModel, *, compare: bool = False, split: HeldOut | LastRows | None = None) -> None:
        self.model = model
        self.split = split
        self.rows: int = 0
        self.task: Task = task_of(model.target)
        self.ours: Scores = Scores.of(self.task, with_std=True, also=[PredictedStd])
        self.believed: Scores = Scores.of(self.task, with_std=True)
        """Scores of the rows whose target is trusted; others, which may be of any size, say little."""
        loss = LogLoss if self.task == "classes" else RootMeanSquaredError
        self.worst: WorstRow = WorstRow(loss, early=0 if split or model.n_rows else _EARLY)
        self.read: ReadTally = ReadTally()
        """What was read, which those that read it count."""
        self.drawn: KeptRows = KeptRows(_KEPT)
        """Scored rows, drawn at random."""
        self.worst_rows: KeptRows = KeptRows(_WORST)
        self.confusion: Any = np.zeros((len(model.labels),) * 2, dtype=np.int64)
        """Rows by their class, and by the class that was most probable."""
        self._draw = np.random.default_rng(0)
        self.references: References = _references(model.target)
        self._reference_scores: dict[str, Scores] = {}
        self.n_outliers: int = 0
        self._doubts = bool(model.estimator.outliers)
        self._is_new = not model.n_rows
        self._set_aside_before = model.n_set_aside
        self.baselines: list[tuple[TunedBaseline, Scores]] = []
        if compare:
            found = installed_baselines(len(model.labels), tuple(getattr(model.estimator, "hidden_layer_sizes", ())))
            self.baselines = [(baseline, Scores.of(self.task, with_std=False)) for baseline in found]
        self.failed: dict[str, str] = {}
        """Why baselines gave up, by name."""

    @property
    def metrics(self) -> list[type[RowMean[Any]]]:
        """Those to draw along the stream, the main one first: all that have a better and a worse end."""
        return [metric for metric in self.ours.row_means if metric.goal is None]

    @property
    def passes(self) -> int:
        """How often the rows have to come: if random ones are held out a second time, to be tested."""
        return 2 if isinstance(self.split, HeldOut) else 1

    @property
    def n_set_aside(self) -> int:
        """Rows that the model has counted but not learned, since their target was absurdly far off."""
        return max(self.model.n_set_aside - self._set_aside_before, 0)

    def add(self, rows: Rows, file: str = "", turn: int = 0) -> None:
        """Predict rows of a file, score the predictions, learn the rows.

        If random rows are held out, all others are learned in the first pass, and those are scored in the second.
        """
        if not isinstance(self.split, HeldOut):
            self._score(rows, file, self.model.predict_then_learn(rows))
            return
        tests = self.split.are_tests(len(rows.y), turn)
        if turn == 0:
            learned = rows.at(np.flatnonzero(~tests))
            self.model.learn(learned)
            self.learn_references(learned)
        elif self.model.n_rows:
            self.score(rows.at(np.flatnonzero(tests)), file)

    def score(self, rows: Rows, file: str = "") -> None:
        """Predict rows of a file and score the predictions; none of the rows is learned."""
        self._score(rows, file, self.model.predict_and_score(rows))

    def _score(self, rows: Rows, file: str, predicted: PredictedRows | None) -> None:
        if predicted is None:
            return
        self._score_references(rows.y)
        self.rows += len(rows.y)
        ours = own_predictions(self.model.target, rows.y, predicted, doubts=self._doubts)
        self.ours.update(ours)
        self.worst.update(ours, file, rows.ids)
        self._keep(rows, ours, file)
        if self._doubts:
            self._add_believed(ours, predicted.outlier_probability <= 0.5)
        for baseline, scores in self.baselines:
            try:
                guess = baseline.predict_then_learn(zero_for_nan(rows.X), rows.y, rows.weights)
            except (ValueError, ArithmeticError) as error:  # e.g. weights that have grown out of all bounds
                self.failed[baseline.name] = first_line(error)
                continue
            scores.update(self._their_predictions(rows.y, guess))
        self.baselines = [(one, scores) for one, scores in self.baselines if one.name not in self.failed]

    def _keep(self, rows: Rows, ours: NumberPredictions | ClassPredictions, file: str) -> None:
        """Keep what a report shows of single rows."""
        self.drawn.update(rows, ours, self._draw.random(len(rows.y)))
        self.worst_rows.update(rows, ours, self.worst.metric.per_row(ours), lambda: (file, rows.ids()))
        if isinstance(ours, ClassPredictions):
            np.add.at(self.confusion, (ours.y.astype(int), ours.probabilities.argmax(axis=1)), 1)

    def learn_references(self, rows: Rows) -> None:
        """Have the mean, the last value and the like take in rows that are not scored, in the order of their files."""
        self.references.learn(_as_columns(self.model.target, rows.y))

    def _score_references(self, y: FloatArray) -> None:
        """Score the mean, the last value, and the value one period earlier; of rows at random the mean alone."""
        targets = _as_columns(self.model.target, y)
        if self.split is None:
            found = self.references.predict_then_learn(targets)
        else:
            found = self.references.predict_ahead(self.rows + np.arange(len(y)))
        for name in (MEAN,) if isinstance(self.split, HeldOut) else (MEAN, LAST, SAME_TIME):
            guess = found[name] if self.model.labels else found[name][:, 0]
            kind = ClassPredictions(y, guess) if self.model.labels else NumberPredictions(targets[:, 0], guess)
            scores = self._reference_scores.setdefault(name, Scores.of(self.task, with_std=False))
            scores.update(kind)

    @property
    def compared(self) -> dict[str, Scores]:
        """Scores of what the model is compared with, by name: the references, then the baselines."""
        found = dict(self._reference_scores)
        if self.references.period is None:  # it would be the last value once more
            found.pop(SAME_TIME, None)
        return found | {one.name: scores for one, scores in self.baselines}

    def _add_believed(self, ours: NumberPredictions | ClassPredictions, believed: Any) -> None:
        self.n_outliers += int((~believed).sum())
        if believed.any():
            self.believed.update(ours.at(believed))

    def check(self) -> None:
        """Raise an error if no row was scored, or one that says nothing."""
        if not self.rows:
            raise StreamError("no row could be scored: there are no rows, or all were rejected")
        if self._is_new and self.model.n_rows == 1:
            raise StreamError(
                "a single row can't be scored: mean and scale of the target were taken from it, so that the prediction "
                "is the target itself; give more rows, or a model that has learned others"
            )

    def scores(self) -> dict[str, dict[str, float]]:
        """Scores of every model, by name."""
        scores = {OURS: self.ours.total()}
        if 0 < self.n_outliers < self.rows:
            scores[BELIEVED] = self.believed.total()
        return scores | {name: scores.total() for name, scores in self.compared.items()}

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

    @property
    def is_small(self) -> bool:
        """Whether there are so few rows that scores are mostly chance, and known to the model by their scales."""
        return self._is_new and self.rows < _FEWEST

    def coverage_words(self) -> str:
        """How many targets lay inside the 95 % interval, quarter by quarter; nothing for classes and few rows."""
        if self.task == "classes" or self.rows < _FEW:
            return ""
        shares = self.ours.quarters()[Coverage95.name]
        listed = ", ".join(f"{100.0 * share:.1f}" for share in shares)
        return f"inside the 95 % interval, quarter by quarter of the rows: {listed} %"

    def over_time(self) -> dict[str, list[float]]:
        """Our scores over segments of the stream."""
        return self.ours.over_time()

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


def _references(target: Target) -> References:
    if isinstance(target, NumberTarget):
        return References(np.zeros(1) if isinstance(target, CountTarget) else target.decode(np.zeros(1)))
    return References(np.zeros(len(target.labels)), are_classes=True)


def _as_columns(target: Target, y: FloatArray) -> FloatArray:
    """Targets as the references take them: in their own units ``(n, 1)``, or classes one-hot ``(n, K)``."""
    if isinstance(target, NumberTarget):
        return target.decode(y)[:, None]
    return np.asarray(np.eye(len(target.labels))[y.astype(int)])


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
        moments = {"var": predicted.epistemic, "noise_var": predicted.aleatoric}
        return CountPredictions(y, predicted.mean, std, predicted.log_density, predicted.places, **moments)
    assert isinstance(target, NumberTarget)
    own_mean, own_std = target.moments(predicted.mean, std, predicted.aleatoric)
    density = target.log_density(y, predicted.log_density)
    if isinstance(target, LogTarget):
        logs = {"log_mean": predicted.mean * target.scale + target.centre, "log_std": std * target.scale}
        return LogNormalPredictions(target.decode(y), own_mean, own_std, density, predicted.places, **logs)
    return NumberPredictions(target.decode(y), own_mean, own_std, density, predicted.places)


def task_of(target: Target) -> Task:
    """What kind of target it is."""
    if isinstance(target, ClassTarget):
        return "classes"
    return "counts" if isinstance(target, CountTarget) else "numbers"
