"""The series of a table: its rows by time, with what was found on the way.

Times are found out to be dates or numbers, and put into one rhythm. Rows may come in any order. The same row twice is
counted once; two values of one time are refused unless the user says what they mean. Gaps are missing values. Dates
with offsets are instants: of one zone while all have the same offset, in UTC where offsets differ. Dates without offset
are those of a local clock, on which an hour comes twice in autumn, and one is left out in spring.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from onepass._typing import FloatArray
from onepass.forecasting.members import as_seasons
from onepass.forecasting.times import MOST_GAP
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.notation import AS_WRITTEN, Notation
from onepass.tables.columns.values import Bad
from onepass.tables.readers.batches import RowBatch, first_rows
from onepass.tables.readers.source import Source, check_has
from onepass.tables.reasons import Reason
from onepass.tables.rejects import Reject, rejects_of
from onepass.tables.rhythm import HOUR, Rhythm, Times, find_rhythm
from onepass.tables.same_time import may_change, n_unsorted, one_per_time, sorted_lines
from onepass.tables.series_rows import KnownZone, SeriesColumns, SeriesRows, Zone, parse_rows

__all__ = ["MOST_GAP", "Series", "SeriesSummary", "SeriesTable", "read_series", "with_gaps_after"]

_RUN = 5  # gaps of one size in a row that are another rhythm
_ALIKE = 1.11  # 31 days and 28 are of one size
_SEASONS_OF_NUMBERS = (4, 7, 12, 24, 48, 52, 96, 168)
_CLEAR = 0.4  # correlation of a value with that of a season before, from which on it is one


class Series(NamedTuple):
    """The values of one series, step by step."""

    key: str
    first: int
    """The step of the first value."""
    values: FloatArray
    """(n,), up to the last that is known; NaN where one is missing."""
    inputs: FloatArray
    """(n, q)"""
    ahead: FloatArray
    """(k, q), the inputs of the steps after the last value, as far as they are known."""

    @property
    def end(self) -> int:
        """The step after the last value."""
        return self.first + len(self.values)

    @property
    def n_known(self) -> int:
        """Number of values that are not missing."""
        return int(np.isfinite(self.values).sum())


@dataclass(frozen=True)
class SeriesSummary:
    """What was found in the rows, as data; `facts` has the words."""

    rows: int
    """All that were read, rejected ones among them."""
    rejected: int
    series: int
    values: int
    first: str
    last: str
    rhythm: str
    seasons: tuple[str, ...]
    missing: int
    """Steps without a value between the first and the last of a series; of a further file, after those learned."""
    longest_gap: int
    longest_from: str
    longest_to: str
    unsorted: int
    """Rows that came after later ones."""
    repeated: int
    """Rows that came again, with the same values."""
    merged: int
    """Rows that were merged with others of the same time, as asked."""
    duplicates: str
    clock: str
    """Where times belong to, if that is known: an offset, or UTC."""
    repeated_hours: int
    """Times of a local clock that came twice because it was put back."""
    skipped_hours: int
    """Times that are missing because the clock was put forward."""
    constant: tuple[str, ...]
    """Series all of whose values are equal."""
    ended: int
    """Series whose last value is earlier than the last of all."""

    def facts(self) -> list[tuple[str, str]]:
        """What there is to say, each with its name."""
        many = f"{self.series:,} series, " if self.series > 1 else ""
        found = [("series", f"{many}{self.values:,} values from {self.first} to {self.last}")]
        found.append(("frequency", self.rhythm + (f"; {self.clock}" if self.clock else "")))
        found.append(("seasons", ", ".join(self.seasons) or "none"))
        if gaps := self._gap_words():
            found.append(("gaps", gaps))
        if hours := self._hour_words():
            found.append(("clock change", hours))
        if self.unsorted:
            found.append(("order", f"{_rows(self.unsorted)} not in time order; sorted"))
        if self.repeated:
            found.append(("repeated", f"{_rows(self.repeated)} already there with the same values; counted once"))
        if self.merged:
            taken = "the last value is taken" if self.duplicates == "last" else f"their {self.duplicates} is taken"
            found.append(("same time", f"{_rows(self.merged)} of a time that has other values too; {taken}"))
        if self.constant:
            found.append(("constant", self._constant_words()))
        if self.ended:
            found.append(("ended", f"{self.ended:,} series end before {self.last} and are forecast from their own end"))
        return found

    def _gap_words(self) -> str:
        if not self.missing:
            return ""
        span = self.longest_from + (f" to {self.longest_to}" if self.longest_gap > 1 else "")
        longest = f", {'from ' * (self.longest_gap > 1)}{span}"
        if self.longest_gap < self.missing:
            longest = (
                f", the longest {self.longest_gap:,} from {span}" if self.longest_gap > 1 else f", the first {span}"
            )
        have = "1 step has" if self.missing == 1 else f"{self.missing:,} steps have"
        return f"{have} no value{longest}; what was expected takes its place, with its uncertainty"

    def _hour_words(self) -> str:
        twice = f"{_times(self.repeated_hours)} twice, as clocks are put back; the mean of both counts"
        skipped = f"{self.skipped_hours:,} left out, as clocks are put forward"
        return "; ".join(([twice] if self.repeated_hours else []) + ([skipped] if self.skipped_hours else []))

    def _constant_words(self) -> str:
        if self.series == 1:
            return "all values are equal"
        names = ", ".join(self.constant[:3]) + (", ..." if len(self.constant) > 3 else "")
        return f"all values are equal in {len(self.constant):,} series: {names}"


def _times(n: int) -> str:
    return "1 time comes" if n == 1 else f"{n:,} times come"


def _rows(n: int) -> str:
    return "1 row is" if n == 1 else f"{n:,} rows are"


@dataclass(frozen=True)
class SeriesTable:
    """The series of some files in one rhythm."""

    columns: SeriesColumns
    rhythm: Rhythm
    zone: str
    """The offset of times that belong to one, such as +01:00; empty for a local clock."""
    seasons: tuple[float, ...]
    series: tuple[Series, ...]
    summary: SeriesSummary
    rejects: tuple[tuple[str, Reject], ...]
    """Rows that could not be read, with their files."""
    ends: tuple[int | None, ...]
    """How many rows each file has, good or bad; None: it was left out."""


def read_series(
    sources: Sequence[Source],
    columns: SeriesColumns,
    notation: Notation = AS_WRITTEN,
    *,
    starts: Sequence[int | None] = (),
    rhythm: Rhythm | None = None,
    zone: str = "",
    seasons: Any = None,
) -> SeriesTable:
    """Read the series of some tables.

    Parameters
    ----------
    sources : open files, or standard input
    columns : SeriesColumns
    notation : how times and numbers are written, where that is not to be found out
    starts : the first new row of each table, None where it is left out; by default all are new. Where the mean or sum
        of a time is asked for, earlier rows of the table count as well at the times that new ones have
    rhythm : of earlier files, which this one has to fit; by default it is found out
    zone : of earlier files, whose times these ones become; found out without a ``rhythm``
    seasons : a length in steps, or several; by default those that belong to the rhythm

    Raises
    ------
    SchemaError
        If columns are missing, or are not times and numbers; if times are in several rhythms, or have several values.
    """
    wanted = None if seasons is None else as_seasons(seasons)
    for source in sources:
        check_has(columns.names, source)
    parts: list[_Part] = []
    ends: list[int | None] = []
    for source, start in zip(sources, starts or [0] * len(sources), strict=True):
        if start and columns.merges_all:
            earlier = first_rows(start, source.batches(_types(columns), 0))
            parts += [_Part(source, batch, False) for batch in earlier]
        own = [] if start is None else list(source.batches(_types(columns), start))
        parts += [_Part(source, batch) for batch in own]
        ends.append(own[-1].start + len(own[-1]) if own else start)
    bad: Bad = {}
    known = None if rhythm is None else KnownZone(zone, rhythm.is_of_days)
    rows, columns, found = parse_rows([part.batch for part in parts], columns, notation, bad, known)
    rejects = tuple(_rejects(parts, bad))
    good = np.ones(len(rows.times), dtype=bool)
    good[list(bad)] = False
    is_new = np.repeat(np.array([part.is_new for part in parts], dtype=bool), [len(part.batch) for part in parts])
    is_new = is_new[good]
    n_read = int(is_new.sum()) + len(rejects)
    rows = rows.taken(good)
    if not is_new.all():
        rows = rows.taken(is_new | _at_times_of(rows, is_new))
    if not len(rows.times):
        raise SchemaError(Reason("no_rows", file=", ".join(source.name for source in sources), why=_why(rejects)))
    table = _as_table(rows, columns, found, rhythm, wanted, rejects, n_read)
    return replace(table, ends=tuple(ends))


def with_gaps_after(table: SeriesTable, ends: Mapping[str, int]) -> SeriesTable:
    """A further file with its gaps counted from where the series ended: what lies before may have been learned."""
    gaps = []
    for one in table.series:
        if not one.n_known:  # it has the inputs of steps to come
            continue
        end = ends.get(one.key, one.first)
        if one.first > end:
            gaps.append(_Gap(end, one.first - end))
        gaps += _gaps(max(one.first, end), one.values[max(end - one.first, 0) :])
    return replace(table, summary=replace(table.summary, **_gap_facts(gaps, table.rhythm, table.zone)))


class _Part(NamedTuple):
    """Rows of a table: new ones, or earlier ones that may share a time with these."""

    source: Source
    batch: RowBatch
    is_new: bool = True


def _at_times_of(rows: SeriesRows, some: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which rows have the series and time of one of some rows."""
    _, keys = np.unique(rows.keys.astype(str), return_inverse=True)
    times, places = np.unique(rows.times, return_inverse=True)
    codes = keys * max(len(times), 1) + places
    return np.isin(codes, codes[some])


