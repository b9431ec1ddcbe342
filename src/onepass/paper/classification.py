"""Section V-B and Figure 4: two classes in the plane, learned point by point from a prior that points the wrong way."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.models.perceptron import BayesianPerceptron
from onepass.paper.base import Tick, as_list, trial_rng

__all__ = ["AXIS", "N_FRESH", "N_POINTS", "SHOWN", "ClassificationOutcome", "LearningCurve", "Maps", "run", "steps"]

N_POINTS = 25
N_FRESH = 2_000
SHOWN = (1, 3, 5, 10, 25)
RULES: dict[str, dict[str, Any]] = {
    "paper": {"observation": "gaussian", "noise": 0.01, "update": "kalman", "moments": "paper"},
    "exact": {"observation": "bernoulli", "update": "adf"},
}
_STREAM = 1  # of random numbers, apart from those of the other experiments
AXIS = np.linspace(-4.0, 4.0, 161)


@dataclass(frozen=True)
class LearningCurve:
    """Accuracy and log-loss on fresh points, ``(trials, N_POINTS + 1)``, from no point seen to all."""

    accuracy: FloatArray
    log_loss: FloatArray


@dataclass(frozen=True)
class Maps:
    """``mu_y`` over the plane after each number in ``SHOWN``, and ``sigma_a²`` at the end, each ``(k, k)``."""

    probability: tuple[FloatArray, ...]
    pre_var: FloatArray


@dataclass(frozen=True)
class ClassificationOutcome:
    """The maps of the first trial and the curves of all, for the paper's rule and the exact update."""

    points: FloatArray
    labels: FloatArray
    maps: dict[str, Maps]
    curves: dict[str, LearningCurve]

    def numbers(self) -> dict[str, Any]:
        """Averages over the trials after each number of points; ``accuracy_mean`` and so on for the paper's rule."""
        paper, exact = self.curves["paper"], self.curves["exact"]
        return {
            "n": list(range(1, N_POINTS + 1)),
            "trials": len(paper.accuracy),
            "fresh_points": N_FRESH,
            "prior_accuracy": float(paper.accuracy[:, 0].mean()),
            **_averages(paper, ""),
            **_averages(exact, "exact_"),
        }


def steps(trials: int) -> int:
    """One per trial."""
    return trials


def run(seed: int, trials: int, tick: Tick) -> ClassificationOutcome:
    """Learn all trials with both rules, on the same points."""
    shape = (trials, N_POINTS + 1)
    curves = {rule: LearningCurve(np.empty(shape), np.empty(shape)) for rule in RULES}
    for trial in range(trials):
        rng = trial_rng(seed, _STREAM, trial)
        X, y = _draw_points(rng, N_POINTS)
        fresh, truth = _draw_points(rng, N_FRESH)
        for rule, curve in curves.items():
            perceptron = _perceptron(rule)
            for n in range(N_POINTS + 1):
                if n > 0:
                    perceptron.learn(X[n - 1], y[n - 1])
                right = np.abs(1.0 - truth - perceptron.predict(fresh).mean)  # probability given to what is true
                curve.accuracy[trial, n] = np.mean(right > 0.5)
                curve.log_loss[trial, n] = -np.mean(np.log(np.maximum(right, 1e-15)))
        tick()
    points, labels = _draw_points(trial_rng(seed, _STREAM, 0), N_POINTS)
    return ClassificationOutcome(points, labels, {rule: _maps(rule, points, labels) for rule in RULES}, curves)


def _draw_points(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
    X = rng.uniform(-3.0, 3.0, size=(n, 2))
    return X, (X.sum(axis=1) > 0.0).astype(np.float64)


def _perceptron(rule: str) -> BayesianPerceptron:
    return BayesianPerceptron(2, "sigmoid", bias=False, mean=[-1.0, 0.0], cov=np.eye(2), **RULES[rule])


def _maps(rule: str, points: FloatArray, labels: FloatArray) -> Maps:
    plane = np.stack(np.meshgrid(AXIS, AXIS), axis=-1)
    perceptron, probability = _perceptron(rule), []
    for n, (x, y) in enumerate(zip(points, labels, strict=True), start=1):
        perceptron.learn(x, y)
        if n in SHOWN:
            seen = perceptron.predict(plane.reshape(-1, 2))
            probability.append(seen.mean.reshape(plane.shape[:2]))
    return Maps(tuple(probability), seen.pre_var.reshape(plane.shape[:2]))


def _averages(curve: LearningCurve, prefix: str) -> dict[str, list[float]]:
    return {
        f"{prefix}{name}_{statistic}": as_list(value[1:])
        for name, values in (("accuracy", curve.accuracy), ("logloss", curve.log_loss))
        for statistic, value in (("mean", values.mean(axis=0)), ("std", values.std(axis=0)))
    }
