"""What the columns of a table hold, inferred from its first rows.

A column in which nearly all values read as numbers or dates, in one of the ways that people write them, is taken for
that; the few others are errors in the data. Digits with leading zeros are texts. Columns that only number or name the
rows are left out, unless the user asks for them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onepass._typing import FloatArray
from onepass.tables.columns.boolean import TRUTH_WORDS, lower_texts
from onepass.tables.columns.category import likely_mistake
from onepass.tables.columns.column import Column, column_class
from onepass.tables.columns.date import Date, likely_date_format
from onepass.tables.columns.date_format import DateFormat
from onepass.tables.columns.encoding import Encoding
from onepass.tables.columns.missing import MISSING_WORDS, frequent_words, with_placeholders, without_words
from onepass.tables.columns.notation import AS_WRITTEN, Notation
from onepass.tables.columns.number import Number
from onepass.tables.columns.number_format import (
    PLAIN,
    NumberFormat,
    has_leading_zeros,
    likely_decimal,
    likely_number_format,
)
from onepass.tables.columns.roles import is_identifier_name
from onepass.tables.columns.text import TextSize, is_prose
from onepass.tables.columns.values import as_numbers, as_texts, describe_type, is_member, is_numeric, is_text, plain
from onepass.tables.columns.wording import listed, quoted
from onepass.tables.reasons import Reason

__all__ = ["BUCKETS", "ONE_HOT", "WRONG", "FirstValues", "InferenceOptions", "infer", "notation_of"]

ONE_HOT = 20  # categories that get a feature each
BUCKETS = 64  # features that more of them share
WRONG = 0.02  # share of the first rows that may have a value of another kind than their column
_NEARLY = 0.8  # share of numbers from which on a column of texts is worth a doubt
_FEWEST_NAMED = 20  # rows before their names are taken for identifiers, not for numbers that happen to differ
_IDENTIFIES = "an identifier by its name, and different in every row"
_FEWEST_DATES = 5  # different numbers that have to be dates before all of them are
_CENTURY = 36525.0  # days before or after 1970 in which such dates lie


@dataclass(frozen=True)
class InferenceOptions:
    """What columns are made of their values.

    Parameters
    ----------
    one_hot, buckets : int
        Up to ``one_hot`` categories have a feature each; more are hashed into ``buckets`` features.
    outliers : float
        Share of numbers that are not to be trusted: above 0 those that are wild don't count for the scale.
    text : TextSize
        Of columns that hold text.
    """

    one_hot: int = ONE_HOT
    buckets: int = BUCKETS
    outliers: float = 0.0
    text: TextSize = field(default_factory=TextSize)


def infer(
    sample: Any,
    leave_out: Sequence[str],
    *,
    kinds: Mapping[str, str] | None = None,
    notation: Notation = AS_WRITTEN,
    **options: Any,
) -> Encoding:
    """Infer from some rows what every column holds.

    Parameters
    ----------
    sample : pyarrow.RecordBatch or pyarrow.Table
    leave_out : names of columns that are not to be learned from
    kinds : mapping, optional
        What the caller knows better, by the name of the column.
    notation : Notation
        How values are written, as far as it is known; see `notation_of`.
    options : those of `InferenceOptions`
    """
    asked = InferenceOptions(**options)
    columns: list[Column] = []
    ignored: dict[str, str] = {}
    doubts: dict[str, Reason] = {}
    for name in sample.schema.names:
        if name in leave_out:
            continue
        kind = (kinds or {}).get(name)
        values = FirstValues(name, plain(sample[name]), notation)
        found = _infer_column(values, kind, asked)
        if isinstance(found, str):
            ignored[name] = found
            if found == _IDENTIFIES:
                doubts[name] = Reason("identifier_ignored", name)
        else:
            columns.append(found)
        is_open = kind is None and name not in doubts and not isinstance(found, Number | Date)
        if is_open and (doubt := _nearly_numbers(values)):
            doubts[name] = doubt
    columns.sort(key=lambda column: column.is_sparse)  # their features come last
    return Encoding(tuple(columns), ignored, doubts=doubts)


def notation_of(sample: Any, notation: Notation) -> Notation:
    """What is known of how values are written, and what all columns of some rows together show of it."""
    texts = {name: plain(sample[name]) for name in sample.schema.names}
    texts = {name: array for name, array in texts.items() if is_text(array)}
    return replace(notation, likely_decimal=notation.decimal or likely_decimal(texts))


@dataclass(frozen=True)
class FirstValues:
    """The first values of a column, and the ways in which they can be read."""

    name: str
    array: Any
    notation: Notation = AS_WRITTEN

    @cached_property
    def as_numbers(self) -> tuple[NumberFormat, float]:
        """How they are written if they are numbers, and the share that is."""
        if is_text(self.array):
            return likely_number_format(self.array, self.notation)
        return replace(PLAIN, missing_words=self.notation.missing_words()), float(is_numeric(self.array.type))

    @cached_property
    def as_dates(self) -> tuple[DateFormat, float]:
        """How they are written if they are dates, and the share that is."""
        if is_text(self.array):
            return likely_date_format(self.array, self.notation)
        dates = pa.types.is_timestamp(self.array.type) or pa.types.is_date(self.array.type)
        digits = (*self.notation.date_formats, "%Y%m%d")[0] if pa.types.is_integer(self.array.type) else ""
        return DateFormat(digits, self.notation.missing_words()), float(dates)

    @cached_property
    def texts(self) -> Any:
        """Them as texts, null where one is missing."""
        texts = as_texts(self.array, self.name)
        return pc.if_else(
            pc.is_in(texts, pa.array(self.missing_words, pa.string())), pa.scalar(None, pa.string()), texts
        )

    @cached_property
    def counts(self) -> Any:
        """How often each text is among them, as Arrow counts them."""
        return pc.value_counts(self.texts.drop_null())

    @cached_property
    def missing_words(self) -> tuple[str, ...]:
        """Words that stand for a missing text: those that are frequent don't."""
        return self.notation.missing_words(frequent_words(as_texts(self.array, self.name), MISSING_WORDS))

    @cached_property
    def truth_missing_words(self) -> tuple[str, ...]:
        """Words that stand for a missing answer among yes and no."""
        texts = as_texts(self.array, self.name)
        return with_placeholders(texts) if self.notation.missing is None else self.notation.missing

    @property
    def are_truths(self) -> bool:
        """Whether they are yes and no in some words, and no third answer."""
        texts, words = as_texts(self.array, self.name), self.truth_missing_words
        known = lower_texts(texts, self.name, words).drop_null()
        third = self.notation.missing is None and frequent_words(texts, words)
        return len(known) > 0 and not third and bool(is_member(known, TRUTH_WORDS).all())

    @property
    def are_codes(self) -> bool:
        """Whether they are digits whose leading zeros mean something."""
        return is_text(self.array) and has_leading_zeros(self.known_numbers)

    @property
    def known_numbers(self) -> Any:
        """Texts that are not missing if they are numbers."""
        return without_words(self.array, self.as_numbers[0].missing_words).drop_null()

    @cached_property
    def as_day_numbers(self) -> DateFormat | None:
        """How they are written if they are dates of digits alone, as 20240131."""
        if not (pa.types.is_integer(self.array.type) or is_text(self.array)):
            return None
        known = self.known_numbers if is_text(self.array) else self.array.drop_null()
        given = [pattern for pattern in self.notation.date_formats if "%d" in pattern]
        for pattern in (*given, "%Y%m%d"):
            written = DateFormat(pattern, self.as_numbers[0].missing_words)
            # A look at the first spares one at all of most numbers.
            if all(_are_dates(values, written) for values in (known[:_FEWEST_DATES], known)):
                return written if len(known.unique()) >= _FEWEST_DATES else None
        return None


