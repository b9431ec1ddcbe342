"""Columns of dates and times, as a trend, the day of the week, the season and the time of day; in UTC."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onepass._typing import FloatArray
from onepass.files.state import Parameters, as_number
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.values import Bad, describe_type, is_text, parse_one_by_one, plain
from onepass.tables.columns.wording import quoted

__all__ = ["Date", "as_days"]

_MICROSECONDS = 86400e6  # per day
_YEAR = 365.25  # days


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
        days = as_days(array, self.name, bad)
        there = np.flatnonzero(np.isfinite(days))
        known = days[there]
        out[there, 0] = (known - self.centre) / _YEAR
        out[there, 1 + (np.floor(known).astype(np.int64) + 3) % 7] = 1.0  # 1970 began on a Thursday
        turns = [known / _YEAR, *([known] if self.clock else [])]
        for place, turn in zip((8, 10), turns, strict=False):
            out[there, place], out[there, place + 1] = np.sin(2 * np.pi * turn), np.cos(2 * np.pi * turn)
        if self.missing:
            out[np.isnan(days), -1] = 1.0

    @classmethod
    def inferred(cls, name: str, known: Any, missing: bool) -> "Date":
        """The centre, and whether there are times of day, by the values of some rows."""
        days = as_days(known, name, {})
        days = days[np.isfinite(days)]
        centre = float(np.floor(days.mean())) if len(days) else 0.0
        return cls(name, centre, bool((days != np.floor(days)).any()), missing)

    def state(self) -> Parameters:
        """All of it as data that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: Parameters) -> "Date":
        """Make the column that `state` described."""
        return cls(**{**state, "centre": as_number(state["centre"], "centre")})


def as_days(array: Any, name: str, bad: Bad) -> FloatArray:
    """Times as days since 1970 in UTC, NaN where one is missing; those that are none are noted in ``bad``."""
    array = plain(array)
    if is_text(array):
        try:
            return _days(pc.cast(array, pa.timestamp("us")))
        except pa.ArrowInvalid:
            return parse_one_by_one(array, _days_of, lambda text: f"{name} is {quoted(text)}, {_NO_DATE}", bad)
    if pa.types.is_null(array.type):
        return np.full(len(array), np.nan)
    if not (pa.types.is_timestamp(array.type) or pa.types.is_date(array.type)):
        raise SchemaError(f"column {name!r} holds {describe_type(array.type)} where dates were expected")
    return _days(pc.cast(array, pa.timestamp("us", getattr(array.type, "tz", None)), safe=False))


_NO_DATE = "no date as in 2024-12-31 or 2024-12-31T23:59:59"


def _days(times: Any) -> FloatArray:
    return np.asarray(pc.cast(times, pa.int64()).to_numpy(zero_copy_only=False) / _MICROSECONDS)


def _days_of(text: str) -> float:
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() / 86400.0
