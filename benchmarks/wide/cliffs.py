"""`covariance="auto"` as a network grows: what it chooses, and what one more feature, unit or class costs.

In each series one size grows and all else stays. Networks learn rows once at defaults; rows per second are by processor
time, the median of three seeds. The target is a function of the first five inputs, whatever their number, or a label of
as many classes as there are. The error is the RMSE on rows that were not learned, in units of the target's standard
deviation; for labels it is the log-loss. The sizes are some of each series, and both sides of every size at which the
choice changes. There neither the time nor the error should grow by more than a factor of two. Where one more makes a
network much faster, the network before was slow for its size. Factors between other sizes are shown without a target.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from benchmarks.many_classes import teacher
from benchmarks.wide.study import Figure, Findings, Study, Table
from onepass import BayesianNetwork
from onepass._typing import FloatArray

__all__ = ["SERIES", "Series", "changes", "findings"]

SEEDS = 3
LIMIT = "<= 2"
RELEVANT = 5  # inputs that the target depends on

Rows = tuple[FloatArray, Any]


def numbers(n_features: int, n: int, seed: int) -> Rows:
    """Numbers that depend on the first inputs; more inputs leave these and the targets as they are."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(RELEVANT, 6))
    noise = rng.normal(0.0, 0.1, n)
    X = np.stack([np.random.default_rng([seed, column]).normal(size=n) for column in range(n_features)], axis=1)
    signal = np.tanh(X[:, :RELEVANT] @ weights / 1.5) @ rng.normal(size=6)
    return X, signal / signal.std() + noise


def labels(n_features: int, n: int, seed: int) -> Rows:
    """Three classes by the ranks of such numbers."""
    X, y = numbers(n_features, n, seed)
    return X, np.digitize(y, np.quantile(y, [1 / 3, 2 / 3]))


@dataclass(frozen=True)
class Series:
    """Sizes of one kind, the network of each, and rows for it."""

    what: str
    words: str
    sizes: tuple[int, ...]
    network: Callable[[int], BayesianNetwork]
    rows: Callable[[int, int, int], Rows]
    n_rows: int = 2_000

    def chosen(self, size: int) -> str:
        """What ``"auto"`` means at a size."""
        return str(self.network(size).covariance)


def _classifier(d: int, hidden: tuple[int, ...], n_classes: int) -> BayesianNetwork:
    return BayesianNetwork(d, hidden, n_classes, observation="categorical", covariance="auto")


SERIES = (
    Series(
        "features",
        "50 units, a number",
        (5, 10, 20, 30, 40, 60, 100),
        lambda d: BayesianNetwork(d, (50,), covariance="auto"),
        numbers,
    ),
    Series(
        "units",
        "20 features, a number",
        (10, 50, 100, 200),
        lambda units: BayesianNetwork(20, (units,), covariance="auto"),
        lambda _, n, seed: numbers(20, n, seed),
    ),
    Series(
        "features",
        "50 units, three classes",
        (5, 20, 30, 40, 60, 100),
        lambda d: _classifier(d, (50,), 3),
        labels,
        500,
    ),
    Series(
        "classes",
        "16 features, 20 units",
        (2, 5, 10, 20, 40),
        lambda k: _classifier(16, (20,), k),
        lambda k, n, seed: teacher(k, 16, n, seed),
        500,
    ),
    Series(
        "classes",
        "16 features, perceptron",
        (2, 5, 10, 20, 30, 40),
        lambda k: _classifier(16, (), k),
        lambda k, n, seed: teacher(k, 16, n, seed),
        1_000,
    ),
    Series(
        "features",
        "perceptron, ten classes",
        (20, 50, 100, 200, 400),
        lambda d: _classifier(d, (), 10),
        lambda d, n, seed: teacher(10, d, n, seed),
        500,
    ),
)


class Outcome(NamedTuple):
    """At one size."""

    size: int
    chosen: str
    speed: float
    error: float


