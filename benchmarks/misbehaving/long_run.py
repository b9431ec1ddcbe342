"""A million rows with outliers and drift, and how much time our settings take.

Twenty inputs, weights that wander, noise of standard deviation 0.1, 5 % of the targets replaced by 5 or -5, learned in
batches. The belief must stay finite and positive definite (1 means yes). The error is that of one-step predictions,
compared with the truth without noise, over the last tenth of the rows. "Filter that knows" is a Kalman filter that
knows the noise, how the weights wander, and which rows are outliers. Times are ratios to a plain model without our
settings, measured in turns, with 20 inputs.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.endurance import inspect
from benchmarks.misbehaving.study import Outcome, Study
from benchmarks.timing import race, ratio
from onepass import BayesianPerceptron
from onepass._typing import FloatArray
from onepass.models.weighting import HYPOTHESES

__all__ = ["Part", "oracle_error", "outcomes", "wandering"]

ROWS, BATCH, D = 1_000_000, 10_000, 20
NOISE, SHARE, WILD = 0.1, 0.05, 5.0
MEMORY = 100_000.0  # rows after which the weights are others
TIMED, ROUNDS = 20_000, 7


class Part(NamedTuple):
    """Rows, what they would be without noise, their targets, and which of these are wild."""

    X: FloatArray
    truth: FloatArray
    y: FloatArray
    wild: Any


def wandering(n: int, seed: int) -> Iterator[Part]:
    """Batches of ``n`` rows in all, from weights that wander around zero with a standard deviation of 1."""
    rng = np.random.default_rng(seed)
    keep = 1.0 - 1.0 / MEMORY
    weights = rng.normal(size=D)
    for start in range(0, n, BATCH):
        size = min(BATCH, n - start)
        X, truth = rng.normal(size=(size, D)), np.empty(size)
        steps = rng.normal(0.0, np.sqrt(1.0 - keep**2), (size, D))
        for row in range(size):
            weights = keep * weights + steps[row]
            truth[row] = X[row] @ weights
        wild = rng.random(size) < SHARE
        y = np.where(wild, rng.choice([-WILD, WILD], size), truth + rng.normal(0.0, NOISE, size))
        yield Part(X, truth, y, wild)


def oracle_error(parts: Iterator[Part]) -> float:
    """Root mean squared error of the filter that knows everything but the weights, over the later half of the rows."""
    keep = 1.0 - 1.0 / MEMORY
    mean, cov, squares = np.zeros(D), np.eye(D), []
    for X, truth, y, wild in parts:
        for x, value, target, skip in zip(X, truth, y, wild, strict=True):
            mean, cov = keep * mean, keep**2 * cov + (1.0 - keep**2) * np.eye(D)
            squares.append((x @ mean - value) ** 2)
            if not skip:
                c = cov @ x
                gain = c / (x @ c + NOISE**2)
                mean, cov = mean + gain * (target - x @ mean), cov - np.outer(gain, c)
    return float(np.sqrt(np.mean(squares[len(squares) // 2 :])))


def outcomes(study: Study) -> list[Outcome]:
    """The long run, and the costs."""
    n = study.size(ROWS, 20_000)
    model = _perceptron("linear", study.without())
    squares = [(model.predict_then_learn(part.X, part.y).mean - part.truth) ** 2 for part in wandering(n, 0)]
    health = inspect(model)
    error = float(np.sqrt(np.concatenate(squares)[-n // 10 :].mean()))
    oracle = oracle_error(wandering(min(n, 2 * BATCH), 0))
    rows = f"{n:,} rows"
    return [
        Outcome(f"{rows}: belief finite and symmetric", float(health.finite and health.symmetric), bound=">= 1"),
        Outcome(f"{rows}: positive definite", float(health.smallest_eigenvalue > 0.0), bound=">= 1"),
        Outcome(
            f"{rows}: predictive variances positive", float(health.smallest_predictive_variance > 0.0), bound=">= 1"
        ),
        Outcome(f"{rows}: error against the truth", error, oracle, "filter that knows"),
        *_costs(study),
    ]


def _costs(study: Study) -> Iterator[Outcome]:
    n = study.size(TIMED, 1000)
    part = next(wandering(n, 1)) if n <= BATCH else Part(*map(np.concatenate, zip(*wandering(n, 1), strict=True)))
    targets = {"linear": part.y, "sigmoid": (part.truth > 0.0).astype(np.float64)}
    limits = {"outliers": 2, "drift": len(HYPOTHESES)}
    for activation, y in targets.items():
        options = {"plain": {}, **{name: study.only(name) for name in limits}, "both": study.only(*limits)}
        competitors: dict[str, Callable[[], object]] = {
            name: partial(_learn, activation, given, part.X, y) for name, given in options.items()
        }
        seconds = race(competitors, study.size(ROUNDS, 1))
        for name, limit in {**limits, "both": 0}.items():
            target = f"<= {limit}.0" if limit else ""
            yield Outcome(f"{activation}: time with {name} over plain", ratio(seconds, name, "plain"), bound=target)


def _learn(activation: str, settings: dict[str, Any], X: FloatArray, y: FloatArray) -> BayesianPerceptron:
    return _perceptron(activation, settings).learn(X, y)


def _perceptron(activation: str, settings: dict[str, Any]) -> BayesianPerceptron:
    noise: dict[str, Any] = {"noise": "learn"} if activation == "linear" else {}
    return BayesianPerceptron(D, activation, **noise, **settings)
