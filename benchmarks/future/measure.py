"""Tables in the order of their files: fitted on the first 80 % of the rows, tested on the rest.

Results are kept in benchmarks/future.json table by table, so that some can be measured again without the rest, and a
run that was interrupted goes on. A table's half depends on its name alone: constants of the method may be chosen on the
tables of the development half only.
"""

import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.stats import binom
from sklearn.linear_model import RidgeCV
from sklearn.preprocessing import StandardScaler

from benchmarks.shipped.catalogue import shipped_tables
from benchmarks.stored import keep, stored
from onepass.estimators.rows import Rows
from onepass.evaluation import evaluate, future_test
from onepass.tables import fit
from onepass.tables.better_of_two import BetterOfTwo
from onepass.tables.fitting import FitOptions
from onepass.tables.forward_record import CANDIDATES, SHUFFLED
from onepass.tables.forward_test import fresh, is_possible
from onepass.tables.inputs import Inputs, steps
from onepass.tables.model import TabularModel
from onepass.tables.readers.registry import open_source
from onepass.tables.schema import SchemaOptions, infer_model
from onepass.tables.targets import NumberTarget

__all__ = [
    "LEVEL",
    "MOST",
    "InTime",
    "OrderedTable",
    "Outcome",
    "fit_times",
    "measured",
    "measured_in_time",
    "read",
    "tables",
    "write",
    "write_in_time",
]

STORED = Path(__file__).parents[1] / "future.json"
LEVEL = 0.05
"""What counts as level: a root mean squared error so much above the best as a share, a log score so many nats below."""
MOST = 800
"""Rows of a table that are used, the first ones, so that all tables take a quarter of an hour."""
PERIODS = (1, 4, 5, 7, 12, 24, 52, 96, 144, 168, 365)
_UCI = ("bostonHousing", "concrete", "energy", "kin8nm", "wine-quality-red", "yacht")
_M4 = 14  # series of either kind
_TIMED = (10_000, 20)  # rows and columns
_TURNS = 3


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


def tables(data: Path | None) -> list[OrderedTable]:
    """All tables that can be had: shipped with other packages, generated, and those of a folder of data.

    They come in an order that has nothing to do with what they are, so that the first of them are a fair sample.
    """
    found = [OrderedTable(one.name, one.target, one.load, one.task) for one in shipped_tables()]
    found += [*_generated(), *(() if data is None else _of_folder(data))]
    return sorted(found, key=lambda one: zlib.crc32(one.name[::-1].encode()))


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
    half: str
    rows: int
    coverage: float | None
    random_coverage: float | None
    score: float
    """Log score of the rest, in nats per row."""
    best_candidate: float
    """That of the candidate that scores best there, each with the intervals that it has of its own."""
    loss: float
    """Root mean squared error, or log-loss."""
    ridge: float | None
    period: float | None

    @property
    def holds(self) -> bool:
        """Whether the intervals hold between 90 and 98 % of the future."""
        return _is_within(self.coverage)

    @property
    def holds_at_random(self) -> bool:
        """Whether they do after random splits."""
        return _is_within(self.random_coverage)

    @property
    def holds_if_exact(self) -> float:
        """The probability that intervals do that contain each target of the last fifth with a probability of 95 %."""
        n = self.rows - round(0.8 * self.rows)
        return float(sum(binom.pmf(k, n, 0.95) for k in range(n + 1) if _is_within(k / n)))

    @property
    def is_level(self) -> bool:
        """Whether the error is level with that of the better of both baselines, or lower."""
        return (
            self.ridge is not None
            and self.period is not None
            and self.loss <= (1 + LEVEL) * min(self.ridge, self.period)
        )

    @property
    def chose_well(self) -> bool:
        """Whether the log score is level with that of the best candidate, or higher."""
        return self.score >= self.best_candidate - LEVEL


@dataclass(frozen=True)
class InTime:
    """What was measured of a table of numbers whose rows have a time."""

    name: str
    time: str
    """The column of the time."""
    coverage: float
    score: float
    loss: float
    chosen: str
    """What forward tests have chosen."""
    widening: float

    @property
    def holds(self) -> bool:
        """Whether the intervals hold between 90 and 98 % of the future."""
        return _is_within(self.coverage)


def _is_within(coverage: float | None) -> bool:
    return coverage is not None and 0.9 <= coverage <= 0.98


def read() -> dict[str, Any]:
    """What is stored."""
    found = stored(STORED)
    kinds: dict[str, Any] = {"tables": Outcome, "in_time": InTime}
    return {**found, **{part: [kind(**one) for one in found.get(part, [])] for part, kind in kinds.items()}}


def write(outcomes: list[Outcome], **more: Any) -> None:
    """Store the outcomes of tables, in the place of earlier ones, and what else was measured."""
    _write("tables", outcomes, more)


def write_in_time(outcome: InTime) -> None:
    """Store the outcome of a table in time, in the place of an earlier one."""
    _write("in_time", [outcome], {})


