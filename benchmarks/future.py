"""How well `onepass fit` predicts the future of a table: fitted on the first 80 % of the rows, tested on the rest.

    python -m benchmarks.future --data FOLDER             # every table, the half set aside for reporting
    python -m benchmarks.future --data FOLDER --half development
    python -m benchmarks.future co2 abalone               # some

Tables keep the order that they have in their files. Next to the coverage of the 95 % intervals, the root mean squared
error and the log score of the last fifth are those of ridge regression on the same features and of the value one period
ago, and the coverage after random splits. Constants of the method were chosen on the tables of the development half;
a table's half depends on its name alone.
"""

import argparse
import sys
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import RidgeCV
from sklearn.preprocessing import StandardScaler

from benchmarks.shipped.catalogue import shipped_tables
from onepass.estimators.rows import Rows
from onepass.evaluation import evaluate, future_test
from onepass.tables.inputs import Inputs, steps
from onepass.tables.targets import NumberTarget

MOST = 800
"""Rows of a table that are used, the first ones, so that all tables take a quarter of an hour."""
PERIODS = (1, 4, 5, 7, 12, 24, 52, 96, 144, 168, 365)
_UCI = ("bostonHousing", "concrete", "energy", "kin8nm", "wine-quality-red", "yacht")
_M4 = 14  # series of either kind


@dataclass(frozen=True)
class OrderedTable:
    """A table in the order of its file."""

    name: str
    target: str
    load: Callable[[], pd.DataFrame]
    task: str = "regression"

    @property
    def half(self) -> str:
        """What it is for: choosing constants, or reporting."""
        return "development" if zlib.crc32(self.name.encode()) % 2 else "report"


def tables(data: Path | None) -> Iterator[OrderedTable]:
    """All tables that can be had: shipped with other packages, generated, and those of a folder of data."""
    for one in shipped_tables():
        yield OrderedTable(one.name, one.target, one.load, one.task)
    yield from _generated()
    if data is not None:
        yield from _of_folder(data)


