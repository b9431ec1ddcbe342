"""How fast a fleet learns, how much memory it takes, and what the population is worth to new keys.

    python -m benchmarks.fleet [keys]

A million keys of ten features, labels, batches of 100,000 rows with random keys. Memory is what the process grew by
while the keys came, its peak over the whole run, against the size of the perceptrons' own arrays.
"""

import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from onepass import PerceptronFleet

FEATURES, BATCH = 10, 100_000


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def batch(rng: np.random.Generator, keys: Any) -> dict[str, Any]:
    X = rng.normal(size=(len(keys), FEATURES))
    return {"X": X, "y": (X.sum(axis=1) + rng.logistic(size=len(keys)) > 0).astype(np.float64), "keys": keys}


def rates(n_keys: int) -> None:
    rng = np.random.default_rng(0)
    warm = PerceptronFleet(FEATURES)
    for _ in range(2):
        warm.predict_then_learn(**batch(rng, rng.integers(10, size=BATCH)))
        warm.predict(rng.normal(size=(BATCH, FEATURES)), keys=rng.integers(10, size=BATCH))
    before = peak()
    fleet = PerceptronFleet(FEATURES)
    seconds: dict[str, list[float]] = {"new keys": [], "known keys": [], "predictions": []}
    names = rng.permutation(n_keys) * 7919
    for part in np.array_split(names, max(n_keys // BATCH, 1)):
        rows = batch(rng, part)
        start = time.perf_counter()
        fleet.learn(**rows)
        seconds["new keys"].append((time.perf_counter() - start) / len(part))
    for _ in range(10):
        rows = batch(rng, names[rng.integers(n_keys, size=BATCH)])
        start = time.perf_counter()
        fleet.learn(**rows)
        middle = time.perf_counter()
        fleet.predict(rows["X"], keys=rows["keys"])
        seconds["known keys"].append((middle - start) / BATCH)
        seconds["predictions"].append((time.perf_counter() - middle) / BATCH)
    for what, times in seconds.items():
        print(f"{what:12s} {1.0 / median(times):12,.0f} a second")
    share = (peak() - before) / fleet.nbytes
    print(f"arrays {fleet.nbytes / 1e6:,.0f} MB for {len(fleet):,} keys; the process grew by {share:.2f} times that")
    evicting(fleet)


def evicting(fleet: PerceptronFleet) -> None:
    rng = np.random.default_rng(1)
    keys = np.array(fleet.keys())
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        fleet.bound(len(keys) // 2, folder)
        out = time.perf_counter() - start
        n, some = 0, min(20_000, len(keys) // 4)
        start = time.perf_counter()
        for _ in range(5):
            fleet.learn(**batch(rng, rng.choice(keys, some, replace=False)))
            n += some
        back = time.perf_counter() - start
        print(
            f"half of the keys evicted at {len(keys) / 2 / out:,.0f} a second; "
            f"rows of which every other key is evicted: {n / back:,.0f} a second"
        )
        del fleet


def population() -> None:
    """Log-loss of the first rows of new keys, each before it is learned."""
    rng = np.random.default_rng(0)

    def rows(n_keys: int, each: int, first: int) -> dict[str, Any]:
        weights = rng.normal(np.linspace(-1.0, 1.0, FEATURES), 0.5, size=(n_keys, FEATURES))
        keys = rng.permutation(np.repeat(np.arange(n_keys), each))
        X = rng.normal(size=(len(keys), FEATURES))
        a = (X * weights[keys]).sum(axis=1)
        y = (rng.random(len(keys)) < 1.0 / (1.0 + np.exp(-a))).astype(np.float64)
        return {"X": X, "y": y, "keys": keys + first}

    known, new = rows(5000, 50, 0), rows(2000, 20, 10**6)
    for name in ("flat prior", "population"):
        fleet = PerceptronFleet(FEATURES).learn(**known)
        if name == "population":
            start = time.perf_counter()
            fleet.prior = fleet.population()
            print(f"population of {len(fleet):,} keys learned in {time.perf_counter() - start:.2f} s")
        p = fleet.predict_then_learn(**new).mean
        loss = -np.mean(np.log(np.where(new["y"] > 0.5, p, 1.0 - p)))
        print(f"log-loss of the first 20 rows of 2,000 new keys, {name}: {loss:.4f}")


def main() -> None:
    rates(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
    population()


if __name__ == "__main__":
    main()
