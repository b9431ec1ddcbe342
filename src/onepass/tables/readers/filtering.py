"""Tables of which only the rows are read that a condition holds for.

The others are left out as if the file did not have them: rows are counted, cut into blocks and resumed by those that
are kept. A row for which the condition can't be told, because a value is missing or can't be read, is left out too.
"""

import operator
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onepass._typing import FloatArray
from onepass.tables.columns.boolean import truth_values
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.values import Bad, as_texts, parse_numbers, plain
from onepass.tables.columns.wording import no_such_column
from onepass.tables.readers.batches import RowBatch, rows_after
from onepass.tables.readers.condition import Column, Condition, Constant, Node, Operation
from onepass.tables.readers.notes import Note
from onepass.tables.readers.source import TableFile

__all__ = ["FilteredTable", "holds"]

_TYPES = {"number": pa.float64(), "text": pa.string(), "truth": pa.bool_()}
_OF_NUMBERS: dict[str, Callable[..., Any]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_OF_OTHERS: dict[str, Callable[..., Any]] = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": np.divide,
    "//": np.floor_divide,
    "%": np.mod,
    "**": np.power,
    "neg": operator.neg,
}


class FilteredTable(TableFile):
    """The rows of a table that a condition holds for."""

    def __init__(self, table: TableFile, condition: Condition) -> None:
        self.name = table.name
        self.extent, self.table = table.extent, table.table
        self._table, self._condition, self._kinds = table, condition, condition.kinds()
        names = table.columns()
        missing = [] if names is None else [column for column in self._kinds if column not in names]
        if missing:
            raise SchemaError(no_such_column(self.name, missing, names or ()), setting="where")

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was found out about the table."""
        return self._table.notes

    def columns(self) -> list[str] | None:
        """Names of the columns, or None where every row may have its own."""
        return self._table.columns()

    def batches(self, types: dict[str, Any] | None, skip: int) -> Iterator[RowBatch]:
        """Rows after the first ``skip`` of those that are kept."""
        self.left_out, self.unreadable = 0, ""
        kept = 0
        for batch in self._table.batches(self._with_own(types), 0):
            bad: Bad = {}
            found = _filtered(batch, holds(self._condition, batch.record_batch, bad), kept)
            if bad and not self.unreadable:
                row, why = next(iter(bad.items()))
                self.unreadable = f"{self.name}, line {batch.lines[row]}: {why}"
            kept += len(found)
            self.left_out += len(batch) - len(found)
            yield from rows_after(skip, found)

    def _with_own(self, types: dict[str, Any] | None) -> dict[str, Any] | None:
        """The columns asked for, and those of the condition; what it reads as text must come as it is written."""
        if types is None:
            return None
        own = {name: _TYPES[kind] for name, kind in self._kinds.items()}
        return {**own, **types, **{name: kind for name, kind in own.items() if kind == pa.string()}}


def _filtered(batch: RowBatch, mask: Any, before: int) -> RowBatch:
    """The rows of a batch for which the mask is true, after so many kept before."""
    places = np.flatnonzero(mask)
    return replace(
        batch,
        record_batch=batch.record_batch if len(places) == len(batch) else batch.record_batch.take(pa.array(places)),
        start=before,
        line_numbers=lambda: np.asarray(batch.lines)[places].tolist(),
        offset=0,
        malformed=tuple(
            replace(one, before=before + int(np.searchsorted(places, one.before - batch.start)))
            for one in batch.malformed
        ),
    )


def holds(condition: Condition, record_batch: Any, bad: Bad) -> Any:
    """For which rows a condition holds, ``(n,)``; texts that should be numbers are noted in ``bad``.

    Examples
    --------
    >>> rows = pa.RecordBatch.from_pydict({"price": ["3", "-1", None], "car": ["van", "van", "bike"]})
    >>> holds(Condition.parse("price > 0 or car == 'bike'"), rows, {}).tolist()
    [True, False, True]
    """
    with np.errstate(all="ignore"):
        found = _Values(record_batch, bad).truth(condition.tree)
    return found.fill_null(False).to_numpy(zero_copy_only=False)


class _Values:
    """The values of the nodes of a condition for some rows; truth may be unknown, as in SQL."""

    def __init__(self, record_batch: Any, bad: Bad) -> None:
        self._record_batch, self._bad, self._n = record_batch, bad, record_batch.num_rows

    def truth(self, node: Node) -> Any:
        """A boolean array, null where the truth is not known."""
        if isinstance(node, Constant):
            return pa.array(np.full(self._n, node.value))
        if isinstance(node, Column):
            return truth_values(self._column(node), node.name)
        sign, parts = node.sign, node.parts
        if sign in ("and", "or"):
            return reduce(pc.and_kleene if sign == "and" else pc.or_kleene, map(self.truth, parts))
        if sign == "not":
            return pc.invert(self.truth(parts[0]))
        if sign == "truth":
            return self.truth(parts[0])
        if sign == "missing":
            return pc.is_null(self._column(parts[0]), nan_is_null=True)
        if sign == "in":
            equal = (self._compared("==", (parts[0], value), node.kind) for value in parts[1:])
            return reduce(pc.or_kleene, equal)
        return self._compared(sign, parts, node.kind)

    def _compared(self, sign: str, parts: tuple[Node, ...], kind: str) -> Any:
        if kind == "number":
            left, right = map(self._numbers, parts)
            return pa.array(_OF_NUMBERS[sign](left, right), mask=np.isnan(left) | np.isnan(right))
        read = self._texts if kind == "text" else self.truth
        return _OF_OTHERS[sign](*map(read, parts))

    def _numbers(self, node: Node) -> FloatArray:
        """Numbers, NaN where one is missing."""
        if isinstance(node, Constant):
            return np.full(self._n, node.value, dtype=np.float64)
        if isinstance(node, Column):
            return parse_numbers(self._column(node), node.name, self._bad)
        return np.asarray(_ARITHMETIC[node.sign](*map(self._numbers, node.parts)))

    def _texts(self, node: Node) -> Any:
        if isinstance(node, Constant):
            return pa.array([node.value] * self._n, pa.string())
        column = node.parts[0] if isinstance(node, Operation) else node
        assert isinstance(column, Column)
        return as_texts(self._column(column), column.name)

    def _column(self, node: Node) -> Any:
        assert isinstance(node, Column)
        place = self._record_batch.schema.get_field_index(node.name)
        return plain(self._record_batch.column(place)) if place >= 0 else pa.nulls(self._n)
