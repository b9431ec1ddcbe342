"""Wild targets: regression sets with targets between 0 and 1, a tenth of which are replaced by 50 or -50.

The protocol is that of Duran-Martin et al., "Outlier-robust Kalman filtering through generalised Bayes" (2024): the
first tenth of a file is dropped, the rest shuffled, inputs and targets are scaled to 0..1 by the first tenth of the
shuffled rows, and a network of 20 ReLU units predicts every row before it learns it, in one pass. The random numbers
are those of the authors' programs, so the rows of a run are the published ones. Our network is made for standardised
rows, so what it learns is standardised by the same first tenth; errors are in units of 0..1.

The figure of a run is the square root of the median squared error, with the replaced targets included (their errors
are above the median anyway); the table has the median over the runs. The published figures are those of that paper's
method, WoLF-TMD with tuned thresholds, and of the best method in its comparison. The figures on clean data, without
replaced targets, say what the caution costs: our error divided by that of the same network with `outliers=0`.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import make_friedman1

from benchmarks.misbehaving.study import Outcome, Study
from benchmarks.uci.splits import find_datasets
from onepass import BayesianNetwork
from onepass._typing import FloatArray

__all__ = ["Errors", "Run", "one_step_errors", "outcomes", "published_run"]

RUNS, FIRST_SEED = 10, 314
SHARE, WILD = 0.1, 50.0
UNITS = 20
LARGEST_COST = "<= 1.01"


class Published(NamedTuple):
    """Square roots of median squared errors: of WoLF-TMD, and of the best other filter if it is another one."""

    wolf: float
    rival: float


PUBLISHED = {
    "bostonHousing": Published(0.070, 0.064),
    "concrete": Published(0.089, 0.089),
    "energy": Published(0.043, 0.043),
    "kin8nm": Published(0.088, 0.088),
    "wine-quality-red": Published(0.106, 0.106),
    "yacht": Published(0.120, 0.043),
}


class Errors(NamedTuple):
    """Of one pass, every row predicted before it was learned."""

    root_median: float
    root_mean: float


class Run(NamedTuple):
    """Rows of one run, brought to 0..1, and the number of those that set the scale."""

    X: FloatArray
    clean: FloatArray
    corrupted: FloatArray
    n_first: int


def published_run(data: FloatArray, number: int) -> Run:
    """Rows in random order without the first tenth of the file, brought to 0..1 by the first of them."""
    rng = np.random.RandomState(FIRST_SEED + number)  # of the published rows
    n = len(data) // 10
    rows = data[n:][rng.choice(len(data) - n, size=len(data) - n, replace=False)]
    low, extent = rows[:n].min(axis=0), np.ptp(rows[:n], axis=0)
    rows = (rows - low) / np.where(extent > 0.0, extent, 1.0)
    wild = rng.choice(2, size=len(rows), p=[1.0 - SHARE, SHARE]).astype(bool)
    targets = rows[:, -1].copy()
    targets[wild] = WILD * rng.choice([-1, 1], size=int(wild.sum()))
    return Run(rows[:, :-1], rows[:, -1], targets, n)


def one_step_errors(run: Run, y: FloatArray, seed: int, settings: dict[str, Any]) -> Errors:
    """Learn rows in one pass; a network that can't go on has infinite errors."""
    network = BayesianNetwork(run.X.shape[1], (UNITS,), seed=seed, **settings)
    first, (centre, unit) = run.X[: run.n_first], _scale(run.clean[: run.n_first])
    X = (run.X - _scale(first)[0]) / _scale(first)[1]
    try:
        predicted = centre + unit * network.predict_then_learn(X, (y - centre) / unit).mean
    except (ValueError, ArithmeticError):
        return Errors(np.inf, np.inf)
    squares = (predicted - y) ** 2
    return Errors(float(np.sqrt(np.median(squares))), float(np.sqrt(squares.mean())))


def _scale(rows: FloatArray) -> tuple[Any, Any]:
    """Mean and standard deviation, 1 of what does not vary."""
    std = rows.std(axis=0)
    return rows.mean(axis=0), np.where(std > 0.0, std, 1.0)


def outcomes(study: Study) -> list[Outcome]:
    """Every set, with wild targets and without."""
    found = []
    for name, data in _sets(study).items():
        wild, cost = _runs(data, study)
        published = PUBLISHED.get(name)
        if published is None:
            found.append(Outcome(f"{name}, wild targets", wild))
        else:
            for words, figure in (("WoLF-TMD", published.wolf), ("the best published filter", published.rival)):
                task = f"{name}, wild targets, next to {words}"
                found.append(Outcome(task, wild, None, "", figure, f"<= {figure:.3f}"))
        found.append(
            Outcome(f"{name}, clean: median error over that with outliers=0", cost.root_median, bound=LARGEST_COST)
        )
        found.append(Outcome(f"{name}, clean: RMSE over that with outliers=0", cost.root_mean, bound=LARGEST_COST))
    return found


def _sets(study: Study) -> dict[str, FloatArray]:
    folder = study.folder("uci")
    if folder is None:
        X, y = make_friedman1(300, noise=0.5, random_state=0)
        return {"friedman1": np.column_stack([X, y])}
    names = [name for name in find_datasets(folder) if name in PUBLISHED]
    return {name: np.loadtxt(Path(folder) / name / "data.txt") for name in (names[:1] if study.quick else names)}


def _runs(data: FloatArray, study: Study) -> tuple[float, Errors]:
    """Median error with wild targets, and the factors by which caution raises the errors on clean ones."""
    wild, cost = [], []
    for seed in range(study.size(RUNS, 2)):
        run = published_run(data, seed)
        wild.append(one_step_errors(run, run.corrupted, seed, study.without()).root_median)
        ways = (study.without(), study.without("outliers"))
        cautious, plain = (one_step_errors(run, run.clean, seed, which) for which in ways)
        cost.append(np.divide(cautious, plain))
    return float(np.median(wild)), Errors(*np.median(cost, axis=0).tolist())
