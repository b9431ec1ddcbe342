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
from onepass.forecasting.times import Clock, Times

__all__ = ["InOrder", "RecentRows", "RecentValues", "TooLateError"]

_MOST_GAP = 10_000
_MOST_STEPS = 2**32  # between a series' first and last one
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
    anew : bool
        Whether they take the place of all recent values; if not they follow them.
    settled : (n,) array of bool
        Of the recent values after that, those that can't change any more.
    """

    anew: bool
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
        anew = n > 0 and bool((steps[n:] <= steps[n - 1]).any())
        learned = at if anew else at[at >= n]
        settled = steps[at] <= steps[at[-1]] - self.steps
        recent = times[at], all_values[at], all_inputs[at]
        return InOrder(anew, all_values[learned], all_inputs[learned], times[learned], recent, settled)

    def _clock(self, times: Times) -> Clock:
        """The rhythm, which the first two times set."""
        if len(self._first) == 2:
            return _clock_of(self._first)
        later = times[times > self._first[0]] if len(self._first) else times
        first: Times = np.concatenate([self._first.astype(times.dtype), np.unique(later)])[:2]
        return _clock_of(first)

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
    """The rows of the last steps of many series, each a value and its inputs.

    Parameters
    ----------
    steps : how many steps, counted from the newest of all series, can be revised
    width : numbers of a row
    """

    def __init__(self, steps: int, width: int) -> None:
        self.steps, self.width = steps, width
        self.clock: Clock | None = None
        """The rhythm of all series; None before the first value."""
        self.series: dict[Hashable, int] = {}
        """All series, and the row that each has."""
        self._last = 0  # the newest step of all series
        self._newest = np.zeros(0, dtype=np.int64)  # and of each
        self._values = np.zeros((0, steps, width))  # the row of a step is in the column of the step modulo their number
        self._present = np.zeros((0, steps), dtype=bool)
        self._times: Times = np.zeros(0)  # all different ones, as long as all values can change, and so the rhythm

    def __len__(self) -> int:
        return int(self._present.sum())

    @property
    def ends(self) -> dict[Hashable, int]:
        """The newest step of each series."""
        return dict(zip(self.series, self._newest.tolist(), strict=True))

    def put(
        self, names: Sequence[Hashable], times: Times, values: FloatArray
    ) -> tuple[list[Hashable], NDArray[np.int64], FloatArray]:
        """Keep rows ``(n, width)``, in whatever order they came; the last one of a step counts.

        Return the series, steps and rows of what can't change any more, sorted by step and series.
        """
        clock, moved = self._clock_for(times)
        steps = clock.steps(times)
        series = dict(self.series)
        rows = np.fromiter((series.setdefault(name, len(series)) for name in names), np.int64, len(names))
        newest = np.full(len(series), _NEVER)
        newest[: len(self._newest)] = moved(self._newest)
        last = int(moved(np.array([self._last]))[0]) if self.series else _NEVER
        self._check(names, rows, steps, newest, last)
        kept_rows, kept_steps, kept_values = self._kept()
        rows, steps = np.concatenate([kept_rows, rows]), np.concatenate([moved(kept_steps), steps])
        values = np.concatenate([kept_values, values])
        last = int(steps.max())
        at = _last_of_each(rows * _MOST_STEPS + steps)
        done = steps[at] <= last - self.steps
        self._keep(rows[at[~done]], steps[at[~done]], values[at[~done]], len(series))
        np.maximum.at(newest, rows, steps)
        self.clock, self.series, self._newest, self._last = clock, series, newest, last
        final = at[done]
        if len(final):
            self._times = np.zeros(0)
        elif len(self._times) or not len(kept_rows):
            self._times = self._distinct(times)
        every = list(series)
        named = [every[row] for row in rows[final]]
        found = sorted(zip(steps[final].tolist(), named, final.tolist(), strict=True), key=_order)
        final = np.array([at for _, _, at in found], dtype=np.intp)
        return [name for _, name, _ in found], steps[final], values[final]

    def _distinct(self, times: Times) -> Times:
        """All different times, sorted, of what is kept and what is new."""
        distinct: Times = np.unique(np.concatenate([self._times, times]) if len(self._times) else times)
        return distinct

    def _clock_for(self, times: Times) -> tuple[Clock, Any]:
        """The rhythm with new times, and what turns steps of the present one into steps of that."""
        dated = times.dtype == np.int64
        if self.clock is None:
            return _clock_of(self._distinct(times)), lambda steps: steps
        if self.clock.are_dates != dated:
            raise TypeError("ds must be all dates or all numbers")
        if not len(self._times):
            return self.clock, lambda steps: steps
        clock = _clock_of(self._distinct(times))
        places = dict(zip(self.clock.steps(self._times).tolist(), clock.steps(self._times).tolist(), strict=True))
        return clock, lambda steps: np.array([places[step] for step in steps.tolist()], dtype=np.int64)

    def _check(
        self,
        names: Sequence[Hashable],
        rows: NDArray[np.int64],
        steps: NDArray[np.int64],
        newest: NDArray[np.int64],
        last: int,
    ) -> None:
        """Refuse values that are too late, unless they are the newest of their series, and wide gaps."""
        late = (steps <= last - self.steps) & (steps <= newest[rows])
        if late.any():
            index = int(np.argmax(late))
            raise TooLateError(index, int(last - steps[index]), self.steps)
        order = np.lexsort((steps, rows))
        before = np.concatenate([[_NEVER], steps[order][:-1]])
        first = np.concatenate([[True], rows[order][1:] != rows[order][:-1]])
        before[first] = newest[rows[order][first]]
        wide = (before != _NEVER) & (steps[order] - before > _MOST_GAP)
        wide |= (last != _NEVER) & (steps[order] - last > _MOST_GAP)
        if wide.any():
            name = names[int(order[np.argmax(wide)])]
            raise ValueError(f"the series {name!r} has a gap of more than {_MOST_GAP} steps: give it a new name")

    def _kept(self) -> tuple[NDArray[np.int64], NDArray[np.int64], FloatArray]:
        """Series, steps and rows of all that is kept."""
        rows, columns = np.nonzero(self._present)
        steps = self._last - (self._last - columns) % self.steps
        return rows, steps, self._values[rows, columns]

    def _keep(self, rows: NDArray[np.int64], steps: NDArray[np.int64], values: FloatArray, n_series: int) -> None:
        self._values = np.zeros((n_series, self.steps, self.width))
        self._present = np.zeros((n_series, self.steps), dtype=bool)
        self._values[rows, steps % self.steps] = values
        self._present[rows, steps % self.steps] = True

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
        parameters: Parameters = {
            "steps": self.steps,
            "clock": None if self.clock is None else self.clock.to_data(),
            "series": list(self.series),
            "last": self._last,
            "newest": self._newest.tolist(),
            "times": self._times.tolist(),
        }
        values = np.where(self._present[:, :, None], self._values, 0.0)
        return parameters, {"values": values, "present": self._present.astype(np.float64)}

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays, width: int) -> "RecentRows":
        """Make the rows that `export_state` described."""
        new = cls(as_tally(parameters["steps"], "steps"), width)
        new.series = {name: row for row, name in enumerate(parameters["series"])}
        shape = (len(parameters["series"]), new.steps)
        if len(new.series) != shape[0]:
            raise ValueError("keys of a fleet must differ")
        new._values = sized_or_nan(arrays, "values", (*shape, width))
        new._present = sized_or_nan(arrays, "present", shape) == 1.0
        new._last = int(as_number(parameters["last"], "last"))
        new._newest = np.array([int(as_number(step, "newest")) for step in parameters["newest"]], dtype=np.int64)
        if new._newest.shape != shape[:1] or (new._newest > new._last).any():
            raise ValueError("newest must have a step for each series, none after the last")
        if parameters["clock"] is not None:
            new.clock = Clock.from_data(parameters["clock"])
            new._times = _as_times(parameters["times"], new.clock.are_dates)
        return new


def _clock_of(times: Times) -> Clock:
    """The rhythm that the first two of different times set, if there are two."""
    clock = Clock(times.dtype == np.int64, times[0].item())
    if len(times) > 1:
        clock.learn_step(times[1].item())
    return clock


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