def _types(columns: SeriesColumns) -> dict[str, Any]:
    return dict.fromkeys(columns.names, pa.string())


def _why(rejects: Sequence[tuple[str, Reject]]) -> str:
    if not rejects:
        return ""
    file, first = rejects[0]
    return f" that can be read; the first of {len(rejects):,} rejected: {file}, line {first.line}: {first.reason}"


def _rejects(parts: Sequence[_Part], bad: Bad) -> Any:
    start = 0
    for source, batch, is_new in parts:
        own = {row - start: bad[row] for row in range(start, start + len(batch)) if row in bad}
        if is_new:
            yield from ((source.name, one) for one in rejects_of(batch, own))
        start += len(batch)


def _as_table(
    rows: SeriesRows,
    columns: SeriesColumns,
    zone: Zone,
    rhythm: Rhythm | None,
    seasons: tuple[float, ...] | None,
    rejects: tuple[tuple[str, Reject], ...],
    n_read: int,
) -> SeriesTable:
    if rhythm is not None and rhythm.are_dates != (rows.times.dtype == np.int64):
        raise SchemaError(Reason("other_times", columns.time, expected="dates" if rhythm.are_dates else "numbers"))
    names, codes = np.unique(rows.keys.astype(str), return_inverse=True)
    unsorted = n_unsorted(rows.times, codes)
    order = np.lexsort((rows.times, codes))
    rows, codes = rows.taken(order), codes[order]
    rows, codes, same = one_per_time(rows, codes, columns)
    starts = np.flatnonzero(np.diff(codes, prepend=-1)).tolist()
    bounds = list(pairwise([*starts, len(codes)]))
    is_new = rhythm is None
    rhythm = rhythm or find_rhythm([rows.times[start:stop] for start, stop in bounds])
    if rhythm is None:
        raise SchemaError(Reason("too_few_times", columns.time))
    steps, fits = rhythm.steps(rows.times)
    _check_rhythm(rows, steps, fits, bounds, rhythm, columns)
    found = [_series(str(names[codes[a]]), rows.taken(slice(a, b)), steps[a:b]) for a, b in bounds]
    series = tuple(one for one in found if one.n_known)
    if not series and (is_new or not columns.inputs):
        raise SchemaError(Reason("no_values", columns.target))
    if seasons is None:
        seasons = _seasons(rhythm, series)
    every = np.concatenate([rows.times[:1], rows.times])
    summary = _summary(series, rhythm, seasons, zone, columns, every)
    summary = replace(
        summary,
        rows=n_read,
        rejected=len(rejects),
        unsorted=unsorted,
        repeated=same.repeated,
        merged=same.merged,
        repeated_hours=same.hours,
        skipped_hours=_n_skipped(found, rhythm, same.hours),
    )
    kept = series or tuple(found)
    return SeriesTable(columns, rhythm, zone.suffix, seasons, kept, summary, rejects, ())


