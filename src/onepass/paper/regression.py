"""Section V-C and Figures 5 and 6: a ReLU perceptron learns a noisy softplus, against gradient descent.

The paper does not say how its baseline was trained. Here are those of `gradient.BASELINES`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.models.perceptron import BayesianPerceptron
from onepass.paper import gradient
from onepass.paper.base import Tick, as_list, trial_rng
from onepass.paper.gradient import BASELINES, Recipe, Score

__all__ = [
    "AXIS",
    "N_POINTS",
    "N_TEST",
    "SHOWN",
    "TIMED_TRIALS",
    "TUNING_TRIALS",
    "Band",
    "Curve",
    "Example",
    "RegressionOutcome",
    "Trials",
    "run",
    "softplus",
    "steps",
]

N_POINTS, N_TEST = 20, 40
NOISE = 0.01
SHOWN = (1, 5, 10)
TIMED_TRIALS = 10
TUNING_TRIALS = 50  # however few are reported, so that the baseline is at its best
RULES = {"paper": "kalman", "exact": "adf"}
NAMES = {"paper": "bp"}  # in results.json
_REPORTED, _TUNING = 2, 3  # streams of random numbers: what is tuned on one is reported on the other
AXIS = np.linspace(-4.0, 4.0, 201)


def softplus(x: FloatArray) -> FloatArray:
    """Evaluate the paper's function, ``log(1 + e^(2x + 1))``."""
    return np.asarray(np.logaddexp(0.0, 2.0 * x + 1.0))


@dataclass(frozen=True)
class Trials:
    """Training points ``(trials, N_POINTS)``, test points ``(trials, N_TEST)``, noise for initial weights."""

    x: FloatArray
    y: FloatArray
    x_test: FloatArray
    y_test: FloatArray
    start: FloatArray

    @classmethod
    def draw(cls, seed: int, stream: int, trials: int) -> "Trials":
        """Training inputs fall in [-4, 2], test inputs in [-4, 4]; both targets are noisy."""
        return cls(
            *(np.stack(part) for part in zip(*(_draw_trial(seed, stream, i) for i in range(trials)), strict=True))
        )


@dataclass(frozen=True)
class Curve:
    """RMSE, and share of targets in the 3-sigma band, of each trial after each number of points."""

    rmse: FloatArray
    coverage: FloatArray


@dataclass(frozen=True)
class Band:
    """A prediction over the axis: mean, and standard deviation of the output."""

    mean: FloatArray
    std: FloatArray


@dataclass(frozen=True)
class Example:
    """The first trial, as each learner sees it after the numbers of points in ``SHOWN``."""

    x: FloatArray
    y: FloatArray
    bands: dict[str, tuple[Band, ...]]
    gradient: tuple[FloatArray, ...]
    """Of gradient descent in one pass."""


@dataclass(frozen=True)
class RegressionOutcome:
    """Everything measured, for both rules and the baselines."""

    curves: dict[str, Curve]
    gradient: dict[str, FloatArray]
    """The rmse of every baseline at its best, ``(trials, N_POINTS)``."""
    chosen: dict[str, Score]
    """Its recipe."""
    scores: tuple[Score, ...]
    seconds: dict[str, FloatArray]
    """Seconds spent on learning up to each number of points, ``(N_POINTS,)``."""
    example: Example

    def numbers(self) -> dict[str, Any]:
        """Every number; keys with "seconds" in them vary from run to run."""
        paper, exact = self.curves["paper"], self.curves["exact"]
        return {
            "n": list(range(1, N_POINTS + 1)),
            "trials": len(paper.rmse),
            **_averages("bp_rmse", paper.rmse),
            **_averages("exact_rmse", exact.rmse),
            **{
                key: value
                for name in BASELINES
                for key, value in _averages(f"{name}_rmse", self.gradient[name]).items()
            },
            "bp_coverage_mean": as_list(paper.coverage.mean(axis=0)),
            "exact_coverage_mean": as_list(exact.coverage.mean(axis=0)),
            **{f"{NAMES.get(name, name)}_seconds": float(times[-1]) for name, times in self.seconds.items()},
            **{f"{NAMES.get(name, name)}_seconds_by_n": as_list(times) for name, times in self.seconds.items()},
            **{f"{name}_recipe": _describe(score) for name, score in self.chosen.items()},
            "gradient_grid": [_describe(score) for score in self.scores],
        }


def steps(trials: int) -> int:
    """The search, then two rules per trial, then the timings."""
    return N_POINTS + 2 * trials + min(trials, TIMED_TRIALS)


