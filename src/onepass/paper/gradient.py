"""The baseline of Section V-C: the same ReLU perceptron, trained by gradient descent with its best settings.

Before every point it is trained afresh on all points seen so far, in full batches. Its learning rate, its number of
epochs and its initial weights are the best of a grid, chosen on trials that are not reported. The initial weights
matter most: a ReLU that starts with no output for any point has no slope either and never learns.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from onepass._typing import FloatArray
from onepass.paper.base import Tick

__all__ = [
    "EPOCHS",
    "LEARNING_RATES",
    "STARTS",
    "Recipe",
    "Score",
    "cheapest_of_the_best",
    "descend",
    "output",
    "search",
]

LEARNING_RATES = (0.01, 0.03, 0.1, 0.3, 1.0)
EPOCHS = (10, 100, 1_000)
# Mean and standard deviation of the initial (bias, weight): as one often starts; as widely as the Bayesian prior; and
# with a bias that lets every point through at first.
STARTS: dict[str, tuple[tuple[float, float], float]] = {
    "small": ((0.0, 0.0), 0.1),
    "wide": ((0.0, 0.0), 1.0),
    "live": ((1.0, 0.0), 0.1),
}


@dataclass(frozen=True)
class Recipe:
    """How to train."""

    start: str
    learning_rate: float
    epochs: int


@dataclass(frozen=True)
class Score:
    """A recipe and its rmse, averaged over trials and numbers of points."""

    recipe: Recipe
    rmse: float


def initial_weights(start: str, noise: FloatArray) -> FloatArray:
    """Bias and weight to begin with, ``(..., 2)``, from standard normal ``noise`` of that shape."""
    centre, scale = STARTS[start]
    return np.asarray(centre + scale * noise)


def output(weights: FloatArray, x: FloatArray) -> FloatArray:
    """``relu(bias + weight x)`` for weights ``(..., 2)`` and inputs ``(..., n)``."""
    return np.maximum(weights[..., :1] + weights[..., 1:] * x, 0.0)


def descend(
    weights: FloatArray, x: FloatArray, y: FloatArray, learning_rate: float | FloatArray, epochs: int
) -> FloatArray:
    """Take full-batch steps down the mean squared error of ``(..., n)`` points; weights and result ``(..., 2)``.

    Leading dimensions are trials, or learning rates, trained side by side.
    """
    rate = 2.0 * np.asarray(learning_rate) / x.shape[-1]
    bias, weight = weights[..., :1], weights[..., 1:]
    for _ in range(epochs):
        a = bias + weight * x
        slope = np.where(a > 0.0, a - y, 0.0)
        bias = bias - rate * slope.sum(axis=-1, keepdims=True)
        weight = weight - rate * (slope * x).sum(axis=-1, keepdims=True)
    return np.concatenate(np.broadcast_arrays(bias, weight), axis=-1)


def search(
    x: FloatArray, y: FloatArray, x_test: FloatArray, y_test: FloatArray, noise: FloatArray, tick: Tick
) -> list[Score]:
    """Score the whole grid on trials ``(trials, n)``, ``(trials, m)``: one tick for each number of points.

    All starts and learning rates descend side by side, and a run of 1,000 epochs passes through the shorter ones.
    """
    starts = np.stack([initial_weights(start, noise) for start in STARTS])[:, None]  # (starts, 1, trials, 2)
    rates = np.array(LEARNING_RATES)[:, None, None]  # (rates, 1, 1)
    total = np.zeros((len(EPOCHS), len(STARTS), len(LEARNING_RATES)))
    with np.errstate(over="ignore", invalid="ignore"):  # too high a learning rate runs away, and scores as it should
        for n in range(1, x.shape[-1] + 1):
            weights, done = starts, 0
            for i, epochs in enumerate(EPOCHS):
                weights, done = descend(weights, x[:, :n], y[:, :n], rates, epochs - done), epochs
                total[i] += rmse(weights, x_test, y_test).mean(axis=-1)
            tick()
    total[~np.isfinite(total)] = np.inf
    return [
        Score(Recipe(start, rate, epochs), float(value / x.shape[-1]))
        for (epochs, start, rate), value in zip(product(EPOCHS, STARTS, LEARNING_RATES), total.ravel(), strict=True)
    ]


def rmse(weights: FloatArray, x_test: FloatArray, y_test: FloatArray) -> FloatArray:
    """Root mean squared error on test points ``(..., m)``, one per trial."""
    return np.asarray(np.sqrt(np.mean((output(weights, x_test) - y_test) ** 2, axis=-1)))


def cheapest_of_the_best(scores: list[Score]) -> Score:
    """Take the recipe with the fewest epochs among those within 1 % of the best."""
    best = min(score.rmse for score in scores)
    close = [score for score in scores if score.rmse <= 1.01 * best]
    return min(close, key=lambda score: (score.recipe.epochs, score.rmse))
