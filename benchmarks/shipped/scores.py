"""How well each learner predicts one table: after 80 % of its rows, and row by row from the first tenth on."""

import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit

from benchmarks.shipped.catalogue import ShippedTable
from benchmarks.shipped.peers import (
    BOOSTING,
    LINEAR,
    columns_for_boosting,
    predicted,
    tuned_boosting,
    tuned_linear,
)
from onepass.estimators.rows import Rows
from onepass.evaluation.prequential import OURS, Trial
from onepass.tables.inputs import Inputs, steps
from onepass.tables.model import TabularModel
from onepass.tables.schema import SAMPLE, SchemaOptions, infer_model
from onepass.tables.targets import NumberTarget

__all__ = ["SPLITS", "Result", "score"]

SPLITS = 5
_MEAN = "mean"


@dataclass(frozen=True)
class Result:
    """Losses by learner: log-loss for classes, else the root mean squared error over that of the mean."""

    package: str
    name: str
    task: str
    rows: int
    after_split: dict[str, float]
    coverage: float | None  # of our 95 % intervals, after the split
    row_by_row: dict[str, float]


def score(table: ShippedTable) -> Result:
    """Measure all learners on a table."""
    frame = table.load()
    if not table.in_order:
        frame = frame.sample(frac=1.0, random_state=0)
    frame = frame.reset_index(drop=True)
    peers = _Peers.tuned(_encoded(table, frame))
    found = [_after_split(table, frame, train, test, peers) for train, test in _splits(table, frame)]
    losses = {name: float(np.mean([one[name] for one, _ in found])) for name in found[0][0]}
    coverages = [coverage for _, coverage in found if coverage is not None]
    return Result(
        table.package,
        table.name,
        table.task,
        len(frame),
        losses,
        float(np.mean(coverages)) if coverages else None,
        _row_by_row(table, frame, peers),
    )


def _splits(table: ShippedTable, frame: pd.DataFrame) -> list[tuple[Any, Any]]:
    """Rows to learn and rows to predict: of a series the last fifth, else drawn several times."""
    if table.in_order:
        cut = round(0.8 * len(frame))
        return [(np.arange(cut), np.arange(cut, len(frame)))]
    rare = table.is_classes and frame[table.target].value_counts().min() < 2
    kind = StratifiedShuffleSplit if table.is_classes and not rare else ShuffleSplit
    return list(kind(SPLITS, test_size=0.2, random_state=0).split(frame, frame[table.target]))


@dataclass(frozen=True)
class _Encoded:
    """Rows of a table as a model takes them, and as gradient boosting does."""

    model: TabularModel
    rows: Rows
    columns: pd.DataFrame

    @property
    def y(self) -> np.ndarray:
        """Targets in their own units, or numbers of their classes."""
        target = self.model.target
        return target.decode(self.rows.y) if isinstance(target, NumberTarget) else self.rows.y

    def part(self, start: int, end: int) -> "_Encoded":
        """Some of the rows."""
        return _Encoded(self.model, self.rows.at(np.arange(start, end)), self.columns.iloc[start:end])


