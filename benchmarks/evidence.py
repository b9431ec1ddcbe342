"""Evidence: whether the densities that rows are scored with integrate to one, and what not knowing the noise costs.

The evidence of a model is the product of the densities that it gave its rows, each before the row was learned. Models
and priors can be compared by it only if each of these is a density that was fixed before the row was seen. Then the
evidence is more than ten times the density under the true model in at most a tenth of all runs.

    python -m benchmarks.evidence
"""

from collections.abc import Callable

import numpy as np

from benchmarks.cells import Cell
from onepass import BayesianPerceptron, BayesianPerceptronRegressor

__all__ = ["cells"]

SECTION = "Evidence"
RUNS = 300


def first_row_mass() -> float:
    """Integral of the first row's density over targets in [-400, 400], with a noise to be learned."""
    targets = np.sort(np.concatenate([side * np.geomspace(1e-4, 400.0, 4000) for side in (-1.0, 1.0)]))
    logs = [BayesianPerceptron(1, "linear", noise="learn").learn([0.5], target).log_evidence for target in targets]
    return float(np.trapezoid(np.exp(logs), targets))


def _runs(rows: int, features: int) -> tuple[list[float], list[float]]:
    """Log evidence over the truth's density, and below that of a model that knows the noise, for each run."""
    gains, losses = [], []
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        weights, X, std = rng.normal(size=features + 1), rng.normal(size=(rows, features)), rng.choice([0.1, 0.5, 2.0])
        mean = weights[0] + X @ weights[1:]
        y = mean + std * rng.normal(size=rows)
        truth = float((-0.5 * np.log(2.0 * np.pi * std**2) - 0.5 * ((y - mean) / std) ** 2).sum())
        learned = BayesianPerceptron(features, "linear", noise="learn").learn(X, y).log_evidence
        known = BayesianPerceptron(features, "linear", noise=float(std**2)).learn(X, y).log_evidence
        gains.append(learned - truth)
        losses.append(known - learned)
    return gains, losses


def share_above_the_truth() -> float:
    """Share of runs of three rows whose evidence is more than ten times the density of the truth."""
    return float(np.mean(np.array(_runs(3, 1)[0]) > np.log(10.0)))


def loss_of_fifty_rows() -> float:
    """Nats that fifty rows lose, on average, to a model that knows the noise."""
    return float(np.mean(_runs(50, 5)[1]))


def scale_rows() -> float:
    """Nats by which rows that only set the scale change the evidence of a standardising regressor."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    return abs(BayesianPerceptronRegressor(standardize=True, warm_up=100).fit(X, X[:, 0]).log_evidence_)


_MEASURED: list[tuple[str, Callable[[], float], str]] = [
    ("integral of the first row's density, noise learned, over [-400, 400]", first_row_mass, "0.99-1.01"),
    ("share of runs of three rows with ten times the truth's density", share_above_the_truth, "<= 0.1"),
    ("nats lost in fifty rows to a known noise", loss_of_fifty_rows, "<= 20"),
    ("log-score credited to warm-up rows, nats", scale_rows, "<= 0"),
]


def cells() -> list[Cell]:
    """Measure all of them."""
    return [Cell(SECTION, name, measured(), bound) for name, measured, bound in _MEASURED]


if __name__ == "__main__":
    for cell in cells():
        print(cell.line)
