"""Networks as classifiers in one pass, beside scikit-learn's after one pass and the batch fit of a linear one.

    python -m benchmarks.classification [FOLDER]

FOLDER holds MNIST as gzipped idx files; without it that part is left out. The rest comes with scikit-learn: ten splits
70/30, inputs standardised with the training part's statistics, every training row seen once by all but the batch fit.
A Markdown table comes out.
"""

import gzip
import sys
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from onepass import BayesianMLPClassifier
from onepass.evaluation.metrics import Accuracy, ClassPredictions, LogLoss

SPLITS = 10
FIRST = 10_000
BATCH = "batch LogisticRegression"


def sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Inputs and classes by name."""
    return {
        "digits": load_digits(return_X_y=True),
        "moons, 1,000 rows": make_moons(1000, noise=0.2, random_state=0),
        "breast cancer": load_breast_cancer(return_X_y=True),
    }


def learners(X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Every learner, fitted."""
    classes = np.unique(y)
    return {
        "onepass": BayesianMLPClassifier(standardize=False).partial_fit(X, y, classes=classes),
        "onepass, five members": BayesianMLPClassifier(members=5, standardize=False).partial_fit(X, y, classes=classes),
        "scikit-learn's MLP, one epoch": MLPClassifier((50,), random_state=0).partial_fit(X, y, classes=classes),
        BATCH: LogisticRegression(max_iter=2000).fit(X, y),
    }


def bundled(X: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """Accuracy and log-loss of every learner on the test parts, ``(splits, 2)``."""
    scores: dict[str, list[tuple[float, float]]] = {}
    for seed in range(SPLITS):
        train, test, labels, truth = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
        scaler = StandardScaler().fit(train)
        for name, model in learners(scaler.transform(train), labels).items():
            rows = scaler.transform(test)
            scores.setdefault(name, []).append(_score(truth, model.predict_proba(rows)))
    return {name: np.array(pairs) for name, pairs in scores.items()}


def mnist(folder: Path) -> list[str]:
    """Lines of the table: after the first images, and after all of them."""
    X, X_test = (_images(folder / f"{part}-images-idx3-ubyte.gz") for part in ("train", "t10k"))
    y, y_test = (_labels(folder / f"{part}-labels-idx1-ubyte.gz") for part in ("train", "t10k"))
    model = BayesianMLPClassifier((100,), standardize=False)
    # Loading libraries is not learning.
    BayesianMLPClassifier((100,), standardize=False).partial_fit(X[:10], y[:10], classes=range(10))
    lines = []
    for start, stop in ((0, FIRST), (FIRST, len(X))):
        begin = perf_counter()
        model.partial_fit(X[start:stop], y[start:stop], classes=range(10))
        rate = (stop - start) / (perf_counter() - begin)
        accuracy, loss = _score(y_test, model.predict_proba(X_test))
        learner = f"onepass, 100 units, {rate:,.0f} images/s"
        lines.append(f"| MNIST, {stop:,} images | {learner} | {accuracy:.3f} | {loss:.4f} | |")
    return lines


def _score(y: np.ndarray, probabilities: np.ndarray) -> tuple[float, float]:
    """Accuracy and log-loss."""
    rows = ClassPredictions(y, probabilities)
    return Accuracy().update(rows).get(), LogLoss().update(rows).get()


def _images(path: Path) -> np.ndarray:
    return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=16).reshape(-1, 784) / 255.0


def _labels(path: Path) -> np.ndarray:
    return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=8).astype(int)


def main(arguments: list[str]) -> None:
    """Print the table."""
    warnings.filterwarnings("ignore", category=UserWarning)
    print("| data | learner | accuracy | log-loss | above the batch fit |\n|---|---|---|---|---|")
    for name, (X, y) in sets().items():
        scores = bundled(X, y)
        for learner, pairs in scores.items():
            accuracy, loss = pairs.mean(axis=0)
            gap = pairs[:, 1] - scores[BATCH][:, 1]
            note = "" if learner == BATCH else f"{gap.mean():+.4f} ± {gap.std(ddof=1) / np.sqrt(len(gap)):.4f}"
            print(f"| {name} | {learner} | {accuracy:.3f} | {loss:.4f} | {note} |", flush=True)
    if arguments:
        print("\n".join(mnist(Path(arguments[0]))))


if __name__ == "__main__":
    main(sys.argv[1:])
