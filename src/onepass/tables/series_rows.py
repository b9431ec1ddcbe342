"""The columns of a series, read from rows as texts: times, values, keys and inputs as numbers.

Dates with offsets are instants: of one zone while all have the same offset, in UTC where offsets differ. Dates without
offset are those of a local clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from onepass._typing import FloatArray
from onepass._validation import one_of
from onepass.files.state import Parameters
from onepass.tables.columns.boolean import TRUTH_WORDS, truth_values
from onepass.tables.columns.date import as_days, likely_date_format
from onepass.tables.columns.date_format import DateFormat
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.missing import without_words
from onepass.tables.columns.notation import Notation
from onepass.tables.columns.number_format import NumberFormat, likely_number_format
from onepass.tables.columns.values import Bad, as_numbers, as_texts, is_text, plain
from onepass.tables.readers.batches import RowBatch
from onepass.tables.reasons import Reason
from onepass.tables.rhythm import DAY, HOUR, Times

__all__ = ["DUPLICATES", "KnownZone", "SeriesColumns", "SeriesRows", "Zone", "parse_rows"]

DUPLICATES = ("error", "last", "mean", "sum")
"""What may be done with different values of one time."""
_EIGHT_DIGITS = r"^(19|20)\d\d(0[1-9]|1[0-2])([0-2]\d|3[01])$"
_OFFSET = r":\d\d(?:\.\d+)?\s*(?P<offset>Z|[-+]\d\d(?::?\d\d)?)$"
_MILLISECONDS = 86_400_000  # per day
_FAR = 100_000.0  # days from 1970, beyond which nanoseconds don't reach


@dataclass(frozen=True)
class SeriesColumns:
    """Which columns are the series, and how they are written where that is known from an earlier file.

    Parameters
    ----------
    time, target : names of columns
    by : column that says which series a row belongs to, if there are several
    inputs : columns with numbers that are known ahead, such as prices
    duplicates : one of `DUPLICATES`
    counts : whether values are counts, and others can't be read
    """

    time: str
    target: str
    by: str | None = None
    inputs: tuple[str, ...] = ()
    duplicates: str = "error"
    counts: bool = False
    written: dict[str, Parameters] = field(default_factory=dict)
    """The formats of columns as data, by name; the time's has ``dates``."""

    def __post_init__(self) -> None:
        one_of(self.duplicates, DUPLICATES, "duplicates")
        names = self.names
        for name in names:
            if names.count(name) > 1:
                raise SchemaError(Reason("two_roles", name))

    @property
    def names(self) -> list[str]:
        """All columns that are read."""
        return [self.time, self.target, *([] if self.by is None else [self.by]), *self.inputs]

    @property
    def merges_all(self) -> bool:
        """Whether all values of a time count, also equal ones, so that a further one changes what they give."""
        return self.duplicates in ("mean", "sum")

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs that differ from those of all other columns, whatever they are called in the file."""
        return tuple(f"input {place}" for place in range(len(self.inputs)))

    def to_data(self) -> Parameters:
        """The columns as plain data."""
        return {**vars(self), "inputs": list(self.inputs)}

    @classmethod
    def from_data(cls, data: Parameters) -> "SeriesColumns":
        """Make the columns that `to_data` described."""
        return cls(**{**data, "inputs": tuple(data["inputs"])})


class SeriesRows(NamedTuple):
    """Rows of all files, column by column."""

    times: Times
    keys: NDArray[Any]
    values: FloatArray
    inputs: FloatArray
    lines: NDArray[np.int64]

    def taken(self, places: Any) -> "SeriesRows":
        """Some of the rows."""
        return SeriesRows(*(column[places] for column in self))


class Zone(NamedTuple):
    """Where times belong to: an offset from UTC, or a local clock."""

    suffix: str = ""  # of times as texts
    words: str = ""


class KnownZone(NamedTuple):
    """The zone of earlier times, in which further ones are put."""

    suffix: str
    is_of_days: bool
    """Whether times are days, which are the same days whatever the offset of their midnight."""


def parse_rows(
    batches: Sequence[RowBatch],
    columns: SeriesColumns,
    notation: Notation,
    bad: Bad,
    known: KnownZone | None = None,
) -> tuple[SeriesRows, SeriesColumns, Zone]:
    """The columns as numbers, how they are written, and the zone of the times."""
    arrays = {name: _joined([batch.column(name) for batch in batches], batches) for name in columns.names}
    written = dict(columns.written)
    times, zone = _times(arrays[columns.time], columns.time, notation, written, bad, known)
    values = _numbers(arrays[columns.target], columns.target, notation, written, bad, role="target")
    if columns.counts:
        for row in np.flatnonzero((values < 0.0) | (values != np.floor(values)) & np.isfinite(values)).tolist():
            bad.setdefault(row, Reason("not_a_count", columns.target, float(values[row]), "target"))
    inputs = [_numbers(arrays[name], name, notation, written, bad) for name in columns.inputs]
    n = len(times)
    if columns.by is None:
        keys = np.full(n, "", dtype=object)
    else:
        texts = as_texts(arrays[columns.by], columns.by)
        keys = np.array(pc.utf8_trim_whitespace(texts).to_pylist(), dtype=object)
        for row in np.flatnonzero([not key for key in keys]).tolist():
            bad.setdefault(row, Reason("missing", columns.by, role="key"))
    lines = np.concatenate([np.asarray(batch.lines, dtype=np.int64) for batch in batches] or [np.zeros(0, np.int64)])
    rows = SeriesRows(times, keys, values, np.column_stack(inputs) if inputs else np.zeros((n, 0)), lines)
    return rows, replace(columns, written=written), zone


def _joined(parts: Sequence[Any], batches: Sequence[RowBatch]) -> Any:
    """A column of all files in one piece, as text if files don't agree on its type."""
    found = [pa.nulls(len(batch)) if part is None else plain(part) for part, batch in zip(parts, batches, strict=True)]
    kinds = {part.type for part in found if not pa.types.is_null(part.type)}
    kind = kinds.pop() if len(kinds) == 1 else pa.string()
    return pa.chunked_array([part.cast(kind) for part in found], kind).combine_chunks()