def _write(part: str, outcomes: Sequence[Outcome | InTime], more: dict[str, Any]) -> None:
    before = {**read(), **more}
    known = {one.name: one for one in (*before[part], *outcomes)}
    before[part] = [known[name] for name in sorted(known)]
    keep(STORED, before | {name: [asdict(one) for one in before[name]] for name in ("tables", "in_time")})


def measured(table: OrderedTable, folder: Path, most: int = MOST) -> Outcome:
    """Fit and test one table."""
    frame = table.load().head(most).reset_index(drop=True)
    file = folder / f"{table.name}.csv"
    frame.to_csv(file, index=False)
    trial = future_test(str(file), table.target, task=table.task)
    model, scores = trial.model, trial.scores()["onepass"]
    inputs = Inputs((str(file),))
    rows = Rows.joined([step.rows for step in steps(model, inputs, inputs.sources())])
    n = model.n_rows
    rest = rows.at(np.arange(n, len(rows.y)))
    outcome = Outcome(
        name=table.name,
        half=table.half,
        rows=len(frame),
        coverage=scores.get("coverage_95"),
        random_coverage=None,
        score=_log_score(model, rest),
        best_candidate=_best_candidate(table, frame.head(n), folder, rows.at(np.arange(n)), rest),
        loss=scores["log_loss" if table.task == "classification" else "rmse"],
        ridge=None,
        period=None,
    )
    if not isinstance(model.target, NumberTarget):
        return outcome
    shuffled = folder / f"{table.name}-shuffled.csv"
    frame.sample(frac=1.0, random_state=0).to_csv(shuffled, index=False)
    random = evaluate(str(shuffled), table.target, task=table.task, test_split=0.2).scores()["onepass"]
    ridge, period = _others(rows, model.target.decode(rows.y), n)
    return replace(outcome, random_coverage=random["coverage_95"], ridge=ridge, period=period)


def time_column(table: OrderedTable, frame: pd.DataFrame) -> str | None:
    """The column that has the time of the rows: the first with dates, or years, that never go back."""
    for name in frame.columns:
        is_time = pd.api.types.is_datetime64_any_dtype(frame[name]) or name.lower() in ("year", "time", "date", "month")
        if name != table.target and is_time and frame[name].is_monotonic_increasing and frame[name].nunique() > 1:
            return str(name)
    return None


def measured_in_time(table: OrderedTable, folder: Path, most: int = MOST) -> InTime | None:
    """Fit and test one table with its time; None if it has classes, or no time."""
    frame = table.load().head(most).reset_index(drop=True)
    time = time_column(table, frame)
    if time is None or table.task != "regression":
        return None
    file = folder / f"{table.name}-in-time.csv"
    frame.to_csv(file, index=False)
    trial = future_test(str(file), table.target, task=table.task, time=time)
    model, scores = trial.model, trial.scores()["onepass"]
    inputs = Inputs((str(file),))
    rows = Rows.joined([step.rows for step in steps(model, inputs, inputs.sources())])
    score = _log_score(model, rows.at(np.arange(model.n_rows, len(rows.y))))
    test = model.forward_test
    chosen, widening = ("", 1.0) if test is None else (test.chosen, test.widening)
    return InTime(table.name, time, scores["coverage_95"], score, scores["rmse"], chosen, widening)


def _log_score(model: TabularModel, rows: Rows) -> float:
    return float(np.mean(model.predict_and_score(rows).log_density))


def _best_candidate(table: OrderedTable, frame: pd.DataFrame, folder: Path, first: Rows, rest: Rows) -> float:
    """The best log score of what `fit` chooses among, each with all of the first rows learned."""
    file = folder / f"{table.name}-first.csv"
    frame.to_csv(file, index=False)
    options = SchemaOptions.of(table.target, task=table.task)
    model, _ = infer_model([open_source(str(file))], options, rereadable=True)
    found = []
    for candidate in CANDIDATES.values() if isinstance(model.estimator, BetterOfTwo) else ():
        if not is_possible(model, candidate):
            continue
        new = fresh(model, candidate)
        if candidate is SHUFFLED:
            new.learn(first.at(np.random.default_rng(0).permutation(len(first.y))))
            if new.can_refine:
                new.refine(first)
        else:
            new.learn(first)
        found.append(_log_score(new, rest))
    return max((score for score in found if np.isfinite(score)), default=-np.inf)


def fit_times(folder: Path) -> dict[str, float]:
    """Seconds of processor time that `fit` takes for a table, with forward tests and without, in turns."""
    rng = np.random.default_rng(0)
    n, d = _TIMED
    X = rng.normal(size=(n, d))
    y = X @ rng.normal(size=d) + np.sin(2.0 * X[:, 0]) + 0.5 * rng.normal(size=n)
    file = folder / "timed.csv"
    pd.DataFrame({**{f"x{k}": X[:, k] for k in range(d)}, "y": y}).to_csv(file, index=False)
    times: dict[str, list[float]] = {"with": [], "without": []}
    for _ in range(_TURNS):
        for way, found in times.items():
            with patch.object(FitOptions, "tests_forward", lambda *_: False) if way == "without" else nullcontext():
                start = time.process_time()
                fit(str(file), "y")
                found.append(time.process_time() - start)
    return {way: median(found) for way, found in times.items()}


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
