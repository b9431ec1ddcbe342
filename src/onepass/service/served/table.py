"""Models of tables, and estimators, which are models of a table of plain numbers."""

import json
from collections.abc import Sequence
from copy import copy, deepcopy
from typing import Any, Self

import numpy as np
import pyarrow as pa
from scipy.special import ndtri

from onepass._typing import FloatArray
from onepass.estimators import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
)
from onepass.estimators.batch import PredictedRows
from onepass.evaluation.metrics import ClassPredictions, NumberPredictions
from onepass.evaluation.prequential import own_predictions, task_of
from onepass.service.errors import ProblemError
from onepass.service.served.base import Bad, RowModel, RowNumbers
from onepass.service.wire import Inputs, Scalar
from onepass.tables.columns.boolean import Boolean
from onepass.tables.columns.category import Category
from onepass.tables.columns.encoding import Encoding
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.number import Number
from onepass.tables.columns.roles import read_keys, read_weights
from onepass.tables.columns.wording import listed
from onepass.tables.explanation import Explanation, explain
from onepass.tables.model import TabularModel
from onepass.tables.rows import Rows
from onepass.tables.targets import ClassTarget, CountTarget, LogTarget, NumberTarget

__all__ = ["EstimatorRows", "TableRows"]

_ESTIMATORS = (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
)


