"""Every method on every stream, row by row: each row is predicted before it is learned.

Results are kept in benchmarks/intervals.json, stream by stream and method by method, so that some can be measured
again without the rest.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.intervals import peers
from benchmarks.intervals.scores import LEVELS, MAIN, Limits, scored
from benchmarks.intervals.streams import WARM_UP, Stream
from benchmarks.stored import keep, stored
from onepass import AdaptiveIntervals, BayesianCommittee, BayesianNetwork, BayesianPerceptron, Mixture
from onepass.models.distribution import Prediction
from onepass.models.online import OnlineModel
from onepass.models.tracking import QuantileTracker

__all__ = ["ADAPTIVE", "MODELS", "PLAIN", "cost", "measure_own", "measure_peers", "measured", "read", "score", "write"]

STORED = Path(__file__).parents[1] / "intervals.json"
MODELS: dict[str, Callable[[int], OnlineModel]] = {
    "": lambda d: BayesianCommittee(d, (20,), members=3, drift="auto"),
    "network": lambda d: Mixture.over_drift(BayesianNetwork, d, (20,)),
    "perceptron": lambda d: Mixture.over_drift(BayesianPerceptron, d, "linear", noise="learn"),
}
ADAPTIVE, PLAIN = "adaptive", "plain"
ROUNDS, TRACKED_ROWS = 15, 20_000

Found = dict[str, dict[str, Any]]
"""What is measured of each method."""


def measure_own(stream: Stream) -> Found:
    """Measure our models, with their own intervals and with tracked ones: the default, and two for information."""
    found = {}
    for name, make in MODELS.items():
        model = make(stream.X.shape[1])
        tracker = AdaptiveIntervals(model)
        rows = model.predict_then_learn(stream.X, stream.y)
        for kind, seen in ((PLAIN, rows), (ADAPTIVE, tracker.observe(rows, stream.y))):
            found[f"{name} {kind}".strip()] = scored(_limits(seen), stream.y[WARM_UP:])
    return found


def _limits(rows: Prediction) -> Limits:
    return {level: tuple(side[WARM_UP:] for side in rows.interval(level)) for level in LEVELS}


def measure_peers(stream: Stream) -> Found:
    """Measure the others, each with the settings whose interval score turns out best."""
    best: Found = {}
    for method, settings, limits in peers.measure(stream):
        found = scored(limits, stream.y[WARM_UP:]) | {"settings": settings}
        if method not in best or score(found) < score(best[method]):
            best[method] = found
    return best


def score(found: dict[str, Any]) -> float:
    """The interval score of the main level."""
    return float(found["winkler"][LEVELS.index(MAIN)])


def cost() -> dict[str, float]:
    """Microseconds that tracking takes per row and level, for many rows in one call and for one row per call."""
    z = np.random.default_rng(0).normal(size=TRACKED_ROWS)
    return {
        "many rows": median(_seconds([z]) for _ in range(ROUNDS)) * 1e6 / len(z) / len(LEVELS),
        "one row": median(_seconds(z[:1000, None]) for _ in range(ROUNDS)) * 1e6 / 1000 / len(LEVELS),
    }


def _seconds(parts: Any) -> float:
    tracker, start = QuantileTracker(), time.process_time()
    for part in parts:
        tracker.update(part)
    return time.process_time() - start


def read() -> dict[str, Any]:
    """Read what has been measured."""
    return stored(STORED) or {"streams": {}, "cost": {}}


def write(results: dict[str, Any]) -> None:
    """Keep it."""
    keep(STORED, results)


def described(stream: Stream) -> dict[str, Any]:
    """What the page says about a stream."""
    return {"origin": stream.origin, "rows": len(stream.y), "inputs": stream.X.shape[1]}


def measured(streams: Iterable[Stream], own: bool, others: bool) -> Iterator[str]:
    """Measure our models, others or both, stream by stream, and keep the results; yields names of streams."""
    for stream in streams:
        found = (measure_own(stream) if own else {}) | (measure_peers(stream) if others else {})
        results = read()
        kept = results["streams"].get(stream.name, {}).get("methods", {})
        results["streams"][stream.name] = described(stream) | {"methods": kept | found}
        write(results)
        yield stream.name