def _numbers(
    array: Any, name: str, notation: Notation, written: dict[str, Parameters], bad: Bad, role: str = ""
) -> FloatArray:
    own: Bad = {}
    if is_text(array) and name not in written:
        written[name] = _number_format(array, name, notation, role)
    form = written.get(name, {})
    if pa.types.is_boolean(array.type) or "truth" in form:
        truth = pc.cast(truth_values(array, name), pa.float64())
        values = np.asarray(truth.to_numpy(zero_copy_only=False), dtype=np.float64)
    else:
        number_format = NumberFormat.from_state(dict(form)) if is_text(array) else NumberFormat()
        values = np.array(as_numbers(array, name, own, number_format))
    for row, reason in own.items():
        bad.setdefault(row, Reason(reason.code, reason.column, reason.value, role, **reason.facts))
    return values


def _number_format(texts: Any, name: str, notation: Notation, role: str) -> Parameters:
    """How numbers are written, or that they are true and false."""
    number_format, share = likely_number_format(texts, notation)
    known = without_words(texts, number_format.missing_words).drop_null()
    if share >= 0.5 or not len(known):
        return number_format.state()
    if not role and pc.all(pc.is_in(pc.utf8_lower(known), pa.array(TRUTH_WORDS))).as_py():
        return {"truth": True}
    raise SchemaError(Reason("series_without_numbers", name, known[0].as_py(), role=role))


def _times(
    array: Any,
    name: str,
    notation: Notation,
    written: dict[str, Parameters],
    bad: Bad,
    known: KnownZone | None,
) -> tuple[Times, Zone]:
    """Times as numbers, or as nanoseconds of the clock that they belong to."""
    if not is_text(array) and not pa.types.is_temporal(array.type):
        array = array.cast(pa.string()) if pa.types.is_integer(array.type) else array
    if name not in written:
        written[name] = _time_format(array, name, notation)
    form = dict(written[name])
    if not form.pop("dates"):
        numbers = as_numbers(array, name, bad, NumberFormat.from_state(form) if is_text(array) else NumberFormat())
        _note_missing(numbers, name, bad)
        return numbers.astype(float), Zone()
    own: Bad = {}
    days = as_days(array, name, own, DateFormat.from_state(form))
    bad |= {row: reason for row, reason in own.items() if row not in bad}
    _note_missing(days, name, bad)
    for row in np.flatnonzero(np.abs(days) > _FAR).tolist():
        bad.setdefault(row, Reason("too_far", name, plain(array)[row].as_py()))
        days[row] = np.nan
    utc = (np.rint(np.nan_to_num(days) * _MILLISECONDS) * 1e6).astype(np.int64)
    there = np.ones(len(utc), dtype=bool)
    there[[row for row in range(len(utc)) if row in bad]] = False
    offsets = _offsets(array, there)
    return _in_own_zone(utc, offsets, there) if known is None else _in_known_zone(utc, offsets, there, known, name)


