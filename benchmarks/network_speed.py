"""How fast networks learn: a row of the full mode against the bare arithmetic in it, and the wide mode."""

from collections.abc import Iterator
from statistics import median

import numpy as np
from scipy.linalg.blas import dsymv, dsyr

from benchmarks.timing import Measurement, race, ratio
from onepass import BayesianNetwork

__all__ = ["networks"]

_RNG = np.random.default_rng(0)


def networks() -> Iterator[Measurement]:
    """Fifty ReLU units in full mode, and a million weights in diagonal mode."""
    for d in (8, 13):
        yield _full(d)
    yield _steady()


def _full(d: int) -> Measurement:
    n = 1000
    X, y = _RNG.normal(size=(n, d)), _RNG.normal(size=n)
    network = BayesianNetwork(d, covariance="full")
    size = len(network.mean)
    cov, slope = np.asfortranarray(np.eye(size)), _RNG.normal(size=size)

    def bare() -> None:
        for _ in range(n):
            gain = dsymv(1.0, cov, slope, lower=1)
            dsyr(-1e-12, gain, a=cov, lower=1, overwrite_a=1)

    seconds = race({"ours": lambda: network.learn(X, y), "bare": bare}, 7)
    value = ratio(seconds, "ours", "bare")
    times = median(seconds["ours"]) / n, median(seconds["bare"]) / n
    return Measurement(f"network, {size} weights: against dsymv + dsyr", *times, value, "at most 3", value <= 3.0)


def _steady() -> Measurement:
    """The rate of a million weights at the end of a stream over that at its beginning."""
    n = 100
    X, y = _RNG.normal(size=(n, 1000)), _RNG.normal(size=n)
    young, old = (BayesianNetwork(1000, (999,), covariance="diagonal") for _ in range(2))
    for _ in range(20):
        old.learn(X, y)
    seconds = race({"ours": lambda: old.learn(X, y), "young": lambda: young.learn(X, y)}, 5)
    value = ratio(seconds, "ours", "young")
    times = median(seconds["ours"]) / n, median(seconds["young"]) / n
    return Measurement("network, 1,000,999 weights: after 2,000 rows", *times, value, "at most 1.2", value <= 1.2)