class TableRows(RowModel):
    """The model of a table: columns by name, categories, texts, dates and missing values as in files."""

    kind = "table"

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._table: TabularModel = model
        self._begin(self._table)

    def _begin(self, table: TabularModel) -> None:
        self._table, self.task, self.labels = table, task_of(table), table.labels
        self._types = table.types(target=False)
        self._roles = [name for name in (table.by, table.weight) if name is not None]
        self._known = {*self._types, *self._roles}

    @classmethod
    def accepts(cls, model: Any) -> bool:
        """Whether it is the model of a table, or an estimator."""
        return isinstance(model, (TabularModel, *_ESTIMATORS))

    @classmethod
    def of(cls, model: Any) -> Self:
        """Put it behind the questions."""
        if isinstance(model, TabularModel):
            return cls(model)
        return EstimatorRows(model)  # type: ignore[return-value]

    @property
    def n_seen(self) -> int:
        """Rows learned."""
        return self._table.n_rows

    def schema(self) -> dict[str, Any]:
        """Columns and target, each with what it may hold."""
        table = self._table
        columns = [{"name": column.name, **_column_words(column)} for column in table.encoding.columns]
        columns += [
            {"name": name, "kind": role} for role, name in (("key", table.by), ("weight", table.weight)) if name
        ]
        return {"columns": columns, "target": _target_words(table.target), "ignored": sorted(table.encoding.ignored)}

    # Reading.

    def read(self, rows: Sequence[Inputs], keys: Sequence[str | None]) -> tuple[RowNumbers, Bad]:
        """Rows as numbers; a column that is left out is missing."""
        bad: Bad = {}
        named = [self._named(row, i, bad) for i, row in enumerate(rows)]
        for i, key in enumerate(keys):
            if key is not None:
                bad[i] = ProblemError(422, "bad value", "key is for a fleet of perceptrons only", field="key")
        names = [*self._types, *(name for name in self._roles if name not in self._types)]
        columns = [_array([row.get(name) for row in named], self._types.get(name)) for name in names]
        found, reasons = self._encode(pa.RecordBatch.from_arrays(columns, names), learn=True)
        return found, {**self._problems(reasons), **bad}

    def _named(self, row: Inputs, i: int, bad: Bad) -> dict[str, Scalar]:
        if isinstance(row, list):
            names = list(self._types)
            if len(row) == len(names) and not self._roles:
                return dict(zip(names, row, strict=True))
            columns = f"an object with the columns {listed(list(self._known), 8)}"
            bad[i] = ProblemError(
                422, "bad value", f"x must be {columns}, or a list of {len(names)}; got a list of {len(row)}", field="x"
            )
            return {}
        if not self._known.issuperset(row):
            unknown = [name for name in row if name not in self._known and name not in self._table.encoding.ignored]
            if unknown:
                bad[i] = ProblemError(422, "unknown column", self._unknown_words(unknown), field=f"x.{unknown[0]}")
        elif not row:
            bad[i] = ProblemError(422, "bad value", f"x has none of {listed(list(self._known), 8)}", field="x")
        return row

    def _unknown_words(self, unknown: list[str]) -> str:
        name = self._table.target.name
        if name in unknown:
            return f"{name!r} is the target: it goes into y, and not into x"
        return f"there is no column {unknown[0]!r}; the columns are {listed(list(self._known), 20)}"

    def _encode(self, batch: Any, *, learn: bool) -> tuple[RowNumbers, dict[int, str]]:
        table = self._table
        encoded = table.encoding.encode(batch)
        reasons = dict(encoded.bad)
        keys = None if table.by is None else read_keys(_column(batch, table.by), table.by, reasons)
        weights = None
        if table.weight is not None and learn:
            weights = read_weights(_column(batch, table.weight), table.weight, reasons)
            for i in np.flatnonzero(weights == 0.0).tolist():
                reasons.setdefault(i, f"{table.weight} is 0, a row that does not count: leave it out")
        return RowNumbers(encoded.X, keys, weights), reasons

    def _problems(self, reasons: dict[int, str]) -> Bad:
        return {i: ProblemError(422, "bad value", reason, field=self._field(reason)) for i, reason in reasons.items()}

    def _field(self, reason: str) -> str:
        """The field that the reason is about: a reason begins with the name of its column."""
        named = [name for name in self._known if f"{name} is " in reason]
        return f"x.{max(named, key=len)}" if named else "x"

    def read_targets(self, targets: Sequence[Scalar]) -> tuple[FloatArray, Bad]:
        """Targets as the estimator learns them."""
        kind = self._table.types(target=True)[self._table.target.name]
        reasons: dict[int, str] = {}
        y = self._table.target.encode(_array(list(targets), kind), reasons)
        return y, {i: ProblemError(422, "bad value", reason, field="y") for i, reason in reasons.items()}

    def read_table(self, table: Any, *, learn: bool) -> tuple[RowNumbers, FloatArray | None]:
        """Rows of an Arrow batch; the column of the target has its name, or is ``y``."""
        target = self._table.target.name
        missing = [name for name in self._known if name not in table.schema.names]
        if missing:
            raise ProblemError(422, "missing column", f"there is no column {missing[0]!r}", field=missing[0])
        try:
            rows, reasons = self._encode(table, learn=learn)
            y = None
            if learn:
                name = target if target in table.schema.names else "y"
                y = self._table.target.encode(_column(table, name), reasons)
        except SchemaError as error:
            raise ProblemError(422, "bad value", str(error)) from None
        if reasons:
            first = min(reasons)
            raise ProblemError(
                422, "bad value", f"row {first}: {reasons[first]}", field=f"rows[{first}].{self._field(reasons[first])}"
            )
        return rows, y

    # Predicting and learning.

    def predict(self, rows: RowNumbers, level: float) -> dict[str, Any]:
        """Columns of answers."""
        table = self._table
        if table.n_rows:
            return table.predictions(rows.X, level, rows.keys)
        n = rows.X.shape[0]
        if isinstance(table.target, ClassTarget):  # nothing is known yet
            even = np.full((n, len(self.labels)), 1.0 / len(self.labels))
            return self.columns_of_answer([self.labels[0]] * n, even)
        half = float(ndtri(0.5 + level / 2))
        low, middle, high = (np.full(n, value) for value in table.target.decode(np.array([-half, 0.0, half])))
        return {"mean": middle, "std": np.full(n, (high[0] - low[0]) / (2 * half)), "lower": low, "upper": high}

    def learn(self, rows: RowNumbers, y: FloatArray) -> PredictedRows:
        """Learn rows in their order."""
        ready = Rows(rows.X, y, (), len(y), lambda: range(len(y)), rows.weights, rows.keys)
        predicted: PredictedRows = self._table.predict_then_learn(ready)
        return predicted

    def scored(self, y: FloatArray, predicted: PredictedRows) -> NumberPredictions | ClassPredictions:
        """Predictions with their targets in the target's own units."""
        return own_predictions(self._table, y, predicted)

    def target_text(self, y: float) -> str:
        """A target as people write it."""
        if self.labels:
            return self.labels[int(y)]
        assert isinstance(self._table.target, NumberTarget)
        return f"{float(self._table.target.decode(np.array([y]))[0]):.10g}"

    def explain(self, rows: RowNumbers) -> tuple[str, Explanation]:
        """What each column adds to the prediction."""
        table = self._table
        if not table.n_rows:
            raise ProblemError(
                409, "nothing learned yet", "there is nothing to explain before the first row is learned"
            )
        if table.by is not None:
            raise ProblemError(409, "not for this model", f"a model per value of {table.by} can't explain predictions")
        return self._unit(rows), explain(table, rows.X)

    def _unit(self, rows: RowNumbers) -> str:
        target = self._table.target
        if isinstance(target, ClassTarget):
            label = target.labels[1] if len(target.labels) == 2 else self.predict(rows, 0.95)["label"][0]
            return f"log odds of {label}"
        if isinstance(target, LogTarget):
            return f"logarithm of {target.name}"
        return f"logarithm of the rate of {target.name}" if isinstance(target, CountTarget) else target.name

    def weights(self) -> dict[str, list[Any]]:
        """What each feature does; a model per key, or one that has learned nothing, can't say."""
        return self._table.weights() if self._table.n_rows and self._table.by is None else {}

    def facts(self) -> dict[str, str]:
        """What the model is and has learned, in words."""
        learned = dict(self._table.facts()) if self._table.n_rows else {}
        return dict(self._table.choices()) | learned

    def published(self) -> Self:
        """A copy that nobody changes: what a column means stays, what was learned is copied."""
        twin = copy(self._table)
        twin.estimator = deepcopy(self._table.estimator)
        return type(self)(twin)


