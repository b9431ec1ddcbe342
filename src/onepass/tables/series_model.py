"""`SeriesModel`: forecasters of the series of a file, which know its columns and its rhythm."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from onepass._typing import FloatArray
from onepass._validation import as_count
from onepass.files.state import Arrays, Parameters, as_tally, nested, sized_or_nan, under
from onepass.forecasting import BayesianForecaster, Forecast, ForecastingFleet
from onepass.forecasting.times import Clock
from onepass.tables.columns.errors import SchemaError
from onepass.tables.known_series import KnownSeries, NewValues
from onepass.tables.reasons import Reason
from onepass.tables.series import Series, SeriesTable
from onepass.tables.series_rows import SeriesColumns

__all__ = ["Forecasters", "SeriesForecast", "SeriesModel", "new_forecasters"]

_FEWEST = 2  # values of a forecast
_LONGEST_TEST = 60  # steps ahead for which members are weighed
_RECENT = 200  # values of a series that are kept to be drawn
_DRAWN = 12  # series


class SeriesForecast(NamedTuple):
    """The forecast of one series."""

    key: str
    first: int
    """Its first step."""
    forecast: Forecast
    recent: FloatArray
    """The last values before it."""

    def value_text(self, value: float) -> str:
        """A value with the digits that its uncertainty leaves; counts are whole numbers."""
        if self.forecast.is_count and value == np.floor(value):
            return f"{value:,.0f}"
        size = float(np.median(self.forecast.std))
        decimals = int(np.clip(1 - np.floor(np.log10(size)), 0, 6)) if size > 0.0 else 2
        return f"{value:,.{decimals}f}"


class Forecasters:
    """What forecasts the series: one forecaster, or a fleet of them.

    Parameters
    ----------
    seasons, horizon : see `onepass.BayesianForecaster`
    columns : SeriesColumns
    revisions : last steps of which values may be corrected
    """

    def __init__(self, seasons: tuple[float, ...], horizon: int, columns: SeriesColumns, revisions: int = 0) -> None:
        self.horizon, self.revisions = horizon, revisions
        self.names = columns.input_names
        self.model: BayesianForecaster | ForecastingFleet
        if columns.by is None:
            self.model = BayesianForecaster(seasons or 1, horizon, revisions=revisions, counts=columns.counts)
        else:
            self.model = ForecastingFleet(
                seasons or 1, horizon, revisions=revisions, inputs=self.names, counts=columns.counts
            )
            self.model.set_rhythm(Clock(False, 0.0, 1.0))  # of steps, of which the first two may be far apart

    def learn(self, series: Sequence[Series], *, gaps: bool = True) -> None:
        """Learn the values of series; without ``gaps`` those that are missing are left out, and don't replace any."""
        taken = [np.flatnonzero(np.isfinite(one.values) | gaps) for one in series]
        if not sum(map(len, taken)):
            return
        values = np.concatenate([one.values[own] for one, own in zip(series, taken, strict=True)])
        inputs = np.concatenate([one.inputs[own] for one, own in zip(series, taken, strict=True)])
        steps = np.concatenate([one.first + own.astype(float) for one, own in zip(series, taken, strict=True)])
        if isinstance(self.model, BayesianForecaster):
            self.model.learn(values, inputs if self.names else None, steps)
        else:
            names = np.repeat(np.array([one.key for one in series], dtype=object), list(map(len, taken)))
            more = dict(zip(self.names, inputs.T, strict=True))
            self.model.learn_frame({"unique_id": names, "ds": steps, "y": values, **more})

    def forecast(self, key: str, horizon: int, ahead: FloatArray) -> Forecast:
        """Predict the next values of a series; inputs ``ahead`` may be known for some steps only."""
        inputs = None
        if self.names:
            inputs = np.full((horizon, len(self.names)), np.nan)
            inputs[: len(ahead)] = ahead[:horizon]
        if isinstance(self.model, BayesianForecaster):
            return self.model.forecast(horizon, inputs)
        return self.model.forecast(horizon, key=key, X=inputs)


