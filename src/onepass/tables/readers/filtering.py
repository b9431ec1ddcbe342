"""Tables of which only the rows are read that a condition holds for.

The others are left out as if the file did not have them: rows are counted, cut into blocks and resumed by those that
are kept. A row for which the condition can't be evaluated, because a value is missing or unreadable, is left out too.
Numbers, dates and missing values are recognised by the first rows, as those of columns that are learned from are.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onepass._typing import FloatArray
from onepass.tables.columns.boolean import truth_values
from onepass.tables.columns.date import as_days
from onepass.tables.columns.date_format import ISO, DateFormat
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.inference import FirstValues, notation_of
from onepass.tables.columns.missing import MISSING_WORDS, without_words
from onepass.tables.columns.notation import AS_WRITTEN, Notation
from onepass.tables.columns.number_format import PLAIN, NumberFormat
from onepass.tables.columns.values import Bad, as_texts, is_numeric, is_text, parse_numbers, plain
from onepass.tables.columns.wording import quoted
from onepass.tables.readers.batches import RowBatch, rows_after
from onepass.tables.readers.condition import Column, Condition, Constant, Node, Operation
from onepass.tables.readers.notes import Note
from onepass.tables.readers.source import TableFile
from onepass.tables.reasons import Reason

__all__ = ["FilteredTable", "holds"]

_FIRST_ROWS = 10_000  # that show how values are written
_NEARLY_ALL = 0.98  # of the values of a column that are of its kind
_NOTABLE = 0.05  # share of rows whose values can't be read that is worth telling
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

    def __init__(
        self, table: TableFile, condition: Condition, notation: Notation | None = None, *, rereadable: bool = True
    ) -> None:
        self.name: str = table.name
        self.extent, self.table = table.extent, table.table
        self._table, self._condition, self._kinds = table, condition, condition.kinds()
        self._rereadable, self._first = rereadable, _FirstRows(tuple(self._kinds), notation or AS_WRITTEN)
        names = table.columns()
        missing = [] if names is None else [column for column in self._kinds if column not in names]
        if missing:
            reason = Reason("no_such_column", missing[0], file=self.name, missing=missing, names=names or ())
            raise SchemaError(reason, setting="where")

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
        if self._rereadable and not self._first.n_rows:
            self._first.add(self._table.head(_FIRST_ROWS))
        kept, unread = 0, _Unread(self.name)
        for batch in self._table.batches(self._with_own(types), 0):
            if not self._rereadable:
                self._first.add([batch])
            bad: dict[str, Bad] = {}
            mask = holds(self._condition, batch.record_batch, bad, self._first.formats)
            found = _filtered(batch, mask, kept)
            unread.add(batch, mask, bad)
            kept += len(found)
            self.left_out += len(batch) - len(found)
            self.unreadable = unread.words(kept + self.left_out)
            yield from rows_after(skip, found)

    def _with_own(self, types: dict[str, Any] | None) -> dict[str, Any] | None:
        """The columns asked for, and those of the condition; what it does not read plainly comes as written."""
        if types is None:
            return None
        own = {name: _TYPES[kind] for name, kind in self._kinds.items()}
        own |= {name: pa.string() for name, written in self._first.formats.items() if not written.is_plain}
        return {**own, **types, **{name: kind for name, kind in own.items() if kind == pa.string()}}


@dataclass(frozen=True)
class ValueFormat:
    """How the values of a column are written, as far as the first rows show."""

    number: NumberFormat = PLAIN
    date: DateFormat | None = None  # of a column of dates
    is_number: bool = True  # which dates of digits alone are, too
    missing_words: tuple[str, ...] = MISSING_WORDS
    examples: str = ""  # of dates

    @property
    def is_plain(self) -> bool:
        """Whether numbers are written as programs write them, and no dates."""
        return self.number.is_plain and self.date is None

    @classmethod
    def recognised(cls, values: FirstValues) -> "ValueFormat":
        """As inference takes a column for numbers, dates or other values."""
        kind = values.array.type
        known = is_numeric(kind) or pa.types.is_boolean(kind) or pa.types.is_temporal(kind)
        if not (known or is_text(values.array)) or values.array.null_count == len(values.array):
            return cls()
        number, share = values.as_numbers
        if share >= _NEARLY_ALL:
            date = None if values.are_codes else values.as_day_numbers
            return cls(number, date, True, number.missing_words, _examples(values.array, date))
        if values.are_truths:
            return cls(number, missing_words=values.truth_missing_words)
        date, share = values.as_dates
        if share >= _NEARLY_ALL:
            return cls(number, date, False, date.missing_words, _examples(values.array, date))
        return cls(number, missing_words=values.missing_words)


def _examples(array: Any, written: DateFormat | None) -> str:
    """The first date of a column, as ISO 8601 has it and as it is written there."""
    if written is None:
        return ""
    days = as_days(array, "", {}, written)
    row = int(np.flatnonzero(np.isfinite(days))[0])
    iso = str(np.datetime64(int(np.floor(days[row])), "D"))
    return f"'{iso}'" + (f" or {quoted(as_texts(array, '')[row].as_py().strip())}" if written.pattern else "")


class _FirstRows:
    """The first rows of a table, and how the columns of a condition are written there."""

    def __init__(self, names: tuple[str, ...], notation: Notation) -> None:
        self.n_rows = 0
        self.formats: dict[str, ValueFormat] = {}
        self._names, self._notation, self._tables = names, notation, list[Any]()
        self._next = 1

    def add(self, batches: list[RowBatch]) -> None:
        """Look at more rows, up to a limit: whenever they have doubled, as rows on standard input may come singly."""
        if self.n_rows >= _FIRST_ROWS:
            return
        self._tables += [pa.Table.from_batches([batch.record_batch]) for batch in batches if len(batch)]
        self.n_rows = sum(table.num_rows for table in self._tables)
        if self.n_rows >= self._next:
            self._next = 2 * self.n_rows
            self.formats = self._recognised()
        if self.n_rows >= _FIRST_ROWS:
            self._tables = []

    def _recognised(self) -> dict[str, ValueFormat]:
        try:
            sample = pa.concat_tables(self._tables, promote_options="permissive")
        except pa.ArrowTypeError:  # a database may have texts where it had numbers
            sample = self._tables[0]
        notation = notation_of(sample, self._notation)
        values = (
            FirstValues(name, plain(sample[name]), notation) for name in self._names if name in sample.schema.names
        )
        return {one.name: ValueFormat.recognised(one) for one in values}


class _Unread:
    """The values for which a condition could not be evaluated."""

    def __init__(self, name: str) -> None:
        self._name, self._n_rows = name, 0
        self._first = self._way_out = ""

    def add(self, batch: RowBatch, mask: Any, bad: dict[str, Bad]) -> None:
        """Note the values of a batch, by column, and count the rows that are left out for them."""
        self._n_rows += sum(not mask[row] for row in {row for rows in bad.values() for row in rows})
        for column, rows in bad.items():
            if rows and not self._first:
                row, why = next(iter(rows.items()))
                text = as_texts(batch.column(column), column)[row].as_py()
                self._first = f"{self._name}, line {batch.lines[row]}: {why}"
                self._way_out = f"a text compares in quotes, as in {_in_condition(column)} == {quoted(text)}"

    def words(self, n_rows: int) -> str:
        """The first of them, and how many there are if they are more than a few of the rows."""
        if self._n_rows <= _NOTABLE * n_rows:
            return self._first
        share = f"{self._n_rows:,} of {n_rows:,} rows ({100.0 * self._n_rows / n_rows:.0f} %)"
        return f"{self._first}; {share} are left out because a value can't be read; {self._way_out}"


def _in_condition(name: str) -> str:
    return name if name.isidentifier() else f"`{name}`"


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


def holds(
    condition: Condition, record_batch: Any, bad: dict[str, Bad], formats: Mapping[str, ValueFormat] | None = None
) -> Any:
    """For which rows a condition holds, ``(n,)``; what can't be read is noted in ``bad``, by column.

    Examples
    --------
    >>> rows = pa.RecordBatch.from_pydict({"price": ["3", "-1", None], "car": ["van", "van", "bike"]})
    >>> holds(Condition.parse("price > 0 or car == 'bike'"), rows, {}).tolist()
    [True, False, True]
    """
    with np.errstate(all="ignore"):
        found = _Values(record_batch, bad, formats or {}).truth(condition.tree)
    return found.fill_null(False).to_numpy(zero_copy_only=False)


class _Values:
    """The values of the nodes of a condition for some rows; truth may be unknown, as in SQL."""

    def __init__(self, record_batch: Any, bad: dict[str, Bad], formats: Mapping[str, ValueFormat]) -> None:
        self._record_batch, self._bad, self._n = record_batch, bad, record_batch.num_rows
        self._formats = formats

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
            return self._missing(parts[0])
        if sign == "in":
            equal = (self._compared("==", (parts[0], value), node.kind) for value in parts[1:])
            return reduce(pc.or_kleene, equal)
        return self._compared(sign, parts, node.kind)

    def _missing(self, node: Node) -> Any:
        assert isinstance(node, Column)
        values = self._column(node)
        if is_text(values):
            values = without_words(values, self._format_of(node).missing_words)
        return pc.is_null(values, nan_is_null=True)

    def _compared(self, sign: str, parts: tuple[Node, ...], kind: str) -> Any:
        dated = [part for part in parts if isinstance(part, Column) and self._format_of(part).date is not None]
        quoted_parts = [part for part in parts if isinstance(part, Constant) and kind == "text"]
        if dated and len(dated) + len(quoted_parts) == len(parts):
            return self._as_floats(sign, *(self._days(part, dated[0]) for part in parts))
        if kind == "number":
            return self._as_floats(sign, *map(self._numbers, parts))
        read = self._texts if kind == "text" else self.truth
        return _OF_OTHERS[sign](*map(read, parts))

    @staticmethod
    def _as_floats(sign: str, left: FloatArray, right: FloatArray) -> Any:
        return pa.array(_OF_NUMBERS[sign](left, right), mask=np.isnan(left) | np.isnan(right))

    def _numbers(self, node: Node) -> FloatArray:
        """Numbers, NaN where one is missing."""
        if isinstance(node, Constant):
            return np.full(self._n, node.value, dtype=np.float64)
        if isinstance(node, Column):
            written = self._format_of(node)
            if not written.is_number:
                reason = Reason("compared_with_number", node.name, examples=written.examples)
                raise SchemaError(reason, setting="where")
            return parse_numbers(self._column(node), node.name, self._bad.setdefault(node.name, {}), written.number)
        return np.asarray(_ARITHMETIC[node.sign](*map(self._numbers, node.parts)))

    def _days(self, node: Node, column: Column) -> FloatArray:
        """Days since 1970, NaN where a date is missing; a constant may be written as those of the column."""
        if isinstance(node, Column):
            dates = self._format_of(node).date
            assert dates is not None
            return as_days(self._column(node), node.name, self._bad.setdefault(node.name, {}), dates)
        assert isinstance(node, Constant)
        written = self._format_of(column)
        assert written.date is not None
        pattern = written.date.pattern
        day = re.split("[T,\\s]*%[HI]", pattern)[0]
        text = pa.array([str(node.value).strip()])
        for one in (DateFormat(pattern), DateFormat(day), ISO, DateFormat("%Y-%m"), DateFormat("%Y")):
            value = float(as_days(text, "", {}, one)[0])
            if np.isfinite(value):
                return np.full(self._n, value)
        name = _in_condition(column.name)
        given = str(node.value)
        reason = Reason("compared_with_text", column.name, given, examples=written.examples, written=name)
        raise SchemaError(reason, setting="where")

    def _format_of(self, column: Column) -> ValueFormat:
        return self._formats.get(column.name, _UNKNOWN)

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


_UNKNOWN = ValueFormat()
