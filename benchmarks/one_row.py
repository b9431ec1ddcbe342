"""What a call costs for one row at a time, as a stream or a service makes it.

    python -m benchmarks.one_row [SECTION ...]

Times are those of the process, so that other programs count less, and what is compared takes turns. A loaded machine
makes microseconds too large; ratios and differences against the kernel in the same run are more robust.
"""

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.timing import Measurement, race, ratio
from onepass import BayesianNetwork, BayesianPerceptron, Mixture
from onepass._typing import FloatArray

_ROUNDS = 5


def core() -> Iterator[Measurement]:
    """Perceptrons, networks and mixtures over drift themselves, without estimators around them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 20))
    y = X @ rng.normal(size=20) / 4.0 + 0.1 * rng.normal(size=len(X))
    yield from _perceptrons(X, y)
    rows, numbers = np.ascontiguousarray(X[:300, :10]), y[:300]
    counts = rng.poisson(np.exp(np.clip(numbers, -2.0, 2.0))).astype(np.float64)
    targets = {"gaussian": numbers, "bernoulli": (numbers > 0.0).astype(np.float64), "poisson": counts}
    for observation, own in targets.items():
        network = BayesianNetwork(10, (20,), observation=observation, covariance="full")
        yield from _above_kernel(network, observation, rows, own)
    networks = partial(_rates, BayesianNetwork, 10, (20,), covariance="full")
    yield from _over_one_rate("networks of 241 weights", networks, rows, numbers, 7.0)
    perceptrons = partial(_rates, BayesianPerceptron, 20, "linear", noise="learn")
    yield from _over_one_rate("perceptrons, d = 20", perceptrons, X, y, np.inf)


def _rates(model: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, Mixture]:
    """A model of one rate of drift, and a mixture of six."""
    return model(*args, **options, drift=1e-3), Mixture.over_drift(model, *args, **options)


def _perceptrons(X: FloatArray, y: FloatArray) -> Iterator[Measurement]:
    labels = (y > 0.0).astype(np.float64)
    kinds: dict[str, tuple[dict[str, Any], FloatArray]] = {
        "sigmoid": ({}, labels),
        "linear": ({"activation": "linear"}, y),
        "linear, learned noise": ({"activation": "linear", "noise": "learn"}, y),
    }
    for name, (options, targets) in kinds.items():
        model = BayesianPerceptron(20, **options).learn(X, targets)
        calls: dict[str, Callable[[], object]] = {
            "learn": _learning(model, X, targets),
            "predict": _predicting(model, X),
        }
        seconds = race(calls, _ROUNDS, time.process_time)
        for call, limit in (("learn", 1.0), ("predict", 2.0)):
            micro = 1e6 * median(seconds[call]) / len(X)
            target = f"at most {limit:g} us"
            yield Measurement(f"{name}, d = 20: {call}", 1e-6 * micro, 0.0, micro, target, micro <= limit)


def _above_kernel(model: Any, name: str, X: FloatArray, y: FloatArray) -> Iterator[Measurement]:
    """Microseconds of one call beyond those of a row in a batch."""
    calls: dict[str, Callable[[], object]] = {
        "kernel": partial(model.learn, X, y),
        "learn": _learning(model, X, y),
        "predict": _predicting(model, X),
    }
    seconds = race(calls, _ROUNDS, time.process_time)
    for call, limit in (("learn", 8.0), ("predict", 10.0)):
        own, kernel = median(seconds[call]) / len(X), median(seconds["kernel"]) / len(X)
        above = 1e6 * (own - kernel)
        target = f"at most {limit:g} us more"
        yield Measurement(f"network of 241 weights, {name}: {call}", own, kernel, above, target, above <= limit)


def _over_one_rate(
    name: str, make: Callable[[], tuple[Any, Mixture]], X: FloatArray, y: FloatArray, limit: float
) -> Iterator[Measurement]:
    """A mixture of six rates over one of them."""
    one, six = make()
    for call, run in (("learn", _learning), ("predict", lambda model, rows, _: _predicting(model, rows))):
        seconds = race({"six": run(six, X, y), "one": run(one, X, y)}, _ROUNDS, time.process_time)
        value, times = ratio(seconds, "six", "one"), (median(seconds["six"]) / len(X), median(seconds["one"]) / len(X))
        target = f"at most {limit:g}" if limit < np.inf else "for information"
        yield Measurement(f"six rates over one, {name}: {call}", *times, value, target, value <= limit)


def _learning(model: Any, X: FloatArray, y: FloatArray) -> Callable[[], None]:
    rows, targets = list(X), y.tolist()

    def run() -> None:
        for x, target in zip(rows, targets, strict=True):
            model.learn(x, target)

    return run


def _predicting(model: Any, X: FloatArray) -> Callable[[], None]:
    rows = list(X)

    def run() -> None:
        for x in rows:
            model.predict(x)

    return run


SECTIONS = {section.__name__: section for section in (core,)}


def main() -> None:
    """Run the sections named on the command line, or all."""
    print(f"{'':58s} {'ours us':>10s} {'other us':>10s} {'figure':>8s}")
    with threadpool_limits(1):
        for name in sys.argv[1:] or SECTIONS:
            for measurement in SECTIONS[name]():
                print(measurement.line(), flush=True)


if __name__ == "__main__":
    main()
