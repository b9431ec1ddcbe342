"""Fleets of forecasters on a cluster: series are divided among parts, and the rows of a series are sent to its part.

Parts learn the same steps at the same time. Wherever one fleet would share, all parts do: each gives the weights of
some of its series and how it has sized intervals, and all learn the same prior from these. A part is a task whose
result is kept where it was computed, so all of it runs on any of Dask's schedulers. A part is copied before it learns:
what fails leaves the parts as they were.
"""

import copy
import os
from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Self

import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.base import compute, persist
from dask.delayed import delayed
from numpy.typing import NDArray

from onepass._validation import as_count
from onepass.files.checkpoint import load, save
from onepass.forecasting import Contribution, Forecast, ForecastingFleet, sampled
from onepass.forecasting.long_tables import as_level, columns_of
from onepass.forecasting.population import sharing_steps
from onepass.forecasting.times import Clock, Times, as_times
from onepass.integrations.dask.rounds import NO_ROWS
from onepass.integrations.dask.shards import select_columns
from onepass.models.fleet.keys import as_keys, parts_of

__all__ = ["DistributedForecastingFleet", "fit_forecasts", "load_forecasts"]


def fit_forecasts(fleet: ForecastingFleet, data: Any, *, parts: int | None = None) -> "DistributedForecastingFleet":
    """Learn the series of a Dask data frame on Dask's current scheduler; the given fleet is not changed.

    Parameters
    ----------
    fleet : ForecastingFleet
        Without series or with some that are continued; ``revisions`` must be 0.
    data : Dask data frame
        As for `DistributedForecastingFleet.learn_frame`.
    parts : int, optional
        Number of parts that series are divided into, by default that of the partitions. Each has to fit into the memory
        of a worker twice, with its rows; more than one per thread is seldom of use.

    Examples
    --------
    >>> import dask, dask.dataframe as dd, numpy as np, pandas as pd
    >>> from onepass.distributed import fit_forecasts
    >>> from onepass.forecasting import ForecastingFleet
    >>> days = pd.date_range("2026-01-01", periods=60)
    >>> sales = [pd.DataFrame({"unique_id": shop, "ds": days, "y": 20 + np.arange(60) % 7}) for shop in ("a", "b", "c")]
    >>> with dask.config.set(scheduler="threads"):
    ...     fleet = fit_forecasts(ForecastingFleet(season_length=7), dd.from_pandas(pd.concat(sales), npartitions=2))
    ...     tonight = pd.DataFrame({"unique_id": ["a", "b"], "ds": pd.Timestamp("2026-03-02"), "y": [24.0, 24.0]})
    ...     _ = fleet.learn_frame(dd.from_pandas(tonight, npartitions=1))
    ...     ahead = fleet.forecast_frame(2, levels=[95]).compute()
    >>> fleet
    DistributedForecastingFleet(n_series=3, n_seen=182, n_parts=2)
    >>> ahead[ahead["unique_id"] == "a"]["onepass"].round().tolist()
    [25.0, 26.0]
    """
    if not isinstance(fleet, ForecastingFleet):
        raise TypeError(f"fleet must be a ForecastingFleet, got {type(fleet).__name__}")
    _check_frame(data, ("unique_id", "ds", "y", *fleet.inputs))
    divided = fleet.split(as_count(data.npartitions if parts is None else parts, "parts"))
    return DistributedForecastingFleet([_task(_identity, part) for part in divided]).learn_frame(data)


def load_forecasts(folder: str | PathLike[str]) -> "DistributedForecastingFleet":
    """Load what `DistributedForecastingFleet.save` wrote, each part where Dask runs its task."""
    names = sorted(path.name for path in Path(folder).glob("part-*.onepass"))
    if not names or names != _file_names(len(names)):
        raise ValueError(f"{os.fspath(folder)} must have all parts of a fleet, got {', '.join(names) or 'none'}")
    return DistributedForecastingFleet([_task(load, Path(folder, name)) for name in names])


class _Status(NamedTuple):
    """What has to be known of a part where the others are known."""

    length: int
    n_seen: int
    inputs: tuple[str, ...]
    rhythm: Clock | None
    first_key: Hashable


