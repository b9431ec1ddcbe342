"""`BayesianForecaster`: forecasts of one series that are updated by every value, without refitting."""

from collections.abc import Iterable, Sequence
from copy import copy, deepcopy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onepass._typing import FloatArray
from onepass._validation import as_count, as_flag, as_floats, as_floats_or_nan, as_whole, one_of
from onepass.engine.forecasting import ForecastWorkspace, empty_sizing, forecast_series, learn_values
from onepass.engine.lag_sums import (
    AT_CHANGES,
    AT_EVIDENCE,
    AT_FORECASTS,
    AT_LAST,
    AT_LOWEST,
    AT_MISSING,
    AT_N_CHANGES,
    AT_OBSERVED,
    AT_OUTLIERS,
    AT_READY,
    AT_SQUARED_ERRORS,
    Plan,
)
from onepass.engine.threads import threads_for
from onepass.files.state import Arrays, Parameters, as_number, as_tally, nested, sized_or_nan, under
from onepass.forecasting.components import Components, Origin
from onepass.forecasting.forecast import CountForecast, Forecast, MemberForecast
from onepass.forecasting.long_tables import as_input_names
from onepass.forecasting.members import (
    Member,
    as_members,
    as_seasons,
    count_members,
    default_horizon,
    default_members,
    make_plan,
)
from onepass.forecasting.revisions import RecentValues
from onepass.forecasting.times import Clock, Times, as_times
from onepass.likelihoods.base import refuse_first
from onepass.likelihoods.counts import LARGEST as LARGEST_COUNT
from onepass.likelihoods.whole_numbers import WholeNumbers

__all__ = [
    "FAR",
    "NEVER",
    "BayesianForecaster",
    "as_inputs",
    "check_values",
    "filled",
    "forecast_counts",
    "forecast_values",
    "inputs_ahead",
]

_CANDIDATES = (7, 12, 24)  # seasons of a series about which nothing is known
FAR = 8.0  # deviations from which on a value may be wrong, or a new level
NEVER = 1e300
LARGEST = 1e100  # of values, whose squares must be finite
_NORMAL_95 = 1.959963984540054
_EXPECTED_ERRORS = 5.0  # steps for which the variance of counts is what members expect


