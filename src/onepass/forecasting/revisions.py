"""Values that come late or are corrected: the latest ones are kept, and what was learned without them.

A forecaster can't forget a value. One that accepts revisions of the last ``k`` steps therefore keeps what it had
learned before these steps, and the values since. A value that comes in time is learned as always; for any other one
the values since are learned again, in order, from what was known before them. So the result is that of a forecaster to
which all values came right and in order.

In a fleet, what series share is learned only from values that can't change any more. What is newer is learned when a
forecast of its series is asked for, by that series alone. So a late value costs no more than its own series.
"""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onepass._typing import FloatArray
from onepass.files.state import Arrays, Parameters, as_number, as_tally, sized_or_nan
from onepass.forecasting.times import MOST_GAP, MOST_STEPS, Clock, Times

__all__ = ["InOrder", "RecentRows", "RecentValues", "TooLateError"]

_NEVER = -(2**31)  # before all steps


class TooLateError(ValueError):
    """A value belongs to a step that can't be revised any more.

    Attributes
    ----------
    index : int
        Which of the values it is, counted from 0.
    behind : int
        How many steps it is older than the newest one.
    """

    def __init__(self, index: int, behind: int, steps: int) -> None:
        super().__init__(
            f"the value at index {index} is {behind} steps older than the newest one, and only the last {steps} steps "
            f"can be revised: leave it out, or make the forecaster with revisions={behind + 1} or more"
        )
        self.index, self.behind = index, behind


class InOrder(NamedTuple):
    """Values to learn, sorted by time.

    Attributes
    ----------
    replaces_recent : bool
        Whether they take the place of all recent values; if not they follow them.
    settled : (n,) array of bool
        Of the recent values after that, those that can't change any more.
    """

    replaces_recent: bool
    values: FloatArray
    inputs: FloatArray
    times: Times
    recent: tuple[Times, FloatArray, FloatArray]
    settled: NDArray[np.bool_]


