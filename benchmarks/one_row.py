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
from river import linear_model
from threadpoolctl import threadpool_limits

from benchmarks.timing import Measurement, race
from onepass import BayesianNetwork
from onepass.river import MLPClassifier, MLPRegressor, PerceptronClassifier, PerceptronRegressor

_ROUNDS = 5
Call = Callable[[], object]


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

    add("PerceptronClassifier", "logistic", PerceptronClassifier(), labels, 8.0, 12.0)
    add("PerceptronRegressor", "linear", PerceptronRegressor(), numbers, 8.0, 12.0)
    add("PerceptronRegressor(standardize)", "linear", PerceptronRegressor(standardize=True), numbers, 8.0, 12.0)
    add("MLPRegressor, 241 weights", "kernel, numbers", MLPRegressor(standardize=True), numbers, 20.0, 20.0)
    add("MLPClassifier, 241 weights", "kernel, labels", MLPClassifier(), labels, 20.0, 20.0)
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


SECTIONS = {section.__name__: section for section in (river,)}


def main() -> None:
    """Run the sections named on the command line, or all."""
    print(f"{'':58s} {'ours us':>10s} {'other us':>10s} {'figure':>8s}")
    with threadpool_limits(1):
        for name in sys.argv[1:] or SECTIONS:
            for measurement in SECTIONS[name]():
                print(measurement.line(), flush=True)


if __name__ == "__main__":
    main()
