"""Closed-form moments of values many steps ahead, against simulated courses of the same regression."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onepass._typing import FloatArray
from onepass.engine.lag_rollout import forecast_regression

__all__ = ["autoregression", "drawn", "fitted", "measure"]

HORIZONS = (13, 24, 48)
N_DRAWS = 40_000
LAGS = np.array([1, 2, 5])


def fitted(y: FloatArray, lags: NDArray[np.intp]) -> tuple[FloatArray, FloatArray, float]:
    """Posterior of a regression with a prior of variance 0.1 around 0, and its noise."""
    rows = np.arange(lags.max(), len(y))
    X = np.column_stack([*[y[rows - lag] for lag in lags], np.ones(len(rows))])
    noise = 1.0
    for _ in range(5):
        cov = np.linalg.inv(X.T @ X / noise + 10.0 * np.eye(X.shape[1]))
        mean = cov @ X.T @ y[rows] / noise
        noise = float(np.square(y[rows] - X @ mean).sum() / len(rows))
    return mean, cov, noise


def drawn(
    mean: FloatArray, cov: FloatArray, noise: float, lags: NDArray[np.intp], past: FloatArray, steps: int
) -> FloatArray:
    """Courses of the series, each with weights of its own, ``(n, steps)``."""
    rng = np.random.default_rng(1)
    w = mean + rng.standard_normal((N_DRAWS, len(mean))) @ np.linalg.cholesky(cov).T
    values = np.concatenate([np.tile(past[::-1], (N_DRAWS, 1)), np.zeros((N_DRAWS, steps))], axis=1)
    for i in range(len(past), len(past) + steps):
        values[:, i] = (w[:, :-1] * values[:, i - lags]).sum(axis=1) + w[:, -1]
        values[:, i] += np.sqrt(noise) * rng.normal(size=N_DRAWS)
    return np.asarray(values[:, len(past) :])


def autoregression(n: int, seed: int) -> FloatArray:
    """A series whose lags are 1, 2 and 5."""
    rng, y = np.random.default_rng(seed), np.zeros(n)
    for t in range(5, n):
        y[t] = 0.6 * y[t - 1] - 0.2 * y[t - 2] + 0.3 * y[t - 5] + rng.normal()
    return y


def measure() -> dict[str, Any]:
    """Over five series of each length: the worst error of a mean in deviations, and the ratios of deviations."""
    found = {}
    for n in (400, 60):
        errors, ratios, inner = [], [], []
        for seed in range(5):
            y = autoregression(n, seed)
            belief, past = fitted(y, LAGS), y[::-1][:5].copy()
            mean, cov = forecast_regression(*belief, LAGS, past, np.ones((HORIZONS[-1], 1)))
            paths = drawn(*belief, LAGS, past, HORIZONS[-1])
            deviations, limits = paths.std(axis=0), np.quantile(paths, [0.025, 0.975], axis=0)
            errors.append((np.abs(mean - paths.mean(axis=0)) / deviations).max())
            ratios.append((np.sqrt(np.diag(cov)) / deviations)[np.array(HORIZONS) - 1])
            inner.append((2 * 1.96 * np.sqrt(np.diag(cov)) / (limits[1] - limits[0]))[np.array(HORIZONS) - 1])
        found[str(n)] = {"mean": max(map(float, errors))} | {
            str(h): {
                "deviation": [float(np.min(ratios, axis=0)[k]), float(np.max(ratios, axis=0)[k])],
                "width": [float(np.min(inner, axis=0)[k]), float(np.max(inner, axis=0)[k])],
            }
            for k, h in enumerate(HORIZONS)
        }
    return found