class DistributedForecastingFleet:
    """The parts of a `onepass.forecasting.ForecastingFleet`, each where Dask has learned it.

    Made by `fit_forecasts` and `load_forecasts`. What is learned runs on Dask's scheduler at that time: the current
    ``distributed.Client``, else the one of ``dask.config``, else threads.

    Parameters
    ----------
    parts : list of dask.delayed.Delayed
        Fleets made by `ForecastingFleet.split` that have shared.
    """

    def __init__(self, parts: Sequence[Any]) -> None:
        self._parts, self._statuses = _kept(parts)

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self._parts)

    @property
    def n_seen(self) -> int:
        """Number of values learned from all series, with those that are missing."""
        return sum(status.n_seen for status in self._statuses)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return self._statuses[0].inputs

    def __len__(self) -> int:
        return sum(status.length for status in self._statuses)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(n_series={len(self)}, n_seen={self.n_seen}, n_parts={self.n_parts})"

    def learn_frame(self, data: Any) -> Self:
        """Learn the rows of a Dask data frame; its partitions may have rows of any series and times, in any order.

        Parameters
        ----------
        data : Dask data frame
            Columns as for `ForecastingFleet.learn_frame`: ``unique_id`` (whole numbers or texts), ``ds``, ``y`` and
            the inputs.
        """
        columns = ["unique_id", "ds", "y", *self.inputs]
        _check_frame(data, columns)
        pieces = self._by_part(data[columns])
        rows = _persisted([_task(_sorted_rows, own, self.inputs) for own in pieces])
        times, counts = _counted(_computed([_task(_times_of, own) for own in rows]))
        clock = _clock_for(self._statuses[0].rhythm, times)
        parts, contributions = self._parts, None
        shared = sharing_steps(self.n_seen, counts)
        ends = sorted({*shared, len(times) - 1})
        for before, end in pairwise([-1, *ends]):
            slices = [_task(_between, own, times[before + 1], times[end]) for own in rows]
            parts = _persisted(
                [_task(_learned, part, contributions, own, clock) for part, own in zip(parts, slices, strict=True)]
            )
            asked: Sequence[Any] = [()] * len(parts)
            if end in shared:
                asked = sampled(_computed([_task(len, part) for part in parts]))
            given = [_task(_contribution, part, own) for part, own in zip(parts, asked, strict=True)]
            contributions = _task(list, given)
        self._parts, self._statuses = _kept([_task(_shared, part, contributions) for part in parts])
        return self

    def forecast(self, horizon: int, *, key: Hashable, X: Any = None) -> Forecast:
        """Predict the next ``horizon`` values of a series: see `ForecastingFleet.forecast`."""
        (number,) = parts_of(as_keys([key], 1), self.n_parts).tolist()
        (found,) = _computed([_task(_forecast, self._parts[number], horizon, key, X)])
        assert isinstance(found, Forecast)
        return found

    def forecast_frame(self, horizon: int, levels: Sequence[float] = (80, 95), X_df: Any = None) -> Any:
        """Predict the next ``horizon`` values of all series lazily, as `ForecastingFleet.forecast_frame` does.

        Parameters
        ----------
        horizon : int
        levels : sequence of numbers
            Percentages of intervals.
        X_df : Dask data frame, optional
            ``unique_id``, ``ds`` and the inputs of steps to come.

        Returns
        -------
        Dask data frame
            Its partitions are the parts of the fleet.
        """
        steps = as_count(horizon, "horizon")
        for level in levels:
            as_level(level)
        known = next((status for status in self._statuses if status.length), None)
        if known is None or known.rhythm is None:
            raise ValueError("forecast_frame needs the times of series: learn them with learn_frame")
        ahead: Sequence[Any] = [None] * self.n_parts
        if X_df is not None:
            _check_frame(X_df, ("unique_id", "ds", *self.inputs))
            if not self.inputs:
                raise ValueError(
                    "X_df was given, but the fleet has no inputs: name them in ForecastingFleet(inputs=...)"
                )
            ahead = self._by_part(X_df[["unique_id", "ds", *self.inputs]])
        meta = _empty_forecasts(known, levels)
        frames = [
            _task(_forecast_frame, part, steps, levels, own, meta) for part, own in zip(self._parts, ahead, strict=True)
        ]
        return dd.from_delayed(frames, meta=meta)

    def save(self, folder: str | PathLike[str]) -> None:
        """Write each part to a file of a new or empty folder, which all workers can reach; see `load_forecasts`."""
        into = Path(folder)
        if into.exists() and (not into.is_dir() or any(into.iterdir())):
            raise ValueError(f"{os.fspath(folder)} exists: give a new folder, so that the files are of one time")
        into.mkdir(parents=True, exist_ok=True)
        names = _file_names(self.n_parts)
        tasks = [_task(save, part, into / name) for part, name in zip(self._parts, names, strict=True)]
        _computed(tasks)

    def collect(self) -> ForecastingFleet:
        """The series of all parts in one fleet in this process, which shares by itself from now on."""
        first, *others = _computed(self._parts)
        joined = copy.copy(first).join(others)
        assert isinstance(joined, ForecastingFleet)
        return joined

    def _by_part(self, data: Any) -> list[list[Any]]:
        """Tasks of the pieces of all partitions, for each part."""
        cut = [_task(_cut_by_key, frame, self.n_parts) for frame in data.to_delayed()]
        return [[_task(_item, pieces, number) for pieces in cut] for number in range(self.n_parts)]