def _encoded(
    table: ShippedTable, frame: pd.DataFrame, model: TabularModel | None = None, sample: int = SAMPLE
) -> _Encoded:
    """The table through a CSV file, as `onepass fit` reads it, for a model or a new one made by the first rows."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.csv"
        frame.to_csv(file, index=False)
        inputs = Inputs((str(file),))
        sources = inputs.sources()
        if model is None:
            classes = tuple(sorted(frame[table.target].astype(str).unique())) if table.is_classes else ()
            options = SchemaOptions(table.target, table.task, classes, sample=sample)
            model, _ = infer_model(sources, options, rereadable=True)
        rows = Rows.joined([step.rows for step in steps(model, inputs, sources)])
    rejected = [reject.line - 2 for reject in rows.rejects]
    kinds = {column.name: column.kind for column in model.encoding.columns}
    columns = columns_for_boosting(frame.reset_index(drop=True).drop(index=rejected), kinds)
    return _Encoded(model, rows, columns)


def _after_split(
    table: ShippedTable, frame: pd.DataFrame, train: Any, test: Any, peers: "_Peers"
) -> tuple[dict[str, float], float | None]:
    """Losses on the test rows, and the coverage of our intervals."""
    known = _encoded(table, frame.iloc[train])
    model = known.model
    model.learn(known.rows)
    asked = _encoded(table, frame.iloc[test], model)
    ours_at = model.predictions(asked.rows.X, 0.95)
    y, coverage = asked.y, None
    if model.labels:
        ours = np.column_stack([ours_at[name] for name in model.prediction_names((0.95,))[1:]])
    else:
        ours = ours_at["mean"]
        coverage = float(np.mean((ours_at["lower"] <= y) & (y <= ours_at["upper"])))
    guesses = {OURS: ours, **peers.guesses(known, asked)}
    if model.labels:
        return {name: _log_loss(y, guess) for name, guess in guesses.items()}, coverage
    mean = _error(y, np.full(len(y), known.y.mean()))
    return {name: _error(y, guess) / mean for name, guess in guesses.items()}, coverage


def _row_by_row(table: ShippedTable, frame: pd.DataFrame, peers: "_Peers") -> dict[str, float]:
    """Losses over the last nine tenths: ours predicts each row before it learns it, others learn anew at tenths."""
    # What is inferred, too, comes from the rows that are not scored.
    whole = _encoded(table, frame, sample=max(round(0.1 * len(frame)), 10))
    ends = [round(len(whole.y) * tenth / 10) for tenth in range(1, 11)]
    guesses: dict[str, list[np.ndarray]] = {LINEAR: [], BOOSTING: [], _MEAN: []}
    for start, end in pairwise(ends):
        seen, coming = whole.part(0, start), whole.part(start, end)
        for name, guess in peers.guesses(seen, coming).items():
            guesses[name].append(guess)
        guesses[_MEAN].append(np.full(end - start, seen.y.mean()))
    whole.model.learn(whole.part(0, ends[0]).rows)
    scored = whole.part(ends[0], ends[-1])
    trial = Trial(whole.model)
    trial.add(scored.rows)
    ours = trial.scores()[OURS]
    joined = {name: np.concatenate(parts) for name, parts in guesses.items()}
    mean = joined.pop(_MEAN)
    if whole.model.labels:
        return {OURS: ours["log_loss"], **{name: _log_loss(scored.y, guess) for name, guess in joined.items()}}
    errors = {OURS: ours["rmse"], **{name: _error(scored.y, guess) for name, guess in joined.items()}}
    return {name: error / _error(scored.y, mean) for name, error in errors.items()}


@dataclass(frozen=True)
class _Peers:
    """The others, with the settings that suit the whole table best."""

    linear: Any
    boosting: Any

    @classmethod
    def tuned(cls, whole: _Encoded) -> "_Peers":
        n = len(whole.model.labels)
        return cls(tuned_linear(whole.rows.X, whole.y, classes=n), tuned_boosting(whole.columns, whole.y, classes=n))

    def guesses(self, known: _Encoded, asked: _Encoded) -> dict[str, np.ndarray]:
        """Predictions for some rows, from those that are known."""
        n = len(known.model.labels)
        return {
            LINEAR: predicted(self.linear, known.rows.X, known.y, asked.rows.X, classes=n),
            BOOSTING: predicted(self.boosting, known.columns, known.y, asked.columns, classes=n),
        }


def _log_loss(y: np.ndarray, guess: np.ndarray) -> float:
    return float(-np.mean(np.log(np.maximum(guess[np.arange(len(y)), y.astype(int)], 1e-15))))


def _error(y: np.ndarray, guess: np.ndarray) -> float:
    return float(np.sqrt(np.mean((y - guess) ** 2)))
