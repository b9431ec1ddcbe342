"""What each choice of the classifying networks' prior is worth: one change at a time, on tasks that are not reported.

    python -m benchmarks.choices FOLDER

FOLDER is as for ``benchmarks.uci``; its targets are cut at their median. To these come pairs of digits that look
alike, two sets of three classes and some made by formula, up to 1,000 rows of each. Five splits 70/30, a network of 50
units per split with a seed of its own, every training row seen once. A Markdown table comes out: the log-loss on the
test parts as a factor of that of the defaults, the geometric mean over all sets, and on how many it is lower.
"""

import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine, make_circles, make_classification, make_moons
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.uci.splits import find_datasets, load_split
from onepass import BayesianNetwork
from onepass.evaluation.metrics import ClassPredictions, LogLoss
from onepass.models.network.priors import CLASSIFICATION

SPLITS = 5
MOST_ROWS = 1000
VARIANTS: dict[str, dict[str, Any]] = {
    "the defaults": {},
    "no twins": {"paired": False},
    "no twins, small output weights, sure of the bias": {"paired": False, "output_means": 1.7, "output_bias_std": 1.0},
    "output weights start small": {"output_means": 1.7},
    "output weights start larger": {"output_means": 8.0},
    "sure of the output's bias": {"output_bias_std": 1.0},
    "output weights held tighter": {"output_std": 2.0},
    "hidden weights held tighter": {"weight_std": 1.5},
    "hidden weights freer": {"weight_std": 5.0},
    "hidden biases start near zero": {"bias_means": 1.0},
    "hidden biases start wider": {"bias_means": 8.0},
}

Data = tuple[np.ndarray, np.ndarray]


def sets(folder: Path) -> dict[str, Data]:
    """Inputs and classes by name."""
    found: dict[str, Data] = {}
    for name in find_datasets(folder):
        split = load_split(folder / name, 0)
        found[name] = split.X[:MOST_ROWS], (split.y > np.median(split.y))[:MOST_ROWS].astype(int)
    images, digits = load_digits(return_X_y=True)
    for one, other in ((3, 8), (4, 9)):
        pair = (digits == one) | (digits == other)
        found[f"{one} or {other}"] = images[pair], (digits[pair] == one).astype(int)
    found |= {"wine": load_wine(return_X_y=True), "iris": load_iris(return_X_y=True)}
    for seed in range(3):
        found[f"made {seed}"] = make_classification(600, 20, n_informative=5, random_state=seed)
    found["circles"] = make_circles(600, noise=0.15, factor=0.5, random_state=1)
    found["other moons"] = make_moons(400, noise=0.25, random_state=7)
    return found


def loss(X: np.ndarray, y: np.ndarray, changes: dict[str, Any]) -> float:
    """Mean log-loss over the splits."""
    n_classes = len(np.unique(y))
    kind, n_outputs = ("bernoulli", 1) if n_classes == 2 else ("categorical", n_classes)
    losses = []
    for seed in range(SPLITS):
        train, test, labels, truth = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
        scaler = StandardScaler().fit(train)
        model = BayesianNetwork(
            X.shape[1], (50,), n_outputs, observation=kind, seed=seed, prior=replace(CLASSIFICATION, **changes)
        )
        model.learn(scaler.transform(train), labels)
        mean = model.predict(scaler.transform(test)).mean
        probabilities = np.column_stack([1.0 - mean, mean]) if n_classes == 2 else mean
        losses.append(LogLoss().update(ClassPredictions(truth, probabilities)).get())
    return float(np.mean(losses))


def main(arguments: list[str]) -> None:
    """Print the table, a row at a time."""
    warnings.filterwarnings("ignore", category=UserWarning)
    data = sets(Path(arguments[0]))
    print(f"| prior | log-loss | lower on, of {len(data)} |\n|---|---|---|")
    losses: dict[str, np.ndarray] = {}
    for name, changes in VARIANTS.items():
        losses[name] = np.log([loss(X, y, changes) for X, y in data.values()])
        gap = losses[name] - losses["the defaults"]
        print(f"| {name} | {np.exp(gap.mean()):.3f} | {'' if not changes else (gap < 0).sum()} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