def _check_rhythm(
    rows: SeriesRows,
    steps: NDArray[np.int64],
    fits: NDArray[np.bool_],
    bounds: Sequence[tuple[int, int]],
    rhythm: Rhythm,
    columns: SeriesColumns,
) -> None:
    """Refuse times that lie between the steps, or come in another rhythm for a while."""
    twice = np.zeros(len(steps), dtype=bool)
    for start, stop in bounds:
        twice[start + 1 : stop] = np.diff(steps[start:stop]) == 0
    if not fits.all() or twice.any():
        odd = np.flatnonzero(~fits | twice)
        earliest = _shown(rows.times[odd[0]])
        doesnt, others = ("doesn't fit", "") if len(odd) == 1 else ("don't fit", " and others")
        lines = sorted_lines(rows.lines[odd])
        said: dict[str, Any] = {"rhythm": rhythm.words(), "fits": doesnt, "time": earliest + others, "lines": lines}
        raise SchemaError(Reason("off_rhythm", columns.time, len(odd), **said))
    for start, stop in bounds:
        apart = np.diff(steps[start:stop])
        if apart.max(initial=0) > MOST_GAP:
            place = start + int(apart.argmax()) + 1
            lines, time, gap = sorted_lines(rows.lines[[place]]), _shown(rows.times[place]), int(apart.max())
            raise SchemaError(Reason("long_gap", columns.time, gap, time=time, lines=lines, most=MOST_GAP))
        run = _other_rhythm(apart)
        if run is not None:
            odd = rows.lines[start + run[0] : start + run[1] + 1]
            first, last = int(odd.min()), int(odd.max())
            sizes = np.unique(apart[run[0] : run[1]])[[0, -1]].tolist()
            size = " to ".join(f"{one:,}" for one in dict.fromkeys(sizes))
            raise SchemaError(Reason("mixed_rhythm", columns.time, size, rhythm=rhythm.words(), first=first, last=last))