def run(seed: int, trials: int, tick: Tick) -> RegressionOutcome:
    """Choose the recipe of gradient descent on other trials, then have all learn the same points."""
    tuning = Trials.draw(seed, _TUNING, TUNING_TRIALS)
    scores = gradient.search(tuning.x, tuning.y, tuning.x_test, tuning.y_test, tuning.start, tick)
    chosen = {
        name: gradient.cheapest_of_the_best([score for score in scores if baseline.has(score.recipe)])
        for name, baseline in BASELINES.items()
    }
    data = Trials.draw(seed, _REPORTED, trials)
    return RegressionOutcome(
        curves={rule: _curve(update, data, tick) for rule, update in RULES.items()},
        gradient={name: _gradient_curve(score.recipe, data) for name, score in chosen.items()},
        chosen=chosen,
        scores=tuple(scores),
        seconds=_time({name: score.recipe for name, score in chosen.items()}, data, tick),
        example=_example(chosen["one_pass"].recipe, data),
    )


def _draw_trial(seed: int, stream: int, trial: int) -> tuple[FloatArray, ...]:
    rng = trial_rng(seed, stream, trial)
    x, x_test = rng.uniform(-4.0, 2.0, N_POINTS), rng.uniform(-4.0, 4.0, N_TEST)
    std = np.sqrt(NOISE)
    y, y_test = softplus(x) + std * rng.standard_normal(N_POINTS), softplus(x_test) + std * rng.standard_normal(N_TEST)
    return x, y, x_test, y_test, rng.standard_normal(2)


def _perceptron(update: str) -> BayesianPerceptron:
    return BayesianPerceptron(1, "relu", observation="gaussian", noise=NOISE, update=update)


def _curve(update: str, data: Trials, tick: Tick) -> Curve:
    curve = Curve(np.empty(data.x.shape), np.empty(data.x.shape))
    for trial, (x, y) in enumerate(zip(data.x, data.y, strict=True)):
        perceptron, rows, targets = _perceptron(update), data.x_test[trial][:, None], data.y_test[trial]
        for n in range(N_POINTS):
            seen = perceptron.learn(x[n : n + 1], y[n]).predict(rows)
            curve.rmse[trial, n] = np.sqrt(np.mean((seen.mean - targets) ** 2))
            curve.coverage[trial, n] = np.mean((seen.mean - targets) ** 2 <= 9.0 * seen.var)
        tick()
    return curve


def _gradient_curve(recipe: Recipe, data: Trials) -> FloatArray:
    """Train all trials side by side on the first n points, for each n."""
    weights = gradient.train(recipe, gradient.initial_weights(recipe.start, data.start), data.x, data.y)
    return np.stack([gradient.rmse(w, data.x_test, data.y_test) for w in weights], axis=-1)


def _time(recipes: dict[str, Recipe], data: Trials, tick: Tick) -> dict[str, FloatArray]:
    """Time the learners in turn, one trial after another; the time to have followed the stream up to each point."""
    seconds: dict[str, list[FloatArray]] = {name: [] for name in (*RULES, *recipes)}
    for trial in range(min(len(data.x), TIMED_TRIALS)):
        x, y = data.x[trial], data.y[trial]
        for rule, update in RULES.items():
            seconds[rule].append(_stopwatch(_learn(_perceptron(update), x, y)))
        for name, recipe in recipes.items():
            start = gradient.initial_weights(recipe.start, data.start[trial])
            seconds[name].append(_stopwatch(gradient.train(recipe, start, x, y)))
        tick()
    return {name: np.cumsum(np.median(times, axis=0)) for name, times in seconds.items()}


def _learn(perceptron: BayesianPerceptron, x: FloatArray, y: FloatArray) -> Iterator[BayesianPerceptron]:
    for n in range(N_POINTS):
        yield perceptron.learn(x[n : n + 1], y[n])


def _stopwatch(training: Iterator[Any]) -> FloatArray:
    """Seconds for each point in turn."""
    seconds = np.empty(N_POINTS)
    for n in range(N_POINTS):
        begin = perf_counter()
        next(training)
        seconds[n] = perf_counter() - begin
    return seconds


def _example(recipe: Recipe, data: Trials) -> Example:
    x, y = data.x[0], data.y[0]
    weights = list(gradient.train(recipe, gradient.initial_weights(recipe.start, data.start[0]), x, y))
    lines = tuple(gradient.output(weights[n - 1], AXIS) for n in SHOWN)
    bands = {rule: tuple(_band(update, x[:n], y[:n]) for n in SHOWN) for rule, update in RULES.items()}
    return Example(x, y, bands, lines)


def _band(update: str, x: FloatArray, y: FloatArray) -> Band:
    seen = _perceptron(update).learn(x[:, None], y).predict(AXIS[:, None])
    return Band(seen.mean, np.sqrt(seen.epistemic))


def _averages(name: str, values: FloatArray) -> dict[str, list[float]]:
    return {f"{name}_mean": as_list(values.mean(axis=0)), f"{name}_std": as_list(values.std(axis=0))}


def _describe(score: Score) -> dict[str, Any]:
    recipe = score.recipe
    return {
        "start": recipe.start,
        "learning_rate": recipe.learning_rate,
        "epochs": recipe.epochs,
        "tuning_rmse": score.rmse if np.isfinite(score.rmse) else None,
    }
