"""The fifteen streams: ten recorded ones and five made by formula, at most 2,000 rows of each.

What is to be predicted one step ahead in a time series has its own past as inputs: the last two values, those one
season ago, and the phase of the season. Rows stay in their order; tables without an order are shuffled once.
"""

import io
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from onepass._typing import FloatArray

__all__ = ["WARM_UP", "Stream", "streams", "synthetic"]

ROWS = 2000
WARM_UP = 150  # rows that set the scale of inputs and targets, and are learned but not scored


class Stream(NamedTuple):
    """Inputs ``(n, d)`` and targets ``(n,)``, both standardised by the first `WARM_UP` rows."""

    name: str
    origin: str
    X: FloatArray
    y: FloatArray

    @classmethod
    def of(cls, name: str, origin: str, X: FloatArray, y: FloatArray) -> "Stream":
        """Standardise, and take the first rows."""
        X, y = np.asarray(X[:ROWS], dtype=np.float64), np.asarray(y[:ROWS], dtype=np.float64)
        scale = X[:WARM_UP].std(axis=0)
        X = (X - X[:WARM_UP].mean(axis=0)) / np.where(scale > 0.0, scale, 1.0)
        return cls(name, origin, X, (y - y[:WARM_UP].mean()) / (y[:WARM_UP].std() or 1.0))


def streams(folder: Path | None) -> Iterator[Stream]:
    """All fifteen, or without a folder those that need none."""
    yield from _river()
    yield from _series()
    if folder is not None:
        yield from _tables(folder)
    yield from synthetic(np.random.default_rng(0))


def _river() -> Iterator[Stream]:
    def table(name: str) -> pd.DataFrame:
        return pd.read_csv(str(files("river.datasets") / name))

    trump = table("trump_approval.csv.gz")
    yield Stream.of("TrumpApproval", "River", *_split(trump, "five_thirty_eight"))
    chicks = pd.get_dummies(table("chick-weights.csv").drop(columns="chick"), columns=["diet"])
    yield Stream.of("ChickWeights", "River", *_split(chicks, "weight"))
    flow = table("water-flow.csv")["Water flow [l/s]"].interpolate().to_numpy()
    yield Stream.of("WaterFlow", "River", *_lagged(flow, 24))
    yield Stream.of("SP500", "River", *_split(table("sp500.csv.gz").drop(columns="date"), "next_day_return"))


def _series() -> Iterator[Stream]:
    vega = files("vega_datasets") / "_data"
    for name in ("seattle-temps", "sf-temps"):
        temperatures = pd.read_csv(str(vega / f"{name}.csv"))["temp"].to_numpy()
        yield Stream.of(name, "vega_datasets", *_lagged(temperatures, 24))
    text = (files("statsmodels.datasets") / "co2/co2.csv").read_text(encoding="utf-8-sig")
    co2 = pd.read_csv(io.StringIO(text))["co2"].interpolate().to_numpy()
    yield Stream.of("CO2", "statsmodels", *_lagged(co2, 52))


def _tables(folder: Path) -> Iterator[Stream]:
    demand = pd.read_csv(folder / "streams" / "elec.csv.gz")["nswdemand"].to_numpy()
    yield Stream.of("electricity demand", "elec2", *_lagged(demand, 48))
    names = ["sex", "length", "diameter", "height", "whole", "shucked", "viscera", "shell", "rings"]
    abalone = pd.read_csv(folder / "tables" / "abalone.csv", names=names, header=None)
    X, y = _split(pd.get_dummies(abalone, columns=["sex"]), "rings")
    yield Stream.of("abalone", "UCI", X, y)
    rows = np.random.default_rng(0).permutation(np.loadtxt(folder / "uci" / "kin8nm" / "data.txt"))
    yield Stream.of("kin8nm", "UCI", rows[:, :-1], rows[:, -1])


def synthetic(rng: np.random.Generator, n: int = ROWS, d: int = 5) -> Iterator[Stream]:
    """The five that are made by formula."""
    X, half = rng.normal(size=(n, d)), np.arange(n) >= n // 2
    noise, weights = rng.normal(size=n), rng.normal(size=d)
    plain = X @ weights
    walk = np.cumsum(0.05 * rng.normal(size=(n, d)), axis=0) + weights
    shifts = np.repeat(rng.normal(0.0, 5.0, n // 500 + 1), 500)[:n]
    made: dict[str, Callable[[], FloatArray]] = {
        "noise times ten": lambda: plain + np.where(half, 3.0, 0.3) * noise,
        "wandering weights": lambda: (X * walk).sum(axis=1) + 0.3 * noise,
        "jumps": lambda: plain + shifts + 0.3 * noise,
        "Student noise": lambda: plain + 0.3 * rng.standard_t(2.5, n),
        "heteroscedastic": lambda: plain + np.exp(0.7 * X[:, 0] - 1.0) * noise,
    }
    for name, target in made.items():
        yield Stream.of(name, "synthetic", X, target())


def _split(table: pd.DataFrame, target: str) -> tuple[FloatArray, FloatArray]:
    return table.drop(columns=target).to_numpy(dtype=np.float64), table[target].to_numpy(dtype=np.float64)


def _lagged(values: FloatArray, season: int) -> tuple[FloatArray, FloatArray]:
    """The value of each step, and as inputs the last two, the two a season ago, and the phase of the season."""
    n = len(values)
    phase = 2.0 * np.pi * np.arange(season, n) / season
    lags = [values[season - lag : n - lag] for lag in (1, 2, season)] + [
        values[np.maximum(np.arange(-1, n - season - 1), 0)]
    ]
    return np.column_stack([*lags, np.sin(phase), np.cos(phase)]), values[season:]