def _of_folder(folder: Path) -> Iterator[OrderedTable]:
    def read(file: Path) -> pd.DataFrame:
        return pd.read_csv(file)

    def uci(name: str) -> pd.DataFrame:
        found = pd.read_csv(folder / "uci" / name / "data.txt", sep=r"\s+", header=None)
        return found.rename(columns=lambda k: f"x{k}").rename(columns={f"x{found.shape[1] - 1}": "y"})

    def abalone() -> pd.DataFrame:
        found = pd.read_csv(folder / "tables" / "abalone.csv", header=None)
        return found.rename(columns=lambda k: f"x{k}").rename(columns={"x8": "rings"})

    def series(kind: str, key: str, step: str) -> pd.DataFrame:
        found = pd.read_csv(folder / "forecasting" / f"m4-{kind}.csv.gz")
        values = found.loc[found.series == key, "value"].to_numpy()
        return pd.DataFrame({"time": pd.date_range("2012-01-02", periods=len(values), freq=step), "value": values})

    for name in _UCI:
        yield OrderedTable(name, "y", partial(uci, name))
    yield OrderedTable("abalone", "rings", abalone)
    for name, target in (("elec", "class"), ("weather", "target"), ("sea", "class")):
        yield OrderedTable(name, target, partial(read, folder / "streams" / f"{name}.csv.gz"), "classification")
    yield OrderedTable("elec-price", "nswprice", partial(read, folder / "streams" / "elec.csv.gz"))
    for kind, step in (("hourly", "h"), ("weekly", "7D")):
        keys = pd.read_csv(folder / "forecasting" / f"m4-{kind}.csv.gz", usecols=["series"]).series.unique()
        for key in keys[:: len(keys) // _M4][:_M4]:
            yield OrderedTable(f"m4-{key}", "value", partial(series, kind, key, step))


def _generated() -> Iterator[OrderedTable]:
    for kind in ("stationary", "turning", "jumping", "trend", "seasonal", "louder", "shifted", "curved", "labels"):
        for seed in (0, 1):
            task = "classification" if kind == "labels" else "regression"
            yield OrderedTable(f"{kind}-{seed}", "y", partial(_generate, kind, seed), task)


def _generate(kind: str, seed: int, n: int = 2000) -> pd.DataFrame:
    rng = np.random.default_rng([seed, zlib.crc32(kind.encode())])
    t = np.arange(n) / n
    X = rng.normal(size=(n, 4)) + (3.0 * t[:, None] if kind == "shifted" else 0.0)
    weights = rng.normal(size=4) + np.zeros((n, 1))
    if kind == "turning":
        weights = weights + np.cumsum(rng.normal(size=(n, 4)), axis=0) * 1.5 / np.sqrt(n)
    if kind == "jumping":
        weights = weights + rng.normal(size=(8, 4))[np.arange(n) * 8 // n]
    signal = (X * weights).sum(axis=1)
    if kind in ("curved", "shifted"):
        signal = signal + 0.5 * (X[:, 0] ** 2) + np.sin(2.0 * X[:, 1])
    if kind == "trend":
        signal = signal + 4.0 * t + 6.0 * t**2
    if kind == "seasonal":
        signal = signal + 2.0 * np.sin(2.0 * np.pi * np.arange(n) / 7.0) + 0.03 * np.cumsum(rng.normal(size=n))
    noise = (0.3 + (2.0 * t if kind == "louder" else 0.0)) * rng.normal(size=n)
    y = signal + noise
    dates = {"day": pd.date_range("2010-01-01", periods=n)} if kind in ("trend", "seasonal", "louder") else {}
    label = {"y": np.where(y + 2.0 * t > 0.0, "yes", "no") if kind == "labels" else y}
    return pd.DataFrame({**dates, **{f"x{k}": X[:, k] for k in range(4)}, **label})


@dataclass(frozen=True)
class Outcome:
    """What was measured of a table; errors are in the target's own units, None for classes."""

    name: str
    rows: int
    coverage: float | None
    random_coverage: float | None
    score: float
    """Log score, in nats per row."""
    loss: float
    """Root mean squared error, or log-loss."""
    ridge: float | None
    period: float | None

    @property
    def holds(self) -> bool:
        """Whether the intervals hold between 90 and 98 % of the future."""
        return self.coverage is not None and 0.9 <= self.coverage <= 0.98

    @property
    def is_level(self) -> bool:
        """Whether the error is at most 5 % above that of the better of both baselines."""
        return self.ridge is not None and self.period is not None and self.loss <= 1.05 * min(self.ridge, self.period)


def measured(table: OrderedTable, folder: Path, most: int) -> Outcome:
    """Fit and test one table."""
    frame = table.load().head(most).reset_index(drop=True)
    file = folder / f"{table.name}.csv"
    frame.to_csv(file, index=False)
    trial = future_test(str(file), table.target, task=table.task)
    scores = trial.scores()["onepass"]
    if table.task == "classification":
        return Outcome(table.name, len(frame), None, None, -scores["log_loss"], scores["log_loss"], None, None)
    shuffled = folder / f"{table.name}-shuffled.csv"
    frame.sample(frac=1.0, random_state=0).to_csv(shuffled, index=False)
    random = evaluate(str(shuffled), table.target, task=table.task, test_split=0.2).scores()["onepass"]
    inputs = Inputs((str(file),))
    rows = Rows.joined([step.rows for step in steps(trial.model, inputs, inputs.sources())])
    target = trial.model.target
    assert isinstance(target, NumberTarget)
    ridge, period = _others(rows, target.decode(rows.y), trial.model.n_rows)
    return Outcome(
        table.name,
        len(frame),
        scores["coverage_95"],
        random["coverage_95"],
        scores["log_likelihood"],
        scores["rmse"],
        ridge,
        period,
    )


def _others(rows: Rows, y: np.ndarray, n: int) -> tuple[float, float]:
    """Errors of ridge regression and of the value one period ago, where the period is the best within the past."""
    X = np.nan_to_num(rows.X.toarray() if hasattr(rows.X, "toarray") else rows.X)
    scaler = StandardScaler().fit(X[:n])
    ridge = RidgeCV(np.logspace(-3, 4, 15)).fit(scaler.transform(X[:n]), y[:n]).predict(scaler.transform(X[n:]))
    within = [lag for lag in PERIODS if 3 * lag <= n]
    best = min(within, key=lambda lag: float(np.mean((y[lag:n] - y[: n - lag]) ** 2)))
    again = y[n - best : n][np.arange(len(y) - n) % best]
    return _rmse(y[n:], ridge), _rmse(y[n:], again)


def _rmse(y: np.ndarray, guess: np.ndarray) -> float:
    return float(np.sqrt(np.mean((y - guess) ** 2)))


def main(arguments: list[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="How well tables' futures are predicted.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rows", type=int, default=MOST, help="rows of a table that are used")
    parser.add_argument("--half", choices=["development", "report", "both"], default="report")
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for table in tables(given.data):
            if table.name in given.names if given.names else given.half in ("both", table.half):
                found.append(measured(table, Path(folder), given.rows))
                print(" ".join(f"{_text(value):>12}" for value in asdict(found[-1]).values()), flush=True)
    numbers = [one for one in found if one.coverage is not None]
    if numbers:
        random = np.mean([0.9 <= (one.random_coverage or 0.0) <= 0.98 for one in numbers])
        print(f"future coverage within 90-98 %: {np.mean([one.holds for one in numbers]):.0%} of {len(numbers)} tables")
        print(f"coverage after random splits within 90-98 %: {random:.0%}")
        level = np.mean([one.is_level for one in numbers])
        print(f"future RMSE no worse than the better of ridge and the last period: {level:.0%}")


def _text(value: float | str | None) -> str:
    return "-" if value is None else value if isinstance(value, str) else f"{value:.4g}"


if __name__ == "__main__":
    main(sys.argv[1:])
