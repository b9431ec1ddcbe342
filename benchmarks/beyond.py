"""Do networks know what they don't know? With few rows, in a gap of the data, beyond them, and in regions left out.

"RMS z" is the root mean square of errors beyond the data, in predicted standard deviations: 1 is calibrated, more is
too certain. "Deviation in the gap" is the predicted standard deviation there, divided by that of a Gaussian process.

    python -m benchmarks.beyond [FOLDER]

Three measurements, the first two on functions with a known truth:

- few rows: the share of new targets inside the 95 % interval, after 5 to 200 rows of a sine, of Friedman's function and
  of random networks;
- a gap: ``sin(3x)``, 200 rows with ``0.7 < |x| < 1.5``. Errors at ``2 < |x| < 3`` in predicted standard deviations, and
  the standard deviation at ``|x| < 0.5`` over that of a Gaussian process with a fitted kernel;
- regions left out of real data, for which FOLDER has the sets of `benchmarks.uci`: the middle third or the outer
  sixths of the rows along each input in turn.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cells import Cell
from benchmarks.uci.splits import Split, evaluate_on, find_datasets
from onepass import BayesianCommittee, BayesianNetwork, Mixture
from onepass._typing import FloatArray

__all__ = ["HeldOut", "cells", "few_rows", "gap", "held_out", "regions"]

Make = Callable[[int, int], Any]
"""A model from the number of inputs and a seed."""
Truth = tuple[int, Callable[[FloatArray], FloatArray], float]
"""Number of inputs, function, standard deviation of the noise."""

_EDGE = np.sqrt(3.0)  # inputs between -_EDGE and _EDGE have unit variance
FEW_ROWS = "networks with few rows: targets inside the 95 % intervals, per cent"
_TESTED = 200
_FAR = np.concatenate([-np.linspace(2.0, 3.0, 21), np.linspace(2.0, 3.0, 21)])
_GAP = np.linspace(-0.5, 0.5, 21)
_ROWS = 300  # of every real set, so that all regions take a minute


def one_network(d: int, seed: int) -> BayesianNetwork:
    """Fifty units and the defaults."""
    return BayesianNetwork(d, (50,), seed=seed)


def committee(d: int, seed: int) -> Mixture:
    """The same, as a committee; members have consecutive seeds."""
    return BayesianCommittee(d, (50,), seed=10 * seed, workers=1)


def _sine(rng: np.random.Generator) -> Truth:
    return 1, lambda X: np.sin(3.0 * X[:, 0]), 0.1


def _friedman(rng: np.random.Generator) -> Truth:
    def function(X: FloatArray) -> FloatArray:
        a, b, c, d, e = (X.T / _EDGE + 1.0) / 2.0
        return np.asarray((10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e - 14.4) / 4.9)

    return 5, function, 0.2


def _random_network(rng: np.random.Generator) -> Truth:
    weights, biases, output = rng.normal(size=(3, 20)), rng.normal(size=20), rng.normal(size=20)
    return 3, lambda X: np.tanh(0.87 * X @ weights + biases) @ output * 0.36, 0.3


FUNCTIONS: tuple[Callable[[np.random.Generator], Truth], ...] = (_sine, _friedman, _random_network)


def few_rows(make: Make, n: int, replicates: int) -> FloatArray:
    """Per cent of new targets inside their 95 % interval after ``n`` rows of each of `FUNCTIONS`, ``(functions,)``."""
    inside = np.empty((len(FUNCTIONS), replicates))
    for k, draw in enumerate(FUNCTIONS):
        for seed in range(replicates):
            rng = np.random.default_rng([11, seed, n])
            d, function, deviation = draw(rng)
            X = rng.uniform(-_EDGE, _EDGE, (n + _TESTED, d))
            y = function(X) + deviation * rng.normal(size=len(X))
            low, high = make(d, seed).learn(X[:n], y[:n]).interval(X[n:])
            inside[k, seed] = np.mean((low < y[n:]) & (y[n:] < high))
    return np.asarray(100.0 * inside.mean(axis=1))


@dataclass(frozen=True)
class Gap:
    """Medians over seeds: RMS error beyond the data in predicted deviations, deviation in the gap over a process's."""

    far: float
    inside: float


def gap(make: Make, seeds: int, **learning: Any) -> Gap:
    """Learn ``sin(3x)`` on both sides of a gap."""
    found = np.empty((seeds, 2))
    for seed in range(seeds):
        rng = np.random.default_rng([7, seed])
        x = rng.uniform(0.7, 1.5, 200) * rng.choice([-1.0, 1.0], 200)
        X, y = x[:, None], np.sin(3.0 * x) + 0.1 * rng.normal(size=200)
        model = make(1, seed).learn(X, y, **learning)
        far, near = model.predict(_FAR[:, None]), model.predict(_GAP[:, None])
        errors = (np.sin(3.0 * _FAR) - far.mean) ** 2 / (far.var)
        found[seed] = np.sqrt(errors.mean()), np.sqrt(near.epistemic).mean() / _process_deviation(X, y)
    return Gap(*np.median(found, axis=0).tolist())


