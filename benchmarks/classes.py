"""Many classes with wide beliefs, and rows sorted by class.

The first six figures are the error of the label's logit after one label: its distance from the exact mean, in its
standard deviations. The logits are independent, with mean 0 and standard deviation 2 or 5. The other figures are
accuracies of `BayesianPerceptronClassifier` on rows that were not learned, the mean over splits.
A belief that has seen only one class expects no other, so sorted rows cost accuracy in one pass. A second pass with
`refine="ep"`, which removes each row's contribution before it learns the row again, makes up for it.

    python -m benchmarks.classes
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split

from benchmarks.cells import Cell
from onepass import BayesianPerceptronClassifier
from onepass._typing import FloatArray
from onepass.engine.class_matches import CategoricalOutputs
from onepass.engine.vector_matches import NetworkProgress

__all__ = ["Logits", "cells", "exact_logits", "matched_logits", "sorted_accuracy", "twenty_classes"]

SPLITS = range(5)
LOGITS = [(n, std) for n in (10, 20, 100) for std in (2, 5)]
_Z = np.linspace(-12.0, 12.0, 385)
_WEIGHTS = np.exp(-0.5 * _Z**2) / np.exp(-0.5 * _Z**2).sum()
_NODES = 160


class Logits(NamedTuple):
    """Log probability of a class, and mean and covariance of the logits given it."""

    log_p: float
    mean: FloatArray
    cov: FloatArray

    @property
    def std(self) -> FloatArray:
        """Standard deviations of the logits."""
        return np.sqrt(np.diag(self.cov))


def matched_logits(mean: FloatArray, cov: FloatArray, label: int) -> Logits:
    """What the compiled match makes of a label."""
    state = NetworkProgress.start(len(mean), None, False)
    likelihood = CategoricalOutputs(len(mean))
    found = likelihood.moment_match(mean, np.ascontiguousarray(cov), np.array([float(label)]), state)
    return Logits(found[0], mean + cov @ found[1], cov - cov @ found[2] @ cov)


def exact_logits(mean: FloatArray, var: FloatArray, label: int) -> Logits:
    """The same of independent logits, by trapezoidal rules for each logit and for the largest value ``u``.

    With ``p_label = ∫ e^(a_label - u) exp(-Σ e^(a_j - u)) du`` the logits are independent given ``u``: nothing of the
    compiled match is used.
    """
    std = np.sqrt(var)
    rough = np.linspace((mean - 9 * std).max() - 4.0, (mean + 9 * std).max() + 40.0, _NODES)
    logs = _given_largest(mean, std, label, rough)[0]
    alive = np.flatnonzero(logs > logs.max() - 40.0)
    u = np.linspace(rough[max(alive[0] - 1, 0)], rough[min(alive[-1] + 1, _NODES - 1)], _NODES)
    logs, centre, spread = _given_largest(mean, std, label, u)
    weights = np.exp(logs - logs.max())
    log_p = float(logs.max() + np.log(weights.sum() * (u[1] - u[0])))
    weights /= weights.sum()
    moved = weights @ centre
    away = centre - moved
    return Logits(log_p, moved, np.diag(weights @ spread) + (away.T * weights) @ away)


def _given_largest(
    mean: FloatArray, std: FloatArray, label: int, u: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log density of ``u`` and the label, and the logits' means and variances given both, each ``(n, K)``."""
    a = mean[:, None] + std[:, None] * _Z
    logs = -np.exp(np.minimum(a[None] - u[:, None, None], 700.0))
    logs[:, label] += a[label] - u[:, None]
    top = logs.max(axis=2, keepdims=True)
    density = np.exp(logs - top) * _WEIGHTS
    mass = density.sum(axis=2)
    centre = (density * a).sum(axis=2) / mass
    spread = (density * (a[None] - centre[:, :, None]) ** 2).sum(axis=2) / mass
    return (np.log(mass) + top[:, :, 0]).sum(axis=1), centre, spread


def logit_error(n_classes: int, std: float) -> float:
    """How far off the label's logit is after one label, in its standard deviations."""
    mean, var = np.zeros(n_classes), np.full(n_classes, float(std) ** 2)
    exact, ours = exact_logits(mean, var, 0), matched_logits(mean, np.diag(var), 0)
    return float(abs(ours.mean[0] - exact.mean[0]) / exact.std[0])


def twenty_classes(seed: int, n: int = 1000) -> tuple[FloatArray, NDArray[np.intp]]:
    """Clouds of equal width around twenty centres that overlap, in ten dimensions."""
    rng = np.random.default_rng(1000 + seed)
    centres = 1.5 * rng.normal(size=(20, 10))
    labels = rng.integers(0, 20, n)
    return centres[labels] + rng.normal(size=(n, 10)), labels.astype(np.float64)


def problems() -> Iterator[tuple[str, list[tuple[FloatArray, NDArray[np.intp]]]]]:
    """Names, and the data of each split."""
    yield "iris", [load_iris(return_X_y=True) for _ in SPLITS]
    yield "twenty", [twenty_classes(seed) for seed in SPLITS]


def sorted_accuracy(X: FloatArray, y: NDArray[np.intp], split: int, model: Any, by_class: bool = True) -> float:
    """Accuracy on 30 % of the rows, the others learned class after class or in a random order."""
    train, test, labels, expected = train_test_split(X, y, test_size=0.3, random_state=split, stratify=y)
    order = np.argsort(labels, kind="stable") if by_class else np.arange(len(labels))
    return float(model.fit(train[order], labels[order]).score(test, expected))


def cells() -> list[Cell]:
    """Measure all figures."""
    found = [Cell("Classes", f"logit of {n} classes, sd {std}", logit_error(n, std), "<= 0.1") for n, std in LOGITS]
    titles = {"iris": "iris", "twenty": "twenty classes"}
    for name, data in problems():
        shuffled = np.mean(
            [
                sorted_accuracy(X, y, i, BayesianPerceptronClassifier(standardize=False), False)
                for i, (X, y) in enumerate(data)
            ]
        )
        for passes in (1, 2):
            accuracy = np.mean(
                [
                    sorted_accuracy(X, y, i, BayesianPerceptronClassifier(passes=passes, standardize=False))
                    for i, (X, y) in enumerate(data)
                ]
            )
            label = f"{titles[name]} sorted, {'one pass' if passes == 1 else 'two passes with EP'}"
            bound = f">= {shuffled - 0.01:.2f}" if passes == 2 else ""
            found.append(Cell("Classes", label, float(accuracy), bound))
        found.append(Cell("Classes", f"{titles[name]} shuffled, one pass", float(shuffled)))
    return found


def main() -> None:
    """Print the cells."""
    for cell in cells():
        print(cell.line)


if __name__ == "__main__":
    main()
