"""Closed-form moments of values many steps ahead, against simulated courses of the same regression."""

from typing import Any, NamedTuple

import numpy as np

from onepass._typing import FloatArray
from onepass.engine.lag_rollout import forecast_regression

__all__ = ["PROCESSES", "Belief", "Process", "drawn", "fitted", "measure"]

HORIZONS = (13, 24, 48)
N_DRAWS = 40_000
N_SERIES = 3
RATIOS = ("deviation", "width", "cut")


class Process(NamedTuple):
    """An autoregression, of differences if ``difference`` isn't 0, and the lags that are regressed on."""

    weights: tuple[float, ...]
    lags: tuple[int, ...]
    difference: int = 0

    def series(self, n: int, seed: int) -> FloatArray:
        """Values (or differences), after a start that is left out."""
        rng, weights = np.random.default_rng(seed), np.array(self.weights)
        y = np.zeros(200 + n)
        for t in range(len(weights), len(y)):
            y[t] = weights @ y[t - len(weights) : t][::-1] + rng.normal()
        return np.asarray(y[200:] - y[200])


class Belief(NamedTuple):
    """Weights of lags and of a constant."""

    mean: FloatArray
    cov: FloatArray
    noise: float


def _with_root(root: float) -> Process:
    return Process((root + 0.3, -0.3 * root), (1, 2, 3, 4))


def _seasonal(root: float) -> Process:
    return Process((0.5, *[0.0] * 10, root, -0.5 * root), (1, 2, 3, 11, 12, 13))


PROCESSES = (
    Process((0.6, -0.2, 0.0, 0.0, 0.3), (1, 2, 5)),
    *map(_with_root, (0.9, 0.97, 1.0)),
    *map(_seasonal, (0.9, 1.0)),
    *(Process((0.6, 0.2), tuple(range(1, 9)), difference) for difference in (1, 12)),
)


def fitted(y: FloatArray, lags: tuple[int, ...]) -> Belief:
    """Posterior of a regression with a prior of variance 0.1 around 0, and its noise."""
    rows = np.arange(max(lags), len(y))
    X = np.column_stack([*[y[rows - lag] for lag in lags], np.ones(len(rows))])
    noise = 1.0
    for _ in range(5):
        cov = np.linalg.inv(X.T @ X / noise + 10.0 * np.eye(X.shape[1]))
        mean = cov @ X.T @ y[rows] / noise
        noise = float(np.square(y[rows] - X @ mean).sum() / len(rows))
    return Belief(mean, np.asarray(cov), noise)


def drawn(belief: Belief, process: Process, past: FloatArray, steps: int) -> tuple[FloatArray, FloatArray]:
    """Courses of the series, each with weights of its own, ``(n, steps)``, and the sums of their lags' weights."""
    rng, lags, d = np.random.default_rng(1), np.array(process.lags), process.difference
    w = belief.mean + rng.standard_normal((N_DRAWS, len(belief.mean))) @ np.linalg.cholesky(belief.cov).T
    values = np.concatenate([np.tile(past[::-1], (N_DRAWS, 1)), np.zeros((N_DRAWS, steps))], axis=1)
    for i in range(len(past), len(past) + steps):
        values[:, i] = (w[:, :-1] * values[:, i - lags]).sum(axis=1) + w[:, -1]
        values[:, i] += np.sqrt(belief.noise) * rng.normal(size=N_DRAWS)
    ahead = values[:, len(past) :]
    for h in range(d, steps if d else 0):
        ahead[:, h] += ahead[:, h - d]
    return ahead, w[:, :-1].sum(axis=1)


def measure() -> dict[str, Any]:
    """The worst error of a mean in deviations, and ratios to those of courses, over all processes.

    Deviations are compared with those of courses whose persistence is at most 1, as the closed form has it; widths of
    95 % intervals with those of all courses.
    """
    found = {}
    for n in (400, 60):
        errors, *ratios = zip(
            *(_compared(process, n, seed) for process in PROCESSES for seed in range(N_SERIES)), strict=True
        )
        limits = {name: (np.min(of, axis=0), np.max(of, axis=0)) for name, of in zip(RATIOS, ratios, strict=True)}
        found[str(n)] = {"mean": float(np.max(errors))} | {
            str(h): {name: [float(of[h - 1]) for of in both] for name, both in limits.items()} for h in HORIZONS
        }
    return found


def _compared(process: Process, n: int, seed: int) -> tuple[FloatArray, ...]:
    """By step: the error of the mean in deviations, ratios of deviations and of widths, and the share cut off."""
    y, steps = process.series(n, seed), HORIZONS[-1]
    belief, past = fitted(y, process.lags), y[::-1][: max(process.lags)].copy()
    mean, cov = forecast_regression(*belief, process.lags, past, np.ones((steps, 1)), process.difference)
    paths, persistence = drawn(belief, process, past, steps)
    bounded, limits = paths[persistence <= 1.0], np.quantile(paths, [0.025, 0.975], axis=0)
    own, deviations = np.sqrt(np.diag(cov)), bounded.std(axis=0)
    errors = np.abs(mean - bounded.mean(axis=0)) / deviations
    cut = np.full(steps, np.mean(persistence > 1.0))
    return errors, own / deviations, 2 * 1.96 * own / (limits[1] - limits[0]), cut
