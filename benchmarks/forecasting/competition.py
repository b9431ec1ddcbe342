"""The weekly and hourly series of the M4 competition, with the best published score of each column.

A folder has ``m4-weekly.csv.gz`` and ``m4-hourly.csv.gz``: ``series,part,value`` in the order of time, where ``part``
is ``train`` or ``test``. Scores are the competition's: MASE, sMAPE, and MSIS of the 95 % interval.
"""

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onepass._typing import FloatArray
from onepass.forecasting import BayesianForecaster, Forecast, ForecastingFleet

__all__ = ["KINDS", "Kind", "Series", "fleet_forecasts", "measure", "read_series", "scored", "single_forecasts"]


class Kind(NamedTuple):
    """A part of the competition, and the best published entry of each column."""

    name: str
    seasons: tuple[float, ...]
    season_of_mase: int
    horizon: int
    published: tuple[float, float, float]


KINDS = (
    Kind("weekly", (52.18,), 1, 13, (2.107, 6.582, 16.2)),
    Kind("hourly", (24, 168), 24, 48, (0.801, 8.91, 6.14)),
)


class Series(NamedTuple):
    """Values to learn, and those to forecast."""

    known: FloatArray
    future: FloatArray


def read_series(folder: Path, kind: Kind, window: int = 0) -> list[Series]:
    """Read the series; with a window those that are long enough, cut so many horizons before the end of ``train``."""
    parts: dict[str, dict[str, list[float]]] = {}
    with gzip.open(folder / f"m4-{kind.name}.csv.gz", "rt", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            name, part, value = line.rstrip().split(",")
            parts.setdefault(name, {"train": [], "test": []})[part].append(float(value))
    found = []
    for both in parts.values():
        train, cut = np.array(both["train"]), len(both["train"]) - window * kind.horizon
        if window == 0:
            found.append(Series(train, np.array(both["test"])))
        elif cut > 20:
            found.append(Series(train[:cut], train[cut : cut + kind.horizon]))
    return found


def scored(series: Sequence[Series], forecasts: Sequence[Forecast], season: int) -> dict[str, Any]:
    """Scores of forecasts, the mean over series, and the share inside the 95 % interval by step."""
    rows, inside = [], []
    for (known, y), forecast in zip(series, forecasts, strict=True):
        scale, (low, high) = np.abs(known[season:] - known[:-season]).mean(), forecast.interval(0.95)
        error, outside = np.abs(y - forecast.mean), np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
        relative = 200.0 * error / (np.abs(y) + np.abs(forecast.mean))
        rows.append((error.mean() / scale, relative.mean(), (high - low + 40.0 * outside).mean() / scale))
        inside.append((low <= y) & (y <= high))
    mase, smape, msis = np.mean(rows, axis=0).tolist()
    return {"mase": mase, "smape": smape, "msis": msis, "coverage": np.mean(inside, axis=0).tolist()}


def fleet_forecasts(series: Sequence[Series], kind: Kind) -> list[Forecast]:
    """Forecasts of a fleet that sees one value of every series after the other, as they come in time."""
    time = np.concatenate([np.arange(len(known)) for known, _ in series])
    keys = np.repeat(np.arange(len(series)), [len(known) for known, _ in series])
    order = np.argsort(time, kind="stable")
    fleet = ForecastingFleet(kind.seasons, kind.horizon)
    fleet.learn(np.concatenate([known for known, _ in series])[order], keys=keys[order])
    return [fleet.forecast(kind.horizon, key=key) for key in range(len(series))]


def single_forecasts(series: Sequence[Series], kind: Kind) -> list[Forecast]:
    """Forecasts of every series without the others."""
    return [BayesianForecaster(kind.seasons, kind.horizon).learn(known).forecast(kind.horizon) for known, _ in series]


def measure(folder: Path, window: int = 0) -> dict[str, Any]:
    """Scores of fleets and of forecasters alone."""
    found = {}
    for kind in KINDS:
        series = read_series(folder, kind, window)
        found[kind.name] = {
            "series": len(series),
            "fleet": scored(series, fleet_forecasts(series, kind), kind.season_of_mase),
            "alone": scored(series, single_forecasts(series, kind), kind.season_of_mase),
        }
    return found