class BayesianForecaster:
    """Forecasts one series in closed form, online.

    Several lag regressions, its members, are kept as running sums. Each value takes a bounded time and changes the
    sums; no value is learned again. Members are weighed by the errors of their own earlier forecasts, and so are
    intervals. Uncertainty about the weights is part of every forecast. The result does not depend on how the values
    were divided into calls.

    Parameters
    ----------
    season_length : "auto", number, or sequence of numbers
        Seasons in steps, which need not be whole: 12 for months, ``(24, 168)`` for hours. 1 is none. ``"auto"`` takes
        those that belong to the rhythm of the ``times``; without times, members for several seasons compete.
    horizon : int, optional
        For how many steps ahead the members are weighed. The default depends on the season.
    members : sequence of Member, optional
        Other members than `onepass.forecasting.default_members`.
    outliers : bool
        Whether a value that is very far from what was expected is held back until the next ones show whether it was a
        spike, which forecasts don't follow, or a new level, which they do. For series with rare, gross errors; where
        large changes are common, intervals become far too wide.
    revisions : int
        For how many of the last steps values may come late or be corrected, which takes twice the memory and time; 0
        for none. The result is that of the values in the order of their times, of each step the one that came last.
    inputs : sequence of str
        Names of the inputs, if there are any and they are to be known by name.
    counts : bool
        Whether values are counts 0, 1, 2, ..., such as daily sales of one article. Forecasts are distributions over
        whole numbers then, see `onepass.forecasting.CountForecast`, and the members are those of
        `onepass.forecasting.count_members`.

    Examples
    --------
    >>> import numpy as np
    >>> from onepass import BayesianForecaster
    >>> t = np.arange(240)
    >>> y = 100 + 0.2 * t + 10 * np.sin(2 * np.pi * t / 12) + np.random.default_rng(0).normal(size=240)
    >>> model = BayesianForecaster(season_length=12).learn(y)
    >>> forecast = model.forecast(12)
    >>> expected = 100 + 0.2 * np.arange(240, 252) + 10 * np.sin(2 * np.pi * np.arange(240, 252) / 12)
    >>> low, high = forecast.interval(0.95)
    >>> bool(((low < expected) & (expected < high)).all())
    True

    Values that come late or are corrected:

    >>> model = BayesianForecaster(season_length=12, revisions=24).learn(y[:200], times=t[:200])
    >>> model = model.learn([130.0, y[200]], times=[201, 200]).learn(y[201], times=201)
    >>> in_order = BayesianForecaster(season_length=12).learn(y[:202], times=t[:202])
    >>> bool((model.forecast(12).mean == in_order.forecast(12).mean).all())
    True
    """

    def __init__(
        self,
        season_length: Any = "auto",
        horizon: int | None = None,
        *,
        members: Iterable[Member] | None = None,
        outliers: bool = False,
        revisions: int = 0,
        inputs: Sequence[str] = (),
        counts: bool = False,
    ) -> None:
        if isinstance(season_length, str):
            one_of(season_length, ("auto",), "season_length")
            self._seasons: tuple[float, ...] | None = None
        else:
            self._seasons = as_seasons(season_length)
        self._horizon = None if horizon is None else as_count(horizon, "horizon")
        self._members = None if members is None else as_members(members)
        self.outliers = as_flag(outliers, "outliers")
        self.counts = as_flag(counts, "counts")
        self.revisions = as_whole(revisions, "revisions")
        self._recent = RecentValues(self.revisions) if self.revisions else None
        self._settled = (
            type(self)(season_length, horizon, members=self._members, outliers=outliers, counts=counts)
            if self.revisions
            else None
        )
        self.inputs = as_input_names(inputs)
        self._clock: Clock | None = None
        self._times_given: bool | None = None
        self._first: tuple[float, FloatArray] | None = None  # a value that waits for the rhythm of the second one
        self._plan: Plan | None = None
        self._record = np.zeros((1, 0))
        self._sizing = np.zeros(0)
        self._priors = np.zeros(0)
        self._work: dict[int, ForecastWorkspace] = {}
        self.n_inputs: int | None = len(self.inputs) or None
        """Number of inputs; None before the first value, unless they have names."""

    # Learning.

    def learn(self, y: ArrayLike, X: Any = None, times: Any = None) -> Self:
        """Learn one value or many in their order: all of them or, if one is invalid, none.

        Parameters
        ----------
        y : number or (n,) array
            NaN is a value that is missing.
        X : (n, q) array, optional
            Inputs of the values' own steps, such as holidays or prices; ``(q,)`` for one value. NaN is taken to be as
            in the step before.
        times : (n,) numbers or dates, optional
            Increasing, in one rhythm; steps that are left out are missing values. Once given, always given. With
            ``revisions`` they must be given, and may be in any order.
        """
        values = np.ascontiguousarray(np.atleast_1d(as_floats_or_nan(y, "y")))
        if values.ndim != 1:
            raise ValueError(f"y must be a number or have shape (n,), got shape {values.shape}")
        check_values(values, counts=self.counts)
        inputs = as_inputs(X, len(values), self.n_inputs, single=np.ndim(y) == 0)
        if len(values) == 0:
            return self
        given = None if times is None else as_times(times, len(values))
        if self._recent is None:
            self._learn_in_order(values, inputs, given)
        elif given is None:
            raise ValueError("a forecaster that accepts revisions needs times, which say what is revised")
        else:
            self._revise(self._recent, values, inputs, given)
        return self

    def _revise(self, recent: RecentValues, values: FloatArray, inputs: FloatArray, times: Times) -> None:
        """Learn values of the last steps in any order, and again those after them."""
        assert self._settled is not None
        ordered = recent.put(values, inputs, times)
        if ordered.replaces_recent:
            fresh = copy(self._settled)
            fresh._work = self._work
            fresh._learn_in_order(ordered.values, ordered.inputs, ordered.times)
            own = {"_recent", "_settled", "revisions", "inputs"}
            vars(self).update({name: value for name, value in vars(fresh).items() if name not in own})
        else:
            self._learn_in_order(ordered.values, ordered.inputs, ordered.times)
        settled = recent.settle(ordered)
        if settled is not None:
            self._settled._learn_in_order(*settled)

    def check_times(self, times: Any) -> None:
        """Refuse times that `learn` would refuse."""
        given = as_times(times, np.size(times))
        nothing = np.full(len(given), np.nan), np.zeros((len(given), self.n_inputs or 0))
        if self._recent is None:
            self._in_rhythm(*nothing, given)
            return
        ordered = self._recent.put(*nothing, given)
        base = self._settled if ordered.replaces_recent and self._settled is not None else self
        base._in_rhythm(ordered.values, ordered.inputs, ordered.times)

    def steps_ahead(self, times: Any) -> NDArray[np.int64]:
        """How many steps after the newest value these times are; 0 or less for times that are not after it."""
        clock, given = self._known_clock(), as_times(times, np.size(times))
        if clock.are_dates != (given.dtype == np.int64):
            raise TypeError("times must be all dates or all numbers, as those that were learned")
        return clock.steps(given) - clock.last

    def times_ahead(self, horizon: int) -> NDArray[Any]:
        """The times of the next ``horizon`` steps."""
        clock = self._known_clock()
        return clock.times_of(clock.last + np.arange(1, as_count(horizon, "horizon") + 1))

    @property
    def recent(self) -> tuple[NDArray[Any], FloatArray]:
        """Times and values of the last steps, which may be revised; none without ``revisions``."""
        if self._recent is None:
            return np.zeros(0), np.zeros(0)
        times, values = self._recent.latest
        return times.view("datetime64[ns]") if times.dtype == np.int64 else times, values

    def _known_clock(self) -> Clock:
        if self._clock is None or not self._clock.is_known:
            raise ValueError("the rhythm of the series is not known before it has two times: learn them first")
        return self._clock

    def _learn_in_order(self, values: FloatArray, inputs: FloatArray, times: Times | None) -> None:
        clock, values, inputs = self._in_rhythm(values, inputs, times)
        self._clock, self._times_given = clock, times is not None
        self.n_inputs = inputs.shape[1]
        if clock is not None and not clock.is_known:
            self._first = float(values[0]), inputs[0]
            return
        if self._first is not None:
            values, inputs = np.append(self._first[0], values), np.vstack([self._first[1], inputs])
            self._first = None
        self._learn(values, inputs)

    def _in_rhythm(
        self, values: FloatArray, inputs: FloatArray, given: Times | None
    ) -> tuple[Clock | None, FloatArray, FloatArray]:
        """Values and inputs with the steps that were left out, and the clock after them."""
        if self._times_given is not None and self._times_given != (given is not None):
            raise ValueError("times must be given with all values or with none")
        if given is None:
            return None, values, inputs
        dated = given.dtype == np.int64
        clock = Clock(dated, given[0].item(), last=-1) if self._clock is None else self._clock.copy()
        if clock.are_dates != dated:
            raise TypeError("times must be all dates or all numbers")
        started = self._clock is not None
        if not clock.is_known:
            if started:
                clock.learn_step(given[0].item())
            elif len(given) > 1:
                clock.learn_step(given[1].item())
            else:
                clock.last = 0
                return clock, values, inputs
        found = clock.positions(given)
        n = int(found[-1]) - clock.last
        at = found - clock.last - 1
        all_values, all_inputs = np.full(n, np.nan), np.full((n, inputs.shape[1]), np.nan)
        all_values[at], all_inputs[at] = values, inputs
        clock.last = int(found[-1])
        return clock, all_values, all_inputs

    def _learn(self, values: FloatArray, inputs: FloatArray) -> None:
        plan, X = self._prepared(inputs)
        slots = np.zeros(len(values), dtype=np.int64)
        with threads_for(plan.most_weights):
            learn_values(
                plan, values, X, slots, self._record, self._priors, self._sizing, self._workspace(plan.horizon)
            )

    def _prepared(self, inputs: FloatArray) -> tuple[Plan, FloatArray]:
        """The plan, and inputs without gaps: at least one, which the compiled code expects."""
        plan = self._made_plan(inputs.shape[1])
        known = filled(inputs, self._record[0, plan.at_inputs : plan.at_inputs + inputs.shape[1]])
        return plan, known if inputs.shape[1] else np.zeros((len(inputs), 1))

    def _made_plan(self, n_inputs: int) -> Plan:
        """The plan, which the first values complete."""
        if self._plan is None:
            seasons = self._seasons
            if seasons is None:
                seasons = () if self._clock is None else self._clock.seasons
            members = self._members or self._default_members(seasons)
            horizon = self._horizon or default_horizon(seasons)
            season = round(seasons[0]) if seasons and seasons[0] <= 30 else 1
            self._plan = make_plan(members, horizon, season, n_inputs, FAR if self.outliers else NEVER)
            self._members, self._seasons = members, seasons
            self._record = np.zeros((1, self._plan.size))
            self._plan.begin(self._record[0], 0.0)
            self._sizing = empty_sizing(horizon)
            self._priors = self._plan.empty_priors()
        return self._plan

    def _default_members(self, seasons: tuple[float, ...]) -> tuple[Member, ...]:
        default = count_members if self.counts else default_members
        if self._seasons is None and self._clock is None:
            candidates = [Member(lags=(1, 2, m), difference=m) for m in _CANDIDATES]
            return (*default(()), *candidates)
        return default(seasons)

    def _workspace(self, horizon: int) -> ForecastWorkspace:
        if horizon not in self._work:
            assert self._plan is not None
            kept = {steps: work for steps, work in self._work.items() if steps == self._plan.horizon}
            self._work = {**kept, horizon: ForecastWorkspace(self._plan, horizon)}
        return self._work[horizon]

    # Forecasts.

    def forecast(self, horizon: int, X: Any = None) -> Forecast:
        """Predict the next ``horizon`` values.

        Parameters
        ----------
        horizon : int
        X : (horizon, q) array, optional
            Inputs of the steps to come. Without them, inputs are taken to stay as they are.
        """
        steps = as_count(horizon, "horizon")
        plan = self._plan
        if plan is None or self.n_seen < 2:
            raise ValueError(f"a forecast needs at least 2 values, got {self.n_seen}: learn more of the series first")
        ahead = inputs_ahead(plan, self._record[0], X, steps)
        assert self._members is not None
        with threads_for(plan.most_weights):
            origin = Origin(plan, self._members, self._seasons or (), self._record[0].copy(), ahead, self._priors)
            make = forecast_counts if self.counts else forecast_values
            return make(origin, self._sizing, self._workspace(steps))

    # What is known.

    @property
    def n_seen(self) -> int:
        """Number of values learned, without those that are missing."""
        waiting = 0 if self._first is None or np.isnan(self._first[0]) else 1
        return waiting + (0 if self._plan is None else int(self._record[0, AT_OBSERVED]))

    @property
    def n_set_aside(self) -> int:
        """Number of values that were held back as spikes."""
        return 0 if self._plan is None else int(self._record[0, AT_OUTLIERS])

    @property
    def log_evidence(self) -> float:
        """Sum of the log densities of all values, each predicted one step ahead."""
        return 0.0 if self._plan is None else float(self._record[0, AT_EVIDENCE])

    @property
    def members(self) -> tuple[Member, ...]:
        """The lag regressions; before the first values of an automatic season, those that were given."""
        return self._members or ()

    @property
    def shares(self) -> dict[Member, float]:
        """Members' shares in the forecasts that were last made as values came."""
        if self._plan is None or not self._record[0, AT_READY]:
            return {}
        at = self._plan.at_shares
        return dict(zip(self.members, self._record[0, at : at + len(self.members)].tolist(), strict=True))

    @property
    def components_(self) -> Components:
        """What makes the forecast of the next values: see `Forecast`."""
        return self.forecast(1 if self._plan is None else self._plan.horizon).decomposition

    def __repr__(self) -> str:
        seasons = "auto" if self._seasons is None else self._seasons
        return f"BayesianForecaster(season_length={seasons}, n_seen={self.n_seen})"

    def __copy__(self) -> Self:
        """A forecaster that goes on from here by itself: learning changes arrays in place."""
        new = type(self).__new__(type(self))
        own = {name: value.copy() for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        vars(new).update(self.__getstate__() | own)
        new._recent, new._settled = deepcopy(self._recent), copy(self._settled)
        return new

    # Files.

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_work": {}}  # memory that is made again

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the complete state, as JSON-compatible parameters and arrays: see `onepass.save`."""
        parameters: Parameters = {
            "seasons": None if self._seasons is None else list(self._seasons),
            "horizon": self._horizon,
            "members": None if self._members is None else [member.to_data() for member in self._members],
            "outliers": self.outliers,
            "clock": None if self._clock is None else self._clock.to_data(),
            "times_given": self._times_given,
            "n_inputs": self.n_inputs,
            "is_made": self._plan is not None,
            "first": None if self._first is None else _to_json(self._first[0]),
            "revisions": self.revisions,
            "inputs": list(self.inputs),
            "counts": self.counts,
        }
        first = np.zeros(0) if self._first is None else self._first[1]
        arrays = {"record": self._record[0].copy(), "sizing": self._sizing.copy(), "first_inputs": first}
        if self._recent is not None and self._settled is not None:
            parameters["recent"], recent = self._recent.export_state()
            parameters["settled"], settled = self._settled.export_state()
            arrays |= nested("recent", recent) | nested("settled", settled)
        return parameters, arrays

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the forecaster that `export_state` described."""
        members = parameters["members"]
        new = cls(
            "auto" if parameters["seasons"] is None else parameters["seasons"] or 1,
            parameters["horizon"],
            members=None if members is None else [Member(**one) for one in members],
            outliers=parameters["outliers"],
            revisions=parameters["revisions"],
            inputs=parameters["inputs"],
            counts=parameters["counts"],
        )
        if parameters["clock"] is not None:
            new._clock = Clock.from_data(parameters["clock"])
        given = parameters["times_given"]
        new._times_given = None if given is None else as_flag(given, "times_given")
        new.n_inputs = None if parameters["n_inputs"] is None else as_tally(parameters["n_inputs"], "n_inputs")
        if parameters["first"] is not None:
            first = np.nan if parameters["first"] == "nan" else as_number(parameters["first"], "first")
            new._first = float(first), sized_or_nan(arrays, "first_inputs", (new.n_inputs or 0,))
        if parameters["is_made"]:
            plan = new._made_plan(new.n_inputs or 0)
            new._record = sized_or_nan(arrays, "record", (plan.size,))[None]
            new._sizing = as_floats(sized_or_nan(arrays, "sizing", new._sizing.shape), "sizing")
        if new.revisions:
            new._recent = RecentValues.from_state(parameters["recent"], under("recent", arrays), new.n_inputs or 0)
            new._settled = cls.from_state(parameters["settled"], under("settled", arrays))
        return new


def forecast_values(origin: Origin, sizing: FloatArray, work: ForecastWorkspace) -> Forecast:
    """The forecast of one series of numbers, over the steps of the workspace."""
    record = origin.record
    found = forecast_series(origin.plan, record, origin.ahead, origin.priors, sizing, work)
    limit = 0.0 if record[AT_LOWEST] >= 0.0 else None
    if np.isnan(found[0, 0]):
        return Forecast(*_random_walk(origin.plan, record, work.horizon), limit=limit)
    cov = _covariance(found[1] * found[2] / _NORMAL_95, work)
    return Forecast(found[0], cov, limit=limit, members=_member_forecasts(origin, work), origin=origin)


def forecast_counts(origin: Origin, sizing: FloatArray, work: ForecastWorkspace) -> CountForecast:
    """The forecast of one series of counts, over the steps of the workspace.

    The variance of a count is in proportion to its mean, by the ratio of the sums of earlier squared errors and of
    earlier forecasts, to which a few steps are added whose squared errors are what members expect. Neither the mean nor
    the variance is below what half a count among all values would make it.
    """
    record = origin.record
    found = forecast_series(origin.plan, record, origin.ahead, origin.priors, sizing, work)
    least = 0.5 / record[AT_OBSERVED]
    if np.isnan(found[0, 0]):
        mean, cov = _random_walk(origin.plan, record, work.horizon)
        mean = np.maximum(mean, least)
        unknown = min(_EXPECTED_ERRORS / record[AT_OBSERVED], 1.0)  # little, where all values have been the same
        return CountForecast(mean, cov + unknown * np.diag(mean))
    mean = np.maximum(found[0], least)
    expected, squares = _last_test(origin.plan, record)
    dispersion = (record[AT_SQUARED_ERRORS] + _EXPECTED_ERRORS * squares) / (
        record[AT_FORECASTS] + _EXPECTED_ERRORS * max(expected, least)
    )
    cov = _covariance(np.sqrt(np.maximum(dispersion * mean, least)), work)
    return CountForecast(mean, cov, members=_member_forecasts(origin, work), origin=origin)


def _last_test(plan: Plan, record: FloatArray) -> tuple[float, float]:
    """Mean of the last test forecast over its steps, and of the squares of its deviations."""
    m, h = plan.n_members, plan.horizon
    shares = record[plan.at_shares : plan.at_shares + m]
    pending = record[plan.at_pending : plan.at_pending + m * h].reshape(m, h)
    deviations = record[plan.at_combined + h : plan.at_combined + 2 * h]
    return float((shares[shares > 0.0] @ pending[shares > 0.0]).mean()), float(np.square(deviations).mean())


def _covariance(std: FloatArray, work: ForecastWorkspace) -> FloatArray:
    """Covariance of steps with these deviations and the correlations of the last forecast."""
    _, _, correlation, _ = work.arrays
    cov: FloatArray = correlation * np.outer(std, std)
    np.fill_diagonal(cov, np.maximum(np.square(std), 1e-300))
    return cov


def _member_forecasts(origin: Origin, work: ForecastWorkspace) -> list[MemberForecast]:
    """The members that had a forecast, those with the largest share first."""
    means, _, _, shares = work.arrays
    parts = [
        MemberForecast(member, float(share), own.copy())
        for member, share, own in zip(origin.members, shares, means, strict=True)
        if share > 0.0
    ]
    return sorted(parts, key=lambda part: -part.share)


def _random_walk(plan: Plan, record: FloatArray, steps: int) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance where no member has a forecast: the last value, with changes as large as they were.

    So it is with two or three values, and after a gap so long that nothing is left of what is known.
    """
    past = record[plan.at_past :]
    change = abs(past[0] - past[1]) if plan.longest_difference > 1 else abs(past[0])
    usual = record[AT_CHANGES] / max(record[AT_N_CHANGES], 1.0)
    size = max(change, usual, 1e-3 * abs(record[AT_LAST]), 1e-9)
    h = record[AT_MISSING] + np.arange(1.0, steps + 1.0)
    return np.full(steps, record[AT_LAST]), size**2 * np.minimum.outer(h, h)


def check_values(values: FloatArray, *, counts: bool) -> None:
    """Refuse values whose squares would not be finite, and what is not a count where all values are."""
    most = LARGEST_COUNT if counts else LARGEST
    if np.nanmax(np.abs(values), initial=0.0) > most:
        raise ValueError(f"y must not be beyond {most:g}: choose larger units")
    if counts:
        refuse_first(values, WholeNumbers().impossible(values), "counts 0, 1, 2, ... for counts=True")


def _to_json(value: float) -> Any:
    return "nan" if np.isnan(value) else value


def as_inputs(X: Any, n: int, n_inputs: int | None, *, single: bool) -> FloatArray:
    """Check the inputs of n steps, ``(n, q)``; without any ``(n, 0)``. A single step may have ``(q,)``."""
    array = np.zeros((n, 0)) if X is None else as_floats_or_nan(X, "X")
    array = array[None] if single and array.ndim == 1 else array
    if array.ndim != 2 or len(array) != n:
        raise ValueError(f"X must have a row of inputs for each of the {n} steps, got shape {array.shape}")
    if n_inputs is not None and array.shape[1] != n_inputs:
        raise ValueError(f"X must have {n_inputs} inputs, as in the values before, got {array.shape[1]}")
    return array


def inputs_ahead(plan: Plan, record: FloatArray, X: Any, steps: int) -> FloatArray:
    """Check the inputs of the next steps of a series; those that are missing stay as they are."""
    q = plan.n_inputs
    if not q:
        if X is not None:
            raise ValueError("X was given, but the values were learned without inputs")
        return np.zeros((1, 1))
    ahead = np.full((steps, q), np.nan) if X is None else as_inputs(X, steps, q, single=steps == 1)
    return filled(ahead, record[plan.at_inputs : plan.at_inputs + q])


def filled(inputs: FloatArray, last: FloatArray) -> FloatArray:
    """Inputs with those that are missing as in the step before."""
    if not np.isnan(inputs).any():
        return np.ascontiguousarray(inputs)
    filled = inputs.copy()
    for row in filled:
        gaps = np.isnan(row)
        row[gaps] = last[gaps]
        last = row
    return filled