def _shown(time: Any) -> str:
    """A time for messages, whatever its rhythm."""
    if time.dtype != np.int64:
        return str(time)
    text: str = np.datetime_as_string(time.astype("datetime64[ns]"), unit="s").item()
    return text.removesuffix("T00:00:00")


def _other_rhythm(apart: NDArray[np.int64]) -> tuple[int, int] | None:
    """The first run of gaps that are all of about one size, as months are, as the places of its first and last time."""
    if len(apart) < _RUN:
        return None
    windows = np.lib.stride_tricks.sliding_window_view(apart, _RUN)
    smallest, largest = windows.min(axis=1), windows.max(axis=1)
    found = (smallest > 1) & (largest <= _ALIKE * smallest)
    if not found.any():
        return None
    start = int(found.argmax())
    after = found[start:].argmin() if not found[start:].all() else len(found) - start
    return start, start + int(after) + _RUN - 1


def _series(key: str, rows: SeriesRows, steps: NDArray[np.int64]) -> Series:
    """The rows of one series, sorted, as values and inputs step by step."""
    known = np.flatnonzero(np.isfinite(rows.values))
    first = int(steps[known[0]]) if len(known) else int(steps[-1]) + 1
    end = int(steps[known[-1]]) + 1 if len(known) else int(steps[0])
    if not len(known):
        first = end
    last = max(int(steps[-1]) + 1, end)
    values = np.full(max(end - first, 0), np.nan)
    inputs = np.full((max(last - first, 0), rows.inputs.shape[1]), np.nan)
    inside = (steps >= first) & (steps < end)
    values[steps[inside] - first] = rows.values[inside]
    later = steps >= first
    inputs[steps[later] - first] = rows.inputs[later]
    return Series(key, first, values, inputs[: end - first], inputs[end - first :])


