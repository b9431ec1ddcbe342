"""How well networks learned in shards predict, beside one that learned all rows in order.

    python -m benchmarks.merging_networks [FOLDER]

FOLDER holds MNIST as gzipped idx files; without it that part is left out. Of both data sets the prior learns the first
tenth of the rows, and the rest is dealt out to two, four or eight shards. A Markdown table comes out: one shard alone,
the merged network after one, two and four rounds, and the network that learned all rows one after the other.
"""

import copy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bandits.tasks import read_images, read_labels
from onepass import BayesianNetwork
from onepass._typing import FloatArray
from onepass.merging import Rounds

ROWS = 10_000
SHARDS = (2, 4, 8)
SHOWN = (1, 2, 4)  # rounds
JUDGED = 7_000  # test images; by the others the size of the steps was chosen, with other training images


@dataclass(frozen=True)
class Problem:
    """Rows to learn, rows to predict, and what says how well."""

    name: str
    X: FloatArray
    y: Any  # numbers, or labels
    test: tuple[FloatArray, Any]
    settings: dict[str, Any]
    covariances: tuple[str, ...]
    score: Callable[[BayesianNetwork, FloatArray, FloatArray], str]

    def prior(self, covariance: str) -> BayesianNetwork:
        """A network that learned the first tenth."""
        first = len(self.y) // 10
        network = BayesianNetwork(self.X.shape[1], covariance=covariance, **self.settings)
        return network.learn(self.X[:first], self.y[:first])

    def shard(self, number: int, count: int) -> tuple[FloatArray, FloatArray]:
        """Every so many of the other rows."""
        rest = slice(len(self.y) // 10 + number, None, count)
        return self.X[rest], self.y[rest]

    def judged(self, network: BayesianNetwork) -> str:
        """Its score on the rows to predict."""
        return self.score(network, *self.test)


def regression() -> Problem:
    """A smooth function of eight inputs with noise 0.1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * ROWS, 8))
    signal = np.tanh(1.5 * X @ (rng.normal(size=(8, 6)) / np.sqrt(8.0))) @ rng.normal(size=6)
    y = signal / signal.std() + rng.normal(0.0, 0.1, len(X))
    test = X[ROWS:], y[ROWS:]
    covariances = ("kronecker", "full", "diagonal")
    return Problem("regression", X[:ROWS], y[:ROWS], test, {"hidden": (20,)}, covariances, _regression_score)


def mnist(folder: Path) -> Problem:
    """The first images."""
    X, X_test = (read_images(folder / f"{part}-images-idx3-ubyte.gz") for part in ("train", "t10k"))
    y, y_test = (read_labels(folder / f"{part}-labels-idx1-ubyte.gz") for part in ("train", "t10k"))
    settings = {"hidden": (50,), "n_outputs": 10, "observation": "categorical"}
    test = X_test[:JUDGED], y_test[:JUDGED]
    return Problem("MNIST", X[:ROWS], y[:ROWS], test, settings, ("kronecker", "diagonal"), _classes_score)


def line(problem: Problem, covariance: str, shards: int, whole: str) -> str:
    """One line of the table."""
    prior = problem.prior(covariance)
    alone = problem.judged(copy.deepcopy(prior).learn(*problem.shard(0, shards)))
    rounds, found = Rounds(prior, shards), []
    for number in range(1, max(SHOWN) + 1):
        starts = rounds.starts()
        merged = rounds.take([start and start.learn(*problem.shard(k, shards)) for k, start in enumerate(starts)])
        if number in SHOWN:
            found.append(problem.judged(merged))
    return f"| {problem.name}, {covariance} | {shards} | {alone} | {' | '.join(found)} | {whole} |"


def _regression_score(network: BayesianNetwork, X: FloatArray, y: FloatArray) -> str:
    predicted = network.predict(X)
    error, var = predicted.mean - y, predicted.var
    loss = 0.5 * np.mean(np.log(2.0 * np.pi * var) + error**2 / var)
    return f"{np.sqrt(np.mean(error**2)):.3f} / {loss:.2f}"


def _classes_score(network: BayesianNetwork, X: FloatArray, y: FloatArray) -> str:
    shares = network.predict(X).mean
    loss = -np.mean(np.log(shares[np.arange(len(y)), y]))
    return f"{np.mean(shares.argmax(axis=1) == y):.3f} / {loss:.3f}"


def main(arguments: list[str]) -> None:
    """Print the table."""
    problems = [regression(), *(mnist(Path(folder)) for folder in arguments[:1])]
    print("| data, covariance | shards | one alone | merged | 2 rounds | 4 rounds | all rows in one |")
    print("|---|---|---|---|---|---|---|")
    for problem in problems:
        for covariance in problem.covariances:
            whole = problem.judged(problem.prior(covariance).learn(*problem.shard(0, 1)))
            for shards in SHARDS:
                print(line(problem, covariance, shards, whole), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
