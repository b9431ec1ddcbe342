"""Softmax perceptrons with many classes: rows per second, and the log-loss over that of the joint covariance.

Every set is made anew from its seed: labels drawn from a softmax of random weights, and clusters, three to a class,
which no linear boundary separates. Each covariance learns the same rows once. The log-loss is the mean over all rows,
each predicted before it was learned, and over rows that were not learned. Rows per second are those of one thread, in
seconds of the processor, whatever else the machine does. With a joint covariance a row of a hundred classes takes some
15 ms, so these sets are small; the other speeds are those of ten times as many rows.

    python -m benchmarks.many_classes [MNIST FOLDER]

With the folder of MNIST's four files also one pass over its 60,000 images, pixels divided by 255.
"""

import gzip
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from onepass import BayesianNetwork
from onepass._typing import FloatArray

__all__ = ["STUDIES", "Outcome", "Study", "clusters", "measure", "mnist", "table", "teacher"]

STRUCTURES = ("full", "neuron", "diagonal")

Rows = tuple[FloatArray, NDArray[np.int64]]


def teacher(n_classes: int, n_features: int, n: int, seed: int) -> Rows:
    """Correlated inputs, and labels drawn from a softmax of standard normal weights."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(n_classes, n_features + 1))
    mixing = np.eye(n_features) + 0.5 * rng.normal(size=(n_features, n_features)) / np.sqrt(n_features)
    X = rng.normal(size=(n, n_features)) @ mixing
    X /= X.std(axis=0)
    logits = X @ weights[:, :-1].T + weights[:, -1]
    return X, (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)


def clusters(n_classes: int, n_features: int, n: int, seed: int) -> Rows:
    """Three clusters to a class, with a covariance that all share, as letters in several fonts have."""
    rng = np.random.default_rng(seed)
    centres = 1.6 * rng.normal(size=(n_classes, 3, n_features))
    y = rng.integers(n_classes, size=n)
    mixing = np.eye(n_features) + 0.3 * rng.normal(size=(n_features, n_features)) / np.sqrt(n_features)
    X = centres[y, rng.integers(3, size=n)] + rng.normal(size=(n, n_features)) @ mixing
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@dataclass(frozen=True)
class Study:
    """A kind of data, and how many rows are learned, predicted and timed."""

    make: Callable[[int, int, int, int], Rows]
    n_classes: int
    n_features: int
    n_rows: int
    n_test: int
    n_timed: int
    seed: int


STUDIES = tuple(
    Study(make, *size, seed)
    for size in ((10, 20, 5000, 2000, 20_000), (26, 16, 8000, 2000, 20_000), (100, 20, 2000, 1000, 20_000))
    for make in (teacher, clusters)
    for seed in (101, 102)
)


@dataclass(frozen=True)
class Outcome:
    """Speed of a covariance, and log-losses of rows: each before it was learned, and of those that were not."""

    rows_per_second: float
    prequential: float
    held_out: float


def measure(study: Study, covariance: str) -> Outcome:
    """Learn a study's rows once; the joint covariance is timed on these rows, the others on more."""
    X, y = study.make(study.n_classes, study.n_features, study.n_rows + study.n_test, study.seed)
    n = study.n_rows
    seconds, network = _learn(X[:n], y[:n], study.n_classes, covariance)
    speed = n / seconds
    if covariance != "full" and study.n_timed > n:
        more, labels = study.make(study.n_classes, study.n_features, study.n_timed, study.seed + 1000)
        speed = study.n_timed / _learn(more, labels, study.n_classes, covariance)[0]
    return Outcome(speed, -network.log_evidence / n, -float(np.mean(network.log_predictive(X[n:], y[n:]))))


def mnist(folder: Path, dtype: str) -> tuple[float, float, float]:
    """Images per second in one pass with blocks per class; accuracy and log-loss on the test images."""
    X, y, test, labels = (_read(folder, name) for name in _FILES)
    network = BayesianNetwork(784, (), 10, observation="categorical", covariance="neuron", dtype=dtype)
    start = process_time()
    network.learn(X, y)
    speed = len(y) / (process_time() - start)
    p = network.predict(test).mean
    loss = -float(np.log(p[np.arange(len(labels)), labels.astype(int)]).mean())
    return speed, float((p.argmax(axis=1) == labels).mean()), loss


def table(studies: tuple[Study, ...]) -> Iterator[str]:
    """Lines of a Markdown table."""
    yield "| data | classes x features | covariance | rows/s | log-loss in passing | over full | held out | over full |"
    yield "|---|---|---|---|---|---|---|---|"
    for study in studies:
        joint = None
        for covariance in STRUCTURES:
            found = measure(study, covariance)
            joint = joint or found
            over = found.prequential / joint.prequential, found.held_out / joint.held_out
            yield (
                f"| {study.make.__name__} {study.seed} | {study.n_classes} x {study.n_features} | {covariance} "
                f"| {found.rows_per_second:,.0f} | {found.prequential:.4f} | {over[0]:.3f} "
                f"| {found.held_out:.4f} | {over[1]:.3f} |"
            )


_FILES = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")


def _learn(X: FloatArray, y: NDArray[np.int64], n_classes: int, covariance: str) -> tuple[float, BayesianNetwork]:
    network = BayesianNetwork(X.shape[1], (), n_classes, observation="categorical", covariance=covariance)
    start = process_time()
    network.learn(X, y)
    return process_time() - start, network


def _read(folder: Path, name: str) -> FloatArray:
    content = gzip.decompress((folder / f"{name}-ubyte.gz").read_bytes())
    if "labels" in name:
        return np.frombuffer(content, np.uint8, offset=8).astype(np.float64)
    return np.frombuffer(content, np.uint8, offset=16).reshape(-1, 784) / 255.0


def main() -> None:
    """Print the table, line by line."""
    with threadpool_limits(1):
        for line in table(STUDIES):
            print(line, flush=True)
        for dtype in ("float64", "float32") if len(sys.argv) > 1 else ():
            speed, accuracy, loss = mnist(Path(sys.argv[1]), dtype)
            print(
                f"MNIST, {dtype}: {speed:,.0f} images/s, test accuracy {accuracy:.4f}, log-loss {loss:.4f}", flush=True
            )


if __name__ == "__main__":
    main()
