"""Models of tables: columns by name, as in files."""

from collections.abc import Sequence
from copy import copy, deepcopy
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from onepass._typing import FloatArray
from onepass.estimators.batch import PredictedRows
from onepass.evaluation.metrics import ClassPredictions, NumberPredictions
from onepass.evaluation.prequential import own_predictions, task_of
from onepass.service.errors import ProblemError
from onepass.service.served.base import Bad, RowModel, RowNumbers
from onepass.service.served.values import check_columns, numbers_of, raise_first, refuse_keys, texts_of
from onepass.service.wire import Inputs, Key, Scalar
from onepass.tables.columns.boolean import Boolean
from onepass.tables.columns.category import Category
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.number import Number
from onepass.tables.columns.number_format import PLAIN, NumberFormat
from onepass.tables.columns.roles import read_keys, read_weights
from onepass.tables.columns.values import Bad as Reasons
from onepass.tables.columns.wording import listed
from onepass.tables.explanation import Explanation, explain
from onepass.tables.model import TabularModel
from onepass.tables.reasons import Reason
from onepass.tables.rows import Rows
from onepass.tables.targets import ClassTarget, CountTarget, LogTarget, NumberTarget

__all__ = ["TableRows", "column_of"]

_FEW = 64  # rows that are read one by one sooner than as columns


