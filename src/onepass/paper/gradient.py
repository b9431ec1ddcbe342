"""The baselines of Section V-C: the same ReLU perceptron, trained by gradient descent with its best settings.

It learns as the perceptron does, one step per point in order, or is trained afresh on all points seen so far, in full
batches. Its learning rate, its number of epochs and its initial weights are the best of a grid, chosen on trials that
are not reported. The initial weights matter most: a ReLU that starts with no output for any point has no slope either
and never learns.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from onepass._typing import FloatArray
from onepass.paper.base import Tick

__all__ = [
    "BASELINES",
    "EPOCHS",
    "LEARNING_RATES",
    "STARTS",
    "Baseline",
    "Recipe",
    "Score",
    "cheapest_of_the_best",
    "descend",
    "output",
    "search",
    "train",
]

LEARNING_RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
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
    epochs: int | None
    """Steps down all points seen so far, from the start again for each point; None for one step per point, in order."""


@dataclass(frozen=True)
class Baseline:
    """The recipes of which the best competes under one name."""

    starts: tuple[str, ...]
    one_pass: bool

    def has(self, recipe: Recipe) -> bool:
        """Whether a recipe is one of them."""
        return recipe.start in self.starts and (recipe.epochs is None) == self.one_pass


BASELINES = {
    "one_pass": Baseline(("small", "wide"), one_pass=True),
    "batch": Baseline(("wide",), one_pass=False),
    "one_pass_live": Baseline(("live",), one_pass=True),
    "strongest": Baseline(tuple(STARTS), one_pass=False),
}
"""Gradient descent as one would expect it, in one pass and in batches from the Bayesian prior; then with a start picked
by hand for this task."""


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


def train(recipe: Recipe, weights: FloatArray, x: FloatArray, y: FloatArray) -> Iterator[FloatArray]:
    """Weights ``(..., 2)`` after each of the points ``(..., n)``."""
    start = weights
    for n in range(1, x.shape[-1] + 1):
        if recipe.epochs is None:
            weights = descend(weights, x[..., n - 1 : n], y[..., n - 1 : n], recipe.learning_rate, 1)
        else:
            weights = descend(start, x[..., :n], y[..., :n], recipe.learning_rate, recipe.epochs)
        yield weights


def search(
    x: FloatArray, y: FloatArray, x_test: FloatArray, y_test: FloatArray, noise: FloatArray, tick: Tick
) -> list[Score]:
    """Score the whole grid on trials ``(trials, n)``, ``(trials, m)``: one tick for each number of points.

    All starts and learning rates descend side by side, and a run of 1,000 epochs passes through the shorter ones.
    """
    starts = np.stack([initial_weights(start, noise) for start in STARTS])[:, None]  # (starts, 1, trials, 2)
    rates = np.array(LEARNING_RATES)[:, None, None]  # (rates, 1, 1)
    total = np.zeros((1 + len(EPOCHS), len(STARTS), len(LEARNING_RATES)))
    followed = np.broadcast_to(starts, (len(STARTS), len(LEARNING_RATES), *noise.shape))
    with np.errstate(over="ignore", invalid="ignore"):  # too high a learning rate runs away, and scores as it should
        for n in range(1, x.shape[-1] + 1):
            followed = descend(followed, x[:, n - 1 : n], y[:, n - 1 : n], rates, 1)
            total[0] += rmse(followed, x_test, y_test).mean(axis=-1)
            weights, done = starts, 0
            for i, epochs in enumerate(EPOCHS, start=1):
                weights, done = descend(weights, x[:, :n], y[:, :n], rates, epochs - done), epochs
                total[i] += rmse(weights, x_test, y_test).mean(axis=-1)
            tick()
    total[~np.isfinite(total)] = np.inf
    recipes = product((None, *EPOCHS), STARTS, LEARNING_RATES)
    return [
        Score(Recipe(start, rate, epochs), float(value / x.shape[-1]))
        for (epochs, start, rate), value in zip(recipes, total.ravel(), strict=True)
    ]


def rmse(weights: FloatArray, x_test: FloatArray, y_test: FloatArray) -> FloatArray:
    """Root mean squared error on test points ``(..., m)``, one per trial."""
    return np.asarray(np.sqrt(np.mean((output(weights, x_test) - y_test) ** 2, axis=-1)))


def cheapest_of_the_best(scores: list[Score]) -> Score:
    """Take the recipe with the fewest epochs among those within 1 % of the best."""
    best = min(score.rmse for score in scores)
    close = [score for score in scores if score.rmse <= 1.01 * best]
    return min(close, key=lambda score: (score.recipe.epochs or 0, score.rmse))