def _kept(tasks: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[_Status, ...]]:
    """Parts that are kept where they were computed, once all are, and what they say about themselves."""
    parts = _persisted(tasks)
    return parts, _computed([_task(_status, part) for part in parts])


def _check_frame(data: Any, columns: Sequence[str]) -> None:
    if not isinstance(data, dd.DataFrame):
        raise TypeError(
            f"data must be a Dask data frame, got {type(data).__name__}: use dask.dataframe.from_pandas or read_parquet"
        )
    select_columns(list(data.columns), None, columns)


def _counted(found: Sequence[tuple[Times, NDArray[np.int64]]]) -> tuple[Times, NDArray[np.int64]]:
    """The different times of all parts, sorted, and how many values have each."""
    filled = [own for own in found if len(own[0])]
    if not filled:
        raise ValueError(NO_ROWS)
    times, at = np.unique(np.concatenate([times for times, _ in filled]), return_inverse=True)
    counts = np.bincount(at.ravel(), weights=np.concatenate([counts for _, counts in filled]))
    return times, counts.astype(np.int64)


def _clock_for(known: Clock | None, times: Times) -> Clock:
    """The rhythm, which different times set if it isn't known yet, and which all must fit."""
    if known is None and len(times) < 2:
        raise ValueError("the first table must have at least two different times, which show the rhythm")
    clock = Clock.of(times) if known is None else known
    if clock.are_dates != (times.dtype == np.int64):
        raise TypeError("ds must be all dates or all numbers")
    try:
        clock.steps(times)
    except ValueError:
        wrong = next(time for time in times if not _fits(clock, time))
        first, second = clock.times_of(np.arange(2))
        raise ValueError(
            f"ds must be in one rhythm, that of the first two times, {first} and {second}, in all partitions; "
            f"{_as_ds(np.array([wrong]))[0]} is not: resample the series, or learn those of each rhythm in a fleet"
        ) from None
    return clock


def _fits(clock: Clock, time: Any) -> bool:
    try:
        clock.steps(np.array([time]))
    except ValueError:
        return False
    return True


def _as_ds(times: Times) -> NDArray[Any]:
    """Times as a column of a table."""
    return times.astype("datetime64[ns]") if times.dtype == np.int64 else times


def _empty_forecasts(known: _Status, levels: Sequence[float]) -> pd.DataFrame:
    """A table of forecasts without rows."""
    assert known.rhythm is not None
    is_whole = known.rhythm.start == int(known.rhythm.start) and known.rhythm.step == int(known.rhythm.step)
    ds = np.zeros(1, dtype="datetime64[ns]" if known.rhythm.are_dates else np.int64 if is_whole else np.float64)
    numbers = ["onepass", *(f"onepass-{side}-{level:g}" for level in levels for side in ("lo", "hi"))]
    one = {"unique_id": np.array([known.first_key]), "ds": ds, **{name: np.zeros(1) for name in numbers}}
    return pd.DataFrame(one).iloc[:0]


def _file_names(n: int) -> list[str]:
    width = len(str(n))
    return [f"part-{number:0{width}}-of-{n}.onepass" for number in range(1, n + 1)]


