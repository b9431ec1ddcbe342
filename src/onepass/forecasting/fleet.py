"""`ForecastingFleet`: one forecaster per series, with what the series have in common learned from all of them."""

import warnings
from collections.abc import Hashable, Iterable, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onepass._typing import FloatArray
from onepass._validation import as_count, as_flag, as_floats_or_nan, as_whole, one_of
from onepass.engine.forecasting import ForecastWorkspace, combine_sizings, empty_sizing, learn_values
from onepass.engine.lag_sums import AT_OBSERVED
from onepass.engine.threads import threads_for
from onepass.files.state import Arrays, Parameters, as_tally, nested, sized_or_nan, under
from onepass.forecasting.components import Origin
from onepass.forecasting.forecast import Forecast
from onepass.forecasting.forecaster import (
    FAR,
    NEVER,
    as_inputs,
    check_values,
    filled,
    forecast_counts,
    forecast_values,
    inputs_ahead,
)
from onepass.forecasting.long_tables import LIBRARIES, as_input_names, as_level, as_library, columns_of, library_of
from onepass.forecasting.members import (
    Member,
    as_members,
    as_seasons,
    count_members,
    default_horizon,
    default_members,
    make_plan,
)
from onepass.forecasting.parts import join_states, split_state
from onepass.forecasting.population import Contribution, SampledWeights, learn_priors, next_sharing, sampled, weights_of
from onepass.forecasting.revisions import RecentRows
from onepass.forecasting.times import MOST_GAP, MOST_STEPS, Clock, Times, as_times

__all__ = ["ForecastingFleet"]

_GROWTH = 1.25  # of the memory for records
_FEWEST = 2  # values of a series that a forecast needs
_FEWEST_REGULAR = 5  # values that show a frequency of their own