def _time_format(array: Any, name: str, notation: Notation) -> Parameters:
    """How times are written."""
    if not is_text(array):
        return {"dates": bool(pa.types.is_temporal(array.type))}
    known = pc.utf8_trim_whitespace(array).drop_null()
    known = known.filter(pc.not_equal(known, ""))
    if not len(known):
        raise SchemaError(Reason("no_times", name))
    if pc.all(pc.match_substring_regex(known, _EIGHT_DIGITS)).as_py():
        return {"dates": True, **DateFormat("%Y%m%d").state()}
    number_format, share = likely_number_format(array, notation)
    if share > 0.5:
        return {"dates": False, **number_format.state()}
    date_format, share = likely_date_format(array, notation)
    if share <= 0.5:
        first = next(text for text in array.to_pylist() if text and text.strip())
        raise SchemaError(Reason("not_times", name, first), setting="date_format")
    return {"dates": True, **date_format.state()}


def _note_missing(values: FloatArray, name: str, bad: Bad) -> None:
    for row in np.flatnonzero(np.isnan(values)).tolist():
        bad.setdefault(row, Reason("missing", name, role="time"))


def _offsets(array: Any, there: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    """The offsets of dates; None if they have none, as those of a local clock."""
    if not is_text(array):
        return np.zeros(len(there), dtype=np.int64) if getattr(array.type, "tz", None) else None
    found = pc.struct_field(pc.extract_regex(pc.utf8_trim_whitespace(array), _OFFSET), "offset").to_pylist()
    if not (np.array([one is not None for one in found], dtype=bool) & there).any():
        return None
    return np.array([_offset(one) for one in found], dtype=np.int64)


def _in_own_zone(
    utc: NDArray[np.int64], offsets: NDArray[np.int64] | None, there: NDArray[np.bool_]
) -> tuple[Times, Zone]:
    """Times in UTC as those of the clock on which they were written, if all were written on one."""
    if offsets is None:
        return utc, Zone()
    different = np.unique(offsets[there])
    if len(different) == 1:
        offset = int(different[0])
        suffix = "Z" if offset == 0 else f"{'-' if offset < 0 else '+'}{abs(offset) // HOUR:02d}:{_minutes(offset):02d}"
        return utc + offset, _zone_at(suffix)
    local = utc + offsets
    if (local[there] % DAY == 0).all():  # days of a place, which begin at other instants in summer
        return local, Zone("", "days begin at local midnight, which is at different hours of UTC")
    return utc, Zone("Z", f"{len(different)} different offsets, as with daylight saving; counted in UTC")


def _in_known_zone(
    utc: NDArray[np.int64],
    offsets: NDArray[np.int64] | None,
    there: NDArray[np.bool_],
    known: KnownZone,
    name: str,
) -> tuple[Times, Zone]:
    """Times in UTC as those of the clock of earlier ones."""
    local = utc if offsets is None else utc + offsets
    if known.is_of_days and (local[there] % DAY == 0).all():
        return local, _zone_at(known.suffix)
    if there.any() and (offsets is None) != (not known.suffix):
        expected = "offsets such as Z or +01:00" if known.suffix else "no offsets from UTC"
        raise SchemaError(Reason("other_clock", name, expected=expected))
    return utc + _offset(known.suffix or None), _zone_at(known.suffix)


def _zone_at(suffix: str) -> Zone:
    """The zone of an offset, or of a local clock."""
    return Zone(suffix, "times in UTC" if suffix == "Z" else f"times at UTC{suffix}") if suffix else Zone()


def _offset(text: str | None) -> int:
    if text is None or text == "Z":
        return 0
    digits = text[1:].replace(":", "").ljust(4, "0")
    size = int(digits[:2]) * HOUR + int(digits[2:]) * HOUR // 60
    return -size if text[0] == "-" else size


def _minutes(offset: int) -> int:
    return abs(offset) % HOUR * 60 // HOUR
