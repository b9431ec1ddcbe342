"""Times of values as steps: 0, 1, 2, .. in the rhythm of the series, so that gaps are known as missing values.

Times are numbers, or dates. The step between the first two sets the rhythm unless one is given: a fixed time, or
calendar months where these lie 28 to 31 days, a quarter or a year apart, on the same day or at an end of the month.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onepass.files.state import as_exact_number

__all__ = ["MOST_GAP", "MOST_STEPS", "Clock", "Times", "as_times"]

MOST_GAP = 10_000
"""Steps that may be missing in a row."""
MOST_STEPS = 2**32
"""Steps between any two of a series."""

Times = NDArray[np.int64] | NDArray[np.float64]
"""Dates as nanoseconds, or numbers."""

_DAY = 86_400_000_000_000  # nanoseconds
_MONTHS = {1: (28, 31), 3: (89, 92), 6: (181, 184), 12: (365, 366)}
_TOLERANCE = 0.01  # of a step, by which a time may be off
_EDGE = 4  # days at the beginning and the end of a month, which working days move to one another
# Seasons by step: of hours a day and a week, and so on.
_SEASONS = {
    _DAY // 96: (96.0, 672.0),
    _DAY // 48: (48.0, 336.0),
    _DAY // 24: (24.0, 168.0),
    _DAY: (7.0, 365.25),
    7 * _DAY: (52.18,),
}
_MONTH_SEASONS = {1: (12.0,), 3: (4.0,), 6: (2.0,), 12: ()}


def as_times(value: Any, n: int) -> Times:
    """Check ``n`` times: numbers, or dates as nanoseconds since 1970."""
    array = np.atleast_1d(np.asarray(value))
    if array.dtype.kind in "OU":
        try:
            array = array.astype("datetime64[ns]")
        except (TypeError, ValueError):
            raise TypeError(f"times must be numbers or dates, got {value!r}"[:200]) from None
    if array.shape != (n,):
        raise ValueError(f"times must have one entry for each of the {n} values, got shape {array.shape}")
    if array.dtype.kind == "M":
        if np.isnat(array).any():
            raise ValueError("times must not be missing, got NaT: leave the value out, gaps are found by their times")
        return array.astype("datetime64[ns]").astype(np.int64)
    if array.dtype.kind not in "iuf" or not np.isfinite(array.astype(np.float64)).all():
        raise TypeError(f"times must be finite numbers or dates, got dtype {array.dtype}")
    return array.astype(np.float64)


class Clock:
    """The rhythm of a series, and the step of its last value.

    Parameters
    ----------
    are_dates : bool
    start : the first time
    step : the time between two values, 0 while it is not known
    months : months between two values, 0 for a fixed time
    last : the step of the last value
    at_end : whether months are counted from end to end; by default they are if the first date is the end of one
    """

    def __init__(
        self,
        are_dates: bool,
        start: float,
        step: float = 0.0,
        months: int = 0,
        last: int = 0,
        at_end: bool | None = None,
    ) -> None:
        self.are_dates = are_dates
        self.start = start
        self.step = step
        self.months = months
        self.last = last
        self.at_end = bool(are_dates) and _is_end(start) if at_end is None else at_end

    @classmethod
    def of(cls, times: Times) -> "Clock":
        """The rhythm that the first two of different times set, if there are two."""
        clock = cls(times.dtype == np.int64, times[0].item())
        if len(times) > 1:
            clock.learn_step(times[1].item())
        return clock

    @property
    def is_known(self) -> bool:
        """Whether two times have shown the rhythm."""
        return self.step > 0 or self.months > 0

    def learn_step(self, second: float) -> None:
        """Set the rhythm by the time of the second value."""
        apart = second - self.start
        if apart <= 0:
            raise ValueError(_order(apart))
        if self.are_dates:
            days = apart / _DAY
            if days % 7 or _same_day(self.start, second):  # else it is a number of weeks
                self.months = next((n for n, (least, most) in _MONTHS.items() if least <= days <= most), 0)
            if self.months and not self._month_steps(np.array([second], dtype=np.int64))[1].all():
                self.months = 0
        if not self.months:
            self.step = apart

    @property
    def seasons(self) -> tuple[float, ...]:
        """The seasons that series of this rhythm usually have."""
        if self.months:
            return _MONTH_SEASONS.get(self.months, ())
        return _SEASONS.get(int(self.step), ()) if self.are_dates else ()

    def steps(self, times: NDArray[Any]) -> NDArray[np.int64]:
        """Steps of times in any order, which must fit the rhythm; all are the first while that is not known."""
        if not self.is_known:
            return np.zeros(len(times), dtype=np.int64)
        found, fits = self.nearest_steps(times)
        if not fits.all():
            raise ValueError(
                f"times must follow each other in one rhythm, that of the first two; the one at index "
                f"{int(np.argmin(fits))} does not fit: resample the series, or begin with two values one step apart"
            )
        return found

    def nearest_steps(self, times: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Steps of times in any order, and which of them fit the rhythm."""
        if self.months:
            return self._month_steps(times)
        exact = (times - self.start) / self.step
        found = np.rint(exact).astype(np.int64)
        return found, np.abs(exact - found) <= _TOLERANCE

    def _month_steps(self, times: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        months = times.astype("datetime64[ns]").astype("datetime64[M]").astype(np.int64)
        first = int(np.int64(self.start).astype("datetime64[ns]").astype("datetime64[M]").astype(np.int64))
        found, rest = np.divmod(months - first, self.months)
        return found, (rest == 0) & _fits_months(times, self.times_of(found).astype(np.int64), self.start)

    def positions(self, times: NDArray[Any]) -> NDArray[np.int64]:
        """Steps of times after the last one, which must follow each other in the rhythm; gaps are allowed."""
        found = self.steps(times)
        steps = np.diff(np.concatenate([[self.last], found]))
        if (steps <= 0).any():
            raise ValueError(_order(steps.min()))
        if steps[1:].max(initial=0) > MOST_GAP or (self.last >= -1 and steps[0] > MOST_GAP):
            raise ValueError(f"times have a gap of {steps.max()} steps, more than {MOST_GAP}: begin a new forecaster")
        return found

    def times_of(self, steps: NDArray[np.int64]) -> NDArray[Any]:
        """Times of steps, dates or numbers."""
        if not self.months:
            found = self.start + steps * self.step
            if self.are_dates:
                return found.astype("datetime64[ns]")
            return found.astype(np.int64) if (found == np.rint(found)).all() else found
        first = np.datetime64(int(self.start), "ns")
        months = first.astype("datetime64[M]") + self.months * steps
        ends = (months + 1).astype("datetime64[D]") - 1
        days = months.astype("datetime64[D]") + (_day_of_month(self.start) - 1)
        found = ends if self.at_end else np.minimum(days, ends)
        return np.asarray(found.astype("datetime64[ns]") + (first - first.astype("datetime64[D]")))

    def to_data(self) -> list[float]:
        """The clock as plain data."""
        return [int(self.are_dates), self.start, self.step, self.months, self.last]

    @classmethod
    def from_data(cls, data: list[Any]) -> "Clock":
        """Make the clock that `to_data` described."""
        dated, start, step, months, last = (as_exact_number(number, "clock") for number in data)
        exact = int if dated else float
        return cls(bool(dated), exact(start), exact(step), int(months), int(last))

    def copy(self) -> "Clock":
        """The same clock, to be moved on its own."""
        return Clock(self.are_dates, self.start, self.step, self.months, self.last, self.at_end)


def _fits_months(times: NDArray[Any], expected: NDArray[np.int64], start: float) -> NDArray[np.bool_]:
    """Whether dates are where a rhythm of months has them: on the same day.

    Where the first date is at an edge of its month, others may be up to three days off, as the first and last working
    days are.
    """
    at_edge = _day_of_month(start) <= _EDGE or _day_of_month(start + _EDGE * _DAY) <= _EDGE
    return np.asarray(np.abs(times - expected) < (_EDGE if at_edge else 1) * _DAY)


def _order(apart: float) -> str:
    kind = "repeat" if apart == 0 else "go back"
    return f"times must increase, but they {kind}: sort the values by time, and keep one for each time"


def _same_day(first: float, second: float) -> bool:
    """Whether two dates are the same day of their months, or both the last one."""
    return _day_of_month(first) == _day_of_month(second) or (_is_end(first) and _is_end(second))


def _is_end(time: float) -> bool:
    """Whether a date is the last day of its month."""
    return _day_of_month(time + _DAY) == 1


def _day_of_month(time: float) -> int:
    date = np.datetime64(int(time), "ns")
    return int((date.astype("datetime64[D]") - date.astype("datetime64[M]")).astype(int)) + 1
