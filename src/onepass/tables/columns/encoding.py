"""Columns as numbers: what each column of a table holds, found out once and then kept for ever.

`infer` looks at the first rows; an `Encoding` turns any later rows into the numbers a model learns from, says in words
what it does, and goes into the model's file. A row that holds what its column can't be is named, with the reason.

Numbers are centred and scaled by the first rows, so that one prior suits all weights; whatever is on or off stays 0 or
1, so that a rare category starts with the same modest prior as a frequent one.
"""

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onepass._typing import FloatArray
from onepass.files.state import Parameters, as_number

__all__ = [
    "FARTHEST",
    "KINDS",
    "Bad",
    "Boolean",
    "Category",
    "Column",
    "Date",
    "Encoded",
    "Encoding",
    "Hashed",
    "Number",
    "SchemaError",
    "as_numbers",
    "as_texts",
    "centre_and_spread",
    "describe_type",
    "infer",
    "listed",
    "note_far",
    "number_text",
]

KINDS = ("number", "boolean", "category", "hashed", "date")
ONE_HOT = 20  # categories that get a feature each
BUCKETS = 64  # features that more of them share
_WRONG = 0.02  # share of the first rows that may hold what their column does not
# Spreads from the centre up to which a number is taken: its powers, and products with others, stay finite. Nothing that
# was measured is farther away; what is comes from a fault.
FARTHEST = 1e50
_DAY = 86400e6  # microseconds
_YEAR = 365.25
_LONGEST_SHOWN = 40  # characters of a text in a message
_COMMA = re.compile(r"\s*[-+]?\d+(\.\d{3})*,\d+\s*")
_OTHER_DATE = re.compile(r"\s*\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2})\b.*")
_TRUE, _FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")

Bad = dict[int, str]  # row -> why it can't be taken


class SchemaError(ValueError):
    """Columns that are not what they should be; the message says which."""


# Values of a column, whatever Arrow type they came in.


def as_numbers(array: Any, name: str, bad: Bad) -> FloatArray:
    """Values as numbers, NaN where one is missing; what is none, or infinite, goes to ``bad``."""
    array = _plain(array)
    if _is_text(array):
        values = _parsed(array, pa.float64(), _number_of, name, "no number", bad)
    elif _is_numeric(array.type) or pa.types.is_null(array.type) or pa.types.is_boolean(array.type):
        if array.type != pa.float64():
            array = pc.cast(array, pa.float64(), safe=False)
        values = array.to_numpy(zero_copy_only=False)
    else:
        raise SchemaError(f"column {name!r} holds {describe_type(array.type)} where numbers were expected")
    if not np.isfinite(values).all():
        for row in np.flatnonzero(np.isinf(values)).tolist():
            bad.setdefault(row, f"{name} is infinite")
    return np.asarray(values)


def as_texts(array: Any, name: str) -> Any:
    """Values as a string array; a whole number has no decimal point."""
    array = _plain(array)
    if _is_text(array) or pa.types.is_null(array.type):
        return array.cast(pa.string())
    if pa.types.is_floating(array.type):
        values = array.to_numpy(zero_copy_only=False)
        if not array.null_count and (np.abs(values) < 2**53).all() and (values == np.floor(values)).all():
            return pc.cast(pc.cast(array, pa.int64()), pa.string())
        texts = [None if np.isnan(value) else number_text(value) for value in values.tolist()]
        return pa.array(texts, pa.string())
    if _is_numeric(array.type) or pa.types.is_boolean(array.type) or pa.types.is_temporal(array.type):
        return pc.cast(array, pa.string())
    raise SchemaError(f"column {name!r} holds {describe_type(array.type)}, which can't be learned from; leave it out")


def number_text(value: float) -> str:
    """Write a number as one would by hand.

    Examples
    --------
    >>> number_text(3.0), number_text(0.25)
    ('3', '0.25')
    """
    return str(int(value)) if value == np.floor(value) and abs(value) < 2**53 else repr(float(value))


