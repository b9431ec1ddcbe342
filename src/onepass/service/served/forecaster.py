"""Forecasters behind the service: a row is the value of a series at a time, with inputs and, of many series, a key.

Rows have the time as a number: microseconds since 1970 of dates, which are times in UTC if they name no other zone. The
column after it says which of both it is.
"""

from abc import abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice
from math import isfinite
from threading import Lock
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from onepass._typing import FloatArray
from onepass.estimators.rows import PredictedRows, Rows
from onepass.forecasting import BayesianForecaster, CountForecast, Forecast, ForecastingFleet, TooLateError
from onepass.models.distribution import Prediction
from onepass.service.errors import ProblemError
from onepass.service.served.base import Bad, raise_first
from onepass.service.served.columns import column_of
from onepass.service.served.numbers import NumberRows
from onepass.service.served.values import check_columns, refuse_keys
from onepass.service.wire import (
    Distribution,
    ForecastRequest,
    ForecastStep,
    Inputs,
    Interval,
    Key,
    Observed,
    Scalar,
)
from onepass.tables.columns.values import plain
from onepass.tables.targets import CountTarget, NumberTarget

__all__ = ["FleetForecasterRows", "ForecasterRows"]

_TIME = "time"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST = 1e15  # of times that are numbers
_YEARS = (1680, 2260)  # that nanoseconds reach
_MOST_AHEAD = 1000  # steps
_SHOWN = 100  # keys of a fleet