class ForecastingFleet:
    """Forecasts many series, each as `BayesianForecaster` does, with a prior that is learned from all of them.

    The prior of members' weights, the widths of intervals and how they grow with the horizon are shared. A new series
    is forecast from its third value on with what the others have shown.

    Parameters
    ----------
    season_length : number, or sequence of numbers
        Seasons in steps; 1 is none.
    horizon, members : see `BayesianForecaster`
    outliers : bool
        As for `BayesianForecaster`.
    revisions : int
        For how many of the last steps, counted from the newest of all series, `learn_frame` accepts values that come
        late or are corrected; 0 for none. A series that is further behind must come in order. What series share is
        learned from values that can no longer change.
    inputs : sequence of str
        Names of the inputs, such as prices or holidays: columns of tables, or in their order of ``X``.
    counts : bool
        As for `BayesianForecaster`, of all series.

    Examples
    --------
    >>> import numpy as np
    >>> from onepass.forecasting import ForecastingFleet
    >>> rng, t = np.random.default_rng(0), np.arange(80)
    >>> fleet = ForecastingFleet(season_length=7)
    >>> for key in range(20):
    ...     _ = fleet.learn(50 + 10 * np.sin(2 * np.pi * (t + key) / 7) + rng.normal(size=80), keys=[key] * 80)
    >>> forecast = fleet.forecast(7, key=3)
    >>> expected = 50 + 10 * np.sin(2 * np.pi * (np.arange(80, 87) + 3) / 7)
    >>> bool(np.abs(forecast.mean - expected).max() < 3)
    True
    """

    def __init__(
        self,
        season_length: Any = 1,
        horizon: int | None = None,
        *,
        members: Iterable[Member] | None = None,
        outliers: bool = False,
        revisions: int = 0,
        inputs: Sequence[str] = (),
        counts: bool = False,
    ) -> None:
        self._seasons = as_seasons(season_length)
        self.horizon = default_horizon(self._seasons) if horizon is None else as_count(horizon, "horizon")
        self.counts = as_flag(counts, "counts")
        default = count_members if self.counts else default_members
        self.members = default(self._seasons) if members is None else as_members(members)
        self.outliers = as_flag(outliers, "outliers")
        season = round(self._seasons[0]) if self._seasons and self._seasons[0] <= 30 else 1
        self.inputs = as_input_names(inputs)
        self._plan = make_plan(self.members, self.horizon, season, len(self.inputs), FAR if self.outliers else NEVER)
        self._slots: dict[Hashable, int] = {}
        self._records = np.zeros((0, self._plan.size))
        self._priors = self._plan.empty_priors()
        self._sizing = empty_sizing(self.horizon)
        self._shared_sizing: FloatArray | None = None  # of a part, when it shared last
        self._work = ForecastWorkspace(self._plan, self.horizon)
        self.revisions = as_whole(revisions, "revisions")
        self._recent = RecentRows(self.revisions, 1 + len(self.inputs)) if self.revisions else None
        self._n_learned = 0
        self._next_sharing = next_sharing(0)
        self._clock: Clock | None = None
        self._steps: dict[Hashable, int] = {}  # the last of each series, where times are given
        self._library: str | None = None  # of the last table

    def learn(self, y: ArrayLike, *, keys: Sequence[Hashable] | NDArray[Any], X: Any = None) -> Self:
        """Learn values ``(n,)`` in their order, each of the series of its key; NaN is a value that is missing.

        ``X``, ``(n, q)``, has the inputs of a fleet that has any. NaN is taken to be as in the series' step before.
        """
        if self._recent is not None:
            raise ValueError("a fleet that accepts revisions needs times, which say what is revised: use learn_frame")
        values = np.ascontiguousarray(np.atleast_1d(as_floats_or_nan(y, "y")))
        names = keys.tolist() if isinstance(keys, np.ndarray) else list(keys)
        if values.ndim != 1 or len(names) != len(values):
            raise ValueError(f"keys must name the series of each of the {values.size} values, got {len(names)}")
        check_values(values, counts=self.counts)
        given = as_inputs(X, len(values), len(self.inputs), single=np.ndim(y) == 0)
        self._learn_rows(values, given, names)
        return self

    def _learn_rows(self, values: FloatArray, inputs: FloatArray, names: Sequence[Hashable]) -> None:
        for key in dict.fromkeys(names):
            if key not in self._slots:
                self._slots[key] = len(self._slots)
        self._make_room()
        slots = np.fromiter((self._slots[key] for key in names), dtype=np.int64, count=len(names))
        known = self._filled(inputs, slots) if self.inputs else np.zeros((len(values), 1))
        start = 0
        while start < len(values):
            stop = len(values)
            if self._shared_sizing is None:
                stop = min(stop, start + self._next_sharing - self._n_learned)
            self._learn(values[start:stop], known[start:stop], slots[start:stop])
            start = stop

    def _filled(self, inputs: FloatArray, slots: NDArray[np.int64]) -> FloatArray:
        """Inputs with those that are missing as in the step before of the same series."""
        known = np.ascontiguousarray(inputs)
        first, stop = self._plan.at_inputs, self._plan.at_inputs + len(self.inputs)
        for slot in np.unique(slots[np.isnan(inputs).any(axis=1)]).tolist():
            own = slots == slot
            known = known.copy() if known is inputs else known
            known[own] = filled(inputs[own], self._records[slot, first:stop])
        return known

    def learn_frame(self, frame: Any) -> Self:
        """Learn a long table with columns ``unique_id``, ``ds`` and ``y``, one row per value, in any order of series.

        Parameters
        ----------
        frame : pandas or polars data frame, or dict of columns
            It also has a column for each of the ``inputs``; others are ignored.
            ``ds`` are numbers or dates in one rhythm, which the fleet's first two different times set; within a series
            they must increase, also from call to call. Times that a series leaves out are values that are missing.
            With ``revisions`` values may come late and be corrected.
        """
        names, times, values, inputs = columns_of(frame, ("unique_id", "ds", "y"), self.inputs)
        check_values(values, counts=self.counts)
        if self._recent is not None:
            if len(names):
                self._revise(self._recent, names, times, np.column_stack([values, inputs]))
            self._library = library_of(frame)
            return self
        clock = self._clock_for(times)
        clock.last = -MOST_STEPS
        order = np.lexsort((times, np.unique(names, return_inverse=True)[1].ravel()))
        different, at = np.unique(times, return_inverse=True)
        steps = clock.positions(different)[at.ravel()]
        self._learn_steps(names[order], steps[order], values[order], inputs[order], clock)
        self._library = library_of(frame)
        return self

    def _revise(self, recent: RecentRows, names: NDArray[Any], times: Times, rows: FloatArray) -> None:
        """Keep rows, values with their inputs, that may still change, and learn those that no longer can."""
        settled, steps, rows = recent.put(names.tolist(), times, rows)
        assert recent.clock is not None
        for step in np.unique(steps):  # one by one, so that the order is the same however they came
            start, stop = np.searchsorted(steps, [step, step + 1]).tolist()
            at = slice(start, stop)
            names = np.empty(stop - start, dtype=object)
            names[:] = settled[at]
            self._learn_steps(names, steps[at], rows[at, 0], rows[at, 1:], recent.clock)

    def check_times(self, times: Any, keys: Sequence[Hashable]) -> None:
        """Refuse times that `learn_frame` would refuse, of a fleet that accepts revisions."""
        if self._recent is None:
            raise ValueError("only a fleet that accepts revisions can check times")
        self._recent.check(keys, as_times(times, len(keys)))

    def steps_ahead(self, times: Any, key: Hashable) -> NDArray[np.int64]:
        """How many steps after the newest value of a series these times are; 0 or less if they are not after it."""
        clock, given = self._known_clock(), as_times(times, np.size(times))
        if clock.are_dates != (given.dtype == np.int64):
            raise TypeError("times must be all dates or all numbers, as those that were learned")
        return clock.steps(given) - self._end(key)

    def times_ahead(self, horizon: int, key: Hashable) -> NDArray[Any]:
        """The times of the next ``horizon`` steps of a series."""
        return self._known_clock().times_of(self._end(key) + np.arange(1, as_count(horizon, "horizon") + 1))

    def recent(self, key: Hashable) -> tuple[NDArray[Any], FloatArray]:
        """Times and values of a series' last steps, which may be revised; none without ``revisions``."""
        end = self._end(key)
        if self._recent is None:
            return np.zeros(0), np.zeros(0)
        values = self._recent.since(key, None)[:, 0]
        steps = np.arange(end - len(values) + 1, end + 1)[~np.isnan(values)]
        return self._known_clock().times_of(steps), values[~np.isnan(values)]

    def _known_clock(self) -> Clock:
        if self.rhythm is None or not self.rhythm.is_known:
            raise ValueError("the rhythm of the series is not known before they have two times: learn them first")
        return self.rhythm

    def _end(self, key: Hashable) -> int:
        if key not in self:
            raise KeyError(f"no values of the series {key!r} have been learned")
        return self._steps[key] if self._recent is None else self._recent.newest(key)

    def set_rhythm(self, clock: Clock) -> None:
        """Set the rhythm of the times of a fleet that has learned none; else the first two that differ show it."""
        if self.rhythm is not None:
            raise ValueError("the fleet has learned times, which have shown their rhythm")
        if self._recent is None:
            self._clock = clock.copy()
        else:
            self._recent.clock = clock.copy()

    def _clock_for(self, times: NDArray[Any]) -> Clock:
        """The fleet's clock, or one that these times set."""
        if self.rhythm is not None:
            if self.rhythm.are_dates != (times.dtype == np.int64):
                raise TypeError("ds must be all dates or all numbers")
            return self.rhythm.copy()
        different = np.unique(times)
        if len(different) < 2:
            raise ValueError("the first table must have at least two different times, which show the rhythm")
        return Clock.of(different)

    def _learn_steps(
        self, names: NDArray[Any], steps: NDArray[np.int64], values: FloatArray, inputs: FloatArray, clock: Clock
    ) -> None:
        """Learn values sorted by series and step, after filling gaps; in the order of time, so that series share."""
        all_names, all_steps, all_values, all_inputs = [], [], [], []
        changed = np.concatenate([[True], names[1:] != names[:-1]])[: len(names)]
        starts = np.flatnonzero(changed).tolist()
        ends = dict(self._steps)
        for start, stop in pairwise([*starts, len(names)]):
            key, own = names[start].item() if hasattr(names[start], "item") else names[start], steps[start:stop]
            first = ends.get(key, own[0] - 1)
            apart = np.diff(np.concatenate([[first], own]))
            if key in ends and apart[0] <= 0:
                (last,) = clock.times_of(np.array([first]))
                last = last.astype("datetime64[s]") if clock.are_dates else last
                raise ValueError(
                    f"values of the series {key!r} up to {last} have been learned: give later ones, "
                    "or make the fleet with revisions=..., which accepts corrections"
                )
            if (apart <= 0).any():
                raise ValueError(f"ds of the series {key!r} must increase: keep one value for each time, sorted")
            if own[-1] - first > len(own) + MOST_GAP:
                raise ValueError(f"the series {key!r} has a gap of more than {MOST_GAP} steps: give it a new name")
            rarely = int(np.gcd.reduce(apart[1:])) if len(own) >= _FEWEST_REGULAR else 1
            if rarely > 1:
                warnings.warn(
                    f"the series {key!r} has a value only every {rarely} steps, and the steps between count as "
                    "missing: series of another frequency belong in a fleet of their own",
                    stacklevel=3,
                )
            own_values = np.full(own[-1] - first, np.nan)
            own_values[own - first - 1] = values[start:stop]
            all_names += [key] * len(own_values)
            all_steps.append(np.arange(first + 1, own[-1] + 1))
            own_inputs = np.full((len(own_values), inputs.shape[1]), np.nan)
            own_inputs[own - first - 1] = inputs[start:stop]
            all_values.append(own_values)
            all_inputs.append(own_inputs)
            ends[key] = int(own[-1])
        if all_names:
            order = np.argsort(np.concatenate(all_steps), kind="stable")
            ordered = [all_names[i] for i in order]
            self._learn_rows(np.concatenate(all_values)[order], np.concatenate(all_inputs)[order], ordered)
        self._steps, self._clock = ends, clock

    def _make_room(self) -> None:
        """Make a record for each series that is new."""
        before, wanted = len(self._records), len(self._slots)
        if wanted <= before:
            return
        room = max(wanted, int(_GROWTH * before)) if before else wanted
        self._records.resize((room, self._plan.size), refcheck=False)
        for slot in range(before, room):
            self._plan.begin(self._records[slot], 0.0)

    def _learn(self, values: FloatArray, inputs: FloatArray, slots: NDArray[np.int64]) -> None:
        with threads_for(self._plan.most_weights):
            learn_values(self._plan, values, inputs, slots, self._records, self._priors, self._sizing, self._work)
            self._n_learned += len(values)
        if self._shared_sizing is None and self._n_learned == self._next_sharing:
            (asked,) = sampled([len(self._slots)])
            for _ in range(2 if not self._priors.any() else 1):
                self._priors = learn_priors(self._plan, self._shrinkage, [self._weights(asked)])
            self._next_sharing = next_sharing(self._n_learned)

    def _weights(self, asked: NDArray[np.int64]) -> list[SampledWeights]:
        with threads_for(self._plan.most_weights):
            return weights_of(self._plan, self._records[asked], self._shrinkage, self._priors, self._work)

    def split(self, n_parts: int) -> list["ForecastingFleet"]:
        """Divide the series among new fleets, for different processes; the part of a series depends on its key alone.

        Parts learn with the prior that they have until `share` gives them one that is learned from all parts. Let them
        share whenever the values seen by all reach `next_sharing`, as one fleet does by itself, and before `join`.

        Examples
        --------
        >>> import numpy as np
        >>> from onepass.forecasting import ForecastingFleet, sampled
        >>> parts = ForecastingFleet(season_length=7).split(2)
        >>> for number, part in enumerate(parts):
        ...     keys = np.tile(np.arange(10 * number, 10 * number + 10), 60)
        ...     _ = part.learn(50.0 + np.random.default_rng(number).normal(size=600), keys=keys)
        >>> asked = sampled([len(part) for part in parts])
        >>> contributions = [part.contribution(own) for part, own in zip(parts, asked)]
        >>> fleet = parts[0].share(contributions).join([parts[1].share(contributions)])
        >>> len(fleet), fleet.n_seen
        (20, 1200)
        """
        return [type(self).from_state(*state) for state in split_state(*self.export_state(), n_parts)]

    def join(self, others: Iterable["ForecastingFleet"]) -> Self:
        """Add the series of the other parts of a fleet, all of which have shared: see `split`."""
        states = [self.export_state(), *(other.export_state() for other in others)]
        vars(self).update(vars(type(self).from_state(*join_states(states))))
        return self

    def contribution(self, asked: Sequence[int] | NDArray[np.int64] = ()) -> Contribution:
        """What the series of this part add to what those of all parts share: see `split`.

        Parameters
        ----------
        asked : sequence of int
            Which series are asked for their weights, counted from 0 in the order of `keys`; `sampled` says which should
            be. If no series of any part is asked, parts share how wide intervals are and keep their prior.
        """
        return Contribution(self._weights(np.asarray(asked, dtype=np.int64)), self._sizing.copy(), self._last_shared())

    def share(self, contributions: Iterable[Contribution]) -> Self:
        """Learn what series share from the contributions of all parts, given to all in the same order: see `split`."""
        parts, before = list(contributions), self._last_shared()
        if any(not np.array_equal(part.shared_sizing, before) for part in parts) or not parts:
            raise ValueError("contributions must be those of all parts of one fleet, since they shared last")
        if any(len(own.means) for part in parts for own in part.weights):
            self._priors = learn_priors(self._plan, self._shrinkage, [part.weights for part in parts])
        self._sizing = combine_sizings(before, [part.sizing for part in parts])
        self._shared_sizing = self._sizing.copy()
        return self

    def _last_shared(self) -> FloatArray:
        if self._shared_sizing is None:
            raise ValueError("only a part of a fleet shares when it is asked to: see ForecastingFleet.split")
        return self._shared_sizing

    @property
    def _shrinkage(self) -> list[float]:
        return [member.shrinkage for member in self.members]

    def forecast(self, horizon: int, *, key: Hashable, X: Any = None) -> Forecast:
        """Predict the next ``horizon`` values of a series.

        ``X``, ``(horizon, q)``, has the inputs of the steps to come; those that are missing stay as they are.
        """
        steps = as_count(horizon, "horizon")
        if key not in self:
            raise KeyError(f"no values of the series {key!r} have been learned")
        found = self._forecast(key, X, self._workspace(steps))
        if isinstance(found, int):
            raise ValueError(f"a forecast needs at least {_FEWEST} values, got {found} of {key!r}")
        return found

    def _forecast(self, key: Hashable, X: Any, work: ForecastWorkspace) -> Forecast | int:
        """The forecast of a series, or how many values it has if those are too few."""
        record, sizing = self._record_of(key)
        if record[AT_OBSERVED] < _FEWEST:
            return int(record[AT_OBSERVED])
        ahead = inputs_ahead(self._plan, record, X, work.horizon)
        with threads_for(self._plan.most_weights):
            origin = Origin(self._plan, self.members, self._seasons, record, ahead, self._priors)
            make = forecast_counts if self.counts else forecast_values
            return make(origin, sizing, work)

    def _record_of(self, key: Hashable) -> tuple[FloatArray, FloatArray]:
        """The record of a series and the sizes of intervals, after the values that may still change."""
        if key in self._slots:
            record = self._records[self._slots[key]].copy()
        else:
            record = np.empty(self._plan.size)
            self._plan.begin(record, 0.0)
        if self._recent is None:
            return record, self._sizing
        sizing, rows = self._sizing.copy(), self._recent.since(key, self._steps.get(key))
        values, inputs = np.ascontiguousarray(rows[:, 0]), np.zeros((len(rows), 1))
        if self.inputs:
            inputs = filled(rows[:, 1:], record[self._plan.at_inputs : self._plan.at_inputs + len(self.inputs)])
        first = np.zeros(len(values), dtype=np.int64)
        with threads_for(self._plan.most_weights):
            learn_values(self._plan, values, inputs, first, record[None], self._priors, sizing, self._work)
        return record, sizing

    @property
    def n_seen(self) -> int:
        """Number of values learned from all series, with those that are missing."""
        return self._n_learned + (0 if self._recent is None else len(self._recent))

    @property
    def _ends(self) -> dict[Hashable, Any]:
        """The last step of each series; nothing in particular where times are not given."""
        if self._recent is not None:
            return self._recent.ends
        return self._steps or dict.fromkeys(self._slots)

    @property
    def rhythm(self) -> Clock | None:
        """The rhythm of the times that were learned; None before the first."""
        return self._clock if self._recent is None else self._recent.clock

    def _workspace(self, steps: int) -> ForecastWorkspace:
        return self._work if steps == self.horizon else ForecastWorkspace(self._plan, steps)

    def forecast_frame(self, horizon: int, levels: Sequence[float] = (80, 95), X_df: Any = None) -> Any:
        """Predict the next ``horizon`` values of all series that `learn_frame` has learned, as a long table.

        Parameters
        ----------
        horizon : int
        levels : sequence of numbers
            Percentages of intervals.
        X_df : data frame or dict of columns, optional
            ``unique_id``, ``ds`` and the inputs of steps to come, of some or all series. Inputs that are missing stay
            as they are.

        Returns
        -------
        pandas or polars data frame, or dict of columns, as the last table that was learned
            ``unique_id``, ``ds``, the mean as ``onepass``, and ``onepass-lo-95``, ``onepass-hi-95`` of each level. Each
            series goes on from its own last time; one with fewer than 2 values has NaN.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from onepass.forecasting import ForecastingFleet
        >>> days = pd.date_range("2026-01-01", periods=60)
        >>> sales = pd.DataFrame({"unique_id": "shop 1", "ds": days, "y": 20 + np.arange(60) % 7})
        >>> ahead = ForecastingFleet(season_length=7).learn_frame(sales).forecast_frame(2, levels=[95])
        >>> ahead["ds"].dt.day.tolist(), ahead["onepass"].round().tolist(), list(ahead.columns[3:])
        ([2, 3], [24.0, 25.0], ['onepass-lo-95', 'onepass-hi-95'])
        """
        steps = as_count(horizon, "horizon")
        if isinstance(levels, int | float):
            raise TypeError(f"levels must be a list of percentages, such as [95], got {levels!r}")
        shares = [as_level(level) for level in levels]
        clock, last = self.rhythm, self._ends
        if clock is None:
            raise ValueError("forecast_frame needs the times of series: learn them with learn_frame")
        keys = list(last)
        given = self._inputs_of_frame(X_df, steps)
        found = np.full((1 + 2 * len(shares), len(keys), steps), np.nan)
        work = self._workspace(steps)
        for i, key in enumerate(keys):
            forecast = self._forecast(key, given.get(key), work)
            if not isinstance(forecast, int):
                found[:, i] = [forecast.mean, *(side for share in shares for side in forecast.interval(share))]
        ends = np.fromiter(last.values(), dtype=np.int64, count=len(keys))
        columns = {
            "unique_id": np.repeat(np.array(keys), steps),
            "ds": clock.times_of((ends[:, None] + np.arange(1, steps + 1)).ravel()),
            "onepass": found[0].ravel(),
        }
        for at, level in enumerate(levels):
            columns[f"onepass-lo-{level:g}"] = found[1 + 2 * at].ravel()
            columns[f"onepass-hi-{level:g}"] = found[2 + 2 * at].ravel()
        return as_library(columns, self._library)

    def _inputs_of_frame(self, frame: Any, horizon: int) -> dict[Hashable, FloatArray]:
        """Inputs ``(horizon, q)`` of each series in a table of steps to come."""
        if frame is None:
            return {}
        if not self.inputs:
            raise ValueError("X_df was given, but the fleet has no inputs: name them in ForecastingFleet(inputs=...)")
        names, times, _, inputs = columns_of(frame, ("unique_id", "ds"), self.inputs)
        clock, last = self._clock_for(times), self._ends
        clock.last = -MOST_STEPS
        different, at = np.unique(times, return_inverse=True)
        steps = clock.positions(different)[at.ravel()] if len(different) else np.zeros(0, dtype=np.int64)
        found: dict[Hashable, FloatArray] = {}
        for key, step, row in zip(names.tolist(), steps.tolist(), inputs, strict=True):
            if key not in last:
                raise KeyError(f"X_df has the series {key!r}, of which no values have been learned")
            ahead = step - last[key]
            if not 1 <= ahead <= horizon:
                raise ValueError(
                    f"X_df has a time of the series {key!r} that is {ahead} steps after its last value: "
                    f"give the times from 1 to {horizon} steps after it"
                )
            found.setdefault(key, np.full((horizon, len(self.inputs)), np.nan))[ahead - 1] = row
        return found

    @property
    def keys(self) -> list[Hashable]:
        """The keys of all series, in the order in which they came."""
        return list(self._slots if self._recent is None else self._recent.series)

    def __contains__(self, key: Hashable) -> bool:
        return key in (self._slots if self._recent is None else self._recent.series)

    def __len__(self) -> int:
        return len(self._slots if self._recent is None else self._recent.series)

    def __repr__(self) -> str:
        return f"ForecastingFleet(season_length={self._seasons or 1}, n_series={len(self)}, n_seen={self.n_seen})"

    def __copy__(self) -> Self:
        return deepcopy(self)  # learning changes arrays in place

    # Files.

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the complete state, as JSON-compatible parameters and arrays: see `onepass.save`."""
        if not all(isinstance(key, (str, int)) for key in self.keys):
            raise TypeError("only a fleet whose keys are strings or whole numbers can be saved")
        parameters: Parameters = {
            "seasons": list(self._seasons),
            "horizon": self.horizon,
            "members": [member.to_data() for member in self.members],
            "outliers": self.outliers,
            "counts": self.counts,
            "inputs": list(self.inputs),
            "library": self._library,
            "keys": list(self._slots),
            "n_seen": self._n_learned,
            "clock": None if self._clock is None else self._clock.to_data(),
            "steps": [self._steps.get(key) for key in self._slots],
            "revisions": self.revisions,
        }
        records = self._records[: len(self._slots)].copy()
        arrays = {"records": records, "sizing": self._sizing.copy(), "priors": self._priors.copy()}
        if self._shared_sizing is not None:
            arrays["shared_sizing"] = self._shared_sizing.copy()
        if self._recent is not None:
            parameters["recent"], recent = self._recent.export_state()
            arrays |= nested("recent", recent)
        return parameters, arrays

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_work"}  # memory that is made again

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._work = ForecastWorkspace(self._plan, self.horizon)

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the fleet that `export_state` described."""
        members = [Member(**one) for one in parameters["members"]]
        new = cls(
            parameters["seasons"] or 1,
            parameters["horizon"],
            members=members,
            outliers=parameters["outliers"],
            revisions=parameters["revisions"],
            inputs=parameters["inputs"],
            counts=parameters["counts"],
        )
        new._library = None if parameters["library"] is None else one_of(parameters["library"], LIBRARIES, "library")
        keys = parameters["keys"]
        new._slots = {key: slot for slot, key in enumerate(keys)}
        if len(new._slots) != len(keys):
            raise ValueError("keys of a fleet must differ")
        new._records = sized_or_nan(arrays, "records", (len(keys), new._plan.size))
        new._sizing = sized_or_nan(arrays, "sizing", new._sizing.shape)
        new._priors = sized_or_nan(arrays, "priors", new._priors.shape)
        new._n_learned = as_tally(parameters["n_seen"], "n_seen")
        new._next_sharing = next_sharing(new._n_learned)
        if "shared_sizing" in arrays:
            new._shared_sizing = sized_or_nan(arrays, "shared_sizing", new._sizing.shape)
        if parameters["clock"] is not None:
            new._clock = Clock.from_data(parameters["clock"])
        new._steps = {key: int(step) for key, step in zip(keys, parameters["steps"], strict=True) if step is not None}
        if new.revisions:
            new._recent = RecentRows.from_state(parameters["recent"], under("recent", arrays), 1 + len(new.inputs))
        return new