class EstimatorRows(TableRows):
    """An estimator: rows are lists of numbers, or objects by the names of its features."""

    kind = "estimator"

    def __init__(self, estimator: Any) -> None:
        self.model = estimator
        self._begin(_table_of(estimator))

    @property
    def n_seen(self) -> int:
        """Rows learned."""
        return int(self.model.n_seen_)

    def read(self, rows: Sequence[Inputs], keys: Sequence[str | None]) -> tuple[RowNumbers, Bad]:
        """Rows as numbers."""
        bad: Bad = {}
        named = [self._named(row, i, bad) for i, row in enumerate(rows)]
        X = np.zeros((len(rows), len(self._types)))
        for i, row in enumerate(named):
            if i not in bad:
                self._fill(X[i], row, i, bad)
        return RowNumbers(X), bad

    def _fill(self, into: FloatArray, row: dict[str, Scalar], i: int, bad: Bad) -> None:
        for place, name in enumerate(self._types):
            value = row.get(name)
            if value is None and self.model.missing == "mean":
                into[place] = np.nan
            elif isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e150:
                shown = "is missing" if value is None else f"is {json.dumps(value)[:60]}, no number that can be learned"
                bad[i] = ProblemError(422, "bad value", f"{name} {shown}", field=f"x.{name}")
                into[:] = 0.0
                return
            else:
                into[place] = value

    def read_table(self, table: Any, *, learn: bool) -> tuple[RowNumbers, FloatArray | None]:
        """Rows of an Arrow batch."""
        rows, y = super().read_table(table, learn=learn)
        if self.model.missing == "mean":
            for place, name in enumerate(self._types):
                rows.X[_column(table, name).is_null().to_numpy(zero_copy_only=False), place] = np.nan
        return rows, y

    def learn(self, rows: RowNumbers, y: FloatArray) -> PredictedRows:
        """Learn rows in their order."""
        predicted: PredictedRows = self.model.predict_then_learn_encoded(rows.X, y)
        self._table.n_rows = self.n_seen
        return predicted

    def published(self) -> Self:
        """A copy that nobody changes."""
        return type(self)(deepcopy(self.model))


def _table_of(estimator: Any) -> TabularModel:
    """An estimator as the model of a table of numbers that are taken as they are."""
    if not hasattr(estimator, "n_features_in_"):
        raise ProblemError(
            422,
            "nothing learned yet",
            f"a {type(estimator).__name__} that has learned nothing does not know its inputs: fit it on rows first",
        )
    names = getattr(estimator, "feature_names_in_", [f"x{i}" for i in range(estimator.n_features_in_)])
    encoding = Encoding(tuple(Number(str(name), 0.0, 1.0, missing=False) for name in names), {})
    classes = getattr(estimator, "classes_", None)
    if classes is not None:
        numeric = np.issubdtype(np.asarray(classes).dtype, np.number)
        return TabularModel.around(estimator, encoding, ClassTarget("y", tuple(map(str, classes)), bool(numeric)))
    if getattr(estimator, "n_outputs_", 1) > 1 or estimator._n_targets > 1:
        raise ProblemError(
            422, "not a model to serve", "an estimator of several targets can't be served: serve one each"
        )
    counts = estimator._learns_counts
    return TabularModel.around(estimator, encoding, CountTarget("y") if counts else NumberTarget("y", 0.0, 1.0))


def _column(batch: Any, name: str) -> Any:
    place = batch.schema.get_field_index(name)
    return batch.column(place) if place >= 0 else pa.nulls(batch.num_rows)


def _array(values: list[Scalar], kind: Any) -> Any:
    """Values of a column; what is not of its type is taken as a file of texts would have it."""
    if kind is not None and not (pa.types.is_floating(kind) and any(isinstance(value, bool) for value in values)):
        try:
            return pa.array(values, kind)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            pass
    texts = [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
    return pa.array(texts, pa.string())


def _column_words(column: Any) -> dict[str, Any]:
    words: dict[str, Any] = {"kind": column.kind, "words": column.words()}
    if isinstance(column, Number):
        words |= {"mean": column.centre, "std": column.scale}
    elif isinstance(column, Category):
        words |= {"values": list(column.levels)}
    elif isinstance(column, Boolean):
        words |= {"values": [True, False]}
    return words


def _target_words(target: Any) -> dict[str, Any]:
    if isinstance(target, ClassTarget):
        return {"name": target.name, "kind": "class", "labels": list(target.labels)}
    words = {"name": target.name, "kind": target.kind}
    return (
        words if isinstance(target, CountTarget | LogTarget) else words | {"mean": target.centre, "std": target.scale}
    )