class _SeriesRows(NumberRows):
    """A forecaster, whose rows are values of series.

    Parameters
    ----------
    model : what is served
    inputs : names of its inputs
    """

    kind = "forecaster"
    expects_outliers = False

    def __init__(self, model: Any, inputs: Sequence[str]) -> None:
        if not model.revisions:
            raise ProblemError(
                422,
                "not a model to serve",
                "a forecaster without revisions can't be served, because requests may come in any order: make it with "
                "revisions=48, say",
            )
        self._inputs = list(inputs)
        target = CountTarget("y") if model.counts else NumberTarget("y", 0.0, 1.0)
        super().__init__(model, target, [_TIME, *inputs])
        self._lock = Lock()  # forecasts of one model share their memory

    @abstractmethod
    def _check(self, times: NDArray[Any], keys: Sequence[Any] | None) -> None:
        """Refuse times that can't be learned."""

    @abstractmethod
    def _learn_one(self, time: NDArray[Any], y: FloatArray, inputs: FloatArray, key: Any) -> None:
        """Learn one value."""

    @abstractmethod
    def _ahead(self, time: NDArray[Any], key: Any) -> int:
        """How many steps a time is after the newest value of its series."""

    @abstractmethod
    def _forecast(self, horizon: int, X: FloatArray | None, key: Any) -> Forecast:
        """The next steps of a series."""

    @abstractmethod
    def _times_ahead(self, horizon: int, key: Any) -> NDArray[Any]:
        """The times of the next steps."""

    @abstractmethod
    def _latest(self, key: Any) -> tuple[NDArray[Any], FloatArray]:
        """The latest times and values."""

    @abstractmethod
    def _read_keys(self, keys: Sequence[Key | None], bad: Bad) -> tuple[Any, ...] | None:
        """The series that rows belong to; None where there is only one."""

    def _check_known(self, key: Any) -> None:
        """Refuse a series of which too little is known."""
        try:
            with self._lock:
                self._forecast(1, None, key)
                self._times_ahead(1, key)
        except ValueError as error:
            raise ProblemError(409, "nothing learned yet", str(error)) from None

    def as_forecaster(self, what: str) -> Self:
        """Return itself."""
        return self

    @property
    def n_seen(self) -> int:
        """Values learned."""
        return int(self.model.n_seen)

    def schema(self) -> dict[str, Any]:
        """Time, inputs and target, and for how many steps values may be revised."""
        found = super().schema()
        words = "a date and time such as 2030-01-31T12:00:00Z, or a number"
        found["columns"][0] = {"name": _TIME, "kind": _TIME, "words": words}
        return {**found, "series": {"revisions": self.model.revisions}}

    def facts(self) -> dict[str, str]:
        """What the forecaster is and has learned, in words."""
        late = f"within the last {self.model.revisions} steps"
        return {"model": repr(self.model), "values learned": f"{self.n_seen:,}", "late and corrected values": late}

    # Reading.

    def read(self, rows: Sequence[Inputs], keys: Sequence[Key | None]) -> tuple[Rows, Bad]:
        """Rows as numbers; a time that can't be learned any more, or is out of rhythm, is a problem of its row."""
        bad: Bad = {}
        names = self._read_keys(keys, bad)
        X = np.zeros((len(rows), 2 + len(self._inputs)))
        for i, row in enumerate(rows):
            named = self._named(row, i, bad)
            if i not in bad:
                X[i, :2] = _read_time(named.get(_TIME), i, bad)
                X[i, 2:] = [self._number(named.get(name), name, i, bad) for name in self._inputs]
        self._check_times(X, names, bad)
        return Rows(X, keys=names), bad

    def read_table(self, table: Any, *, learn: bool) -> Rows:
        """Rows of an Arrow batch with a column of times, one for each input and, of many series, ``key``."""
        self._check_table(table, self.names)
        bad: Bad = {}
        keys: list[Any] = [None] * table.num_rows
        if "key" in self.extra_columns:
            check_columns(table, ["key"])
            keys = table.column(table.schema.get_field_index("key")).to_pylist()
        names = self._read_keys(keys, bad)
        X = np.zeros((table.num_rows, 2 + len(self._inputs)))
        for i, value in enumerate(_times_of(plain(column_of(table, _TIME)))):
            X[i, :2] = _read_time(value, i, bad)
        for place, name in enumerate(self._inputs, start=2):
            X[:, place] = self._numbers_in(column_of(table, name), name, bad)
        y = self._read_target_column(table, bad) if learn else None
        self._check_times(X, names, bad)
        raise_first(bad)
        return Rows(X, y, keys=names)

    def _check_times(self, X: FloatArray, keys: tuple[Any, ...] | None, bad: Bad) -> None:
        """Note rows whose time the series can't take: all at once, and one by one only if some are bad."""
        good = [i for i in range(len(X)) if i not in bad]
        kinds = np.unique(X[good, 1])
        if not good or (len(kinds) == 1 and self._problem_of(X, keys, good) is None):
            return
        dated = X[good[0], 1]
        for i in good:
            found = self._problem_of(X, keys, [i])
            if found is None and X[i, 1] != dated:
                found = _mixed()
            if found is not None:
                bad[i] = found

    def _problem_of(self, X: FloatArray, keys: tuple[Any, ...] | None, places: list[int]) -> ProblemError | None:
        times = _as_times(X[places])
        try:
            self._check_in_order(times, None if keys is None else [keys[i] for i in places])
        except TooLateError as error:
            words = (
                f"the value is {error.behind} steps older than the newest one, and only the last "
                f"{self.model.revisions} steps can be revised"
            )
            return ProblemError(422, "bad value", words, field="x.time", code="too_late")
        except TypeError:
            return _mixed()
        except ValueError as error:
            return ProblemError(422, "bad value", str(error), field="x.time", code="out_of_rhythm")
        return None

    def _check_in_order(self, times: NDArray[Any], keys: Sequence[Any] | None) -> None:
        """Refuse times that can't be learned one after another: all together, or the first of them without the next.

        The two earliest times set the rhythm while it may change, so that more of them change nothing.
        """
        self._check(times, keys)
        if len(times) > 1:
            first = int(np.argmin(times))
            self._check(times[first : first + 1], None if keys is None else [keys[first]])

    # Learning.

    def learn(self, rows: Rows) -> PredictedRows:
        """Learn values in the order of their times; what was predicted for each before, unless it came late."""
        n = len(rows)
        times, found, held = _as_times(rows.X), np.full((3, n), np.nan), np.zeros(n)
        with self._lock:
            self._check_in_order(times, rows.keys)
            for i in np.argsort(times, kind="stable").tolist():
                key = None if rows.keys is None else rows.keys[i]
                before = self.n_set_aside
                forecast = self._forecast_of(times[i : i + 1], rows.X[i, 2:], key)
                if forecast is not None:
                    found[:, i] = forecast.mean[-1], forecast.var[-1], forecast.logpdf(rows.y[i])[-1]
                self._learn_one(times[i : i + 1], rows.y[i : i + 1], rows.X[i : i + 1, 2:], key)
                held[i] = float(self.n_set_aside > before)
        mean, var, log_density = found
        return PredictedRows(mean, np.zeros(n), var, log_density, held, np.zeros(n))

    def _forecast_of(self, time: NDArray[Any], inputs: FloatArray, key: Any) -> Forecast | None:
        """The forecast up to a value that is newer than all of its series; None of any other one."""
        try:
            ahead = self._ahead(time, key)
            if not 1 <= ahead <= _MOST_AHEAD:
                return None
            return self._forecast(ahead, self._inputs_at(inputs, ahead), key)
        except (ValueError, KeyError):  # too little is known of the series
            return None

    def _inputs_at(self, inputs: FloatArray, ahead: int) -> FloatArray | None:
        """Inputs of one step, those in between unknown."""
        if not self._inputs:
            return None
        found = np.full((ahead, len(inputs)), np.nan)
        found[-1] = inputs
        return found

    def close_block(self) -> None:
        """Nothing waits."""

    # Forecasts.

    def unpredictable(self, rows: Rows) -> Bad:
        """Rows whose time is not ahead, or too far."""
        bad: Bad = {}
        times = _as_times(rows.X)
        for i in range(len(rows)):
            key = None if rows.keys is None else rows.keys[i]
            try:
                self._check_known(key)
                ahead = self._ahead(times[i : i + 1], key)
            except ProblemError as problem:
                bad[i] = problem
                continue
            except (TypeError, ValueError):
                bad[i] = ProblemError(422, "bad value", "time does not fit the series", field="x.time")
                continue
            if not 1 <= ahead <= _MOST_AHEAD:
                words = f"time must be 1 to {_MOST_AHEAD} steps after the newest value, got {ahead}"
                bad[i] = ProblemError(422, "bad value", words, field="x.time", code="not_ahead")
        return bad

    def distribution(self, rows: Rows) -> Prediction:
        """What is predicted for times ahead."""
        times, moments = _as_times(rows.X), np.full((2, len(rows)), np.nan)
        with self._lock:
            for i in range(len(rows)):
                key = None if rows.keys is None else rows.keys[i]
                found = self._forecast_of(times[i : i + 1], rows.X[i, 2:], key)
                if found is not None:
                    moments[:, i] = found.mean[-1], found.var[-1]
        mean, var = moments
        return CountForecast(mean, np.diag(var)) if self.model.counts else Prediction.gaussian(mean, var)

    def forecast(self, request: ForecastRequest) -> tuple[list[ForecastStep], Distribution, list[Observed]]:
        """The next steps, their sum, and the latest values."""
        key = self._key_of(request)
        self._check_known(key)
        X = self._inputs_of(request)
        levels = sorted(set(request.levels))
        with self._lock:
            try:
                found = self._forecast(request.horizon, X, key)
            except ValueError as error:
                raise ProblemError(422, "bad value", str(error), field="horizon", code="horizon_too_long") from None
            total = found.total()
            times = self._times_ahead(request.horizon, key)
        ends = np.array([found.interval(level) for level in levels]).reshape(len(levels), 2, request.horizon)
        steps = [
            ForecastStep(
                mean, std, [Interval(level, *own[:, i].tolist()) for level, own in zip(levels, ends, strict=True)], time
            )
            for i, (time, mean, std) in enumerate(
                zip(_written(times), found.mean.tolist(), found.std.tolist(), strict=True)
            )
        ]
        sums = [Interval(level, *map(float, total.interval(level))) for level in levels]
        return steps, Distribution(float(total.mean), float(total.std), sums), self._recent(request.recent, key)

    def _key_of(self, request: ForecastRequest) -> Any:
        bad: Bad = {}
        names = self._read_keys([request.key], bad)
        if bad:
            raise bad[0]
        return None if names is None else names[0]

    def _inputs_of(self, request: ForecastRequest) -> FloatArray | None:
        """Inputs of all steps, by name."""
        given, n = request.inputs, request.horizon
        if not self._inputs:
            if given is not None:
                words = "inputs were given, but this forecaster has none"
                raise ProblemError(422, "bad value", words, field="inputs", code="no_inputs")
            return None
        if given is None or len(given) != n:
            words = (
                f"inputs must have an object with {', '.join(self._inputs)} for each of the {n} steps, got "
                f"{'none' if given is None else len(given)}"
            )
            raise ProblemError(422, "bad value", words, field="inputs", code="missing_inputs")
        bad: Bad = {}
        X = np.zeros((n, len(self._inputs)))
        for i, row in enumerate(given):
            unknown = next((name for name in row if name not in self._inputs), None)
            if unknown is not None:
                words = f"there is no input {unknown!r}; the inputs are {', '.join(self._inputs)}"
                raise ProblemError(422, "unknown column", words, field=f"inputs.{unknown}")
            X[i] = [self._number(row.get(name), name, i, bad) for name in self._inputs]
        if bad:
            first = min(bad)
            name = (bad[first].field or "").removeprefix("x.")
            code = "missing_inputs" if given[first].get(name) is None else "not_a_number"
            found = ProblemError(422, "bad value", bad[first].detail, field=f"inputs.{name}", code=code)
            raise found.at("step", first + 1)
        return X

    def _recent(self, n: int, key: Any) -> list[Observed]:
        if not n:
            return []
        times, values = self._latest(key)
        return [
            Observed(time, y) for time, y in zip(_written(times[-n:]), values[-n:].tolist(), strict=True) if isfinite(y)
        ]


