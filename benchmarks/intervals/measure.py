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
from onepass._typing import FloatArray
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
ROUNDS, TRACKED_ROWS = 11, 5_000

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
    """Microseconds that tracking takes per row and level: many rows in one call, one row, and what it adds to a model.

    Medians over rounds in which all of these take turns, of the time of this process.
    """
    rng = np.random.default_rng(0)
    z, X = rng.normal(size=TRACKED_ROWS), rng.normal(size=(TRACKED_ROWS, 10))
    y = X.sum(axis=1) + z
    parts: dict[str, Callable[[], float]] = {
        "many rows": lambda: _seconds(QuantileTracker().update, [(z,)]),
        "one row": lambda: _seconds(QuantileTracker().update_one, zip(z.tolist())),
        "model": lambda: _learning_seconds(_perceptron(), X, y),
        "model and intervals": lambda: _learning_seconds(AdaptiveIntervals(_perceptron()), X, y),
    }
    rounds = [{name: measure() for name, measure in parts.items()} for _ in range(ROUNDS)]
    found = {name: median(one[name] for one in rounds) * 1e6 / TRACKED_ROWS / len(LEVELS) for name in parts}
    return {name: found[name] for name in ("many rows", "one row")} | {
        "added to a model": found["model and intervals"] - found["model"]
    }


def _perceptron() -> BayesianPerceptron:
    return BayesianPerceptron(10, "linear", noise="learn")


def _learning_seconds(model: Any, X: FloatArray, y: FloatArray) -> float:
    model.learn(X[:WARM_UP], y[:WARM_UP])
    return _seconds(model.predict_then_learn, zip(X, y.tolist(), strict=True))


def _seconds(call: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> float:
    given, start = list(arguments), time.process_time()
    for one in given:
        call(*one)
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
