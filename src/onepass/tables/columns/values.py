"""Values of a column as numbers or texts, whatever Arrow type they came in.

Readers give texts or typed values, depending on the file format. What can't be converted costs its row only: it is
noted in a `Bad`, with the reason.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onepass._typing import FloatArray
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.missing import has_words, without_words
from onepass.tables.columns.number_format import PLAIN, NumberFormat
from onepass.tables.columns.wording import number_text
from onepass.tables.reasons import Reason

__all__ = [
    "Bad",
    "as_numbers",
    "as_texts",
    "describe_type",
    "is_member",
    "is_numeric",
    "is_text",
    "note_infinite",
    "parse_numbers",
    "parse_one_by_one",
    "plain",
]

_NUMBER = pa.float64()
_GLANCE = 100  # rows that show whether a column has words for missing values

Bad = dict[int, Reason]  # row -> why it is rejected


def as_numbers(array: Any, name: str, bad: Bad, written: NumberFormat = PLAIN) -> FloatArray:
    """Values as numbers, NaN where one is missing; those that are not numbers, or infinite, are noted in ``bad``."""
    values = parse_numbers(array, name, bad, written)
    note_infinite(values, name, bad)
    return values


def parse_numbers(array: Any, name: str, bad: Bad, written: NumberFormat = PLAIN) -> FloatArray:
    """Values as numbers that may be infinite, NaN where one is missing; other values are noted in ``bad``."""
    if array.type == _NUMBER and isinstance(array, pa.Array):  # nothing to parse, as in most of Parquet
        return np.asarray(array.to_numpy(zero_copy_only=False))
    array = plain(array)
    if is_text(array):
        return (
            _parse_plain(array, name, bad, written) if written.is_plain else _parse_written(array, name, bad, written)
        )
    if is_numeric(array.type) or pa.types.is_null(array.type) or pa.types.is_boolean(array.type):
        array = pc.cast(array, _NUMBER, safe=False)
        return np.asarray(array.to_numpy(zero_copy_only=False))
    raise SchemaError(Reason("wrong_type", name, describe_type(array.type), expected="numbers"))


def _parse_plain(array: Any, name: str, bad: Bad, written: NumberFormat) -> FloatArray:
    """Try the quickest way first: nothing but numbers, then numbers and words for missing ones."""
    # Arrow takes long to find that it can't, so a column that begins with a word is not even tried; and it would take
    # a word such as -999 for the number that it looks like.
    words = written.missing_words
    if not has_words(array[:_GLANCE], words) and not any(map(_is_number, words)):
        try:
            return np.asarray(pc.cast(array, pa.float64()).to_numpy(zero_copy_only=False))
        except pa.ArrowInvalid:
            pass
    known = without_words(array, written.missing_words)
    try:
        return np.asarray(pc.cast(known, pa.float64()).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:
        return parse_one_by_one(known, _number_of, lambda text: _not_a_number(name, text), bad)


def _parse_written(array: Any, name: str, bad: Bad, written: NumberFormat) -> FloatArray:
    known = without_words(array, written.missing_words)
    values: FloatArray = written.numbers(known)
    manner = replace(written, unsure=False).words()
    for row in np.flatnonzero(np.isnan(values) & known.is_valid().to_numpy(zero_copy_only=False)).tolist():
        bad.setdefault(row, _not_a_number(name, known[row].as_py(), manner))
    return values


def note_infinite(values: FloatArray, name: str, bad: Bad) -> None:
    """Note the rows whose value is infinite."""
    if not np.isfinite(values).all():
        for row in np.flatnonzero(np.isinf(values)).tolist():
            bad.setdefault(row, Reason("infinite", name))


def _number_of(text: str) -> float:
    if "_" in text:  # a number in Python's source only
        raise ValueError(text)
    return float(text)


def _is_number(word: str) -> bool:
    try:
        return math.isfinite(_number_of(word))
    except ValueError:
        return False


def _not_a_number(name: str, text: str, manner: str = "") -> Reason:
    comma = "," in text and NumberFormat(",", grouped=True).reads(pa.array([text.strip()]))[0].as_py()
    return Reason("decimal_comma" if comma else "not_a_number", name, text, manner=manner)


def as_texts(array: Any, name: str) -> Any:
    """Values as a string array; a whole number has no decimal point."""
    array = plain(array)
    if is_text(array) or pa.types.is_null(array.type):
        return array.cast(pa.string())
    if pa.types.is_floating(array.type):
        values = array.to_numpy(zero_copy_only=False)
        if not array.null_count and (np.abs(values) < 2**53).all() and (values == np.floor(values)).all():
            return pc.cast(pc.cast(array, pa.int64()), pa.string())
        texts = [None if np.isnan(value) else number_text(value) for value in values.tolist()]
        return pa.array(texts, pa.string())
    if is_numeric(array.type) or pa.types.is_boolean(array.type) or pa.types.is_temporal(array.type):
        return pc.cast(array, pa.string())
    raise SchemaError(Reason("unlearnable_type", name, describe_type(array.type)))


def parse_one_by_one(
    array: Any, value_of: Callable[[str], float], reason: Callable[[str], Reason], bad: Bad
) -> FloatArray:
    """Texts as numbers, NaN where one is missing; where ``value_of`` fails the reason is noted in ``bad``."""
    values = np.full(len(array), np.nan)
    for row, text in enumerate(array.to_pylist()):
        if text is not None and text.strip():
            try:
                values[row] = value_of(text.strip())
            except (ValueError, OverflowError):
                bad.setdefault(row, reason(text))
    return values


def plain(array: Any) -> Any:
    """An Arrow array in one piece and without a dictionary."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    array = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    return array.cast(pa.string()) if pa.types.is_string_view(array.type) else array


def is_text(array: Any) -> bool:
    """Whether an array holds texts."""
    kind = array.type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_numeric(kind: Any) -> bool:
    """Whether an Arrow type holds numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_member(texts: Any, values: Sequence[str]) -> Any:
    """Which texts are among the values, as a boolean array."""
    return pc.is_in(texts, value_set=pa.array(values, pa.string())).to_numpy(zero_copy_only=False)


def describe_type(kind: Any) -> str:
    """Say what an Arrow type holds, in a word."""
    if pa.types.is_nested(kind):
        return "lists or tables"
    if pa.types.is_temporal(kind):
        return "dates"
    if is_numeric(kind):
        return "numbers"
    if pa.types.is_boolean(kind):
        return "true and false"
    return "texts" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else str(kind)