def _task(function: Callable[..., Any], *given: Any) -> Any:
    return delayed(function)(*given)


def _computed(tasks: Sequence[Any]) -> tuple[Any, ...]:
    """The results of tasks, in this process."""
    return tuple(compute(*tasks))


def _persisted(tasks: Sequence[Any]) -> tuple[Any, ...]:
    """Tasks whose results are kept where they are computed."""
    return tuple(persist(*tasks))


# Tasks, which run on the workers.


def _identity(part: ForecastingFleet) -> ForecastingFleet:
    return part


def _cut_by_key(frame: Any, n_parts: int) -> list[Any]:
    """Cut a frame into the rows of each part."""
    part_of = parts_of(as_keys(frame["unique_id"].to_numpy(), len(frame)), n_parts)
    return [frame[part_of == number] for number in range(n_parts)]


def _item(pieces: list[Any], number: int) -> Any:
    return pieces[number]


def _together(pieces: list[Any]) -> Any:
    """Frames as one, also where some have no rows."""
    return pd.concat([own for own in pieces if len(own)] or pieces[:1])


def _sorted_rows(pieces: list[Any], inputs: Sequence[str]) -> Any:
    """The rows of a part, sorted by time and series."""
    names, times, values, others = columns_of(_together(pieces), ("unique_id", "ds", "y"), inputs)
    as_keys(names, len(names))
    different, numbers = np.unique(names, return_inverse=True)
    order = np.lexsort((numbers.ravel(), times))
    numbers, times = numbers.ravel()[order], times[order]
    same = (np.diff(numbers) == 0) & (np.diff(times) == 0)
    if same.any():
        at = int(np.argmax(same))
        raise ValueError(
            f"the series {different[numbers[at]]!s} has several values at {_as_ds(times[at : at + 1])[0]}: "
            "keep one for each series and time"
        )
    columns = {"unique_id": different[numbers], "ds": _as_ds(times), "y": values[order]}
    return pd.DataFrame(columns | dict(zip(inputs, others[order].T, strict=True)))


def _times_of(rows: Any) -> tuple[Times, NDArray[np.int64]]:
    """Different times, and how many rows have each."""
    every: Any = as_times(rows["ds"].to_numpy(), len(rows))
    times, counts = np.unique(every, return_counts=True)
    return times, counts


def _between(rows: Any, first: float, last: float) -> Any:
    """The rows whose times are neither before nor after these."""
    times = as_times(rows["ds"].to_numpy(), len(rows))
    return rows.iloc[np.searchsorted(times, first, "left") : np.searchsorted(times, last, "right")]


def _learned(part: ForecastingFleet, given: list[Contribution] | None, rows: Any, clock: Clock) -> ForecastingFleet:
    """A part after it has shared and learned rows."""
    part = _shared(part, given)
    if part.rhythm is None:
        part.set_rhythm(clock)
    return part.learn_frame(rows) if len(rows) else part


def _shared(part: ForecastingFleet, given: list[Contribution] | None) -> ForecastingFleet:
    part = copy.copy(part)
    return part if given is None else part.share(given)


def _contribution(part: ForecastingFleet, asked: Sequence[int]) -> Contribution:
    return _with_own_memory(part).contribution(asked)


def _status(part: ForecastingFleet) -> _Status:
    return _Status(len(part), part.n_seen, part.inputs, part.rhythm, next(iter(part.keys), None))


def _forecast(part: ForecastingFleet, horizon: int, key: Hashable, X: Any) -> Forecast:
    return _with_own_memory(part).forecast(horizon, key=key, X=X)


def _forecast_frame(
    part: ForecastingFleet, horizon: int, levels: Sequence[float], ahead: list[Any] | None, meta: pd.DataFrame
) -> pd.DataFrame:
    given = None if ahead is None else _together(ahead)
    found = _with_own_memory(part).forecast_frame(horizon, levels, given)
    return pd.DataFrame({name: np.asarray(found[name]) for name in meta.columns}).astype(meta.dtypes)


def _with_own_memory(part: ForecastingFleet) -> ForecastingFleet:
    """The same fleet, of which several threads may ask forecasts at a time."""
    own = object.__new__(type(part))
    own.__setstate__(part.__getstate__())
    return own
