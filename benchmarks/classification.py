"""Networks as classifiers in one pass, beside scikit-learn's one-pass learners and the batch fit of a linear one.

    python -m benchmarks.classification [FOLDER]

FOLDER holds MNIST as gzipped idx files; without it that part is left out. The rest comes with scikit-learn: ten splits
70/30, inputs standardised with the training part's statistics, every training row seen once by all but the batch fit.
The others' step sizes are chosen by the progressive loss on the training rows (`onepass.evaluation.baselines`), and
scikit-learn's network takes a gradient step per row; it has 100 units, its default, with which it does better than with
our 50. A Markdown table comes out, and what others have won.
"""

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.bandits.tasks import read_images, read_labels
from onepass import BayesianMLPClassifier
from onepass.evaluation.baselines import TunedBaseline, mlp, sgd
from onepass.evaluation.metrics import Accuracy, ClassPredictions, LogLoss

__all__ = ["BATCH", "COMMITTEE", "MLP", "OURS", "SGD", "SPLITS", "bundled", "sets"]

SPLITS = 10
FIRST = 10_000
OURS = "onepass"
COMMITTEE = "onepass, five members"
MLP = "scikit-learn's MLP, tuned"
SGD = "scikit-learn's SGD, tuned"
BATCH = "batch LogisticRegression"


def sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Inputs and classes by name."""
    return {
        "digits": load_digits(return_X_y=True),
        "moons, 1,000 rows": make_moons(1000, noise=0.2, random_state=0),
        "breast cancer": load_breast_cancer(return_X_y=True),
    }


def learners(X: np.ndarray, y: np.ndarray) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """Every learner, fitted: what gives its probabilities of the classes."""
    classes = np.unique(y)
    peers: dict[str, TunedBaseline] = {MLP: mlp(len(classes), (100,)), SGD: sgd(len(classes))}
    return {
        OURS: BayesianMLPClassifier(standardize=False).partial_fit(X, y, classes=classes).predict_proba,
        COMMITTEE: BayesianMLPClassifier(members=5, standardize=False).partial_fit(X, y, classes=classes).predict_proba,
        **{name: peer.learn(X, y).predict for name, peer in peers.items()},
        BATCH: LogisticRegression(max_iter=2000).fit(X, y).predict_proba,
    }


def bundled(X: np.ndarray, y: np.ndarray, splits: int = SPLITS) -> dict[str, np.ndarray]:
    """Accuracy and log-loss of every learner on the test parts, ``(splits, 2)``."""
    scores: dict[str, list[tuple[float, float]]] = {}
    for seed in range(splits):
        train, test, labels, truth = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
        scaler = StandardScaler().fit(train)
        rows = scaler.transform(test)
        for name, probabilities in learners(scaler.transform(train), labels).items():
            scores.setdefault(name, []).append(_score(truth, probabilities(rows)))
    return {name: np.array(pairs) for name, pairs in scores.items()}


def won_by_others(name: str, scores: dict[str, np.ndarray]) -> str:
    """A sentence: which one-pass learners of others have a lower log-loss than our network."""
    gaps = {peer: scores[peer][:, 1] - scores[OURS][:, 1] for peer in (MLP, SGD)}
    words = [f"{peer} {_difference(gap)}" for peer, gap in gaps.items() if gap.mean() < 0.0]
    return f"{name}, log-loss below our network's: {'; '.join(words) or 'no other one-pass learner'}."


def mnist(folder: Path) -> list[str]:
    """Lines of the table: after the first images, and after all of them."""
    X, X_test = (read_images(folder / f"{part}-images-idx3-ubyte.gz") for part in ("train", "t10k"))
    y, y_test = (read_labels(folder / f"{part}-labels-idx1-ubyte.gz") for part in ("train", "t10k"))
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


def _difference(gap: np.ndarray) -> str:
    return f"{gap.mean():+.4f} ± {gap.std(ddof=1) / np.sqrt(len(gap)):.4f}"


def main(arguments: list[str]) -> None:
    """Print the table."""
    warnings.filterwarnings("ignore", category=UserWarning)
    print("| data | learner | accuracy | log-loss | above the batch fit |\n|---|---|---|---|---|")
    verdicts = []
    for name, (X, y) in sets().items():
        scores = bundled(X, y)
        verdicts.append(won_by_others(name, scores))
        for learner, pairs in scores.items():
            accuracy, loss = pairs.mean(axis=0)
            note = "" if learner == BATCH else _difference(pairs[:, 1] - scores[BATCH][:, 1])
            print(f"| {name} | {learner} | {accuracy:.3f} | {loss:.4f} | {note} |", flush=True)
    if arguments:
        print("\n".join(mnist(Path(arguments[0]))))
    print("", *verdicts, sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
