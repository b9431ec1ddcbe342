"""Boundaries that move: synthetic streams of labels, compared with the fixed forgetting that turned out best.

Turning is the first experiment of Duran-Martin et al., "BONE" (2024): inputs uniform in [-3, 3]^2, weights of length
10 that turn by 5 degrees per step, 720 steps, logistic labels, no intercept; the published figure is that of their
best method, tuned. In the other streams three inputs are Gaussian, and the sign of the largest weight flips every 1,000
rows, or all weights wander slowly, or nothing moves. A fourth input that is always zero must change nothing. The figure
is the share of rows that are predicted right before they are learned, the mean over seeds. "Best other" is our own
model with the fixed `forgetting` that has the highest accuracy over all seeds, which nobody could have known before.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks.misbehaving.study import Outcome, Study
from onepass import BayesianPerceptronClassifier
from onepass._typing import FloatArray

__all__ = [
    "FORGETTING",
    "Moving",
    "accuracy",
    "best_fixed",
    "flipping",
    "flips",
    "gaussian",
    "still",
    "turning",
    "turns",
    "uniform",
    "walking",
]

FORGETTING = (0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 1.0)
TURNING_SEEDS, SEEDS = 100, 10
ROWS, PERIOD = 10_000, 1000
LENGTH = 10.0  # of the weights that turn
PUBLISHED = 0.854
WITHIN = 0.01

Draw = Callable[[np.random.Generator, int], FloatArray]


@dataclass(frozen=True)
class Moving:
    """A stream of labels: how its inputs are drawn, and its weights at every row, ``(n, d)``."""

    inputs: Draw
    weights: Draw
    rows: int
    zeros: int = 0  # inputs that are always zero
    options: Mapping[str, Any] = field(default_factory=dict)  # of the perceptron

    def draw(self, seed: int) -> tuple[FloatArray, FloatArray]:
        """Inputs and labels."""
        rng = np.random.default_rng(seed)
        weights = self.weights(rng, self.rows)
        X = self.inputs(rng, self.rows * weights.shape[1]).reshape(weights.shape)
        y = rng.random(self.rows) < expit((X * weights).sum(axis=1))
        return np.column_stack([X, np.zeros((self.rows, self.zeros))]), y.astype(np.float64)


def turning(degrees: float) -> Draw:
    """Two weights that turn."""

    def weights(rng: np.random.Generator, n: int) -> FloatArray:
        angles = rng.uniform(0.0, 2.0 * np.pi) + np.radians(degrees) * np.arange(n)
        return LENGTH * np.column_stack([np.cos(angles), np.sin(angles)])

    return weights


def flipping(start: Sequence[float], period: int) -> Draw:
    """Weights of which the first changes its sign."""

    def weights(rng: np.random.Generator, n: int) -> FloatArray:
        found = np.tile(np.array(start), (n, 1))
        found[:, 0] *= 1 - 2 * (np.arange(n) // period % 2)
        return found

    return weights


def walking(size: int, scale: float, memory: float) -> Draw:
    """Weights that wander around zero, at first and ever after with one standard deviation."""

    def weights(rng: np.random.Generator, n: int) -> FloatArray:
        keep = 1.0 - 1.0 / memory
        found = rng.normal(0.0, scale, (n, size))
        found[1:] *= np.sqrt(1.0 - keep**2)
        for row in range(1, n):
            found[row] += keep * found[row - 1]
        return found

    return weights


def still(start: Sequence[float]) -> Draw:
    """Weights that stay."""
    return lambda rng, n: np.tile(np.array(start), (n, 1))


def uniform(rng: np.random.Generator, n: int) -> FloatArray:
    """Inputs in [-3, 3]."""
    return rng.uniform(-3.0, 3.0, n)


def gaussian(rng: np.random.Generator, n: int) -> FloatArray:
    """Inputs of mean 0 and variance 1."""
    return rng.normal(size=n)


def accuracy(task: Moving, seeds: int, settings: dict[str, Any]) -> float:
    """Share of labels that were predicted before they were learned, over all seeds."""
    shares = []
    for seed in range(seeds):
        X, y = task.draw(seed)
        predicted = BayesianPerceptronClassifier(standardize=False, **task.options, **settings).predict_then_learn(
            X, y, classes=[0.0, 1.0]
        )
        shares.append((predicted.mean.argmax(axis=1) == y).mean())
    return float(np.mean(shares))


def best_fixed(task: Moving, seeds: int, settings: dict[str, Any]) -> tuple[float, float]:
    """The highest accuracy of a forgetting that stays, and which one it is."""
    return max((accuracy(task, seeds, {**settings, "forgetting": rate}), rate) for rate in FORGETTING)


def turns(study: Study) -> list[Outcome]:
    """The boundary that turns, learned with the library's prior, with several, and with one as wide as the weights."""
    found = []
    for words, scale in (("", 1.0), (', prior_scale="auto"', "auto"), (f", prior_scale={LENGTH:g}", LENGTH)):
        task = Moving(uniform, turning(5.0), 720, options={"fit_intercept": False, "prior_scale": scale})
        seeds = study.size(TURNING_SEEDS, 2)
        ours = accuracy(task, seeds, study.without())
        other, rate = best_fixed(task, seeds, study.without("drift"))
        name = f"turning by 5 degrees{words}: accuracy"
        found.append(Outcome(name, ours, other, f"forgetting={rate:g}", PUBLISHED, f">= {PUBLISHED}"))
    return found


def flips(study: Study) -> list[Outcome]:
    """Flips, a slow walk, and nothing that moves, without and with an input that is always zero."""
    start = (3.0, 1.0, -1.0)
    kinds = {
        f"flips every {PERIOD:,} rows": flipping(start, PERIOD),
        "slow walk": walking(3, 2.0, 2000.0),
        "no drift": still(start),
    }
    rows, seeds = study.size(ROWS, 300), study.size(SEEDS, 1)
    found = []
    for name, weights in kinds.items():
        other, rate = best_fixed(Moving(gaussian, weights, rows), seeds, study.without("drift"))
        for zeros, words in ((0, ""), (1, ", a column of zeros")):
            ours = accuracy(Moving(gaussian, weights, rows, zeros), seeds, study.without())
            target = f">= {other - WITHIN:.3f}"
            found.append(Outcome(f"{name}{words}: accuracy", ours, other, f"forgetting={rate:g}", None, target))
    return found
