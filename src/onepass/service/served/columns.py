"""Rows with named columns and a target: how they are described, read and refused."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from onepass._typing import FloatArray
from onepass.estimators.rows import PredictedRows, Rows
from onepass.evaluation.metrics import ClassPredictions, NumberPredictions
from onepass.evaluation.prequential import own_predictions, task_of
from onepass.service.errors import ProblemError
from onepass.service.served.base import Bad, RowModel
from onepass.service.served.values import check_columns, numbers_of, texts_of
from onepass.service.wire import Inputs, Scalar
from onepass.tables.columns.boolean import Boolean
from onepass.tables.columns.category import Category
from onepass.tables.columns.column import Column
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.number import Number
from onepass.tables.columns.number_format import NumberFormat
from onepass.tables.columns.values import Bad as Reasons
from onepass.tables.columns.wording import listed
from onepass.tables.targets import ClassTarget, CountTarget, LogTarget, NumberTarget, Target

__all__ = ["ColumnRows", "column_of"]


class ColumnRows(RowModel):
    """A model whose rows have columns of these names.

    Parameters
    ----------
    model : what is served
    columns : what each of them is
    roles : columns that say something else about a row, by what that is
    ignored : columns that may be given and mean nothing
    """

    extra_columns: ClassVar[tuple[str, ...]] = ()
    """Columns of a batch that are not features."""

    def __init__(
        self,
        model: Any,
        columns: Sequence[Column],
        roles: Mapping[str, str] | None = None,
        ignored: Sequence[str] = (),
    ) -> None:
        super().__init__(model)
        self.columns, self.roles, self.ignored = columns, roles or {}, ignored
        self.task = task_of(self.target)
        self.labels = self.target.labels if isinstance(self.target, ClassTarget) else ()
        self.names = [column.name for column in columns]
        self._known = dict.fromkeys([*self.names, *self.roles.values()])

    @property
    @abstractmethod
    def target(self) -> Target:
        """What is predicted, and how it is written."""

    def schema(self) -> dict[str, Any]:
        """Columns and target, each with what it may hold."""
        columns = [{"name": column.name, **_column_words(column)} for column in self.columns]
        columns += [{"name": name, "kind": role} for role, name in self.roles.items()]
        return {"columns": columns, "target": _target_words(self.target), "ignored": list(self.ignored)}

    # Reading.

    def _named(self, row: Inputs, i: int, bad: Bad) -> dict[str, Scalar]:
        if isinstance(row, list):
            if len(row) == len(self.names) and not self.roles:
                return dict(zip(self.names, row, strict=True))
            columns = f"an object with the columns {listed(list(self._known), 8)}"
            lists = "" if self.roles else f", or a list of {len(self.names)}"
            bad[i] = ProblemError(422, "bad value", f"x must be {columns}{lists}; got a list of {len(row)}", field="x")
            return {}
        known = sum(name in self._known for name in row)
        if known < len(row):
            unknown = [name for name in row if name not in self._known and name not in self.ignored]
            if unknown:
                bad[i] = ProblemError(422, "unknown column", self._unknown_words(unknown), field=f"x.{unknown[0]}")
        if not known:
            bad.setdefault(
                i, ProblemError(422, "bad value", f"x has none of {listed(list(self._known), 8)}", field="x")
            )
        return row

    def _unknown_words(self, unknown: list[str]) -> str:
        name = self.target.name
        if name in unknown:
            return f"{name!r} is the target: it goes into y, and not into x"
        return f"there is no column {unknown[0]!r}; the columns are {listed(list(self._known), 20)}"

    def refuse_unknown(self, names: Sequence[str]) -> None:
        """Refuse columns of a batch that mean nothing here; the target may be there also to predict.

        What is replayed, or learned by a candidate with other columns, is not asked.
        """
        allowed = {*self._known, *self.ignored, *self.extra_columns, self.target.name, "y"}
        unknown = [name for name in names if name not in allowed]
        if unknown:
            raise ProblemError(422, "unknown column", self._unknown_words(unknown), field=unknown[0])

    @property
    def _has_bits(self) -> bool:
        """Whether the labels are 0 and 1, for which false and true are other words."""
        return set(self.labels) == {"0", "1"}

    def read_targets(self, targets: Sequence[Scalar]) -> tuple[FloatArray, Bad]:
        """Targets as the estimator learns them."""
        target = self.target
        reasons: Reasons = {}
        if isinstance(target, ClassTarget):
            written = NumberFormat(missing_words=target.missing_words) if target.numeric else None
        else:
            written = target.written
        values = [int(one) if isinstance(one, bool) else one for one in targets] if self._has_bits else list(targets)
        array = texts_of(values) if written is None else numbers_of(values, target.name, written, reasons)
        y = target.encode(array, reasons)
        return y, {i: ProblemError.of(reason, "y") for i, reason in reasons.items()}

    def _check_table(self, table: Any, needed: Sequence[str]) -> None:
        """Refuse a batch without a column that is needed, with one twice, or with none that the model knows."""
        there = [name for name in self._known if name in table.schema.names]
        if not there:
            words = f"none of the columns {listed(list(self._known), 8)} is there"
            raise ProblemError(422, "missing column", words, field="x")
        check_columns(table, [*needed, *there])

    def _read_target_column(self, table: Any, bad: Bad) -> FloatArray:
        target = self.target
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

    # Scoring and explaining.

    def scored(self, y: FloatArray, predicted: PredictedRows) -> NumberPredictions | ClassPredictions:
        """Predictions with their targets in the target's own units."""
        return own_predictions(self.target, y, predicted, doubts=self.expects_outliers)

    def target_text(self, y: float) -> str:
        """A target as people write it."""
        if self.labels:
            return self.labels[int(y)]
        assert isinstance(self.target, NumberTarget)
        return f"{float(self.target.decode(np.array([y]))[0]):.10g}"

    def _unit(self, rows: Rows) -> str:
        target = self.target
        if isinstance(target, ClassTarget):
            label = target.labels[1] if len(target.labels) == 2 else self.predict(rows, 0.95)["label"][0]
            return f"log odds of {label}"
        if isinstance(target, LogTarget):
            return f"logarithm of {target.name}"
        return f"logarithm of the rate of {target.name}" if isinstance(target, CountTarget) else target.name


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
