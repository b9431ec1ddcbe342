"""Models of tables: columns by name, as in files."""

from collections.abc import Sequence
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pyarrow as pa

from onepass._typing import FloatArray
from onepass.estimators.rows import PredictedRows, Rows
from onepass.models.distribution import Prediction
from onepass.service.errors import ProblemError
from onepass.service.served.base import Bad, raise_first
from onepass.service.served.columns import ColumnRows, column_of
from onepass.service.served.values import numbers_of, refuse_keys, texts_of
from onepass.service.wire import Inputs, Key, Scalar
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.number import Number
from onepass.tables.columns.number_format import PLAIN
from onepass.tables.columns.roles import read_weights
from onepass.tables.columns.values import Bad as Reasons
from onepass.tables.explanation import Explanation, explain
from onepass.tables.model import TabularModel
from onepass.tables.readers.batches import RowBatch
from onepass.tables.reasons import Reason
from onepass.tables.targets import NumberTarget, Target

__all__ = ["TableRows"]

_FEW = 64  # rows that are read one by one sooner than as columns


class TableRows(ColumnRows):
    """The model of a table: columns by name, categories, texts, dates and missing values as in files."""

    kind = "table"
    model: TabularModel

    def __init__(self, model: TabularModel) -> None:
        roles = {role: name for role, name in (("key", model.by), ("weight", model.weight)) if name is not None}
        super().__init__(model, model.encoding.columns, roles, sorted(model.encoding.unused))
        self.expects_outliers = bool(model.estimator.outliers)
        self._written = {column.name: column.written for column in self.columns if isinstance(column, Number)}

    @classmethod
    def accepts(cls, model: Any) -> bool:
        """Whether it is the model of a table."""
        return isinstance(model, TabularModel)

    @property
    def target(self) -> Target:
        """What is predicted; of a logarithm it is known how far targets have gone."""
        return self.model.target

    @property
    def n_seen(self) -> int:
        """Rows learned."""
        return self.model.n_rows

    @property
    def n_set_aside(self) -> int:
        """Rows counted but not learned, since their target was absurdly far off."""
        return self.model.n_set_aside

    # Reading.

    def read(self, rows: Sequence[Inputs], keys: Sequence[Key | None]) -> tuple[Rows, Bad]:
        """Rows as numbers; a column that is left out is missing, and a weight that is left out is 1."""
        if len(rows) <= _FEW and not self.roles and self.model.time is None and all(key is None for key in keys):
            plain = [self._plain_row(row) for row in rows]
            if all(row is not None for row in plain):
                return Rows(plain[0] if len(plain) == 1 else np.concatenate(plain)), {}  # type: ignore[arg-type]
        bad: Bad = {}
        refuse_keys(keys, bad, self.model.by)
        named = [self._named(row, i, bad) for i, row in enumerate(rows)]
        reasons: Reasons = {}
        columns = {name: self._column([row.get(name) for row in named], name, reasons) for name in self._known}
        found, more = self._encode(pa.RecordBatch.from_pydict(columns), learn=True)
        return found, {**self._problems({**more, **reasons}), **bad}

    def _plain_row(self, row: Inputs) -> FloatArray | None:
        """A row of the model's columns and plain values as numbers; None if there is more to it."""
        if isinstance(row, list) or not row or not row.keys() <= self._known.keys():
            return None
        return self.model.encoding.encode_one(row)

    def _column(self, values: list[Scalar], name: str, reasons: Reasons) -> Any:
        """Values as an Arrow array; what each means does not depend on the other rows."""
        if name == self.model.weight:
            return numbers_of([1.0 if value is None else value for value in values], name, PLAIN, reasons)
        written = self._written.get(name)
        return texts_of(values) if written is None else numbers_of(values, name, written, reasons)

    def _encode(self, batch: Any, *, learn: bool) -> tuple[Rows, Reasons]:
        table = self.model
        encoded = table.encode(RowBatch(batch, 0, tuple))
        reasons = dict(encoded.bad)
        weights = None
        if table.weight is not None and learn and table.weight in batch.schema.names:
            weights = read_weights(column_of(batch, table.weight), table.weight, reasons)
            for i in np.flatnonzero(weights == 0.0).tolist():
                reasons.setdefault(i, Reason("zero_weight", table.weight, role="weight"))
        return Rows(encoded.X, weights=weights, keys=encoded.keys), reasons

    def _problems(self, reasons: Reasons) -> Bad:
        return {i: ProblemError.of(reason, f"x.{reason.column}") for i, reason in reasons.items()}

    def read_table(self, table: Any, *, learn: bool) -> Rows:
        """Rows of an Arrow batch; a column that is left out is missing. The target has its own name, or is ``y``."""
        self._check_table(table, [] if self.model.by is None else [self.model.by])
        try:
            rows, reasons = self._encode(_with_columns(table, self.names), learn=learn)
        except SchemaError as error:
            raise ProblemError.of(error.reason, "rows") from None
        bad = self._problems(reasons)
        y = self._read_target_column(table, bad) if learn else None
        raise_first(bad)
        return replace(rows, y=y)

    # Predicting and learning.

    def distribution(self, rows: Rows) -> Prediction:
        """What is predicted for numbers and counts; before the first row by the prior."""
        return self.model.distribution(rows.X, rows.keys)

    def probabilities(self, rows: Rows) -> FloatArray:
        """Probabilities of all classes."""
        return self.model.probabilities(rows.X, rows.keys)

    def learn(self, rows: Rows) -> PredictedRows:
        """Learn rows in their order."""
        limits = None
        if self.tracks_intervals and rows.limits is not None:
            assert isinstance(self.target, NumberTarget)
            limits = self.target.units.to_model(rows.limits)
        predicted: PredictedRows = self.model.predict_then_learn(replace(rows, limits=limits))
        return predicted

    @property
    def tracks_intervals(self) -> bool:
        """Whether intervals follow where the targets of rows that it learns really fall."""
        return self.model.tracks_intervals

    def explain(self, rows: Rows) -> tuple[str, Explanation]:
        """What each column adds to the prediction."""
        table = self.model
        if not table.n_rows:
            raise ProblemError(
                409, "nothing learned yet", "there is nothing to explain before the first row is learned"
            )
        if table.by is not None:
            raise ProblemError(409, "not for this model", f"a model per value of {table.by} can't explain predictions")
        return self._unit(rows), explain(table, rows.X)

    def weights(self) -> dict[str, list[Any]]:
        """What each feature does; a model per key, or one that has learned nothing, can't say."""
        return self.model.weights() if self.model.n_rows and self.model.by is None else {}

    def facts(self) -> dict[str, str]:
        """What the model is and has learned, in words."""
        learned = dict(self.model.facts()) if self.model.n_rows else {}
        return dict(self.model.choices()) | learned

    def published(self) -> Self:
        """A copy that never changes: the columns are shared, and what was learned is copied."""
        twin = copy(self.model)
        twin.estimator = deepcopy(self.model.estimator)
        return type(self)(twin)


def _with_columns(batch: Any, names: Sequence[str]) -> Any:
    """A batch that has all columns: one that was left out is missing in all rows."""
    absent = [name for name in names if name not in batch.schema.names]
    arrays = [*batch.columns, *(pa.nulls(batch.num_rows) for _ in absent)]
    return pa.RecordBatch.from_arrays(arrays, names=[*batch.schema.names, *absent]) if absent else batch
