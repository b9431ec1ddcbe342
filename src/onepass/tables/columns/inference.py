"""What the columns of a table hold, inferred from its first rows.

A column in which nearly all values read as numbers, truth values or dates is taken for that; the few others are errors
in the data. Columns that only number or name the rows are left out, unless the user asks for them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onepass._typing import FloatArray
from onepass.tables.columns.boolean import TRUTH_WORDS, Boolean, lower_texts
from onepass.tables.columns.category import Category, Hashed, likely_mistake
from onepass.tables.columns.date import Date, as_days
from onepass.tables.columns.encoding import Column, Encoding
from onepass.tables.columns.number import Number
from onepass.tables.columns.text import Text, TextSize, is_prose
from onepass.tables.columns.values import Bad, as_numbers, as_texts, describe_type, is_member, is_numeric, plain

__all__ = ["BUCKETS", "ONE_HOT", "infer"]

ONE_HOT = 20  # categories that get a feature each
BUCKETS = 64  # features that more of them share
_TEXT = TextSize()
_WRONG = 0.02  # share of the first rows that may have a value of another kind than their column


def infer(
    sample: Any,
    leave_out: Sequence[str],
    *,
    kinds: Mapping[str, str] | None = None,
    one_hot: int = ONE_HOT,
    buckets: int = BUCKETS,
    outliers: float = 0.0,
    text: TextSize = _TEXT,
) -> Encoding:
    """Infer from some rows what every column holds.

    Parameters
    ----------
    sample : pyarrow.RecordBatch or pyarrow.Table
    leave_out : names of columns that are not to be learned from
    kinds : mapping, optional
        What the caller knows better, by the name of the column.
    one_hot, buckets : int
        Up to ``one_hot`` categories have a feature each; more are hashed into ``buckets`` features.
    outliers : float
        Share of numbers that are not to be trusted: above 0 those that are wild don't count for the scale.
    text : TextSize
        Of columns that hold text.
    """
    columns: list[Column] = []
    ignored: dict[str, str] = {}
    for name in sample.schema.names:
        if name in leave_out:
            continue
        kind = (kinds or {}).get(name)
        found = _infer_column(name, plain(sample[name]), kind, one_hot, buckets, outliers, text)
        if isinstance(found, str):
            ignored[name] = found
        else:
            columns.append(found)
    columns.sort(key=lambda column: isinstance(column, Text))  # their features come last
    return Encoding(tuple(columns), ignored)


def _infer_column(
    name: str, array: Any, kind: str | None, one_hot: int, buckets: int, outliers: float, text: TextSize
) -> Column | str:
    """The column, or why there is nothing to be learned from it."""
    if pa.types.is_nested(array.type) or pa.types.is_binary(array.type):
        return f"it holds {describe_type(array.type)}"
    known = array.drop_null()
    if kind is None:
        if not len(known):
            return "it has no values among the first rows"
        kind = _likely_kind(name, known)
        if kind == "category" and _is_text(name, known, one_hot):
            kind = "text"
        if objection := _objection(name, known, kind, one_hot):
            return objection
    if kind == "number":
        return Number.inferred(name, array, outliers)
    if kind == "boolean":
        return Boolean(name)
    if kind == "date":
        return Date.inferred(name, known, missing=len(known) < len(array))
    if kind == "text":
        return Text.inferred(name, known, text)
    levels = pc.value_counts(as_texts(known, name))
    if kind == "hashed" or (kind == "category" and len(levels) > one_hot):
        return Hashed.inferred(name, levels, buckets)
    return Category.inferred(name, levels, len(known))


def _is_text(name: str, known: Any, one_hot: int) -> bool:
    levels = len(as_texts(known, name).unique())
    return levels > one_hot and is_prose(known, name, levels)


def _objection(name: str, known: Any, kind: str, one_hot: int) -> str:
    """Why there is nothing to be learned from a column that the user has not asked for."""
    if kind == "number":
        values = as_numbers(known, name, {})
        return "it numbers the rows" if _counts_rows(values[np.isfinite(values)]) else ""
    if kind == "category" and len(known) >= 100:
        levels = as_texts(known, name).unique()
        if len(levels) > max(one_hot, 0.9 * len(known)):
            return "nearly every row has its own value, as a name or a key has" + likely_mistake(levels.to_pylist())
    return ""


def _likely_kind(name: str, known: Any) -> str:
    if pa.types.is_boolean(known.type):
        return "boolean"
    if pa.types.is_timestamp(known.type) or pa.types.is_date(known.type):
        return "date"
    if is_numeric(known.type) or _reads_as(as_numbers, known, name):
        return "number"
    if is_member(lower_texts(known, name), TRUTH_WORDS).mean() >= 1.0 - _WRONG:
        return "boolean"
    return "date" if _reads_as(as_days, known, name) else "category"


def _reads_as(reader: Any, array: Any, name: str) -> bool:
    """Whether all values can be read so, but for a few that are simply wrong."""
    bad: Bad = {}
    reader(array, name, bad)
    return sum(not why.endswith(" is infinite") for why in bad.values()) <= _WRONG * len(array)


def _counts_rows(values: FloatArray) -> bool:
    return len(values) >= 20 and bool((values[1:] == values[:-1] + 1.0).all())