class ForecasterRows(_SeriesRows):
    """A forecaster of one series."""

    model: BayesianForecaster

    def __init__(self, model: BayesianForecaster) -> None:
        super().__init__(model, model.inputs or [f"x{i}" for i in range(model.n_inputs or 0)])

    @classmethod
    def accepts(cls, model: Any) -> bool:
        """Whether it is a forecaster."""
        return isinstance(model, BayesianForecaster)

    @property
    def n_set_aside(self) -> int:
        """Values that were held back as spikes."""
        return self.model.n_set_aside

    def _read_keys(self, keys: Sequence[Key | None], bad: Bad) -> None:
        refuse_keys(keys, bad)

    def _check(self, times: NDArray[Any], keys: Sequence[Any] | None) -> None:
        self.model.check_times(times)

    def _learn_one(self, time: NDArray[Any], y: FloatArray, inputs: FloatArray, key: Any) -> None:
        self.model.learn(y, inputs if self._inputs else None, time)

    def _ahead(self, time: NDArray[Any], key: Any) -> int:
        return int(self.model.steps_ahead(time)[0])

    def _forecast(self, horizon: int, X: FloatArray | None, key: Any) -> Forecast:
        return self.model.forecast(horizon, X)

    def _times_ahead(self, horizon: int, key: Any) -> NDArray[Any]:
        return self.model.times_ahead(horizon)

    def _latest(self, key: Any) -> tuple[NDArray[Any], FloatArray]:
        return self.model.recent


