"""Forecasts of the M4 competition's series, and of River's time series, with the best published scores next to them.

    python -m benchmarks.forecasting --data FOLDER [--window N] [--single]

``FOLDER`` has ``m4-weekly.csv.gz`` and ``m4-hourly.csv.gz``: ``series,part,value`` in the order of time, where ``part``
is ``train`` or ``test``. Scores are the competition's: MASE, sMAPE, and MSIS of the 95 % interval. ``--window 1``
forecasts the last values of ``train`` instead, from what comes before; settings were chosen on these windows.
``--single`` forecasts every series alone.
"""

import argparse
import gzip
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from onepass._typing import FloatArray
from onepass.forecasting import BayesianForecaster, Forecast, ForecastingFleet

__all__ = ["Scores", "Series", "fleet_forecasts", "read_series", "scored", "single_forecasts"]


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


class Scores(NamedTuple):
    """The competition's scores, and the share inside the 95 % interval: over all steps, and the extremes over steps."""

    mase: float
    smape: float
    msis: float
    coverage: float
    least_coverage: float
    most_coverage: float


def read_series(path: Path, horizon: int, window: int = 0) -> list[Series]:
    """Series of a file; with a window those that are long enough, cut so many horizons before the end of ``train``."""
    parts: dict[str, dict[str, list[float]]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            name, part, value = line.rstrip().split(",")
            parts.setdefault(name, {"train": [], "test": []})[part].append(float(value))
    found = []
    for both in parts.values():
        train, cut = np.array(both["train"]), len(both["train"]) - window * horizon
        if window == 0:
            found.append(Series(train, np.array(both["test"])))
        elif cut > 20:
            found.append(Series(train[:cut], train[cut : cut + horizon]))
    return found


def scored(series: list[Series], forecasts: list[Forecast], season: int) -> Scores:
    """Scores of forecasts, the mean over series."""
    rows, inside = [], []
    for (known, y), forecast in zip(series, forecasts, strict=True):
        scale, (low, high) = np.abs(known[season:] - known[:-season]).mean(), forecast.interval(0.95)
        error, outside = np.abs(y - forecast.mean), np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
        relative = 200.0 * error / (np.abs(y) + np.abs(forecast.mean))
        rows.append((error.mean() / scale, relative.mean(), (high - low + 40.0 * outside).mean() / scale))
        inside.append((low <= y) & (y <= high))
    by_step = np.mean(inside, axis=0)
    mase, smape, msis = np.mean(rows, axis=0)
    return Scores(mase, smape, msis, by_step.mean(), by_step.min(), by_step.max())


def fleet_forecasts(series: list[Series], kind: Kind) -> list[Forecast]:
    """Forecasts of a fleet that sees one value of every series after the other, as they come in time."""
    time = np.concatenate([np.arange(len(known)) for known, _ in series])
    keys = np.repeat(np.arange(len(series)), [len(known) for known, _ in series])
    order = np.argsort(time, kind="stable")
    fleet = ForecastingFleet(kind.seasons, kind.horizon)
    fleet.learn(np.concatenate([known for known, _ in series])[order], keys=keys[order])
    return [fleet.forecast(kind.horizon, key=key) for key in range(len(series))]


def single_forecasts(series: list[Series], kind: Kind) -> list[Forecast]:
    """Forecasts of every series without the others."""
    return [BayesianForecaster(kind.seasons, kind.horizon).learn(known).forecast(kind.horizon) for known, _ in series]


def streamed_error(dataset: Any, season: int, horizon: int, start: int) -> float:
    """Mean absolute error of the next steps, forecast at every value from ``start`` on, of one of River's series."""
    y = np.array([target for _, target in dataset])
    model, errors = BayesianForecaster(season, horizon).learn(y[:start]), []
    for t in range(start, len(y) - horizon + 1):
        errors.append(np.abs(model.forecast(horizon).mean - y[t : t + horizon]).mean())
        model.learn(y[t])
    return float(np.mean(errors))


def main() -> None:
    """Print one table of the competition, and one of River's series."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--window", type=int, default=0)
    parser.add_argument("--single", action="store_true")
    options = parser.parse_args()
    print(
        "| series | MASE | sMAPE | MSIS | inside 95 % | by step | microseconds per value |\n"
        "|---|---|---|---|---|---|---|"
    )
    for kind in KINDS:
        series = read_series(options.data / f"m4-{kind.name}.csv.gz", kind.horizon, options.window)
        start = perf_counter()
        found = scored(
            series, (single_forecasts if options.single else fleet_forecasts)(series, kind), kind.season_of_mase
        )
        took = (perf_counter() - start) / sum(len(known) for known, _ in series)
        inside = f"{found.coverage:.3f} | {found.least_coverage:.3f}-{found.most_coverage:.3f} | {1e6 * took:.0f}"
        print(f"| {kind.name} | {found.mase:.3f} | {found.smape:.2f} | {found.msis:.2f} | {inside} |")
        print("| best published | " + " | ".join(f"{score:g}" for score in kind.published) + " | | | |")
    from river import datasets

    bundled: Any = datasets
    airline = streamed_error(bundled.AirlinePassengers(), 12, 3, 24)
    trump = streamed_error(bundled.TrumpApproval(), 1, 3, 24)
    print(f"\nairline passengers, 3 steps: MAE {airline:.1f}; TrumpApproval: {trump:.3f}")


if __name__ == "__main__":
    main()
