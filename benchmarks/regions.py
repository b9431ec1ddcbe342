"""Regions left out of real data: how far intervals hold where there were no rows.

The rows of a set are sorted by one input, and the middle third or the outer sixths of them are left out and then
predicted; the same for every input in turn. Coverage is that of the 95 % interval in per cent; the log density is that
of a Gaussian with the predicted mean and standard deviation, in units of the standardised target. Both are means over
the inputs.

    python -m benchmarks.regions FOLDER [SET ...]

FOLDER has the sets of `benchmarks.uci`. `BayesianMLPRegressor` learns what is left: as a committee of five in one pass
and in as many as it chooses, and by default.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm

from benchmarks.uci.splits import find_datasets
from onepass import BayesianMLPRegressor
from onepass._typing import FloatArray

__all__ = ["MODELS", "PARTS", "regions", "score"]

MODELS: dict[str, Callable[[], BayesianMLPRegressor]] = {
    "committee, one pass": lambda: BayesianMLPRegressor(members=5, passes=1),
    "committee": lambda: BayesianMLPRegressor(members=5),
    "one network": BayesianMLPRegressor,
}
PARTS = ("middle", "outer")


def regions(X: FloatArray, where: str) -> Iterator[Any]:
    """Which rows are left out, ``(n,)``, for each input: the ``"middle"`` third or the ``"outer"`` sixths."""
    n = len(X)
    for column in X.T:
        ranks = np.argsort(np.argsort(column, kind="stable"), kind="stable")
        outer = (ranks < n // 6) | (ranks >= n - n // 6)
        yield outer if where == "outer" else (ranks >= n // 3) & (ranks < 2 * n // 3)


def score(model: BayesianMLPRegressor, X: FloatArray, y: FloatArray, left_out: Any) -> tuple[float, float]:
    """Coverage and mean log density of the rows left out, after learning the others."""
    targets = (y - y[~left_out].mean()) / y[~left_out].std()
    model.fit(X[~left_out], targets[~left_out])
    low, high = model.predict_interval(X[left_out], 0.95)
    mean, std = model.predict(X[left_out], return_std=True)
    new = targets[left_out]
    return 100.0 * float(np.mean((low < new) & (new < high))), float(norm(mean, std).logpdf(new).mean())


def main() -> None:
    """Print a table, coverage / log density."""
    folder = Path(sys.argv[1])
    print(f"| set | left out | {' | '.join(MODELS)} |\n|---|---|{'---|' * len(MODELS)}")
    for name in sys.argv[2:] or find_datasets(folder):
        data = np.loadtxt(folder / name / "data.txt", ndmin=2)
        features = np.loadtxt(folder / name / "index_features.txt", ndmin=1).astype(int)
        X, y = data[:, features], data[:, int(np.loadtxt(folder / name / "index_target.txt"))]
        for where in PARTS:
            scores = [[score(make(), X, y, left_out) for left_out in regions(X, where)] for make in MODELS.values()]
            cells = ["{:.1f} / {:.2f}".format(*np.mean(own, axis=0)) for own in scores]
            print(f"| {name} | {where} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