class FleetForecasterRows(_SeriesRows):
    """A forecaster of many series: a request names its key."""

    extra_columns = ("key",)
    model: ForecastingFleet

    def __init__(self, model: ForecastingFleet) -> None:
        super().__init__(model, model.inputs)

    @classmethod
    def accepts(cls, model: Any) -> bool:
        """Whether it is a fleet of forecasters."""
        return isinstance(model, ForecastingFleet)

    @property
    def n_set_aside(self) -> int:
        """0: fleets don't say which values they hold back."""
        return 0

    def schema(self) -> dict[str, Any]:
        """Time, inputs and target, and what keys are."""
        found = super().schema()
        found["series"] |= {"n": len(self.model), "keys": list(islice(self.model.keys, _SHOWN))}
        return {**found, "key": {"kind": "text"}}

    def facts(self) -> dict[str, str]:
        """What the fleet is and has learned, in words."""
        return {**super().facts(), "series": f"{len(self.model):,}"}

    def _read_keys(self, keys: Sequence[Key | None], bad: Bad) -> tuple[Any, ...]:
        for i, key in enumerate(keys):
            if not isinstance(key, str):
                words = "key is missing: it says which of the series is meant"
                if key is not None:
                    words = f'key must be a text, as the keys of series are, such as "{key}", got {key}'
                bad[i] = ProblemError(422, "bad value", words, field="key", code="missing_key")
        return tuple(key if isinstance(key, str) else "" for key in keys)

    def _check_known(self, key: Any) -> None:
        if key not in self.model:
            words = f"no values of the series {key!r} have been learned"
            raise ProblemError(404, "unknown key", words, field="key", code="unknown_key")
        super()._check_known(key)

    def _check(self, times: NDArray[Any], keys: Sequence[Any] | None) -> None:
        assert keys is not None
        self.model.check_times(times, keys)

    def _learn_one(self, time: NDArray[Any], y: FloatArray, inputs: FloatArray, key: Any) -> None:
        columns = dict(zip(self._inputs, inputs.T, strict=True))
        self.model.learn_frame({"unique_id": np.array([key]), "ds": time, "y": y, **columns})

    def _ahead(self, time: NDArray[Any], key: Any) -> int:
        return int(self.model.steps_ahead(time, key)[0])

    def _forecast(self, horizon: int, X: FloatArray | None, key: Any) -> Forecast:
        return self.model.forecast(horizon, key=key, X=X)

    def _times_ahead(self, horizon: int, key: Any) -> NDArray[Any]:
        return self.model.times_ahead(horizon, key)

    def _latest(self, key: Any) -> tuple[NDArray[Any], FloatArray]:
        return self.model.recent(key)


