"""How long one row takes, learned or predicted per call, next to what others take: streams come one row at a time.

    python -m benchmarks.one_row [SECTION ...]

Without sections, all are run. Competitors take turns in one process, and what counts is the ratio of their processor
times: by the clock on the wall a busy machine would interrupt the slower one more often.
"""

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor

from benchmarks.timing import Measurement, race, ratio
from onepass import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
)

ROWS = 100
ROUNDS = 30
D = 10
MOST = {"partial_fit": 1.2, "predict": 1.5}  # times what the other takes


def estimators() -> Iterator[Measurement]:
    """Perceptrons next to scikit-learn's SGDRegressor and SGDClassifier, networks next to its MLPs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, D))
    y = X @ rng.normal(size=D) + 0.1 * rng.normal(size=400)
    pairs: list[tuple[Any, Any, Any]] = [
        (BayesianPerceptronRegressor(), SGDRegressor(), y),
        (BayesianPerceptronClassifier(), SGDClassifier(loss="log_loss"), y > 0.0),
        (BayesianPerceptronClassifier(), SGDClassifier(loss="log_loss"), np.digitize(y, [-1.0, 1.0])),
        (BayesianMLPRegressor((20,), passes=1), MLPRegressor(hidden_layer_sizes=(20,), max_iter=1), y),
        (BayesianMLPClassifier((20,), passes=1), MLPClassifier(hidden_layer_sizes=(20,), max_iter=1), y > 0.0),
    ]
    for ours, theirs, targets in pairs:
        rows = [(X[i : i + 1], targets[i : i + 1]) for i in range(ROWS)]
        for model in (ours, theirs):
            model.fit(X, targets)
        for method, most in MOST.items():
            runs: dict[str, Callable[[], object]] = {
                "ours": _calls(ours, method, rows),
                "theirs": _calls(theirs, method, rows),
            }
            seconds = race(runs, ROUNDS, time.process_time)
            found = ratio(seconds, "ours", "theirs")
            per_row = {name: median(own) / ROWS for name, own in seconds.items()}
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


SECTIONS: dict[str, Callable[[], Iterator[Measurement]]] = {"estimators": estimators}


def main(names: list[str]) -> int:
    """Run sections by their names, print what was measured, and return how many targets were missed."""
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        sys.exit(f"{unknown[0]!r} is not a section; choose from {', '.join(SECTIONS)}")
    warnings.simplefilter("ignore")  # of scikit-learn, about passes that have not converged
    missed = 0
    print(f"{'microseconds per row':58s} {'ours':>10s} {'theirs':>10s} {'ratio':>8s}   target")
    for name in names or SECTIONS:
        for found in SECTIONS[name]():
            print(found.line(), flush=True)
            missed += not found.reached
    return missed


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
