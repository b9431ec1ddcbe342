"""Other libraries on some of the competition's series, at rolling origins.

The last values of ``train`` and ``test`` are forecast from two origins, one horizon apart. statsforecast's models are
fitted again at each origin with the season of the data: for weeks without one, since 52 steps are too many for its
exponential smoothing, except that MSTL is given 52. Their intervals are normal, so their continuous ranked probability
score is that of a normal distribution. River's models learn value by value and have no intervals; their settings are
those with the best MASE in hindsight.

The time of a new value is that of learning it, or of the refit that takes it in.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from river import linear_model, optim, preprocessing, time_series

from benchmarks.forecasting.competition import KINDS, Kind, Series, read_series
from onepass._typing import FloatArray
from onepass.evaluation.metrics import gaussian_crps
from onepass.forecasting import BayesianForecaster, ForecastingFleet

__all__ = ["HAS_STATSFORECAST", "measure"]

HAS_STATSFORECAST = find_spec("statsforecast") is not None
if HAS_STATSFORECAST:
    from statsforecast import models

N_SERIES = {"weekly": 24, "hourly": 8}
ORIGINS = 2
Z95 = 1.959963984540054


class Found(NamedTuple):
    """A forecast, its deviations if it has any, and the seconds that a new value takes."""

    mean: FloatArray
    std: FloatArray | None
    seconds: float


Forecaster = Callable[[FloatArray], Found]


def measure(folder: Path) -> Iterator[tuple[str, str, dict[str, float]]]:
    """Part of the competition, method and its scores, method by method."""
    for kind in KINDS:
        every = [np.concatenate(one) for one in read_series(folder, kind)]
        chosen = every[:: len(every) // N_SERIES[kind.name]][: N_SERIES[kind.name]]
        origins = [
            [Series(y[: len(y) - k * kind.horizon], y[len(y) - k * kind.horizon :][: kind.horizon]) for y in chosen]
            for k in range(ORIGINS, 0, -1)
        ]
        yield kind.name, "onepass, fleet", _scores(kind, origins, list(_by_fleet(kind, chosen)))
        for name, forecast in (_onepass(kind) | _statsforecast(kind)).items():
            found = [forecast(series.known) for origin in origins for series in origin]
            yield kind.name, name, _scores(kind, origins, found)
        for name, settings in _river(kind).items():
            tried = [
                _scores(
                    kind, origins, [_streamed(make(), series.known, kind) for origin in origins for series in origin]
                )
                for make in settings
            ]
            yield kind.name, name, min(tried, key=lambda scores: scores["mase"])


def _scores(kind: Kind, origins: list[list[Series]], found: list[Found]) -> dict[str, float]:
    """Scores over all origins and series, in units of the mean absolute change of a season."""
    m, errors, ranked = kind.season_of_mase, [], []
    for (known, y), (mean, std, _) in zip((one for origin in origins for one in origin), found, strict=True):
        scale = np.abs(known[m:] - known[:-m]).mean()
        errors.append(np.abs(y - mean).mean() / scale)
        if std is not None:
            ranked.append(gaussian_crps(y, mean, std).mean() / scale)
    scores = {"mase": float(np.mean(errors)), "seconds": median(one.seconds for one in found)}
    return scores | ({"crps": float(np.mean(ranked))} if ranked else {})


def _by_fleet(kind: Kind, chosen: list[FloatArray]) -> Iterator[Found]:
    """Forecasts of a fleet of these series, origin by origin."""
    fleet = ForecastingFleet(kind.seasons, kind.horizon)
    keys, longest = np.arange(len(chosen)), max(map(len, chosen))
    rows = np.full((len(chosen), longest), np.nan)
    for row, y in zip(rows, chosen, strict=True):
        row[longest - len(y) :] = y
    start, n = time.process_time(), 0
    for t in range(longest):
        known = ~np.isnan(rows[:, t])
        if t >= longest - ORIGINS * kind.horizon and (longest - t) % kind.horizon == 0:
            seconds = (time.process_time() - start) / n
            for key in keys:
                forecast = fleet.forecast(kind.horizon, key=int(key))
                yield Found(forecast.mean, forecast.std, seconds)
        fleet.learn(rows[known, t], keys=keys[known])
        n += int(known.sum())


def _onepass(kind: Kind) -> dict[str, Forecaster]:
    def alone(y: FloatArray) -> Found:
        model = BayesianForecaster(kind.seasons, kind.horizon).learn(y[:-50])
        start = time.process_time()
        for value in y[-50:]:
            model.learn(value)
        seconds = (time.process_time() - start) / 50
        forecast = model.forecast(kind.horizon)
        return Found(forecast.mean, forecast.std, seconds)

    return {"onepass, alone": alone}


def _statsforecast(kind: Kind) -> dict[str, Forecaster]:
    if not HAS_STATSFORECAST:
        return {}
    season = kind.season_of_mase
    seasons = [52] if season == 1 else [24, 168]
    makes: dict[str, Callable[[], Any]] = {
        "statsforecast AutoETS": lambda: models.AutoETS(season_length=season),
        "statsforecast AutoARIMA": lambda: models.AutoARIMA(season_length=season),
        "statsforecast MSTL": lambda: models.MSTL(season_length=seasons),
    }
    return {name: _refitted(make, kind.horizon) for name, make in makes.items()}


def _refitted(make: Callable[[], Any], horizon: int) -> Forecaster:
    def forecast(y: FloatArray) -> Found:
        model = make()
        start = time.process_time()
        model.fit(y)
        seconds = time.process_time() - start
        found = model.predict(horizon, level=[95])
        return Found(found["mean"], (found["hi-95"] - found["lo-95"]) / (2.0 * Z95), seconds)

    return forecast


def _river(kind: Kind) -> dict[str, Sequence[Callable[[], Any]]]:
    m = kind.season_of_mase
    seasonal: dict[str, Any] = {} if m == 1 else {"m": m, "sp": 1, "sd": 1}
    orders = [(1, 0, 0), (1, 1, 0), (2, 1, 1), (4, 1, 0), (8, 1, 0)]
    arima = [
        partial(_snarimax, rate, {"p": p, "d": d, "q": q, **seasonal})
        for p, d, q in orders
        for rate in (0.001, 0.01, 0.1)
    ]
    season: dict[str, Any] = {"gamma": None, "seasonality": 0} if m == 1 else {"gamma": 0.2, "seasonality": m}
    smoothing = [
        partial(time_series.HoltWinters, alpha=alpha, beta=beta, **season)
        for alpha in (0.2, 0.5, 0.9)
        for beta in (0.01, 0.1)
    ]
    return {"River SNARIMAX": arima, "River HoltWinters": smoothing}


def _snarimax(rate: float, orders: dict[str, Any]) -> Any:
    regression = linear_model.LinearRegression(optimizer=optim.SGD(rate), intercept_lr=0.1)
    return time_series.SNARIMAX(**orders, regressor=preprocessing.StandardScaler() | regression)


def _streamed(model: Any, y: FloatArray, kind: Kind) -> Found:
    start = time.process_time()
    for value in y.tolist():
        model.learn_one(value)
    seconds = (time.process_time() - start) / len(y)
    mean = np.array(model.forecast(horizon=kind.horizon))
    return Found(np.clip(np.nan_to_num(mean, nan=1e300), -1e300, 1e300), None, seconds)
