"""What a call costs for one row at a time, as a stream or a service makes it, next to what others take.

    python -m benchmarks.one_row [SECTION ...]

Without sections, all are run. Times are those of the process, so that other programs count less, and what is compared
takes turns. A loaded machine makes microseconds too large; ratios and differences in the same run are more robust.
"""

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from river import linear_model
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from threadpoolctl import threadpool_limits

from benchmarks.timing import Measurement, race, ratio
from onepass import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianNetwork,
    BayesianPerceptron,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
    Mixture,
)
from onepass import (
    river as onepass_river,
)
from onepass._typing import FloatArray

_ROUNDS = 5
Call = Callable[[], object]


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
        calls: dict[str, Call] = {
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
    calls: dict[str, Call] = {
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


def estimators() -> Iterator[Measurement]:
    """Perceptrons next to scikit-learn's SGDRegressor and SGDClassifier, networks next to its MLPs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 10))
    y = X @ rng.normal(size=10) + 0.1 * rng.normal(size=400)
    pairs: list[tuple[Any, Any, Any]] = [
        (BayesianPerceptronRegressor(), SGDRegressor(), y),
        (BayesianPerceptronClassifier(), SGDClassifier(loss="log_loss"), y > 0.0),
        (BayesianPerceptronClassifier(), SGDClassifier(loss="log_loss"), np.digitize(y, [-1.0, 1.0])),
        (BayesianMLPRegressor((20,), passes=1), MLPRegressor(hidden_layer_sizes=(20,), max_iter=1), y),
        (BayesianMLPClassifier((20,), passes=1), MLPClassifier(hidden_layer_sizes=(20,), max_iter=1), y > 0.0),
    ]
    for ours, theirs, targets in pairs:
        rows = [(X[i : i + 1], targets[i : i + 1]) for i in range(100)]
        for model in (ours, theirs):
            model.fit(X, targets)
        for method, most in (("partial_fit", 1.2), ("predict", 1.5)):
            runs: dict[str, Call] = {
                "ours": _calls(ours, method, rows),
                "theirs": _calls(theirs, method, rows),
            }
            seconds = race(runs, 30, time.process_time)
            found = ratio(seconds, "ours", "theirs")
            per_row = {name: median(own) / len(rows) for name, own in seconds.items()}
            classes = "" if targets.dtype.kind == "f" else f", {len(np.unique(targets))} classes"
            name = f"{type(ours).__name__}.{method}{classes}"
            yield Measurement(name, per_row["ours"], per_row["theirs"], found, f"at most {most}", found <= most)


def _calls(model: Any, method: str, rows: list[tuple[Any, Any]]) -> Callable[[], None]:
    """Calls of a method with one row each."""
    call, learns = getattr(model, method), method == "partial_fit"

    def run() -> None:
        for X, y in rows:
            if learns:
                call(X, y)
            else:
                call(X)

    return run


def river() -> Iterator[Measurement]:
    """River's models, ten features in a dictionary; beside River's linear regression, or the kernel in a batch."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 10))
    y = X @ rng.normal(size=10) + rng.normal(size=len(X))
    rows = [{f"x{k}": value for k, value in enumerate(row)} for row in X.tolist()]
    numbers, labels = (100.0 + y).tolist(), (y > 0.0).tolist()
    calls: dict[str, Call] = {
        "linear": partial(_learn, linear_model.LinearRegression(), rows, numbers),
        "logistic": partial(_learn, linear_model.LogisticRegression(), rows, labels),
    }
    limits: dict[str, tuple[str, float]] = {}

    def add(name: str, other: str, model: Any, targets: list[Any], learn: float, predict: float) -> None:
        _learn(model, rows, targets)
        is_label = isinstance(targets[0], bool)
        asked = model.predict_proba_one if is_label else partial(model.predict_one, with_dist=True)
        calls[f"{name}: learn_one"] = partial(_learn, model, rows, targets)
        limits[f"{name}: learn_one"] = other, learn
        called = f"{name}: {'predict_proba_one' if is_label else 'predict_one(with_dist)'}"
        calls[called], limits[called] = partial(_predict, asked, rows), (other, predict)

    add("PerceptronClassifier", "logistic", onepass_river.PerceptronClassifier(), labels, 8.0, 12.0)
    add("PerceptronRegressor", "linear", onepass_river.PerceptronRegressor(), numbers, 8.0, 12.0)
    add(
        "PerceptronRegressor(standardize)",
        "linear",
        onepass_river.PerceptronRegressor(standardize=True),
        numbers,
        8.0,
        12.0,
    )
    add(
        "MLPRegressor, 241 weights",
        "kernel, numbers",
        onepass_river.MLPRegressor(standardize=True),
        numbers,
        20.0,
        20.0,
    )
    add("MLPClassifier, 241 weights", "kernel, labels", onepass_river.MLPClassifier(), labels, 20.0, 20.0)
    calls["kernel, numbers"] = partial(BayesianNetwork(10, (20,)).learn, X, y / y.std())
    calls["kernel, labels"] = partial(BayesianNetwork(10, (20,), observation="bernoulli").learn, X, y > 0.0)
    seconds = race(calls, _ROUNDS, time.process_time)
    micro = {name: 1e6 * median(times) / len(rows) for name, times in seconds.items()}
    for name, (other, limit) in limits.items():
        value = micro[name] - (micro[other] if "kernel" in other else 0.0)
        target = f"at most {limit:g} us" + (" more" if "kernel" in other else "")
        yield Measurement(name, 1e-6 * micro[name], 1e-6 * micro[other], value, target, value <= limit)


def _learn(model: Any, rows: list[dict[str, float]], targets: list[Any]) -> None:
    for x, target in zip(rows, targets, strict=True):
        model.learn_one(x, target)


def _predict(call: Callable[[Any], object], rows: list[dict[str, float]]) -> None:
    for x in rows:
        call(x)


SECTIONS = {section.__name__: section for section in (core, estimators, river)}


def main(names: list[str]) -> int:
    """Run sections by their names, print what was measured, and return how many targets were missed."""
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        sys.exit(f"{unknown[0]!r} is not a section; choose from {', '.join(SECTIONS)}")
    warnings.simplefilter("ignore")  # of scikit-learn, about passes that have not converged
    missed = 0
    print(f"{'microseconds per row':58s} {'ours':>10s} {'other':>10s} {'figure':>8s}   target")
    with threadpool_limits(1):
        for name in names or SECTIONS:
            for found in SECTIONS[name]():
                print(found.line(), flush=True)
                missed += not found.reached
    return missed


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
