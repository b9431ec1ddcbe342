"""What a second output for the noise is worth where the noise grows, and what it costs where it does not.

    python -m benchmarks.varying_noise
    python -m benchmarks.varying_noise FOLDER

One pass over 1,000 rows of a sine in one input, 20 ReLU units, the mean of five seeds. A Markdown table comes out:
log-likelihood of 4,000 test rows, and coverage of the 95 % interval in each quarter of the inputs.

With a FOLDER, as for ``benchmarks.uci``: what more passes do to a network with a second output. R² and
log-likelihood of test rows after 1 to 20 passes, the mean of five seeds, and the largest loss of R² against one pass of
any seed.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.metrics import r2_score

from benchmarks.uci.splits import Split, load_split
from onepass import BayesianNetwork
from onepass._typing import FloatArray
from onepass.evaluation.metrics import Coverage95, DistributionPredictions, LogLikelihood

__all__ = ["problem"]

EDGE = 1.7
PROBLEMS = {"deviation 0.05 to 0.5": (0.05, 10.0), "0.1 to 0.3": (0.1, 3.0), "0.2 everywhere": (0.2, 1.0)}
PASSES = (1, 2, 5, 10, 20)
HIDDEN = {"25 units": (25,), "two layers of 25": (25, 25)}
SEEDS = range(5)
UCI = ("bostonHousing", "concrete", "energy", "wine-quality-red", "yacht")


def problem(n: int, seed: int, least: float, growth: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Inputs, targets, and the deviation of each target's noise, which grows exponentially from left to right."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-EDGE, EDGE, size=(n, 1))
    std = least * growth ** ((X[:, 0] + EDGE) / (2 * EDGE))
    return X, np.sin(2 * X[:, 0]) + rng.normal(0, std), std


def quarters(network: BayesianNetwork, X: FloatArray, y: FloatArray) -> FloatArray:
    """Coverage in each quarter of the inputs, per cent."""
    where = np.minimum((X[:, 0] + EDGE) // (EDGE / 2), 3)
    parts = (predictions(network, X[where == quarter], y[where == quarter]) for quarter in range(4))
    return np.array([100.0 * Coverage95().update(part).get() for part in parts])


def predictions(network: BayesianNetwork, X: FloatArray, y: FloatArray) -> DistributionPredictions:
    """Targets, and what the network predicts for them."""
    low, high = network.interval(X)
    densities = network.log_predictive(X, y)
    return DistributionPredictions(y=y, mean=network.predict(X).mean, log_densities=densities, low=low, high=high)


def generated(seed: int) -> Iterator[tuple[str, Split]]:
    """Data sets that need no files, half of each for testing."""
    rng = np.random.default_rng(seed)
    tables: dict[str, Any] = {
        "diabetes": datasets.load_diabetes(return_X_y=True),
        "friedman1": datasets.make_friedman1(600, noise=1.0, random_state=seed),
        "friedman2": datasets.make_friedman2(600, noise=50.0, random_state=seed),
        "friedman3": datasets.make_friedman3(600, noise=0.1, random_state=seed),
        "linear": datasets.make_regression(600, 10, n_informative=5, noise=20.0, random_state=seed),
    }
    for name, (X, y) in tables.items():
        yield name, _halved(X, y, rng)
    X, y, _ = problem(800, seed, *PROBLEMS["deviation 0.05 to 0.5"])
    yield "sine", _halved(X, y, rng)
    X = rng.normal(size=(800, 5))
    surface = np.sin(X[:, 1]) + 0.5 * X[:, 2] * X[:, 3]
    yield "surface", _halved(X, surface + 0.2 * np.exp(0.7 * X[:, 0]) * rng.normal(size=800), rng)


def _halved(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> Split:
    """Split rows at random and standardise them by the training half."""
    order = rng.permutation(len(X))
    train, test = order[: len(X) // 2], order[len(X) // 2 :]
    rows, unit = (X - X[train].mean(axis=0)) / X[train].std(axis=0), y[train].std()
    targets = (y - y[train].mean()) / unit
    return Split(rows[train], targets[train], rows[test], targets[test], float(unit))


def scores_by_passes(split: Split, hidden: tuple[int, ...], seed: int, passes: tuple[int, ...] = PASSES) -> FloatArray:
    """R² and mean log-likelihood of the test rows after each number of passes, ``(2, passes)``."""
    found = []
    for count in passes:
        network = BayesianNetwork(split.X.shape[1], hidden, observation="heteroscedastic", seed=seed)
        network.learn(split.X, split.y, passes=count, refine="ep")
        r2 = r2_score(split.y_test, network.predict(split.X_test).mean)
        found.append((r2, float(np.mean(network.log_predictive(split.X_test, split.y_test)))))
    return np.array(found).T


def compare_passes(folder: Path) -> None:
    """Print the tables of several passes, one per architecture."""
    for label, hidden in HIDDEN.items():
        table: dict[str, list[FloatArray]] = {}
        for seed in SEEDS:
            splits = [*generated(seed), *((name, load_split(folder / name, seed)) for name in UCI)]
            for name, split in splits:
                table.setdefault(name, []).append(scores_by_passes(split, hidden, seed))
        print(f"| {label} | {' | '.join(f'passes: {count}' for count in PASSES)} | largest loss of R² |")
        print(f"|{'---|' * (len(PASSES) + 2)}")
        for name, seeds in table.items():
            r2, likelihood = np.mean(seeds, axis=0)
            loss = max(0.0, *(float((own[0][0] - own[0]).max()) for own in seeds))
            cells = " | ".join(f"{a:.3f} / {b:.2f}" for a, b in zip(r2, likelihood, strict=True))
            print(f"| {name} | {cells} | {loss:.3f} |", flush=True)


def main() -> None:
    """Print the tables."""
    if len(sys.argv) > 1:
        compare_passes(Path(sys.argv[1]))
    else:
        compare_noises()


def compare_noises() -> None:
    """Print the table of one pass."""
    print("| noise | model | log-likelihood | coverage by quarter |")
    print("|---|---|---|---|")
    for name, (least, growth) in PROBLEMS.items():
        table: dict[str, list[FloatArray]] = {}
        for seed in range(5):
            X, y, _ = problem(1000, seed, least, growth)
            test, target, std = problem(4000, 100 + seed, least, growth)
            for label, kind in (("one noise", "gaussian"), ("second output", "heteroscedastic")):
                network = BayesianNetwork(1, (20,), observation=kind, seed=seed).learn(X, y)
                likelihood = LogLikelihood().update(predictions(network, test, target)).get()
                table.setdefault(label, []).append(np.append(likelihood, quarters(network, test, target)))
            error = target - np.sin(2 * test[:, 0])
            truth = np.mean(-0.5 * np.log(2 * np.pi * std**2) - 0.5 * (error / std) ** 2)
            table.setdefault("the truth", []).append(np.array([truth, 95.0, 95.0, 95.0, 95.0]))
        for label, rows in table.items():
            likelihood, *coverage = np.mean(rows, axis=0)
            print(f"| {name} | {label} | {likelihood:.3f} | {' / '.join(f'{share:.0f}' for share in coverage)} |")


if __name__ == "__main__":
    main()