class TableRows(RowModel):
    """The model of a table: columns by name, categories, texts, dates and missing values as in files."""

    kind = "table"
    beside: ClassVar[tuple[str, ...]] = ()
    """Columns of a batch that are no features."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._table: TabularModel = model
        self._begin(self._table)

    def _begin(self, table: TabularModel) -> None:
        self._table, self.task, self.labels = table, task_of(table), table.labels
        self.expects_outliers = bool(table.estimator.outliers)
        columns = table.encoding.columns
        self._names = [column.name for column in columns]
        self._written = {column.name: column.written for column in columns if isinstance(column, Number)}
        self._roles = [name for name in (table.by, table.weight) if name is not None]
        self._known = dict.fromkeys([*self._names, *self._roles])

    @classmethod
    def accepts(cls, model: Any) -> bool:
        """Whether it is the model of a table."""
        return isinstance(model, TabularModel)

    @property
    def n_seen(self) -> int:
        """Rows learned."""
        return self._table.n_rows

    @property
    def n_set_aside(self) -> int:
        """Rows counted but not learned, since their target was absurdly far off."""
        return self._table.n_set_aside

    def schema(self) -> dict[str, Any]:
        """Columns and target, each with what it may hold."""
        table = self._table
        columns = [{"name": column.name, **_column_words(column)} for column in table.encoding.columns]
        columns += [
            {"name": name, "kind": role} for role, name in (("key", table.by), ("weight", table.weight)) if name
        ]
        return {"columns": columns, "target": _target_words(table.target), "ignored": sorted(table.encoding.unused)}

    # Reading.

    def read(self, rows: Sequence[Inputs], keys: Sequence[Key | None]) -> tuple[RowNumbers, Bad]:
        """Rows as numbers; a column that is left out is missing, and a weight that is left out is 1."""
        if len(rows) <= _FEW and not self._roles and all(key is None for key in keys):
            plain = [self._plain_row(row) for row in rows]
            if all(row is not None for row in plain):
                return RowNumbers(plain[0] if len(plain) == 1 else np.concatenate(plain)), {}  # type: ignore[arg-type]
        bad: Bad = {}
        refuse_keys(keys, bad, self._table.by)
        named = [self._named(row, i, bad) for i, row in enumerate(rows)]
        reasons: Reasons = {}
        columns = {name: self._column([row.get(name) for row in named], name, reasons) for name in self._known}
        found, more = self._encode(pa.RecordBatch.from_pydict(columns), learn=True)
        return found, {**self._problems({**more, **reasons}), **bad}

    def _plain_row(self, row: Inputs) -> FloatArray | None:
        """A row of the model's columns and plain values as numbers; None if there is more to it."""
        if isinstance(row, list) or not row or not row.keys() <= self._known.keys():
            return None
        return self._table.encoding.encode_one(row)

    def _column(self, values: list[Scalar], name: str, reasons: Reasons) -> Any:
        """Values as an Arrow array; what each means does not depend on the other rows."""
        if name == self._table.weight:
            return numbers_of([1.0 if value is None else value for value in values], name, PLAIN, reasons)
        written = self._written.get(name)
        return texts_of(values) if written is None else numbers_of(values, name, written, reasons)

    def _named(self, row: Inputs, i: int, bad: Bad) -> dict[str, Scalar]:
        if isinstance(row, list):
            if len(row) == len(self._names) and not self._roles:
                return dict(zip(self._names, row, strict=True))
            columns = f"an object with the columns {listed(list(self._known), 8)}"
            lists = "" if self._roles else f", or a list of {len(self._names)}"
            bad[i] = ProblemError(422, "bad value", f"x must be {columns}{lists}; got a list of {len(row)}", field="x")
            return {}
        known = sum(name in self._known for name in row)
        if known < len(row):
            unknown = [name for name in row if name not in self._known and name not in self._table.encoding.unused]
            if unknown:
                bad[i] = ProblemError(422, "unknown column", self._unknown_words(unknown), field=f"x.{unknown[0]}")
        if not known:
            bad.setdefault(
                i, ProblemError(422, "bad value", f"x has none of {listed(list(self._known), 8)}", field="x")
            )
        return row

    def _unknown_words(self, unknown: list[str]) -> str:
        name = self._table.target.name
        if name in unknown:
            return f"{name!r} is the target: it goes into y, and not into x"
        return f"there is no column {unknown[0]!r}; the columns are {listed(list(self._known), 20)}"

    def refuse_unknown(self, names: Sequence[str]) -> None:
        """Refuse columns of a batch that mean nothing here; the target may be there also to predict.

        What is replayed, or learned by a candidate with other columns, is not asked.
        """
        allowed = {*self._known, *self._table.encoding.unused, *self.beside, self._table.target.name, "y"}
        unknown = [name for name in names if name not in allowed]
        if unknown:
            raise ProblemError(422, "unknown column", self._unknown_words(unknown), field=unknown[0])

    def _encode(self, batch: Any, *, learn: bool) -> tuple[RowNumbers, Reasons]:
        table = self._table
        encoded = table.encoding.encode(batch)
        reasons = dict(encoded.bad)
        keys = None if table.by is None else read_keys(column_of(batch, table.by), table.by, reasons)
        weights = None
        if table.weight is not None and learn and table.weight in batch.schema.names:
            weights = read_weights(column_of(batch, table.weight), table.weight, reasons)
            for i in np.flatnonzero(weights == 0.0).tolist():
                reasons.setdefault(i, Reason("zero_weight", table.weight, role="weight"))
        return RowNumbers(encoded.X, keys, weights), reasons

    def _problems(self, reasons: Reasons) -> Bad:
        return {i: ProblemError.of(reason, f"x.{reason.column}") for i, reason in reasons.items()}

    @property
    def _has_bits(self) -> bool:
        """Whether the labels are 0 and 1, for which false and true are other words."""
        return set(self.labels) == {"0", "1"}

    def read_targets(self, targets: Sequence[Scalar]) -> tuple[FloatArray, Bad]:
        """Targets as the estimator learns them."""
        target = self._table.target
        reasons: Reasons = {}
        if isinstance(target, ClassTarget):
            written = NumberFormat(missing_words=target.missing_words) if target.numeric else None
        else:
            written = target.written
        values = [int(one) if isinstance(one, bool) else one for one in targets] if self._has_bits else list(targets)
        array = texts_of(values) if written is None else numbers_of(values, target.name, written, reasons)
        y = target.encode(array, reasons)
        return y, {i: ProblemError.of(reason, "y") for i, reason in reasons.items()}

    def read_table(self, table: Any, *, learn: bool) -> tuple[RowNumbers, FloatArray | None]:
        """Rows of an Arrow batch; a column that is left out is missing. The target has its own name, or is ``y``."""
        self._check_table(table, [] if self._table.by is None else [self._table.by])
        try:
            rows, reasons = self._encode(_with_columns(table, self._names), learn=learn)
        except SchemaError as error:
            raise ProblemError.of(error.reason, "rows") from None
        bad = self._problems(reasons)
        y = self._read_target_column(table, bad) if learn else None
        raise_first(bad)
        return rows, y

    def _check_table(self, table: Any, needed: Sequence[str]) -> None:
        """Refuse a batch without a column that is needed, with one twice, or with none that the model knows."""
        there = [name for name in self._known if name in table.schema.names]
        if not there:
            words = f"none of the columns {listed(list(self._known), 8)} is there"
            raise ProblemError(422, "missing column", words, field="x")
        check_columns(table, [*needed, *there])

    def _read_target_column(self, table: Any, bad: Bad) -> FloatArray:
        target = self._table.target
        reasons: Reasons = {}
        name = target.name if target.name in table.schema.names else "y"
        check_columns(table, [name if name in table.schema.names else target.name], "target")
        try:
            column = table.column(table.schema.get_field_index(name))
            if pa.types.is_boolean(column.type) and self._has_bits:
                column = column.cast(pa.int8())
            y = target.encode(column, reasons)
        except SchemaError as error:
            raise ProblemError.of(error.reason, "rows") from None
        for i, reason in reasons.items():
            bad.setdefault(i, ProblemError.of(reason, "y"))
        return y

    # Predicting and learning.

    def predict(self, rows: RowNumbers, level: float) -> dict[str, Any]:
        """Columns of answers; before the first row they are those of the prior."""
        return self._table.predictions(rows.X, level, rows.keys)

    def learn(self, rows: RowNumbers, y: FloatArray) -> PredictedRows:
        """Learn rows in their order."""
        predicted: PredictedRows = self._table.predict_then_learn(_ready(rows, y))
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


def _ready(rows: RowNumbers, y: FloatArray) -> Rows:
    return Rows(rows.X, y, (), len(y), lambda: range(len(y)), rows.weights, rows.keys)


def _with_columns(batch: Any, names: Sequence[str]) -> Any:
    """A batch that has all columns: one that was left out is missing in all rows."""
    absent = [name for name in names if name not in batch.schema.names]
    arrays = [*batch.columns, *(pa.nulls(batch.num_rows) for _ in absent)]
    return pa.RecordBatch.from_arrays(arrays, names=[*batch.schema.names, *absent]) if absent else batch


def column_of(batch: Any, name: str) -> Any:
    """A column of a batch, which is missing in all rows if it is not there."""
    place = batch.schema.get_field_index(name)
    return batch.column(place) if place >= 0 else pa.nulls(batch.num_rows)


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
