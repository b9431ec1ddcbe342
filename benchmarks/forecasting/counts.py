"""Forecasts of counts, simulated with means from 0.3 to 20, next to simple forecasts of whole numbers.

Five series of 400 counts each are Poisson or negative binomial: of one mean, of a mean that depends on earlier counts
(INGARCH) or moves, with a week, or 0 on most days. They are forecast 14 steps ahead from rolling origins. The CRPS is
in units of that of all earlier values, taken as equally likely. Coverage is that of 80 % and 95 % intervals; a count at
a limit is inside with the share of its probability that belongs to the interval.

Croston's method, as corrected by Syntetos and Boylan (SBA), smooths the sizes of demands and the times between them,
here with 0.1, and takes counts as Poisson. The value a season earlier is given its own earlier errors.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.evaluation.metrics import ensemble_crps
from onepass.forecasting import BayesianForecaster, CountForecast, Forecast

__all__ = ["SIMULATED", "demand_rate", "measure", "season_earlier"]

HORIZON, FIRST, N = 14, 60, 400
SEEDS = range(1000, 1005)
LEVELS = (0.8, 0.95)
_QUANTILES = (np.arange(200) + 0.5) / 200

Simulated = Callable[[np.random.Generator], FloatArray]


def _counts(rng: np.random.Generator, mean: FloatArray, size: float) -> FloatArray:
    return rng.poisson(rng.gamma(size, np.maximum(mean, 1e-9) / size)).astype(float)


def _autoregressive(rng: np.random.Generator, mean: float) -> FloatArray:
    found, expected = np.zeros(N), mean
    for t in range(N):
        found[t] = _counts(rng, np.array([expected]), 4.0)[0]
        expected = 0.1 * mean + 0.3 * found[t] + 0.6 * expected
    return found


def _moving(rng: np.random.Generator, mean: float) -> FloatArray:
    return _counts(rng, mean * np.exp(np.cumsum(rng.normal(0.0, 0.04, N))), 5.0)


def _weekly(rng: np.random.Generator, mean: float) -> FloatArray:
    pattern = np.exp(rng.normal(0.0, 0.5, 7))
    return _counts(rng, mean * pattern[np.arange(N) % 7] / pattern.mean(), 3.0)


def _seldom(rng: np.random.Generator, mean: float) -> FloatArray:
    """A demand on a tenth of the days, and a negative binomial number more than 1."""
    return np.asarray((rng.random(N) < 0.1) * (1.0 + _counts(rng, np.full(N, 10.0 * mean), 1.0)))


def _kinds(mean: float) -> dict[str, tuple[Simulated, int]]:
    return {
        f"one mean, {mean:g}": (lambda rng: rng.poisson(mean, N).astype(float), 1),
        f"depends on the counts before, {mean:g}": (lambda rng: _autoregressive(rng, mean), 1),
        f"moves, {mean:g}": (lambda rng: _moving(rng, mean), 1),
        f"week, {mean:g}": (lambda rng: _weekly(rng, mean), 7),
    }


SIMULATED: dict[str, tuple[Simulated, int]] = {
    **_kinds(0.3),
    **_kinds(2.0),
    **_kinds(20.0),
    "on a tenth of the days": (lambda rng: _seldom(rng, 0.4), 1),
}


def demand_rate(y: FloatArray, smoothing: float = 0.1) -> float:
    """Expected demand per step by the method of Syntetos and Boylan."""
    size = interval = np.nan
    since = 1.0
    for value in y:
        if value > 0.0:
            size = value if np.isnan(size) else size + smoothing * (value - size)
            interval = since if np.isnan(interval) else interval + smoothing * (since - interval)
            since = 0.0
        since += 1.0
    return 0.5 / len(y) if np.isnan(size) else float((1.0 - smoothing / 2.0) * size / interval)


def season_earlier(y: FloatArray, season: int) -> FloatArray:
    """The value a season earlier with each of the changes that there have been, ``(k, h)``."""
    base = y[len(y) - season + np.arange(HORIZON) % season]
    return np.maximum(base + (y[season:] - y[:-season])[:, None], 0.0)


def _rate_forecast(rate: float) -> CountForecast:
    return CountForecast(np.full(HORIZON, rate), rate * np.eye(HORIZON))


def _crps(forecast: Forecast, actual: FloatArray) -> float:
    return float(ensemble_crps(actual, forecast.ppf(_QUANTILES[:, None])).mean())


def _inside(forecast: Forecast, actual: FloatArray, level: float) -> float:
    """Share of the actual counts inside of an interval, at its limits by their probability."""
    above, below = forecast.cdf(actual), forecast.cdf(actual - 1.0)
    shared = np.minimum(above, 0.5 + level / 2) - np.maximum(below, 0.5 - level / 2)
    return float(np.mean(np.clip(shared / np.maximum(above - below, 1e-12), 0.0, 1.0)))


def _scores(y: FloatArray, season: int) -> dict[str, list[float]]:
    """CRPS of each method, and coverage of ours, at every origin."""
    models = {"counts": BayesianForecaster(season, counts=True), "numbers": BayesianForecaster(season)}
    found: dict[str, list[float]] = {}
    done = 0
    for origin in range(FIRST, N - HORIZON, HORIZON):
        past, actual = y[:origin], y[origin : origin + HORIZON]
        for name, model in models.items():
            forecast = model.learn(y[done:origin]).forecast(HORIZON)
            found.setdefault(name, []).append(_crps(forecast, actual))
            for level in LEVELS if name == "counts" else ():
                found.setdefault(f"in_{100 * level:g}", []).append(_inside(forecast, actual, level))
        done = origin
        found.setdefault("sba", []).append(_crps(_rate_forecast(demand_rate(past)), actual))
        for name, values in (("season", season_earlier(past, season)), ("all", np.tile(past[:, None], HORIZON))):
            found.setdefault(name, []).append(float(ensemble_crps(actual, values).mean()))
    return found


def measure() -> dict[str, Any]:
    """By kind of series: CRPS of each method relative to that of all earlier values, and coverage."""
    found = {}
    for kind, (simulated, season) in SIMULATED.items():
        each = [_scores(simulated(np.random.default_rng(seed)), season) for seed in SEEDS]
        means = {name: float(np.mean([one[name] for one in each])) for name in each[0]}
        unit = means.pop("all")
        found[kind] = {name: mean if name.startswith("in_") else mean / unit for name, mean in means.items()}
        print(kind, {name: round(mean, 3) for name, mean in found[kind].items()}, flush=True)
    return found
