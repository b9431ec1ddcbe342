"""Columns of dates and times, as a trend, the day of the week, the season and the time of day; in UTC."""

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onepass._typing import FloatArray
from onepass._validation import as_flag
from onepass.files.state import Parameters, as_number, as_tally
from onepass.tables.columns.column import Column
from onepass.tables.columns.date_format import ISO, DateFormat, formats_of
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.missing import notable_words, with_placeholders, without_words
from onepass.tables.columns.notation import Notation
from onepass.tables.columns.values import Bad, describe_type, is_text, parse_one_by_one, plain
from onepass.tables.columns.wording import listed
from onepass.tables.reasons import Reason

if TYPE_CHECKING:
    from onepass.tables.columns.inference import FirstValues, InferenceOptions

__all__ = ["YEAR", "Date", "Turn", "as_days", "likely_date_format"]

_MICROSECONDS = 86400e6  # per day
YEAR = 365.25  # days
_SEASONS = {YEAR: "season", 7.0: "week", 1.0: "time of day"}
_WAVES = 6  # of a season, the shortest a sixth of it
_FEWEST = 1.999  # seasons that the rows must span, and steps that a wave must have
_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d").match


class Turn(NamedTuple):
    """A wave, once as sine and once as cosine."""

    name: str
    period: float
    """In days."""
    size: float
    """What the wave is multiplied by: shorter parts of a season are expected to matter less."""


@dataclass(frozen=True)
class Date(Column):
    """The trend in years, the day of the week, the season, and the time of day where there is one."""

    centre: float  # days since 1970
    clock: bool
    missing: bool
    written: DateFormat = ISO
    seasons: tuple[tuple[float, int], ...] | None = None
    """Where it is the time of the rows, their seasons in days, and how many waves each has; None for any date."""
    kind: ClassVar[str] = "date"
    is_exportable: ClassVar[bool] = True
    is_ordered: ClassVar[bool] = True
    exclusive: ClassVar[tuple[int, tuple[float, ...]]] = (1, (1 / 7,) * 7)

    @property
    def features(self) -> list[str]:
        """Names of the numbers made of it."""
        days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
        names = ["in years", *days]
        names += [f"{turn.name} ({wave})" for turn in self.turns for wave in ("sin", "cos")]
        names += ["is missing"] if self.missing else []
        return [f"{self.name} {name}" for name in names]

    @property
    def turns(self) -> list["Turn"]:
        """Its waves."""
        usual = ((YEAR, 1), (1.0, 1)) if self.clock else ((YEAR, 1),)
        return [
            Turn(_SEASONS[period] + (f" / {part}" if part > 1 else ""), period / part, 1.0 / part)
            for period, n in (usual if self.seasons is None else self.seasons)
            for part in range(1, n + 1)
        ]

    def words(self) -> str:
        """Say what is done with it."""
        since = datetime.fromtimestamp(self.centre * 86400.0, UTC).date()
        words = notable_words(self.written.missing_words)
        missing = f"; missing ({listed(words, 6)}) has a feature" if words and self.missing else ""
        waves = "".join(f", {name}" for name in dict.fromkeys(turn.name.partition(" / ")[0] for turn in self.turns))
        return f"date{self.written.words()}, as years since {since}, day of the week{waves} (UTC){missing}"

    def fill(self, array: Any, out: FloatArray, bad: Bad) -> None:
        """Write the features of all rows."""
        days = as_days(array, self.name, bad, self.written)
        there = np.flatnonzero(np.isfinite(days))
        known = days[there]
        out[there, 0] = (known - self.centre) / YEAR
        out[there, 1 + (np.floor(known).astype(np.int64) + 3) % 7] = 1.0  # 1970 began on a Thursday
        for k, turn in enumerate(self.turns):
            angle = 2 * np.pi * (known / turn.period)
            out[there, 8 + 2 * k], out[there, 9 + 2 * k] = turn.size * np.sin(angle), turn.size * np.cos(angle)
        if self.missing:
            out[np.isnan(days), -1] = 1.0
        if self.seasons is not None:
            out[np.isnan(days), 0] = np.nan

    def as_time(self) -> "Date":
        """The column where it is the time of rows: a missing one is NaN, and it has no waves yet."""
        return replace(self, seasons=())

    def with_seasons(self, span: float, step: float) -> "Date":
        """The time of rows with waves of the seasons that these cover, each at least twice."""
        seasons = []
        for period in (YEAR, *((7.0, 1.0) if self.clock else ())):  # of days the weekdays tell the week
            n = int(min(period / (_FEWEST * step * YEAR), _WAVES)) if span * YEAR >= _FEWEST * period else 0
            seasons += [(period, n)] if n else []
        return replace(self, seasons=tuple(seasons))

    @classmethod
    def inferred(cls, values: "FirstValues", asked: "InferenceOptions") -> "Date":
        """The centre, and whether there are times of day, by the values of some rows."""
        bad: Bad = {}
        name, written = values.name, values.as_day_numbers or values.as_dates[0]
        days = as_days(values.array, name, bad, written)
        missing = bool(np.isnan(np.delete(days, list(bad))).any())
        days = days[np.isfinite(days)]
        centre = float(np.floor(days.mean())) if len(days) else 0.0
        return cls(name, centre, bool((days != np.floor(days)).any()), missing, written)

    def state(self) -> Parameters:
        """All of it as data that JSON can hold."""
        own = {"name": self.name, "centre": self.centre, "clock": self.clock, "missing": self.missing}
        if self.seasons is not None:
            own["seasons"] = [list(one) for one in self.seasons]
        return own | self.written.state()

    @classmethod
    def from_state(cls, state: Parameters) -> "Date":
        """Make the column that `state` described."""
        given = dict(state)
        written = DateFormat.from_state(given)
        given |= {name: as_flag(given[name], name) for name in ("clock", "missing")}
        if "seasons" in given:
            given["seasons"] = tuple((as_number(one, "seasons"), as_tally(n, "seasons")) for one, n in given["seasons"])
            if any(period not in _SEASONS or n > _WAVES for period, n in given["seasons"]):
                raise ValueError(f"seasons must be some of {list(_SEASONS)} days with up to {_WAVES} waves")
        return cls(**{**given, "centre": as_number(given["centre"], "centre")}, written=written)