def _process_deviation(X: FloatArray, y: FloatArray) -> float:
    """Mean standard deviation, in the gap and without noise, of a Gaussian process with a fitted kernel."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    process = GaussianProcessRegressor(ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.01), random_state=0).fit(X, y)
    deviation = process.predict(_GAP[:, None], return_std=True)[1]
    return float(np.sqrt(np.maximum(deviation**2 - process.kernel_.k2.noise_level, 0.0)).mean())


@dataclass(frozen=True)
class HeldOut:
    """Means over the regions left out: log-likelihood per row of standardised targets, coverage in per cent."""

    log_likelihood: float
    coverage: float


def regions(folder: Path, where: str) -> Iterator[Split]:
    """Splits that test the ``"middle"`` third or the ``"outer"`` sixths along each input of each set in the folder."""
    for name in find_datasets(folder):
        data = np.loadtxt(folder / name / "data.txt", ndmin=2)
        data = data[np.random.default_rng(3).permutation(len(data))][:_ROWS]
        features = np.loadtxt(folder / name / "index_features.txt", ndmin=1).astype(int)
        target = int(np.loadtxt(folder / name / "index_target.txt"))
        for column in features:
            low, high = np.quantile(data[:, column], (1 / 3, 2 / 3) if where == "middle" else (1 / 6, 5 / 6))
            between = (data[:, column] > low) & (data[:, column] < high)
            beyond = (data[:, column] < low) | (data[:, column] > high)
            test = between if where == "middle" else beyond
            if 20 <= test.sum() <= len(data) / 2:  # an input of few values may have no such region
                yield _standardised(data[:, features], data[:, target], test)


def _standardised(X: FloatArray, y: FloatArray, test: Any) -> Split:
    mean, scale = X[~test].mean(axis=0), X[~test].std(axis=0)
    rows = (X - mean) / np.where(scale == 0.0, 1.0, scale)
    targets = (y - y[~test].mean()) / y[~test].std()
    return Split(rows[~test], targets[~test], rows[test], targets[test], 1.0)


def held_out(make: Make, folder: Path, where: str) -> HeldOut:
    """Learn the rest of each region in one pass and score the region."""
    scores = [evaluate_on(split, make(split.X.shape[1], 0), 1, "reuse") for split in regions(folder, where)]
    return HeldOut(
        float(np.mean([score.log_likelihood for score in scores])), float(np.mean([score.coverage for score in scores]))
    )


_REPLICATES = {5: 30, 10: 30, 20: 20, 50: 10, 200: 5}
_MODELS: dict[str, Make] = {"one network": one_network, "committee": committee}


def cells(folder: Path | None = None) -> list[Cell]:
    """All figures; those of regions left out only if there is a folder with data."""
    return [*_few_row_cells(), *_gap_cells(), *(_held_out_cells(folder) if folder is not None else ())]


def _few_row_cells() -> Iterator[Cell]:
    for name, make in _MODELS.items():
        for n, replicates in _REPLICATES.items():
            inside = float(few_rows(make, n, replicates).mean())
            yield Cell(FEW_ROWS, f"{name}, {n} rows", inside, ">= 90" if n < 20 else "91-96")


def _gap_cells() -> Iterator[Cell]:
    settings = {
        "one network, one pass": (one_network, {}, "<= 5"),
        "committee, ten passes EP": (committee, {"passes": 10, "refine": "ep"}, "<= 2.5"),
    }
    for name, (make, learning, bound) in settings.items():
        found = gap(make, 10, **learning)
        yield Cell("networks, beyond the data", f"RMS z beyond the data, {name}", found.far, bound)
        label = f"deviation in the gap over a Gaussian process's, {name}"
        yield Cell("networks, beyond the data", label, found.inside, ">= 0.8")


def _held_out_cells(folder: Path) -> Iterator[Cell]:
    for where in ("middle", "outer"):
        found = held_out(committee, folder, where)
        section, part = "networks, regions left out", f"{where} part left out"
        yield Cell(section, f"log-likelihood, {part}", found.log_likelihood)
        yield Cell(section, f"95 % interval contains, {part}", found.coverage)


def main() -> None:
    """Print the figures."""
    for cell in cells(Path(sys.argv[1]) if len(sys.argv) > 1 else None):
        print(cell.line, flush=True)


if __name__ == "__main__":
    main()