def _number_of(text: str) -> float:
    if "_" in text:  # a number in Python's source only
        raise ValueError(text)
    return float(text)


def centre_and_spread(values: FloatArray) -> tuple[float, float]:
    """Mean and standard deviation of all that is not far outside; a spread of 1 where there is none.

    Examples
    --------
    >>> centre_and_spread(np.array([1.0, 3.0, 1e308, 1.0, 3.0]))
    (2.0, 1.0)
    """
    if not len(values):
        return 0.0, 1.0
    with np.errstate(over="ignore"):
        middle = _middle(values)
        distances = np.abs(values - middle)
        near = values[distances <= FARTHEST * (_middle(distances) or abs(middle) or 1.0)]
    # A power of two: the same digits, but no square is too large.
    largest = float(np.abs(near).max())
    exponent = math.frexp(largest)[1]
    scaled = np.ldexp(near, -exponent)
    spread = math.ldexp(float(scaled.std()), exponent)
    return math.ldexp(float(scaled.mean()), exponent), 1.0 if spread <= 1e-12 * largest else spread


def _middle(values: FloatArray) -> float:
    """Give one of the values, with as many below as above it."""
    return float(np.partition(values, len(values) // 2)[len(values) // 2])


def note_far(scaled: FloatArray, values: FloatArray, name: str, bad: Bad) -> None:
    """Name the rows whose value, once scaled, is too far away to be taken."""
    for row in np.flatnonzero(np.abs(scaled) > FARTHEST).tolist():
        bad.setdefault(row, f"{name} is {values[row]:g}, far outside anything seen")


def _as_days(array: Any, name: str, bad: Bad) -> FloatArray:
    """Times as days since 1970 in UTC, NaN where one is missing."""
    array = _plain(array)
    if _is_text(array):
        return _parsed(
            array, pa.timestamp("us"), _days_of, name, "no date as in 2024-12-31 or 2024-12-31T23:59:59", bad
        )
    if pa.types.is_null(array.type):
        return np.full(len(array), np.nan)
    if not (pa.types.is_timestamp(array.type) or pa.types.is_date(array.type)):
        raise SchemaError(f"column {name!r} holds {describe_type(array.type)} where dates were expected")
    return _to_days(pc.cast(array, pa.timestamp("us", getattr(array.type, "tz", None)), safe=False))


def _to_days(times: Any) -> FloatArray:
    return np.asarray(pc.cast(times, pa.int64()).to_numpy(zero_copy_only=False) / _DAY)


def _days_of(text: str) -> float:
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() / 86400.0


def _parsed(array: Any, kind: Any, one: Any, name: str, wrong: str, bad: Bad) -> FloatArray:
    """Texts parsed all at once, or where that fails one by one."""
    try:
        parsed = pc.cast(array, kind)
        return _to_days(parsed) if pa.types.is_timestamp(kind) else np.asarray(parsed.to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:
        pass
    values = np.full(len(array), np.nan)
    for row, text in enumerate(array.to_pylist()):
        if text is not None and text.strip():
            try:
                values[row] = one(text.strip())
            except (ValueError, OverflowError):
                comma = (
                    ": a decimal point is expected, no comma" if one is _number_of and _COMMA.fullmatch(text) else ""
                )
                bad.setdefault(row, f"{name} is {_shown(text)}, {wrong}{comma}")
    return values


def _plain(array: Any) -> Any:
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _is_text(array: Any) -> bool:
    kind = array.type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_numeric(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def describe_type(kind: Any) -> str:
    """Say what an Arrow type holds, in a word."""
    if pa.types.is_nested(kind):
        return "lists or tables"
    if pa.types.is_temporal(kind):
        return "dates"
    if _is_numeric(kind):
        return "numbers"
    if pa.types.is_boolean(kind):
        return "true and false"
    return "texts" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else str(kind)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "...")


# Columns.


@dataclass(frozen=True)
class Number:
    """Centred and scaled; a missing one is the mean, and says so if that was so among the first rows."""

    name: str
    centre: float
    spread: float
    missing: bool
    kind: ClassVar[str] = "number"
    exclusive: ClassVar[tuple[int, tuple[float, ...]]] = (0, ())

    @property
    def features(self) -> list[str]:
        """Names of the numbers made of it."""
        return [self.name, *([f"{self.name} is missing"] if self.missing else [])]

    def words(self) -> str:
        """Say what is done with it."""
        note = "; missing: its mean, and a feature that says so" if self.missing else ""
        return f"number, (x - {self.centre:.4g}) / {self.spread:.4g}{note}"


@dataclass(frozen=True)
class Boolean:
    """1 for true, 0 for false, one half for missing."""

    name: str
    kind: ClassVar[str] = "boolean"
    exclusive: ClassVar[tuple[int, tuple[float, ...]]] = (0, ())

    @property
    def features(self) -> list[str]:
        """Names of the numbers made of it."""
        return [self.name]

    def words(self) -> str:
        """Say what is done with it."""
        return "true or false, as 1 or 0; missing: 0.5"

    def fill(self, array: Any, out: FloatArray, bad: Bad) -> None:
        """Write the features of all rows."""
        array = _plain(array)
        if pa.types.is_boolean(array.type):
            values = pc.cast(array, pa.float64()).to_numpy(zero_copy_only=False)
            out[:, 0] = np.where(np.isnan(values), 0.5, values)
            return
        texts = pc.utf8_lower(pc.utf8_trim_whitespace(as_texts(array, self.name)))
        true, false = (_member(texts, values) for values in (_TRUE, _FALSE))
        out[:, 0] = np.where(true, 1.0, np.where(false, 0.0, 0.5))
        odd = ~(true | false) & texts.is_valid().to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(odd).tolist():
            bad.setdefault(row, f"{self.name} is {_shown(str(array[row].as_py()))}, neither true nor false")


@dataclass(frozen=True)
class Category:
    """A feature for each value known, one for all others."""

    name: str
    levels: tuple[str, ...]
    shares: tuple[float, ...]  # of each among the first rows
    kind: ClassVar[str] = "category"

    @property
    def features(self) -> list[str]:
        """Names of the numbers made of it."""
        return [*(f"{self.name}={level}" for level in self.levels), f"{self.name}=(other)"]

    @property
    def exclusive(self) -> tuple[int, tuple[float, ...]]:
        """Features of which just one is on: where they begin, and how often each is."""
        return 0, self.shares

    def words(self) -> str:
        """Say what is done with it."""
        what = f"one of {len(self.levels)} categories ({listed(self.levels, 4)}), a feature each"
        return f"{what}; anything else or missing: one more{_mistaken(self.levels)}"

    def fill(self, array: Any, out: FloatArray, bad: Bad) -> None:
        """Write the features of all rows."""
        places = pc.index_in(as_texts(array, self.name), value_set=pa.array(self.levels, pa.string()))
        index = places.fill_null(len(self.levels)).to_numpy(zero_copy_only=False)
        out[np.arange(len(index)), index] = 1.0


def listed(texts: Sequence[str], most: int) -> str:
    """The first of some texts in one line, in quotes where they would be taken for something else.

    Examples
    --------
    >>> print(listed(["van", "big, old", "x" * 50], 3), listed("abc", 2))
    van, 'big, old', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...' a, b, ...
    """
    shown = []
    for text in texts[:most]:
        plain = 0 < len(text) <= _LONGEST_SHOWN and text == text.strip() and text.isprintable() and "," not in text
        shown.append(text if plain else _shown(text))
    return ", ".join(shown) + (", ..." if len(texts) > most else "")


def _mistaken(texts: Sequence[str]) -> str:
    """Say so where texts are likely meant to be something else."""
    if texts and all(map(_OTHER_DATE.fullmatch, texts)):
        return "; looks like dates, but only ISO 8601 (2024-12-31) is read as such"
    if texts and all(map(_COMMA.fullmatch, texts)):
        return "; looks like numbers with a decimal comma, but only a decimal point is read as such"
    return ""


@dataclass(frozen=True)
class Hashed:
    """Too many values for a feature each: they share a few, by a hash that is the same everywhere and for ever."""

    name: str
    buckets: int
    shares: tuple[float, ...]  # of each among the first rows
    kind: ClassVar[str] = "hashed"

    @property
    def features(self) -> list[str]:
        """Names of the numbers made of it."""
        return [f"{self.name}#{bucket}" for bucket in range(self.buckets)]

    @property
    def exclusive(self) -> tuple[int, tuple[float, ...]]:
        """Features of which just one is on: where they begin, and how often each is."""
        return 0, self.shares

    def words(self) -> str:
        """Say what is done with it."""
        return f"many categories, hashed into {self.buckets} features; missing: none of them"

    def fill(self, array: Any, out: FloatArray, bad: Bad) -> None:
        """Write the features of all rows."""
        coded = as_texts(array, self.name).dictionary_encode()
        places = np.array([_bucket(text, self.buckets) for text in coded.dictionary.to_pylist()], dtype=np.int64)
        index = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(index >= 0)
        out[rows, places[index[rows]] if len(rows) else []] = 1.0


def _bucket(text: str, buckets: int) -> int:
    """Say which feature a value has a share in.

    Examples
    --------
    >>> _bucket("Ulm", 64)
    46
    """
    digest = hashlib.blake2b(text.encode(), digest_size=8, person=b"onepass").digest()
    return int.from_bytes(digest, "little") % buckets


@dataclass(frozen=True)
class Date:
    """The trend in years, the day of the week, the season, and the time of day where there is one."""

    name: str
    centre: float  # days since 1970
    clock: bool
    missing: bool
    kind: ClassVar[str] = "date"
    exclusive: ClassVar[tuple[int, tuple[float, ...]]] = (1, (1 / 7,) * 7)

    @property
    def features(self) -> list[str]:
        """Names of the numbers made of it."""
        days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
        names = ["in years", *days, "season (sin)", "season (cos)"]
        names += ["time of day (sin)", "time of day (cos)"] if self.clock else []
        names += ["is missing"] if self.missing else []
        return [f"{self.name} {name}" for name in names]

    def words(self) -> str:
        """Say what is done with it."""
        since = datetime.fromtimestamp(self.centre * 86400.0, UTC).date()
        clock = ", time of day" if self.clock else ""
        return f"date, as years since {since}, day of the week, season{clock} (UTC)"

    def fill(self, array: Any, out: FloatArray, bad: Bad) -> None:
        """Write the features of all rows."""
        days = _as_days(array, self.name, bad)
        there = np.flatnonzero(np.isfinite(days))
        known = days[there]
        out[there, 0] = (known - self.centre) / _YEAR
        out[there, 1 + (np.floor(known).astype(np.int64) + 3) % 7] = 1.0  # 1970 began on a Thursday
        turns = [known / _YEAR, *([known] if self.clock else [])]
        for place, turn in zip((8, 10), turns, strict=False):
            out[there, place], out[there, place + 1] = np.sin(2 * np.pi * turn), np.cos(2 * np.pi * turn)
        if self.missing:
            out[np.isnan(days), -1] = 1.0


Column = Number | Boolean | Category | Hashed | Date
_CLASSES: dict[str, Any] = {cls.kind: cls for cls in (Number, Boolean, Category, Hashed, Date)}


# All of them.


@dataclass(frozen=True)
class Encoded:
    """Rows as numbers, ``(n, d)``, and which could not be taken: a row that is bad holds nothing of use."""

    X: FloatArray
    bad: Bad


@dataclass(frozen=True)
class Encoding:
    """What is done with every column that is learned from, and why the others are not.

    Examples
    --------
    >>> table = pa.RecordBatch.from_pydict({"km": [1.0, 2.0, 3.0], "car": ["a", "b", "a"]})
    >>> encoding = infer(table, [])
    >>> encoding.features
    ['km', 'car=a', 'car=b', 'car=(other)']
    >>> encoding.encode(table).X.round(2).tolist()
    [[-1.22, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [1.22, 1.0, 0.0, 0.0]]
    """

    columns: tuple[Column, ...]
    ignored: Mapping[str, str]  # name -> reason

    @property
    def features(self) -> list[str]:
        """Names of all features."""
        return [name for column in self.columns for name in column.features]

    def groups(self) -> Iterator[tuple[slice, FloatArray]]:
        """Features of which a row has just one on, and how often each is.

        All of them could rise together and the bias fall: only the gap to an average row means something.
        """
        at = 0
        for column in self.columns:
            start, shares = column.exclusive
            if shares:
                yield slice(at + start, at + start + len(shares)), np.array(shares)
            at += len(column.features)

    def contrasts(self, features: Any, most: int = 2**22) -> Iterator[FloatArray]:
        """What some features stand for, ``(k, d)``: each itself, or in a group its gap to an average row.

        The rows of the matrix come in bands of ``most`` numbers, since all of them may be too many.
        """
        d = len(self.features)
        groups = list(self.groups())
        height = max(most // d, 1)
        for first in range(0, len(features), height):
            chosen = np.asarray(features[first : first + height])
            band = np.zeros((len(chosen), d))
            band[np.arange(len(chosen)), chosen] = 1.0
            for group, shares in groups:
                band[(group.start <= chosen) & (chosen < group.stop), group] -= shares
            yield band

    def types(self) -> dict[str, Any]:
        """Arrow types in which to ask a reader for the columns."""
        kinds = {"number": pa.float64(), "boolean": pa.bool_()}
        return {column.name: kinds.get(column.kind, pa.string()) for column in self.columns}

    def encode(self, batch: Any) -> Encoded:
        """Turn rows into numbers."""
        bad: Bad = {}
        plan = self._plan
        X = np.empty((batch.num_rows, plan.width))
        X[:, plan.others] = 0.0
        if plan.numbers:
            self._fill_numbers(batch, X, bad)
        for column, at in plan.rest:
            column.fill(_column_of(batch, column.name), X[:, at : at + len(column.features)], bad)
        return Encoded(X, bad)

    @cached_property
    def _plan(self) -> "_Plan":
        places, at = [], 0
        for column in self.columns:
            places.append((column, at))
            at += len(column.features)
        numbers = tuple((column, at) for column, at in places if isinstance(column, Number))
        others = sorted(set(range(at)) - {place for _, place in numbers})
        rest = tuple((column, place) for column, place in places if not isinstance(column, Number))
        return _Plan(at, numbers, rest, others)

    def _fill_numbers(self, batch: Any, X: FloatArray, bad: Bad) -> None:
        """Write all numbers at once: they are scaled where each column lies in one piece, for the sake of caches."""
        numbers = self._plan.numbers
        lying = np.empty((len(numbers), batch.num_rows))
        for row, (column, at) in zip(lying, numbers, strict=True):
            row[:] = as_numbers(_column_of(batch, column.name), column.name, bad)
            if column.missing:
                X[:, at + 1] = np.isnan(row)
        with np.errstate(over="ignore"):
            lying -= np.array([[column.centre] for column, _ in numbers])
            lying *= np.array([[1.0 / column.spread] for column, _ in numbers])
        if not (lying.min(initial=0.0) >= -FARTHEST and lying.max(initial=0.0) <= FARTHEST):  # nor if one is missing
            for row, (column, _) in zip(lying, numbers, strict=True):
                if (np.abs(row) > FARTHEST).any():
                    note_far(row, as_numbers(_column_of(batch, column.name), column.name, bad), column.name, bad)
            lying[~(np.abs(lying) <= FARTHEST)] = 0.0  # the mean
        places = [at for _, at in numbers]
        together = places == list(range(places[0], places[0] + len(places)))
        target: Any = slice(places[0], places[0] + len(places)) if together else places
        X[:, target] = lying.T

    def state(self) -> Parameters:
        """All of it as data that JSON can hold."""
        columns = [{"kind": column.kind, **asdict(column)} for column in self.columns]
        return {"columns": columns, "ignored": dict(self.ignored)}

    @classmethod
    def from_state(cls, state: Any) -> "Encoding":
        """Check and take up what `state` gave."""
        columns = tuple(_column(entry) for entry in state["columns"])
        ignored = {_as_text(name): _as_text(why) for name, why in state["ignored"].items()}
        names = [column.name for column in columns]
        if not columns or len(set(names)) != len(names):
            raise ValueError("the encoding must have columns, each once")
        return cls(columns, ignored)


@dataclass(frozen=True)
class _Plan:
    """Where the features of each column stand."""

    width: int
    numbers: tuple[tuple[Number, int], ...]
    rest: tuple[tuple[Any, int], ...]  # all other columns
    others: list[int]  # features that are no numbers


def _column_of(batch: Any, name: str) -> Any:
    place = batch.schema.get_field_index(name)
    return batch.column(place) if place >= 0 else pa.nulls(batch.num_rows)


def _column(entry: Any) -> Column:
    given = dict(entry)
    kind = given.pop("kind")
    if kind not in _CLASSES:
        raise ValueError(f"a column is of the unknown kind {str(kind)[:40]!r}")
    _as_text(given["name"])
    for name in ("centre", "spread"):
        if name in given:
            given[name] = as_number(given[name], name)
    if given.get("spread", 1.0) <= 0.0:
        raise ValueError(f"the column {given['name']!r} has the spread {given['spread']}, which must be positive")
    for name in ("missing", "clock"):
        if not isinstance(given.get(name, False), bool):
            raise ValueError(f"{name} must be true or false, got {given[name]!r}")
    if "levels" in given:
        given["levels"] = tuple(_as_text(level) for level in given["levels"])
    if "shares" in given:
        given["shares"] = tuple(as_number(share, "a share") for share in given["shares"])
        if len(given["shares"]) != given.get("buckets", len(given.get("levels", ()))):
            raise ValueError(f"the column {given['name']!r} has {len(given['shares'])} shares, not one for each value")
    buckets = given.get("buckets", 1)
    if isinstance(buckets, bool) or not isinstance(buckets, int) or not 1 <= buckets <= 2**20:
        raise ValueError(f"buckets must be a whole number from 1 to {2**20}, got {str(buckets)[:40]}")
    column: Column = _CLASSES[kind](**given)
    return column


def _as_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a text was expected, got {str(value)[:40]!r}")
    return value


# What columns hold.


def infer(
    sample: Any,
    leave_out: Sequence[str],
    *,
    kinds: Mapping[str, str] | None = None,
    one_hot: int = ONE_HOT,
    buckets: int = BUCKETS,
) -> Encoding:
    """Find out from some rows what every column holds.

    Parameters
    ----------
    sample : pyarrow.RecordBatch or pyarrow.Table
    leave_out : names of columns that are not to be learned from
    kinds : mapping, optional
        What the caller knows better, by the name of the column.
    one_hot, buckets : int
        Up to so many categories have a feature each; more are hashed into so many.
    """
    columns: list[Column] = []
    ignored: dict[str, str] = {}
    for name in sample.schema.names:
        if name in leave_out:
            continue
        found = _infer_column(name, _plain(sample[name]), (kinds or {}).get(name), one_hot, buckets)
        if isinstance(found, str):
            ignored[name] = found
        else:
            columns.append(found)
    return Encoding(tuple(columns), ignored)


def _infer_column(name: str, array: Any, kind: str | None, one_hot: int, buckets: int) -> Column | str:
    if pa.types.is_nested(array.type) or pa.types.is_binary(array.type):
        return f"it holds {describe_type(array.type)}"
    known = array.drop_null()
    if not len(known) and kind is None:
        return "it has no values among the first rows"
    likely = kind or _kind_of(name, known)
    return (_objection(name, known, likely, one_hot) if kind is None else "") or _made(
        name, array, known, likely, one_hot, buckets
    )


def _objection(name: str, known: Any, kind: str, one_hot: int) -> str:
    """Why there is nothing to be learned from a column, if the user has not asked for it."""
    if kind == "number":
        values = as_numbers(known, name, {})
        return "it numbers the rows" if _counts_rows(values[np.isfinite(values)]) else ""
    if kind == "category" and len(known) >= 100:
        levels = as_texts(known, name).unique()
        if len(levels) > max(one_hot, 0.9 * len(known)):
            return "nearly every row has its own value, as a name or a key has" + _mistaken(levels.to_pylist())
    return ""


def _kind_of(name: str, known: Any) -> str:
    if pa.types.is_boolean(known.type):
        return "boolean"
    if pa.types.is_timestamp(known.type) or pa.types.is_date(known.type):
        return "date"
    if _is_numeric(known.type):
        return "number"
    if _reads_as(as_numbers, known, name):
        return "number"
    texts = pc.utf8_lower(pc.utf8_trim_whitespace(as_texts(known, name)))
    if _member(texts, (*_TRUE, *_FALSE)).mean() >= 1.0 - _WRONG:
        return "boolean"
    return "date" if _reads_as(_as_days, known, name) else "category"


def _reads_as(reader: Any, array: Any, name: str) -> bool:
    """Whether all values read so, but for a few that are simply wrong."""
    bad: Bad = {}
    reader(array, name, bad)
    return sum(not why.endswith(" is infinite") for why in bad.values()) <= _WRONG * len(array)


def _made(name: str, array: Any, known: Any, kind: str, one_hot: int, buckets: int) -> Column:
    missing = len(known) < len(array)
    if kind == "number":
        bad: Bad = {}
        values = as_numbers(array, name, bad)
        missing = bool(np.isnan(np.delete(values, list(bad))).any())
        values = values[np.isfinite(values)]
        return Number(name, *centre_and_spread(values), missing)
    if kind == "boolean":
        return Boolean(name)
    if kind == "date":
        days = _as_days(known, name, {})
        days = days[np.isfinite(days)]
        centre = float(np.floor(days.mean())) if len(days) else 0.0
        return Date(name, centre, bool((days != np.floor(days)).any()), missing)
    texts = as_texts(known, name)
    levels = pc.value_counts(texts)
    if kind == "hashed" or (kind == "category" and len(levels) > one_hot):
        places = [_bucket(text, buckets) for text in levels.field("values").to_pylist()]
        counts = np.bincount(places, levels.field("counts"), minlength=buckets)
        return Hashed(name, buckets, tuple((counts / max(counts.sum(), 1)).tolist()))
    counted = sorted((level["values"], level["counts"] / len(texts)) for level in levels.to_pylist())
    return Category(name, tuple(level for level, _ in counted), tuple(share for _, share in counted))


def _counts_rows(values: FloatArray) -> bool:
    return len(values) >= 20 and bool((values[1:] == values[:-1] + 1.0).all())


def _member(texts: Any, values: Sequence[str]) -> Any:
    return pc.is_in(texts, value_set=pa.array(values, pa.string())).to_numpy(zero_copy_only=False)
