"""Jumps and spikes: a level that moves for good should be learned soon, a single wild target should not.

Targets are a linear function of three inputs, a level and noise; one in fifty is a spike of 20, 100 or 1,000 standard
deviations (sd) of that noise. After 500 rows the level jumps. The first figures count the rows until five predictions
in a row are within two sd of the truth ("learned"): the median over seeds, and the worst of them. The others are how
far a single spike, among rows without any, moves predictions, in sd; it should be less than 1. "Outliers alone" is
without `drift="auto"`.
"""

import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from benchmarks.misbehaving.study import Outcome, Study
from onepass import BayesianMLPRegressor, BayesianPerceptronRegressor
from onepass._typing import FloatArray

__all__ = ["moved_by_a_spike", "outcomes", "rows_until_believed"]

SEEDS = 20
BEFORE, AFTER = 500, 1000
NOISE = 0.1  # standard deviation
SHARE = 0.02
JUMPS, SPIKES = (5.0, 20.0, 100.0), (20.0, 100.0, 1000.0)  # in standard deviations of the noise
NEAR, IN_A_ROW = 2.0, 5
WEIGHTS = np.array([0.5, -0.3, 0.2])

Make = Callable[[int, dict[str, Any]], Any]
MODELS: dict[str, Make] = {
    "perceptron": lambda seed, settings: BayesianPerceptronRegressor(standardize=False, **settings),
    "network": lambda seed, settings: BayesianMLPRegressor((20,), standardize=False, random_state=seed, **settings),
}


def outcomes(study: Study) -> list[Outcome]:
    """Both models, all jumps, all spikes: with all our settings, and with outliers alone."""
    found = []
    seeds, after = range(study.size(SEEDS, 1)), study.size(AFTER, 50)
    for (name, make), (words, settings) in product(MODELS.items(), _ways(study).items()):
        for size in JUMPS:
            counts = [rows_until_believed(make(seed, settings), size, seed, after) for seed in seeds]
            task = f"{name}{words}: rows until a jump of {size:g} sd is learned"
            found.append(Outcome(task, float(np.median(counts)), bound="<= 10"))
            found.append(Outcome(f"{task}, worst seed", float(np.max(counts))))
        for size in SPIKES:
            moved = [moved_by_a_spike(make(seed, settings), size, seed) for seed in seeds]
            task = f"{name}{words}: moved by a spike of {size:g} sd, in sd"
            found.append(Outcome(task, float(np.median(moved)), bound="<= 1.0"))
            found.append(Outcome(f"{task}, worst seed", float(np.max(moved))))
    return found


def _ways(study: Study) -> dict[str, dict[str, Any]]:
    return {"": study.without(), ", outliers alone": study.only("outliers")}


def rows_until_believed(model: Any, size: float, seed: int, after: int = AFTER) -> int:
    """Rows learned after a jump of so many standard deviations before it is predicted; all if it never is."""
    rng = np.random.default_rng(seed)
    X, truth, y = _rows(rng, BEFORE + after)
    truth[BEFORE:] += rng.choice([-1, 1]) * size * NOISE
    y += truth
    spikes = rng.random(len(y)) < SHARE
    y[spikes] += (rng.choice(SPIKES, len(y)) * rng.choice([-1, 1], len(y)) * NOISE)[spikes]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* set aside")  # spikes, by models that expect none
        near = np.abs(model.predict_then_learn(X, y).mean - truth)[BEFORE:] <= NEAR * NOISE
    runs = np.convolve(near, np.ones(IN_A_ROW), "valid") == IN_A_ROW
    return int(runs.argmax()) if runs.any() else after


def moved_by_a_spike(model: Any, size: float, seed: int) -> float:
    """How far, in standard deviations of the noise, one wild target moves predictions, there and elsewhere."""
    rng = np.random.default_rng(seed)
    X, truth, y = _rows(rng, BEFORE + 1)
    y += truth
    y[-1] += rng.choice([-1, 1]) * size * NOISE
    model.predict_then_learn(X[:-1], y[:-1])
    probes = np.vstack([X[-1:], np.zeros((1, 3)), rng.normal(size=(3, 3))])
    before = model.predict(probes)
    model.partial_fit(X[-1:], y[-1:])
    return float(np.abs(model.predict(probes) - before).max() / NOISE)


def _rows(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Inputs, the truth, and the noise."""
    X = rng.normal(size=(n, 3))
    return X, X @ WEIGHTS + 0.5, rng.normal(0.0, NOISE, n)