def _mixed() -> ProblemError:
    words = "the times of a series are either all dates or all numbers"
    return ProblemError(422, "bad value", words, field="x.time", code="mixed_times")


def _read_time(value: Scalar, i: int, bad: Bad) -> tuple[float, float]:
    """A time as a number, and whether it is a date."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST:
        return float(value), 0.0
    try:
        date = datetime.fromisoformat(value.strip()) if isinstance(value, str) else None
    except ValueError:
        date = None
    if date is not None and _YEARS[0] <= date.year <= _YEARS[1]:
        since = (date if date.tzinfo else date.replace(tzinfo=UTC)) - _EPOCH
        return float(since.days * 86_400_000_000 + since.seconds * 1_000_000 + since.microseconds), 1.0
    shown = (
        "is missing" if value is None else f"is {str(value)[:40]!r}, neither a date nor a number that can be learned"
    )
    words = f"time {shown}; write dates as 2030-01-31 or 2030-01-31T12:00:00Z"
    bad.setdefault(i, ProblemError(422, "bad value", words, field="x.time", code="not_a_time"))
    return 0.0, 0.0


def _times_of(column: Any) -> list[Any]:
    """Times of an Arrow column as JSON would have them."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        in_utc = column.cast(pa.timestamp(kind.unit)) if pa.types.is_timestamp(kind) else column
        column = in_utc.cast(pa.string())
    elif pa.types.is_temporal(kind):  # a time of day or a duration
        return [str(kind)] * len(column)
    found: list[Any] = column.to_pylist()
    return found


def _as_times(X: FloatArray) -> NDArray[Any]:
    """Times of rows, which are all of one kind."""
    if len(X) and (X[:, 1] != X[0, 1]).any():
        raise ValueError("the times of a series are either all dates or all numbers")
    if len(X) and X[0, 1]:
        return X[:, 0].astype(np.int64).astype("datetime64[us]").astype("datetime64[ns]")
    return np.ascontiguousarray(X[:, 0])


def _written(times: NDArray[Any]) -> list[str | float]:
    """Times as answers have them."""
    if times.dtype.kind == "M":
        texts = np.datetime_as_string(times.astype("datetime64[us]"), timezone="UTC").tolist()
        return [_shorter(text) for text in texts]
    return [float(time) for time in times]


def _shorter(text: str) -> str:
    """A time without zeros after the seconds."""
    return text.removesuffix("Z").rstrip("0").rstrip(".") + "Z" if "." in text else text