def new_forecasters(
    seasons: tuple[float, ...], horizon: int, longest: int, columns: SeriesColumns, revisions: int = 0
) -> Forecasters:
    """Forecasters for series of at most ``longest`` values, which have learned nothing."""
    tested = max(1, min(horizon, _LONGEST_TEST, longest // 5))
    return Forecasters(seasons, tested, columns, min(revisions, longest // 10))


class SeriesModel(KnownSeries):
    """Forecasts the series of a file with a column of times, and goes on with the values of further files.

    Parameters
    ----------
    table : SeriesTable
        What it learns first, which also sets columns, rhythm and seasons.
    horizon : int
        Steps ahead that it is to be good at; it forecasts any number.
    revisions : int
        Of how many last steps values may be corrected later.
    """

    made_by = "forecast"

    def __init__(self, table: SeriesTable, horizon: int, revisions: int = 0) -> None:
        _check_values(table)
        super().__init__(table)
        self.horizon = as_count(horizon, "horizon")
        longest = max((len(one.values) for one in table.series), default=0)
        self.forecasters = new_forecasters(table.seasons, self.horizon, longest, table.columns, revisions)
        self._series: dict[str, Series] = {}  # with the last values only
        self._counts: dict[str, int] = {}
        self._learn(table.series, gaps=True)

    def learn(self, table: SeriesTable) -> Self:
        """Learn the values of a further file, all of them or, if some are too old, none."""
        newest = max(self.ends.values())
        for one in table.series:
            self.check_gap(one)
            end = self.ends.get(one.key, one.first)
            earliest = min(end, newest - self.forecasters.revisions)
            old = int(np.isfinite(one.values[: max(earliest - one.first, 0)]).sum())
            if old:
                raise self.error("old_times", one, old, window=end - earliest)
        self._learn(table.series, gaps=False)
        return self

    def _learn(self, series: Sequence[Series], *, gaps: bool) -> None:
        self.forecasters.learn([one for one in series if one.n_known], gaps=gaps)
        for one in series:
            known = self._series.get(one.key)
            new = one if known is None else _continued(known, one)
            added = new.n_known - (0 if known is None else known.n_known)
            self._series[one.key] = new
            self._counts[one.key] = self._counts.get(one.key, 0) + added
        for place, (key, one) in enumerate(self._series.items()):
            kept = max(_RECENT if place < _DRAWN else 1, self.forecasters.revisions)
            drop = max(len(one.values) - kept, 0)
            last = one._replace(first=one.first + drop, values=one.values[drop:], inputs=one.inputs[drop:])
            self._series[key] = last

    def compared(self, table: SeriesTable) -> NewValues:
        """How the values of a further file compare with those that were learned."""
        corrected = repeated = 0
        for one in table.series:
            known = self._series.get(one.key)
            if known is not None:
                first, end = max(known.first, one.first), max(min(known.end, one.end), known.first, one.first)
                before = known.values[first - known.first : end - known.first]
                after = one.values[first - one.first : end - one.first]
                corrected += int((np.isfinite(before) & np.isfinite(after) & (before != after)).sum())
                repeated += int((before == after).sum())
        return NewValues(sum(one.n_known for one in table.series) - corrected - repeated, corrected, repeated)

    @property
    def n_seen(self) -> int:
        """Number of values learned from all series."""
        return sum(self._counts.values())

    @property
    def ends(self) -> dict[str, int]:
        """The step after the last value of each series, by its key."""
        return {key: one.end for key, one in self._series.items()}

    def known_ahead(self) -> dict[str, int]:
        """For how many of the next steps each input is known, in the series forecast that has the fewest."""
        forecast = [one for key, one in self._series.items() if self._counts[key] >= _FEWEST]
        if not forecast:
            return {}
        steps = [np.cumprod(np.isfinite(one.ahead), axis=0).sum(axis=0) for one in forecast]
        return dict(zip(self.columns.inputs, np.min(steps, axis=0).astype(int).tolist(), strict=True))

    def facts(self) -> list[tuple[str, str]]:
        """What it is and what it has learned, each with its name."""
        steps = self.forecasters.revisions
        corrected = f"of the last {steps:,} steps" if steps else "none are taken"
        return [("kind", "forecasts of series"), *super().facts(), ("corrections", corrected)]

    @property
    def keys(self) -> list[str]:
        """The keys of all series."""
        return list(self._series)

    def forecasts(self, horizon: int) -> Iterator[SeriesForecast]:
        """Predict the next values of all series that have at least two."""
        steps = as_count(horizon, "horizon")
        for key, one in self._series.items():
            if self._counts[key] >= _FEWEST:
                found = self.forecasters.forecast(key, steps, one.ahead)
                yield SeriesForecast(key, one.end, found, one.values)

    @property
    def too_short(self) -> list[str]:
        """Keys of the series that have too few values to be forecast."""
        return [key for key, n in self._counts.items() if n < _FEWEST]

    def table(self, forecasts: Sequence[SeriesForecast], level: float | Sequence[float]) -> Any:
        """Forecasts as an Arrow table: time, key, mean, std, and the limits of the intervals."""
        from onepass.tables.prediction import as_given_levels, limit_names  # which imports scikit-learn

        levels = as_given_levels(level)
        names = [self.columns.time, *([] if self.columns.by is None else [self.columns.by])]
        outputs = ("mean", "std", *limit_names(levels))
        clash = next((name for name in names if name in outputs), None)
        if clash is not None:
            raise SchemaError(Reason("output_name", clash, outputs="forecasts"))
        columns: dict[str, list[Any]] = {name: [] for name in (*names, *outputs)}
        for one in forecasts:
            n = len(one.forecast)
            columns[names[0]] += self.times(one.first, n)
            if self.columns.by is not None:
                columns[names[1]] += [one.key] * n
            columns["mean"] += one.forecast.mean.tolist()
            columns["std"] += one.forecast.std.tolist()
            for number, own in enumerate(levels):
                for name, limits in zip(outputs[2 + 2 * number :], one.forecast.interval(own), strict=False):
                    columns[name] += limits.tolist()
        return pa.table({name: pa.array(values) for name, values in columns.items()})

    # Files.

    def export_state(self) -> tuple[Parameters, Arrays]:
        """Return the complete state, as JSON-compatible parameters and arrays: see `onepass.save`."""
        own = self.forecasters
        state, numbers = own.model.export_state()
        arrays = nested("model", numbers)
        for place, one in enumerate(self._series.values()):
            parts = {"values": one.values, "inputs": one.inputs, "ahead": one.ahead}
            arrays |= {f"series {place} {name}": array for name, array in parts.items()}
        parameters: Parameters = {
            **self.known_state(),
            "horizon": self.horizon,
            "tested": own.horizon,
            "revisions": own.revisions,
            "model": state,
            "series": [[one.key, one.first, len(one.values), len(one.ahead)] for one in self._series.values()],
            "counts": list(self._counts.values()),
        }
        return parameters, arrays

    @classmethod
    def from_state(cls, parameters: Parameters, arrays: Arrays) -> Self:
        """Make the model that `export_state` described."""
        new = cls.__new__(cls)
        new.restore_known(parameters)
        new.horizon = as_count(parameters["horizon"], "horizon")
        tested = as_count(parameters["tested"], "tested")
        own = Forecasters(new.seasons, tested, new.columns, as_tally(parameters["revisions"], "revisions"))
        own.model = type(own.model).from_state(parameters["model"], under("model", arrays))
        new.forecasters = own
        new._series = {}
        q = len(new.columns.inputs)
        for place, (key, first, n, k) in enumerate(parameters["series"]):
            shapes = {"values": (n,), "inputs": (n, q), "ahead": (k, q)}
            parts = {name: sized_or_nan(arrays, f"series {place} {name}", shape) for name, shape in shapes.items()}
            new._series[key] = Series(key, int(first), **parts)
        counts = [as_tally(count, "counts") for count in parameters["counts"]]
        new._counts = dict(zip(new._series, counts, strict=True))
        return new


def _check_values(table: SeriesTable) -> None:
    most = max((one.n_known for one in table.series), default=0)
    if most < _FEWEST:
        raise SchemaError(Reason("too_few_values" if most else "no_values", table.columns.target, most))


def _continued(known: Series, more: Series) -> Series:
    """The values of a series with those of a later file, which replace what they have in common."""
    end = max(known.end, more.end) if more.n_known else known.end
    values = np.full(end - known.first, np.nan)
    inputs = np.full((len(values), known.inputs.shape[1]), np.nan)
    for one in (known, more):
        there = np.flatnonzero(np.isfinite(one.values))
        there = there[one.first + there >= known.first]
        values[one.first + there - known.first] = one.values[there]
        inputs[one.first + there - known.first] = one.inputs[there]
    unknown = np.full((max(more.end - end, 0), known.inputs.shape[1]), np.nan)
    ahead = np.concatenate([unknown, more.ahead[max(end - more.end, 0) :]])
    if not len(more.ahead) and len(known.ahead):
        ahead = known.ahead[end - known.end :]
    return Series(known.key, known.first, values, inputs, ahead)
