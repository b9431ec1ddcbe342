"""Regression sets with published train/test splits: errors, log-likelihoods and coverage of networks.

A set is a folder with ``data.txt``, ``index_features.txt``, ``index_target.txt`` and, for every split,
``index_train_i.txt`` and ``index_test_i.txt``, all plain numbers. Inputs and targets are standardised with the training
part's mean and standard deviation; errors and log-likelihoods are in the target's own units.
"""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from os import environ
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from onepass._cores import available_cores
from onepass._typing import FloatArray
from onepass.evaluation.metrics import Coverage95, DistributionPredictions, LogLikelihood, RootMeanSquaredError
from onepass.models.committee import BayesianCommittee
from onepass.models.mixture import Mixture
from onepass.models.network import BayesianNetwork

__all__ = [
    "Result",
    "Score",
    "Setting",
    "Split",
    "bench",
    "count_splits",
    "evaluate_on",
    "find_datasets",
    "load_split",
    "score",
]


class Split(NamedTuple):
    """One split of a set, standardised; ``unit`` is what 1 of the targets is in their own unit."""

    X: FloatArray
    y: FloatArray
    X_test: FloatArray
    y_test: FloatArray
    unit: float


@dataclass(frozen=True)
class Setting:
    """What is run: the library's defaults except for these."""

    passes: int = 1
    hidden: tuple[int, ...] = (50,)
    members: int = 5
    seed: int = 0


class Score(NamedTuple):
    """Scores of one split: in the target's own unit, coverage of the 95 % interval in per cent, seconds per pass."""

    rmse: float
    log_likelihood: float
    coverage: float
    seconds: float


@dataclass(frozen=True)
class Result:
    """Means over the splits of a set, with standard errors, and the scores of every split, for paired comparisons."""

    dataset: str
    passes: int
    splits: int
    rmse_mean: float
    rmse_se: float
    ll_mean: float
    ll_se: float
    coverage_mean: float
    seconds_per_pass: float
    scores: list[Score]

    def numbers(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self) | {"scores": [score._asdict() for score in self.scores]}


def find_datasets(folder: Path) -> list[str]:
    """Names of all sets in a folder."""
    return sorted(path.parent.name for path in folder.glob("*/data.txt"))


def count_splits(folder: Path) -> int:
    """Number of splits of a set."""
    return len(list(folder.glob("index_train_*.txt")))


def load_split(folder: Path, number: int) -> Split:
    """Read a split and standardise it by its training part; a column that does not vary there becomes zero."""
    data = np.loadtxt(folder / "data.txt", ndmin=2)
    features, target, train, test = (
        np.loadtxt(folder / f"index_{name}.txt", ndmin=1).astype(int)
        for name in ("features", "target", f"train_{number}", f"test_{number}")
    )
    X, y = data[:, features], data[:, target[0]]
    mean, scale = X[train].mean(axis=0), X[train].std(axis=0)
    scale[scale == 0.0] = 1.0
    y_mean, unit = y[train].mean(), y[train].std()
    rows, targets = (X - mean) / scale, (y - y_mean) / unit
    train = np.random.default_rng(number).permutation(
        train
    )  # the result of one pass must not depend on the order of the index
    return Split(rows[train], targets[train], rows[test], targets[test], float(unit))


def score(split: Split, setting: Setting) -> Score:
    """Learn a split's training part with the library's defaults and score its test part."""
    # Splits are learned in as many processes as there are cores; more threads would only slow them down.
    committee = BayesianCommittee(
        split.X.shape[1], setting.hidden, members=setting.members, seed=setting.seed, workers=1
    )
    return evaluate_on(split, committee, setting.passes, "auto")


def evaluate_on(split: Split, model: Mixture | BayesianNetwork, passes: int, refine: str, batch: int = 1) -> Score:
    """Have a model learn a split's training part and score its test part."""
    begin = perf_counter()
    model.learn(split.X, split.y, passes=passes, refine=refine, batch=batch)
    seconds = (perf_counter() - begin) / passes
    rows = _test_predictions(split, model)
    rmse, log_likelihood, coverage = (
        float(metric().update(rows).get()) for metric in (RootMeanSquaredError, LogLikelihood, Coverage95)
    )
    return Score(rmse, log_likelihood, 100.0 * coverage, seconds)


def _test_predictions(split: Split, model: Mixture | BayesianNetwork) -> DistributionPredictions:
    """Predictions of the test part, in the target's own unit."""
    low, high = model.interval(split.X_test)
    return DistributionPredictions(
        y=split.y_test * split.unit,
        mean=model.predict(split.X_test).mean * split.unit,
        log_densities=model.log_predictive(split.X_test, split.y_test) - np.log(split.unit),
        low=low * split.unit,
        high=high * split.unit,
    )


def bench(folder: Path, datasets: list[str], splits: int | None, setting: Setting) -> Iterator[Result]:
    """Score all splits of all sets, as many at a time as there are cores."""
    environ["OPENBLAS_NUM_THREADS"] = environ["OMP_NUM_THREADS"] = "1"  # for the processes that do the work
    with ProcessPoolExecutor(available_cores(), mp_context=get_context("spawn")) as pool:
        for name in datasets:
            available = count_splits(folder / name)
            numbers = range(available if splits is None else min(splits, available))
            jobs = [pool.submit(_score_split, folder / name, number, setting) for number in numbers]
            yield _summary(name, setting.passes, [job.result() for job in jobs])


def _score_split(folder: Path, number: int, setting: Setting) -> Score:
    warm_up = load_split(folder, number)._replace(X=np.zeros((2, 1)), y=np.zeros(2), X_test=np.zeros((1, 1)))
    score(warm_up._replace(y_test=np.zeros(1)), setting)  # loads libraries, so that the timing does not include it
    return score(load_split(folder, number), setting)


def _summary(name: str, passes: int, scores: list[Score]) -> Result:
    table = np.array(scores)
    mean = table.mean(axis=0)
    error = table.std(axis=0, ddof=1) / np.sqrt(len(table)) if len(table) > 1 else np.zeros(4)
    return Result(
        dataset=name,
        passes=passes,
        splits=len(scores),
        rmse_mean=float(mean[0]),
        rmse_se=float(error[0]),
        ll_mean=float(mean[1]),
        ll_se=float(error[1]),
        coverage_mean=float(mean[2]),
        seconds_per_pass=float(mean[3]),
        scores=scores,
    )