def _are_dates(values: Any, written: DateFormat) -> bool:
    return bool((np.abs(written.days(pc.cast(values, pa.string()))) < _CENTURY).all())


def _infer_column(values: FirstValues, kind: str | None, asked: InferenceOptions) -> Column | str:
    """The column, or why there is nothing to be learned from it."""
    array = values.array
    if pa.types.is_nested(array.type) or pa.types.is_binary(array.type):
        return f"it holds {describe_type(array.type)}"
    if kind is None:
        if not len((values.texts if is_text(array) else array).drop_null()):
            return "it has no values among the first rows"
        kind = _likely_kind(values)
        if kind == "category" and _is_text(values, asked.one_hot):
            kind = "text"
        if objection := _objection(values, kind, asked.one_hot):
            return objection
    return column_class(kind).inferred(values, asked)


def _is_text(values: FirstValues, one_hot: int) -> bool:
    known = values.texts.drop_null()
    levels = len(known.unique())
    return levels > one_hot and is_prose(known, values.name, levels)


def _objection(values: FirstValues, kind: str, one_hot: int) -> str:
    """Why there is nothing to be learned from a column that the user has not asked for."""
    if kind == "number":
        numbers = as_numbers(values.array, values.name, {}, values.as_numbers[0])
        known = numbers[np.isfinite(numbers)]
        if _counts_rows(known):
            return "it numbers the rows"
        return _IDENTIFIES if is_identifier_name(values.name) and _all_differ(known) else ""
    known = values.texts.drop_null()
    if kind == "category" and len(known) >= 100:
        levels = known.unique()
        if len(levels) > max(one_hot, 0.9 * len(known)):
            return "nearly every row has its own value, as a name or a key has" + likely_mistake(levels.to_pylist())
    return ""


def _likely_kind(values: FirstValues) -> str:
    if pa.types.is_boolean(values.array.type):
        return "boolean"
    if values.as_numbers[1] >= 1.0 - WRONG:
        if values.are_codes:
            return "category"
        return "number" if values.as_day_numbers is None else "date"
    if values.are_truths:
        return "boolean"
    return "date" if values.as_dates[1] >= 1.0 - WRONG else "category"


def _nearly_numbers(values: FirstValues) -> Reason | None:
    """What keeps a column from being one of numbers, if that is but a few of its values."""
    written, share = values.as_numbers
    if not is_text(values.array) or share < _NEARLY:
        return None
    known = values.known_numbers
    others = known.filter(pc.invert(written.reads(known))).unique().to_pylist()
    if not others or values.are_codes:
        return None
    return Reason("nearly_numbers", values.name, share=share, others=listed([quoted(one) for one in others], 3))


def _all_differ(values: FloatArray) -> bool:
    """Whether whole numbers are all different, in so many rows that this is not by chance."""
    whole = len(values) >= _FEWEST_NAMED and bool((values == np.floor(values)).all())
    return whole and len(np.unique(values)) == len(values)


def _counts_rows(values: FloatArray) -> bool:
    return len(values) >= 20 and bool((values[1:] == values[:-1] + 1.0).all())