def _seasons(rhythm: Rhythm, series: Sequence[Series]) -> tuple[float, ...]:
    """The seasons of the rhythm of which two have been seen; of times that are numbers, the clearest one."""
    longest = max((len(one.values) for one in series), default=0)
    if rhythm.are_dates:
        return tuple(length for length in rhythm.seasons if 2 * length <= longest)
    best = max(series, key=lambda one: one.n_known, default=None)
    if best is None:
        return ()
    changes = np.diff(best.values)
    found = {m: _correlation(changes, m) for m in _SEASONS_OF_NUMBERS if 3 * m < len(changes)}
    clear = {m: r for m, r in found.items() if r > _CLEAR}
    # Twice a season is one too, so the shortest of those that are nearly as clear.
    return tuple(float(m) for m in sorted(clear) if clear[m] > 0.9 * max(clear.values()))[:1]


def _correlation(changes: FloatArray, lag: int) -> float:
    now, then = changes[lag:], changes[:-lag]
    known = np.isfinite(now) & np.isfinite(then)
    if known.sum() < 8 or not now[known].std() or not then[known].std():
        return 0.0
    return float(np.corrcoef(now[known], then[known])[0, 1])


def _n_skipped(series: Sequence[Series], rhythm: Rhythm, put_back: int) -> int:
    """Missing steps of a local clock that are those of a clock put forward; only where it is put back, too."""
    if not put_back or rhythm.step > HOUR or not rhythm.step:
        return 0
    missing = [rhythm.times(one.first + np.flatnonzero(np.isnan(one.values))) for one in series]
    return sum(int(may_change(times).sum()) for times in missing)


def _summary(
    series: Sequence[Series],
    rhythm: Rhythm,
    seasons: Sequence[float],
    zone: Zone,
    columns: SeriesColumns,
    times: Times,
) -> SeriesSummary:
    """What the series show by themselves; what was done to rows is added by the caller."""
    ends = [one.end for one in series]
    last = rhythm.times(np.array([max(ends) - 1])) if ends else times[-1:]
    first = rhythm.times(np.array([min(one.first for one in series)])) if ends else times[:1]
    gaps = [gap for one in series for gap in _gaps(one.first, one.values)]
    known = [one.values[np.isfinite(one.values)] for one in series]
    return SeriesSummary(
        rows=0,
        rejected=0,
        series=len(series),
        values=sum(map(len, known)),
        first=rhythm.time_texts(first, zone.suffix)[0],
        last=rhythm.time_texts(last, zone.suffix)[0],
        rhythm=rhythm.words(),
        seasons=tuple(rhythm.season_words(length) for length in seasons),
        **_gap_facts(gaps, rhythm, zone.suffix),
        unsorted=0,
        repeated=0,
        merged=0,
        duplicates=columns.duplicates,
        clock=zone.words,
        repeated_hours=0,
        skipped_hours=0,
        constant=tuple(one.key for one, own in zip(series, known, strict=True) if len(own) > 1 and np.ptp(own) == 0.0),
        ended=sum(end < max(ends) for end in ends),
    )


class _Gap(NamedTuple):
    """Missing values in a row: the step of the first, and how many they are."""

    first: int
    steps: int


def _gaps(first: int, values: FloatArray) -> list[_Gap]:
    """All runs of missing values; ``first`` is the step of the first value."""
    edges = np.flatnonzero(np.diff(np.isnan(values).astype(np.int8), prepend=0, append=0))
    return [_Gap(first + start, stop - start) for start, stop in edges.reshape(-1, 2).tolist()]


def _gap_facts(gaps: Sequence[_Gap], rhythm: Rhythm, zone: str) -> dict[str, Any]:
    """How many values are missing, and the longest run of them, for the summary."""
    longest = max(gaps, key=lambda gap: gap.steps, default=_Gap(0, 0))
    ends = rhythm.times(np.array([longest.first, longest.first + max(longest.steps - 1, 0)]))
    first, last = rhythm.time_texts(ends, zone)
    sizes = {"missing": sum(gap.steps for gap in gaps), "longest_gap": longest.steps}
    return {**sizes, "longest_from": first, "longest_to": last}