class RecentValues:
    """The values of the last steps of one series, sorted by time.

    Parameters
    ----------
    steps : how many steps can be revised
    """

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self._first: Times = np.zeros(0)  # the first two times that can't change any more, which set the rhythm
        self._times: Times = np.zeros(0)
        self._values = np.zeros(0)
        self._inputs = np.zeros((0, 0))

    def put(self, values: FloatArray, inputs: FloatArray, given: Times) -> InOrder:
        """What has to be learned for new values, in whatever order they came; the last one of a step counts."""
        n = len(self._values)
        if n and given.dtype != self._times.dtype:
            raise TypeError("times must be all dates or all numbers")
        times = np.concatenate([self._times, given]) if n else given
        steps = self._clock(times).steps(times)
        if n:
            behind = steps[n - 1] - steps[n:]
            if behind.max() >= self.steps:
                index = int(np.argmax(behind >= self.steps))
                raise TooLateError(index, int(behind[index]), self.steps)
        at = _last_of_each(steps)
        all_values = np.concatenate([self._values, values])
        all_inputs = np.concatenate([self._inputs, inputs]) if n else inputs
        replaces_recent = n > 0 and bool((steps[n:] <= steps[n - 1]).any())
        learned = at if replaces_recent else at[at >= n]
        settled = steps[at] <= steps[at[-1]] - self.steps
        recent = times[at], all_values[at], all_inputs[at]
        return InOrder(replaces_recent, all_values[learned], all_inputs[learned], times[learned], recent, settled)

    def _clock(self, times: Times) -> Clock:
        """The rhythm, which the first two times set."""
        if len(self._first) == 2:
            return Clock.of(self._first)
        later = times[times > self._first[0]] if len(self._first) else times
        first: Times = np.concatenate([self._first.astype(times.dtype), np.unique(later)])[:2]
        return Clock.of(first)

    @property
    def latest(self) -> tuple[Times, FloatArray]:
        """Times and values, sorted by time."""
        return self._times, self._values

    def settle(self, ordered: InOrder) -> tuple[FloatArray, FloatArray, Times] | None:
        """Keep what can change; the values, inputs and times of what no longer can, if there are any."""
        times, values, inputs = ordered.recent
        done, kept = ordered.settled, ~ordered.settled
        self._times, self._values, self._inputs = times[kept], values[kept], inputs[kept]
        if not done.any():
            return None
        self._first = np.concatenate([self._first, times[done]])[:2] if len(self._first) else times[done][:2]
        return values[done], inputs[done], times[done]

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the values as plain data."""
        parameters: Parameters = {
            "steps": self.steps,
            "are_dates": self._times.dtype == np.int64,
            "first": self._first.tolist(),
            "times": self._times.tolist(),
        }
        return parameters, {"values": self._values.copy(), "inputs": self._inputs.copy()}

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays, n_inputs: int) -> "RecentValues":
        """Make the values that `export_state` described."""
        new = cls(as_tally(parameters["steps"], "steps"))
        dated = bool(parameters["are_dates"])
        new._first, new._times = (_as_times(parameters[name], dated) for name in ("first", "times"))
        if len(new._first) > 2 or (np.diff(np.concatenate([new._first, new._times])) <= 0).any():
            raise ValueError("times of recent values must increase")
        n = len(new._times)
        new._values = sized_or_nan(arrays, "values", (n,))
        new._inputs = sized_or_nan(arrays, "inputs", (n, n_inputs if n else 0))
        return new


class RecentRows:
    """The values of the last steps of many series, each with its inputs.

    Parameters
    ----------
    steps : how many steps, counted from the newest of all series, can be revised
    width : how many numbers a value and its inputs are
    """

    def __init__(self, steps: int, width: int) -> None:
        self.steps, self.width = steps, width
        self.clock: Clock | None = None
        """The rhythm of all series; None before the first value."""
        self.series: dict[Hashable, int] = {}
        """All series, and the row that each has."""
        self._last = _NEVER  # the newest step of all series
        self._newest = np.zeros(0, dtype=np.int64)  # and of each; there may be room for more
        self._values = np.zeros((0, steps, width))  # of a step at the place of the step modulo their number
        self._present = np.zeros((0, steps), dtype=bool)
        self._times: Times | None = None  # all different ones, while all values, and so the rhythm, can change

    def __len__(self) -> int:
        return int(self._present.sum())

    def newest(self, name: Hashable) -> int:
        """The newest step of a series."""
        return int(self._newest[self.series[name]])

    @property
    def ends(self) -> dict[Hashable, int]:
        """The newest step of each series."""
        return dict(zip(self.series, self._newest.tolist(), strict=False))

    def check(self, names: Sequence[Hashable], times: Times) -> tuple[Clock, NDArray[np.int64]]:
        """Refuse times that can't be put; the rhythm with them, and their steps."""
        clock = self._clock_for(times)
        steps = clock.steps(times)
        rows = np.fromiter((self.series.get(name, -1) for name in names), np.int64, len(names))
        newest = np.full(len(names), _NEVER)
        newest[rows >= 0] = self._moved(self._newest[rows[rows >= 0]], clock)
        last = int(self._moved(np.array([self._last]), clock)[0]) if self.series else _NEVER
        late = (steps <= last - self.steps) & (steps <= newest)
        if late.any():
            index = int(np.argmax(late))
            raise TooLateError(index, int(last - steps[index]), self.steps)
        self._check_gaps(names, steps, newest, last)
        return clock, steps

    def _check_gaps(
        self, names: Sequence[Hashable], steps: NDArray[np.int64], newest: NDArray[np.int64], last: int
    ) -> None:
        numbers = {name: i for i, name in enumerate(dict.fromkeys(names))}
        rows = np.fromiter((numbers[name] for name in names), np.int64, len(names))
        order = np.lexsort((steps, rows))
        before = np.concatenate([[_NEVER], steps[order][:-1]])
        first = np.concatenate([[True], rows[order][1:] != rows[order][:-1]])
        before[first] = newest[order][first]
        wide = (before != _NEVER) & (steps[order] - before > MOST_GAP)
        wide |= (last != _NEVER) & (steps[order] - last > MOST_GAP)
        if wide.any():
            name = names[int(order[np.argmax(wide)])]
            raise ValueError(f"the series {name!r} has a gap of more than {MOST_GAP} steps: give it a new name")

    def put(
        self, names: Sequence[Hashable], times: Times, values: FloatArray
    ) -> tuple[list[Hashable], NDArray[np.int64], FloatArray]:
        """Keep values ``(n, width)``, in whatever order they came; the last one of a step counts.

        Return the series, steps and values of what can't change any more, sorted by step and series.
        """
        clock, steps = self.check(names, times)
        open_times = None if self.clock is not None and self._times is None else self._distinct(times)
        taken = self._taken(clock, int(steps.max()))
        for name in names:
            self.series.setdefault(name, len(self.series))
        self._make_room()
        rows = np.fromiter((self.series[name] for name in names), np.int64, len(names))
        rows, steps = np.concatenate([taken[0], rows]), np.concatenate([taken[1], steps])
        values = np.concatenate([taken[2], values])
        self.clock, self._last = clock, max(self._last, int(steps.max()))
        at = _last_of_each(rows * MOST_STEPS + steps)
        rows, steps, values = rows[at], steps[at], values[at]
        np.maximum.at(self._newest, rows, steps)
        done = steps <= self._last - self.steps
        self._values[rows[~done], steps[~done] % self.steps] = values[~done]
        self._present[rows[~done], steps[~done] % self.steps] = True
        self._times = None if done.any() else open_times
        return self._sorted(rows[done], steps[done], values[done])

    def _taken(self, clock: Clock, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]:
        """Take out the values that are too old once ``last`` is the newest step; all if their steps change."""
        if self.clock is not None and clock.to_data()[:4] != self.clock.to_data()[:4]:
            places = list(range(self.steps))
            self._newest, before = self._moved(self._newest, clock), self._last
            self._last = int(self._moved(np.array([before]), clock)[0])
        else:
            before = self._last
            leaving = range(before - self.steps + 1, min(before, last - self.steps) + 1) if self.series else range(0)
            places = [step % self.steps for step in leaving]
        rows, columns = np.nonzero(self._present[:, places])
        columns = np.array(places, dtype=np.int64)[columns]
        steps = before - (before - columns) % self.steps
        values = self._values[rows, columns]
        self._present[rows, columns] = False
        return rows, self._moved(steps, clock), values

    def _sorted(
        self, rows: NDArray[np.int64], steps: NDArray[np.int64], values: FloatArray
    ) -> tuple[list[Hashable], NDArray[np.int64], FloatArray]:
        """Values by step and series."""
        if not len(rows):
            return [], steps, values
        every = list(self.series)
        named = [every[row] for row in rows]
        found = sorted(zip(steps.tolist(), named, range(len(rows)), strict=True), key=_order)
        order = np.array([at for _, _, at in found], dtype=np.intp)
        return [name for _, name, _ in found], steps[order], values[order]

    def _make_room(self) -> None:
        more = len(self.series) - len(self._newest)
        if more > 0:
            more = max(more, len(self._newest) // 4)
            self._newest = np.concatenate([self._newest, np.full(more, _NEVER)])
            self._values = np.concatenate([self._values, np.zeros((more, self.steps, self.width))])
            self._present = np.concatenate([self._present, np.zeros((more, self.steps), dtype=bool)])

    def _distinct(self, times: Times) -> Times:
        """All different times, sorted, of what is kept and what is new."""
        distinct: Times = np.unique(times if self._times is None else np.concatenate([self._times, times]))
        return distinct

    def _clock_for(self, times: Times) -> Clock:
        """The rhythm with new times."""
        if self.clock is None:
            return Clock.of(self._distinct(times))
        if self.clock.are_dates != (times.dtype == np.int64):
            raise TypeError("ds must be all dates or all numbers")
        return self.clock if self._times is None else Clock.of(self._distinct(times))

    def _moved(self, steps: NDArray[np.int64], clock: Clock) -> NDArray[np.int64]:
        """Steps of the present rhythm as those of another one."""
        if self.clock is None or self._times is None:
            return steps
        old, new = self.clock.steps(self._times), clock.steps(self._times)
        places = dict(zip(old.tolist(), new.tolist(), strict=True))
        return np.array([places.get(step, _NEVER) for step in steps.tolist()], dtype=np.int64)

    def since(self, name: Hashable, before: int | None) -> FloatArray:
        """A series after the step ``before``, by default from its first value on; NaN where one is missing."""
        row = self.series[name]
        columns = np.flatnonzero(self._present[row])
        if not len(columns):
            return np.zeros((0, self.width))
        steps = self._last - (self._last - columns) % self.steps
        first = int(steps.min()) if before is None else before + 1
        found = np.full((int(steps.max()) - first + 1, self.width), np.nan)
        found[steps - first] = self._values[row, columns]
        return found

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the values as plain data."""
        n = len(self.series)
        parameters: Parameters = {
            "steps": self.steps,
            "clock": None if self.clock is None else self.clock.to_data(),
            "series": list(self.series),
            "last": self._last,
            "newest": self._newest[:n].tolist(),
            "times": None if self._times is None else self._times.tolist(),
        }
        values = np.where(self._present[:n, :, None], self._values[:n], 0.0)
        return parameters, {"values": values, "present": self._present[:n].astype(np.float64)}

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays, width: int) -> "RecentRows":
        """Make the values that `export_state` described."""
        new = cls(as_tally(parameters["steps"], "steps"), width)
        new.series = {name: row for row, name in enumerate(parameters["series"])}
        n = len(parameters["series"])
        if len(new.series) != n:
            raise ValueError("keys of a fleet must differ")
        new._values = sized_or_nan(arrays, "values", (n, new.steps, width))
        new._present = sized_or_nan(arrays, "present", (n, new.steps)) == 1.0
        new._last = int(as_number(parameters["last"], "last"))
        new._newest = np.array([int(as_number(step, "newest")) for step in parameters["newest"]], dtype=np.int64)
        if new._newest.shape != (n,) or (new._newest > new._last).any():
            raise ValueError("newest must have a step for each series, none after the last")
        if parameters["clock"] is not None:
            new.clock = Clock.from_data(parameters["clock"])
            times = parameters["times"]
            new._times = None if times is None else _as_times(times, new.clock.are_dates)
        return new


def _last_of_each(steps: NDArray[np.int64]) -> NDArray[np.intp]:
    """Where the last value of each step is, sorted by step."""
    _, at = np.unique(steps[::-1], return_index=True)
    return len(steps) - 1 - at


def _order(value: tuple[int, Any, int]) -> tuple[int, str, Any]:
    """By step and name, which may be numbers and texts in one fleet."""
    step, name, _ = value
    return step, type(name).__name__, name


def _as_times(data: Sequence[Any], are_dates: bool) -> Times:
    numbers = [as_number(time, "times") for time in data]
    return np.array(data, dtype=np.int64) if are_dates and numbers else np.array(numbers, dtype=np.float64)
