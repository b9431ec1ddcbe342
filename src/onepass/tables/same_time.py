"""One row for each time of a series: the same row twice counts once, and different values are a question to the user.

If the user asks for their sum or mean, all values count, also equal ones.
On a local clock an hour comes twice in autumn, which is found by the day and hour; its values count with their mean.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onepass.tables.columns.errors import SchemaError
from onepass.tables.reasons import Reason
from onepass.tables.rhythm import DAY, HOUR, Times
from onepass.tables.series_rows import SeriesColumns, SeriesRows

__all__ = ["SameTime", "may_change", "n_unsorted", "one_per_time", "sorted_lines"]

_SEVERAL = 3  # times with several values that may be those of several series
_MONTHS_OF_CHANGE = (3, 4, 9, 10, 11)  # in which clocks are put forward or back, on a Sunday


def n_unsorted(times: Times, codes: NDArray[np.int64]) -> int:
    """Rows that come after later ones of the same series."""
    order = np.argsort(codes, kind="stable")
    back = np.diff(times[order]) < 0
    return int((back & (np.diff(codes[order]) == 0)).sum())


class SameTime(NamedTuple):
    """How many rows share their time with another one."""

    repeated: int = 0
    merged: int = 0
    hours: int = 0  # of local clocks that were put back


def one_per_time(
    rows: SeriesRows, codes: NDArray[np.int64], columns: SeriesColumns
) -> tuple[SeriesRows, NDArray[np.int64], SameTime]:
    """One row for each time of a series, from sorted rows."""
    again = np.zeros(len(codes), dtype=bool)
    again[1:] = (np.diff(codes) == 0) & (np.diff(rows.times) == 0)
    if not again.any():
        return rows, codes, SameTime()
    group = np.cumsum(~again) - 1
    first = np.flatnonzero(~again)
    repeated = np.zeros(len(codes), dtype=bool)
    different = []  # groups
    for one in np.unique(group[again]).tolist():
        start, stop = first[one], first[one + 1] if one + 1 < len(first) else len(codes)
        repeated[start:stop] = _is_repeated(rows, start, stop, every=columns.merges_all)
        if repeated[start:stop].sum() < stop - start - 1:
            different.append(one)
    kept = ~repeated
    rows, codes, group = rows.taken(kept), codes[kept], group[kept]
    if not different:
        return rows, codes, SameTime(int(repeated.sum()))
    distinct = np.unique(rows.times)
    hourly = len(distinct) > 1 and np.median(np.diff(distinct)) <= HOUR
    hours = [one for one in different if hourly and _is_put_back(rows.times[_rows_of(group, one)])]
    others = sorted(set(different) - set(hours))
    if others and columns.duplicates == "error":
        raise _same_time_error(rows.taken(np.isin(group, others)), columns, len(others), len(first))
    rows, codes = _merged(rows, codes, group, hours, others, columns)
    n_merged = int(np.isin(group, others).sum()) - len(others)
    return rows, codes, SameTime(int(repeated.sum()), n_merged, len(hours))


def _is_repeated(rows: SeriesRows, start: int, stop: int, *, every: bool) -> NDArray[np.bool_]:
    """Which rows of one time say nothing new: they are as a later one, or lack the value that another has.

    With ``every`` equal values count one by one.
    """
    found = np.zeros(stop - start, dtype=bool)
    values = rows.values[start:stop]
    seen: set[tuple[float, ...]] = set()
    for place in reversed(range(stop - start)):
        row = (values[place], *rows.inputs[start + place])
        shown = tuple(-np.inf if np.isnan(one) else one for one in row)
        lacks = bool(np.isnan(values[place]))
        found[place] = (shown in seen and (lacks or not every)) or (lacks and bool(np.isfinite(values).any()))
        seen.add(shown)
    return found


def _rows_of(group: NDArray[np.int64], one: int) -> slice:
    """The rows of a group, which follow each other."""
    return slice(int(np.searchsorted(group, one)), int(np.searchsorted(group, one, side="right")))


def _is_put_back(times: Times) -> bool:
    """Whether two values of one time are those of an hour that comes twice, on a Sunday of spring or autumn."""
    return len(times) == 2 and times.dtype == np.int64 and bool(may_change(times[:1])[0])


def may_change(times: Times) -> NDArray[np.bool_]:
    """Which times are in the hours of a local clock that is put back or forward somewhere."""
    dates = times.astype("datetime64[ns]")
    sunday = (dates.astype("datetime64[D]").astype(np.int64) + 4) % 7 == 0
    month = dates.astype("datetime64[M]").astype(np.int64) % 12 + 1
    return np.asarray(sunday & np.isin(month, _MONTHS_OF_CHANGE) & (times % DAY < 4 * HOUR))


def _same_time_error(rows: SeriesRows, columns: SeriesColumns, n: int, n_times: int) -> SchemaError:
    """What to ask: which value counts, or, if most times come several times, which series it belongs to."""
    reason = Reason("several_values", columns.target, n, lines=sorted_lines(rows.lines))
    if columns.by is None and n >= _SEVERAL and 2 * n > n_times:
        return SchemaError(reason, suggestions={"by": "COLUMN"})
    return SchemaError(reason, suggestions={"duplicates": "last|mean|sum"})


def _merged(
    rows: SeriesRows,
    codes: NDArray[np.int64],
    group: NDArray[np.int64],
    hours: Sequence[int],
    others: Sequence[int],
    columns: SeriesColumns,
) -> tuple[SeriesRows, NDArray[np.int64]]:
    values, inputs = rows.values.copy(), rows.inputs.copy()
    kept = np.ones(len(codes), dtype=bool)
    for how, groups in (("mean", hours), (columns.duplicates, others)):
        for one in groups:
            places = _rows_of(group, one)
            last = places.stop - 1
            if how != "last":
                merged = values[places].mean() if how == "mean" else values[places].sum()
                values[last] = np.round(merged) if columns.counts else merged
                inputs[last] = inputs[places].mean(axis=0)
            kept[places.start : last] = False
    return rows._replace(values=values, inputs=inputs).taken(kept), codes[kept]


def sorted_lines(lines: NDArray[np.int64]) -> list[int]:
    """Lines of a file as data, in their order."""
    found: list[int] = np.sort(lines).tolist()
    return found