def as_days(array: Any, name: str, bad: Bad, written: DateFormat = ISO) -> FloatArray:
    """Times as days since 1970 in UTC, NaN where one is missing; other values are noted in ``bad``."""
    array = plain(array)
    if written.pattern and pa.types.is_integer(array.type):
        array = pc.cast(array, pa.string())  # 20240131
    if is_text(array):
        return _parse_written(array, name, bad, written) if written.pattern else _parse_iso(array, name, bad, written)
    if pa.types.is_null(array.type):
        return np.full(len(array), np.nan)
    if not (pa.types.is_timestamp(array.type) or pa.types.is_date(array.type)):
        raise SchemaError(Reason("wrong_type", name, describe_type(array.type), expected="dates"))
    return _days(pc.cast(array, pa.timestamp("us", getattr(array.type, "tz", None)), safe=False))


def _parse_iso(array: Any, name: str, bad: Bad, written: DateFormat) -> FloatArray:
    """Try the quickest way first: nothing but dates, then dates and words for missing ones."""
    try:
        return _days(pc.cast(array, pa.timestamp("us")))
    except pa.ArrowInvalid:
        known = without_words(array, written.missing_words)
    try:
        return _days(pc.cast(known, pa.timestamp("us")))
    except pa.ArrowInvalid:
        return parse_one_by_one(known, _days_of, lambda text: Reason("not_an_iso_date", name, text), bad)


def _parse_written(array: Any, name: str, bad: Bad, written: DateFormat) -> FloatArray:
    known = without_words(array, written.missing_words)
    days = written.days(known)
    for row in np.flatnonzero(np.isnan(days) & known.is_valid().to_numpy(zero_copy_only=False)).tolist():
        text = known[row].as_py()
        try:  # of programs, whatever the file has: nothing else is written so
            days[row] = _days_of(text if _ISO_DAY(text) else "")
        except ValueError:
            bad.setdefault(row, Reason("not_a_date", name, text, pattern=written.pattern))
    return days


def likely_date_format(texts: Any, notation: Notation) -> tuple[DateFormat, float]:
    """The way in which most texts are dates, and their share among those that are not missing."""
    words = with_placeholders(texts) if notation.missing is None else notation.missing
    known = without_words(texts, words).drop_null()
    if not len(known):
        return replace(ISO, missing_words=words), 0.0
    counted = pc.value_counts(known)
    values, counts = counted.field("values"), counted.field("counts").to_numpy(zero_copy_only=False)

    def share_of(one: DateFormat) -> float:
        days = one.days(values) if one.pattern else as_days(values, "", {}, one)
        return float(counts[np.isfinite(days)].sum() / counts.sum())

    for pattern in notation.date_formats:
        if (share := share_of(DateFormat(pattern))) >= _NEARLY_ALL:
            return DateFormat(pattern, words), share
    if (as_iso := share_of(ISO)) == 1.0:
        return replace(ISO, missing_words=words), 1.0
    common = [one for text in values[:_FIRST].to_pylist() for one in formats_of(text)]
    shares = {ISO: as_iso} | {one: share_of(one) for one in common}
    best = max(shares.values())
    tied = [one for one, share in shares.items() if share == best]
    orders = {one.day_first for one in tied if "%m" in one.pattern}
    return replace(_preferred(tied, notation), missing_words=words, unsure=best > 0.0 and len(orders) > 1), best


def _preferred(tied: list[DateFormat], notation: Notation) -> DateFormat:
    """One of several formats that read the dates equally well: those who write 3,5 put the day before the month."""
    day_first = [one for one in tied if one.day_first]
    return day_first[0] if day_first and notation.likely_decimal == "," else tied[0]


_NEARLY_ALL = 0.98
_FIRST = 5  # values that say which formats to look for


def _days(times: Any) -> FloatArray:
    return np.asarray(pc.cast(times, pa.int64()).to_numpy(zero_copy_only=False) / _MICROSECONDS)


def _days_of(text: str) -> float:
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() / 86400.0
