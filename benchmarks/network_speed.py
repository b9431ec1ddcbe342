"""How fast networks learn: full mode against the bare arithmetic in it, batches, threads, and the wide mode."""

from collections.abc import Iterator
from statistics import median

import numpy as np
from scipy.linalg.blas import dsymv, dsyr

from benchmarks.timing import Measurement, race, ratio
from onepass import BayesianCommittee, BayesianNetwork

__all__ = ["networks"]

_RNG = np.random.default_rng(0)


def networks() -> Iterator[Measurement]:
    """Fifty ReLU units in full mode, row by row, in batches and in threads; a million weights in diagonal mode."""
    for d in (8, 13):
        yield _full(d)
    yield _together()
    yield _side_by_side()
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


def _together() -> Measurement:
    """Rows in batches of 32 over rows one by one."""
    n = 1024
    X, y = _RNG.normal(size=(n, 8)), _RNG.normal(size=n)
    rows, batches = (BayesianNetwork(8, covariance="full") for _ in range(2))
    seconds = race({"ours": lambda: batches.learn(X, y, batch=32), "rows": lambda: rows.learn(X, y)}, 7)
    value = ratio(seconds, "ours", "rows")
    times = median(seconds["ours"]) / n, median(seconds["rows"]) / n
    return Measurement("network, 501 weights: batches of 32 over rows", *times, value, "at most 0.8", value <= 0.8)


def _side_by_side() -> Measurement:
    """Four members in two threads over one: half the time where two cores are free."""
    n = 500
    X, y = _RNG.normal(size=(n, 8)), _RNG.normal(size=n)
    alone, threaded = (BayesianCommittee(8, members=4, weighting="uniform", workers=k) for k in (1, 2))
    seconds = race({"ours": lambda: threaded.learn(X, y), "alone": lambda: alone.learn(X, y)}, 7)
    value = ratio(seconds, "ours", "alone")
    times = median(seconds["ours"]) / n, median(seconds["alone"]) / n
    return Measurement("committee of 4: two threads over one", *times, value, "at most 0.7", value <= 0.7)


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