def changes(series: Series) -> Iterator[int]:
    """Sizes after which one more makes ``"auto"`` choose another covariance."""
    for low, high in pairwise(series.sizes):
        while series.chosen(low) != (last := series.chosen(high)):
            first, below, above = series.chosen(low), low, high
            while above - below > 1:
                middle = (below + above) // 2
                below, above = (middle, above) if series.chosen(middle) == first else (below, middle)
            yield below
            low = above
            if series.chosen(low) == last:
                break


def findings(study: Study) -> Findings:
    """All series."""
    figures: list[Figure] = []
    lines: list[tuple[str, ...]] = []
    for series in SERIES[: study.size(len(SERIES), 1)]:
        outcomes = _measure(series, study)
        name = f"{series.what} ({series.words})"
        lines += _lines(name, outcomes)
        figures += _figures(name, [_factors(*pair) for pair in pairwise(outcomes) if _adjacent(*pair)], study)
    columns = ("grows", "size", "chosen", "rows/s", "error", "times as slow", "times the error", "")
    words = 'All sizes, with factors relative to the line before; "cliff" marks steps by one with a factor above two:'
    return Findings(tuple(figures), (Table(words, columns, tuple(lines)),))


def _figures(name: str, steps: list[tuple[float, float]], study: Study) -> list[Figure]:
    """The largest factors of single steps; none of a series in which nothing changes."""
    if not steps:
        return []
    slower, worse = (max(factors) for factors in zip(*steps, strict=True))
    faster = max(1.0 / factor for factor, _ in steps)
    return [
        Figure(f"{name}, one more: times as slow", slower, study.target(LIMIT)),
        Figure(f"{name}, one more: times as fast", faster),
        Figure(f"{name}, one more: times the error", worse, study.target(LIMIT)),
    ]


def _lines(name: str, outcomes: list[Outcome]) -> Iterator[tuple[str, ...]]:
    previous: Outcome | None = None
    for own in outcomes:
        cells = ("", "", "")
        if previous is not None:
            slower, worse = _factors(previous, own)
            cliff = _adjacent(previous, own) and max(slower, 1.0 / slower, worse) > 2.0
            cells = (f"{slower:.2f}", f"{worse:.2f}", "cliff" if cliff else "")
        yield name, f"{own.size}", own.chosen, f"{own.speed:,.0f}", f"{own.error:.4f}", *cells
        previous = own


def _adjacent(first: Outcome, second: Outcome) -> bool:
    return second.size == first.size + 1


def _factors(first: Outcome, second: Outcome) -> tuple[float, float]:
    """How many times as slow the second is, and its error as a multiple."""
    return first.speed / second.speed, second.error / first.error


def _measure(series: Series, study: Study) -> list[Outcome]:
    """Sizes take turns within a seed, so that a slow moment hits all alike."""
    around = () if study.quick else (size + k for size in changes(series) for k in (0, 1))
    sizes = sorted({*((5, 6) if study.quick else series.sizes), *around})
    n = study.size(series.n_rows, 50)
    found: dict[int, list[tuple[float, float]]] = {size: [] for size in sizes}
    for seed in range(study.size(SEEDS, 1)):
        for size in sizes:
            X, y = series.rows(size, n + 2_000, seed)
            network = series.network(size)
            start = process_time()
            network.learn(X[:n], y[:n])
            found[size].append((process_time() - start, _error(network, X[n:], y[n:])))
    return [
        Outcome(
            size,
            series.chosen(size),
            n / median(seconds for seconds, _ in runs),
            float(np.mean([error for _, error in runs])),
        )
        for size, runs in found.items()
    ]


def _error(network: BayesianNetwork, X: FloatArray, y: Any) -> float:
    if network.observation.is_class:
        return -float(np.mean(network.log_predictive(X, y)))
    return float(np.sqrt(np.mean((network.predict(X).mean - y) ** 2)) / np.std(y))
