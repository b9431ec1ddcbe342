"""Wild targets: regression sets whose targets are in 0..1, but for a tenth that is replaced by +-50.

The protocol is that of Duran-Martin et al., "Outlier-robust Kalman filtering through generalised Bayes" (2024): the
first tenth of a file is dropped, the rest shuffled, inputs and targets are brought to 0..1 by the first tenth of the
shuffled rows, and a network of 20 ReLU units predicts every row before it learns it, in one pass. The figure is the
square root of the median squared error, corrupted targets included (they are above the median anyway), and of that the
median over the runs. Published are that paper's WoLF-TMD with tuned thresholds, and its best rival. On the same data
without outliers the two figures say what caution costs: our errors over those of the same network with outliers=0.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import make_friedman1

from benchmarks.misbehaving.study import Outcome, Study
from onepass import BayesianNetwork
from onepass._typing import FloatArray
from onepass.evaluation.uci import find_datasets

__all__ = ["Errors", "corrupted", "one_step_errors", "outcomes", "scaled_rows"]

RUNS = 10
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


def scaled_rows(data: FloatArray, seed: int) -> FloatArray:
    """Rows in random order without the first tenth of the file, brought to 0..1 by the first of them."""
    n = len(data) // 10
    rows = np.random.default_rng(seed).permutation(data[n:])
    low, extent = rows[:n].min(axis=0), np.ptp(rows[:n], axis=0)
    return np.asarray((rows - low) / np.where(extent > 0.0, extent, 1.0))


def corrupted(y: FloatArray, seed: int) -> FloatArray:
    """Targets of which some are replaced by wild ones of either sign."""
    rng = np.random.default_rng([seed, 1])
    return np.where(rng.random(len(y)) < SHARE, rng.choice([-WILD, WILD], len(y)), y)


def one_step_errors(X: FloatArray, y: FloatArray, seed: int, settings: dict[str, Any]) -> Errors:
    """Learn rows in one pass; a network that can't go on has infinite errors."""
    network = BayesianNetwork(X.shape[1], (UNITS,), seed=seed, **settings)
    try:
        squares = (network.predict_then_learn(X, y).mean - y) ** 2
    except (ValueError, ArithmeticError):
        return Errors(np.inf, np.inf)
    return Errors(float(np.sqrt(np.median(squares))), float(np.sqrt(squares.mean())))


def outcomes(study: Study) -> list[Outcome]:
    """Every set, with wild targets and without."""
    found = []
    for name, data in _sets(study).items():
        wild, cost = _runs(data, study)
        published = PUBLISHED.get(name)
        if published is None:
            found.append(Outcome(f"{name}, wild targets", wild))
        else:
            found.append(
                Outcome(f"{name}, wild targets: WoLF", wild, None, "", published.wolf, f"<= {published.wolf:.3f}")
            )
            found.append(
                Outcome(f"{name}, wild targets: the best", wild, None, "", published.rival, f"<= {published.rival:.3f}")
            )
        found.append(
            Outcome(f"{name}, clean: median error over that with outliers=0", cost.root_median, target=LARGEST_COST)
        )
        found.append(Outcome(f"{name}, clean: RMSE over that with outliers=0", cost.root_mean, target=LARGEST_COST))
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
        rows = scaled_rows(data, seed)
        X, y = rows[:, :-1], rows[:, -1]
        wild.append(one_step_errors(X, corrupted(y, seed), seed, study.without()).root_median)
        cautious, plain = (one_step_errors(X, y, seed, which) for which in (study.without(), study.without("outliers")))
        cost.append(np.divide(cautious, plain))
    return float(np.median(wild)), Errors(*np.median(cost, axis=0).tolist())
