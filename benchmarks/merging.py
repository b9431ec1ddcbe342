"""How close models learned in shards come to one that learned all rows in order.

    python -m benchmarks.merging [rows]

Prints the distance of the merged mean from the sequential one, in posterior standard deviations (root mean square over
the weights), after one, two and three rounds, and beside it how far reversing the order of the rows alone moves the
sequential result. The data are of the model's own kind, 20 features, under a seed.
"""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from onepass import BayesianPerceptron
from onepass._typing import FloatArray
from onepass.merging import Rounds

FEATURES = 20


@dataclass(frozen=True)
class Problem:
    """A model and rows of its kind."""

    name: str
    settings: dict[str, Any]
    X: FloatArray
    y: FloatArray

    def fresh(self) -> BayesianPerceptron:
        return BayesianPerceptron(FEATURES, **self.settings)


def problems(rows: int) -> list[Problem]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, FEATURES))
    a = X @ rng.normal(size=FEATURES) / np.sqrt(FEATURES) * 2.0
    labels = (rng.random(rows) < 1.0 / (1.0 + np.exp(-a))).astype(np.float64)
    noisy = rng.normal(0.0, np.sqrt(0.1), rows)
    return [
        Problem("labels, exact update", {}, X, labels),
        Problem("ReLU regression, noise 0.1", {"activation": "relu", "noise": 0.1}, X, np.maximum(a, 0.0) + noisy),
        Problem(
            "ReLU regression, noise learned", {"activation": "relu", "noise": "learn"}, X, np.maximum(a, 0) + noisy
        ),
        Problem("linear, noise 0.1", {"activation": "linear", "noise": 0.1}, X, a + noisy),
    ]


def distance(model: BayesianPerceptron, whole: BayesianPerceptron) -> float:
    """Root mean square of the gaps between the means, in the standard deviations of ``whole``."""
    return float(np.sqrt(np.mean((model.mean - whole.mean) ** 2 / np.diag(whole.cov))))


def distances(problem: Problem, whole: BayesianPerceptron, shards: int, rounds: int) -> list[float]:
    """After each round."""
    cut = list(zip(np.array_split(problem.X, shards), np.array_split(problem.y, shards), strict=True))
    steps = Rounds(problem.fresh(), shards)
    found = []
    for _ in range(rounds):
        learned = [start and start.learn(*shard) for start, shard in zip(steps.starts(), cut, strict=True)]
        found.append(distance(steps.take(learned), whole))
    return found


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 320_000
    print(f"{rows:,} rows, {FEATURES} features and a bias\n")
    print("| model | shards | round 1 | round 2 | round 3 | reversed order |")
    print("|---|---|---|---|---|---|")
    for problem in problems(rows):
        whole = problem.fresh().learn(problem.X, problem.y)
        backwards = distance(problem.fresh().learn(problem.X[::-1], problem.y[::-1]), whole)
        for shards in (16, 64):
            found = " | ".join(f"{gap:.2g}" for gap in distances(problem, whole, shards, 3))
            print(f"| {problem.name} | {shards} | {found} | {backwards:.2g} |", flush=True)


if __name__ == "__main__":
    main()
