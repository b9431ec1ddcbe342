"""Scores of a fleet that learns in parts on Dask next to those of one fleet.

    python -m benchmarks.forecasting.parts --data FOLDER

FOLDER is as for `benchmarks.forecasting`; the weekly series are cut one and two horizons before the end of ``train``.
The other series are a thousand made-up ones with a week, of 150 values each. Prints MASE, MSIS and the share inside the
95 % interval, for docs/tutorials/cluster.md. Takes five minutes of one core.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd

from benchmarks.forecasting.competition import KINDS, Kind, Series, fleet_forecasts, read_series, scored
from onepass.distributed import fit_forecasts
from onepass.forecasting import Forecast, ForecastingFleet

_MADE_UP = Kind("made up", (7,), 7, 14, (np.nan, np.nan, np.nan))


def made_up(kind: Kind, n_series: int = 1000, n: int = 150) -> list[Series]:
    """Series with a week, a trend and autocorrelated errors with heavy tails, of very different sizes."""
    rng, t, found = np.random.default_rng(0), np.arange(n + kind.horizon), []
    for size in np.exp(rng.normal(size=n_series)):
        errors = np.convolve(rng.standard_t(5, size=len(t)), 0.7 ** np.arange(20))[: len(t)]
        week = 3.0 * np.sin(2.0 * np.pi * (t + rng.integers(7)) / 7.0)
        y = size * (20.0 + 0.02 * t * rng.normal() + week + errors)
        found.append(Series(y[:n], y[n:]))
    return found


def forecasts_in_parts(series: Sequence[Series], kind: Kind, n_parts: int) -> list[Forecast]:
    """Forecasts of a fleet in so many parts, which learn a table in eight partitions."""
    table = pd.concat(
        [
            pd.DataFrame({"unique_id": key, "ds": np.arange(len(known)), "y": known})
            for key, (known, _) in enumerate(series)
        ]
    )
    data = dd.from_pandas(table.reset_index(drop=True), npartitions=8)
    with dask.config.set(scheduler="threads"):
        fleet = fit_forecasts(ForecastingFleet(kind.seasons, kind.horizon), data, parts=n_parts).collect()
    return [fleet.forecast(kind.horizon, key=key) for key in range(len(series))]


def measure(series: Sequence[Series], kind: Kind) -> dict[str, dict[str, Any]]:
    """Scores of one fleet, and of fleets in 4 and in 16 parts."""
    found = {"one fleet": scored(series, fleet_forecasts(series, kind), kind.season_of_mase)}
    for n_parts in (4, 16):
        found[f"{n_parts} parts"] = scored(series, forecasts_in_parts(series, kind, n_parts), kind.season_of_mase)
    return found


def main() -> None:
    """Print the scores as a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forecasting.parts")
    parser.add_argument("--data", type=Path, metavar="FOLDER", required=True)
    folder = parser.parse_args().data
    weekly = KINDS[0]
    cases = {f"M4 weekly, window {window}": (read_series(folder, weekly, window), weekly) for window in (1, 2)}
    cases["made up"] = made_up(_MADE_UP), _MADE_UP
    print("| series | learned by | MASE | MSIS | inside 95 % |", "|---|---|---|---|---|", sep="\n")
    for name, (series, kind) in cases.items():
        for how, scores in measure(series, kind).items():
            numbers = f"{scores['mase']:.3f} | {scores['msis']:.2f} | {100.0 * np.mean(scores['coverage']):.1f} %"
            print(f"| {name} | {how} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
