"""Small regression sets, where a full covariance is affordable: how much accuracy every other form loses.

One network of 50 units, one pass, defaults, the published splits 0 to 9 (those on which nothing was chosen). RMSE and
mean log-likelihood are in the targets' own units, means over the splits with standard errors. With a single output the
Kronecker form of the last layer is full already, so `("kronecker", "full")` changes nothing here.
"""

from collections.abc import Iterator

import numpy as np
from sklearn.datasets import make_friedman1

from benchmarks.uci.splits import Split, evaluate_on, load_split
from benchmarks.wide.study import Figure, Findings, Study, Table
from onepass import BayesianNetwork
from onepass.beliefs.choice import BELIEFS, Covariance

__all__ = ["findings", "forms"]

TARGETS = {"kin8nm": "<= 0.098", "energy": "<= 2.0"}
SPLITS = 10
UNITS = 50


def forms() -> dict[str, Covariance]:
    """Every covariance that a network of one hidden layer can have here, by the name it has in the table."""
    names = ("full", "low_rank", "layer", "neuron", "diagonal", "kronecker")
    return {
        **{name: name for name in names if name in BELIEFS},
        "kronecker, full": ("kronecker", "full"),
    }


def findings(study: Study) -> Findings:
    """All forms on all sets."""
    figures, lines = [], []
    for name, splits in _sets(study):
        for label, covariance in forms().items():
            table = np.array([_scores(split, covariance) for split in splits])
            mean, error = table.mean(axis=0), table.std(axis=0) / np.sqrt(max(len(table) - 1, 1))
            lines.append((name, label, *(f"{m:.4f} ± {e:.4f}" for m, e in zip(mean[:2], error[:2], strict=True))))
            if label == "kronecker":
                figures.append(
                    Figure(f"{name}: RMSE, kronecker", mean[0], study.published_target(TARGETS.get(name, "")))
                )
    columns = ("set", "covariance", "RMSE", "log-likelihood")
    return Findings(tuple(figures), (Table("All forms:", columns, tuple(lines)),))


def _scores(split: Split, covariance: Covariance) -> tuple[float, ...]:
    return evaluate_on(split, BayesianNetwork(split.X.shape[1], (UNITS,), covariance=covariance), 1, "reuse")


def _sets(study: Study) -> Iterator[tuple[str, list[Split]]]:
    """Names and splits; a made-up set where there are no others."""
    folder, count = study.folder("uci"), study.size(SPLITS, 1)
    if folder is not None:
        for name in TARGETS:
            yield name, [load_split(folder / name, number) for number in range(count)]
        return
    yield "friedman1", [_friedman(seed, study.size(1000, 100)) for seed in range(count)]


def _friedman(seed: int, n: int) -> Split:
    X, y = make_friedman1(2 * n, 8, noise=1.0, random_state=seed)
    X, unit = (X - 0.5) * np.sqrt(12.0), float(y.std())
    y = (y - y.mean()) / unit
    return Split(X[:n], y[:n], X[n:], y[n:], unit)
