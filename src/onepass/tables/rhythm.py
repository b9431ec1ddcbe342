"""How the times of a series follow each other: a fixed time apart, in calendar months, or on working days.

Times are numbers, or nanoseconds since 1970 of a local clock. A `Rhythm` is found in the times of a file, and says what
it is called. It turns times into steps 0, 1, 2, ... and back as a forecaster's `Clock` does, and knows working days.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from onepass._validation import as_flag
from onepass.files.state import Parameters, as_exact_number, as_number
from onepass.forecasting.times import Clock
from onepass.tables.columns.wording import number_text

__all__ = ["DAY", "HOUR", "Rhythm", "Times", "find_rhythm"]

HOUR = 3_600_000_000_000  # nanoseconds
DAY = 24 * HOUR
_MINUTE = HOUR // 60
_MONTH = 30.44  # days on average
_MONTH_NAMES = {1: "monthly", 2: "every two months", 3: "quarterly", 6: "every half year", 12: "yearly"}
_UNITS = ((7 * DAY, "week", "weekly"), (DAY, "day", "daily"), (HOUR, "hour", "hourly"), (_MINUTE, "minute", "minutely"))
_WORKING_DAYS = (5.0, 261.0)
_FEWEST_WORKING_DAYS = 8

Times = NDArray[Any]
"""Numbers as float64, dates as nanoseconds of type int64."""


@dataclass(frozen=True)
class Rhythm:
    """The time from value to value.

    Parameters
    ----------
    are_dates : bool
    start : the time of step 0
    step : the time between two values; 0 with months
    months : calendar months between two values, or 0
    at_end : whether the times are the last days of their months
    working_days : whether Saturdays and Sundays are left out

    Examples
    --------
    >>> months = Rhythm(True, 0, months=1)
    >>> months.times(np.array([1, 12])).astype("datetime64[ns]").astype("datetime64[D]").tolist()
    [datetime.date(1970, 2, 1), datetime.date(1971, 1, 1)]
    """

    are_dates: bool
    start: float
    step: float = 0.0
    months: int = 0
    at_end: bool = False
    working_days: bool = False

    @property
    def _clock(self) -> Clock:
        """What counts the steps, but for working days."""
        return Clock(self.are_dates, self.start, self.step, self.months, at_end=self.at_end)

    def steps(self, times: Times) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The steps of times, and which of them fit the rhythm."""
        if not self.working_days:
            return self._clock.nearest_steps(times)
        days = times // DAY
        found = np.busday_count(np.int64(self.start // DAY).astype("datetime64[D]"), days.astype("datetime64[D]"))
        on_time = (times - int(self.start)) % DAY == 0
        return found.astype(np.int64), (np.is_busday(days.astype("datetime64[D]")) & on_time)

    def times(self, steps: NDArray[np.int64]) -> Times:
        """The times of steps."""
        if not self.working_days:
            return self._clock.times_of(steps).astype(np.int64 if self.are_dates else np.float64)
        start = np.int64(self.start // DAY).astype("datetime64[D]")
        days = np.busday_offset(start, steps).astype(np.int64)
        return np.asarray(days * DAY + int(self.start) % DAY)

    def drawn_times(self, first: int, n: int) -> Any:
        """The times of some steps as they are drawn: dates to the millisecond, or numbers."""
        times = self.times(first + np.arange(n))
        return times.astype("datetime64[ns]").astype("datetime64[ms]") if self.are_dates else times

    @property
    def seasons(self) -> tuple[float, ...]:
        """The lengths of the seasons that such series usually have, in steps."""
        return _WORKING_DAYS if self.working_days else self._clock.seasons

    def season_words(self, length: float) -> str:
        """What a season is called, such as a week of 7 steps."""
        if self.working_days:
            name = {5.0: "week", 261.0: "year"}.get(length)
        else:
            span = length * (self.months * _MONTH * DAY if self.months else self.step)
            named = ((DAY, "day"), (7 * DAY, "week"), (365.25 * DAY, "year"))
            close = (name for size, name in named if abs(span / size - 1.0) < 0.01)
            name = next(close, None) if self.are_dates else None
        return f"{name} ({length:g} steps)" if name else f"{length:g} steps"

    def words(self) -> str:
        """What the rhythm is called."""
        if self.working_days:
            return "working days, Monday to Friday"
        if self.months:
            years, rest = divmod(self.months, 12)
            name = _MONTH_NAMES.get(self.months) or (f"every {self.months} months" if rest else f"every {years} years")
            return f"{name}, at the end of the month" if self.at_end and self.months < 12 else name
        if not self.are_dates:
            return f"every {number_text(float(f'{self.step:.10g}'))}"
        for size, one, adverb in _UNITS:
            count = self.step / size
            if count == int(count):
                day = np.int64(self.start // DAY).astype("datetime64[D]").item()
                of_week = f", {day:%A}s" if one == "week" else ""
                return f"{adverb}{of_week}" if count == 1 else f"every {int(count)} {one}s{of_week}"
        return f"every {self.step / 1e9:g} seconds"

    @property
    def is_of_days(self) -> bool:
        """Whether all times are days, which begin at midnight."""
        whole = bool(self.months) or self.working_days or self.step % DAY == 0
        return self.are_dates and self.start % DAY == 0 and whole

    def time_texts(self, times: Times, zone: str = "") -> list[str]:
        """Times as texts that the readers of this library understand."""
        if not self.are_dates:
            return [number_text(float(f"{time:.15g}")) for time in times.tolist()]
        whole_days = self.is_of_days
        minutes = self.start % _MINUTE == 0 and self.step % _MINUTE == 0
        unit: Literal["D", "m", "ms"] = "D" if whole_days else "m" if minutes else "ms"
        dates: NDArray[np.datetime64] = times.astype("datetime64[ns]")
        texts: list[str] = np.datetime_as_string(dates, unit=unit).tolist()
        return texts if whole_days else [text + zone for text in texts]

    def to_data(self) -> Parameters:
        """The rhythm as plain data."""
        return dict(vars(self))

    @classmethod
    def from_data(cls, data: Parameters) -> "Rhythm":
        """Make the rhythm that `to_data` described."""
        exact = int if data["are_dates"] else float
        flags = {name: as_flag(data[name], name) for name in ("are_dates", "at_end", "working_days")}
        start, step = (exact(as_exact_number(data[name], name)) for name in ("start", "step"))
        return cls(start=start, step=step, months=int(as_number(data["months"], "months")), **flags)


def find_rhythm(series: Sequence[Times]) -> Rhythm | None:
    """The rhythm of increasing times of some series; None if no series has two."""
    apart = np.concatenate([np.diff(times) for times in series]) if series else np.zeros(0)
    if not len(apart):
        return None
    are_dates = series[0].dtype == np.int64
    start = min(times[0].item() for times in series)
    if not are_dates:
        apart = np.array([float(f"{one:.9g}") for one in apart])
    sizes, counts = np.unique(apart, return_counts=True)
    step = sizes[counts.argmax()].item()
    if not are_dates:
        return Rhythm(False, start, step)
    every = np.unique(np.concatenate(list(series)))
    if step >= 28 * DAY:
        months = round(step / DAY / _MONTH)
        if (at_end := _monthly(every, months)) is not None:
            return Rhythm(True, start, months=months, at_end=at_end)
        if (mostly := _mostly_monthly(every, months)) is not None:
            return mostly
    week_days = np.is_busday((every // DAY).astype("datetime64[D]"))
    if step == DAY and len(every) >= _FEWEST_WORKING_DAYS and week_days.all():
        return Rhythm(True, start, step, working_days=True)
    return Rhythm(True, start, step)


def _monthly(times: Times, months: int) -> bool | None:
    """Whether times in a rhythm of months are at their ends; None if they are not in one."""
    apart = np.diff(_months(times))
    if (apart % months).any() or not apart.all():
        return None
    days = _day_of_month(times)
    months_of = _months(times).astype("datetime64[M]")
    lengths = ((months_of + 1).astype("datetime64[D]") - months_of.astype("datetime64[D]")).astype(np.int64)
    if (days == lengths).all():
        return True
    same = bool((days == np.minimum(days.max(), lengths)).all())
    return False if same or days.max() <= 4 else (True if (lengths - days <= 3).all() else None)


def _mostly_monthly(times: Times, months: int) -> Rhythm | None:
    """The rhythm of months that most times are in, so that the others can be named; None if there is none."""
    days = _day_of_month(times)
    is_end = _day_of_month(times + DAY) == 1
    usual = np.bincount(days).argmax()
    found = [
        Rhythm(True, int(times[at][0]), months=months, at_end=at_end)
        for at_end, at in ((True, is_end), (False, days == usual))
        if at.any()
    ]
    shares = [float(one.steps(times)[1].mean()) for one in found]
    return found[int(np.argmax(shares))] if found and max(shares) > 0.5 else None


def _months(times: Times) -> NDArray[np.int64]:
    months: NDArray[np.int64] = times.astype("datetime64[ns]").astype("datetime64[M]").astype(np.int64)
    return months


def _day_of_month(times: Times) -> NDArray[np.int64]:
    dates = times.astype("datetime64[ns]")
    since = dates.astype("datetime64[D]") - dates.astype("datetime64[M]").astype("datetime64[D]")
    return np.asarray(since.astype(np.int64) + 1)
