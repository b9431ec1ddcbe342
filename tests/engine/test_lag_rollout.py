"""Moments of values some steps ahead, against exact formulas and against draws from the same regression."""

import numpy as np
import pytest

from onepass.engine.lag_rollout import forecast_regression


def fitted(y: np.ndarray, lags: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
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
    mean: np.ndarray, cov: np.ndarray, noise: float, lags: np.ndarray, past: np.ndarray, steps: int
) -> np.ndarray:
    """Courses of the series, each with weights of its own, ``(n, steps)``."""
    rng, n = np.random.default_rng(1), 40_000
    w = mean + rng.standard_normal((n, len(mean))) @ np.linalg.cholesky(cov).T
    values = np.concatenate([np.tile(past[::-1], (n, 1)), np.zeros((n, steps))], axis=1)
    for i in range(len(past), len(past) + steps):
        values[:, i] = (w[:, :-1] * values[:, i - lags]).sum(axis=1) + w[:, -1] + np.sqrt(noise) * rng.normal(size=n)
    return np.asarray(values[:, len(past) :])


def test_known_weights_give_the_variance_of_an_autoregression() -> None:
    mean, cov = forecast_regression(np.array([0.8, 0.0]), np.zeros((2, 2)), 2.0, [1], np.array([3.0]), np.ones((6, 1)))
    np.testing.assert_allclose(mean, 3.0 * 0.8 ** np.arange(1, 7))
    var = 2.0 * np.cumsum(0.64 ** np.arange(6))
    expected = [[var[min(i, j)] * 0.8 ** abs(i - j) for j in range(6)] for i in range(6)]
    np.testing.assert_allclose(cov, expected)


@pytest.mark.parametrize("difference", [1, 3])
def test_differences_are_added_up(difference: int) -> None:
    args = (np.array([0.5, 0.1]), np.diag([0.01, 0.02]), 1.0, [1], np.array([1.0]), np.ones((7, 1)))
    mean, cov = forecast_regression(*args)
    summed, summed_cov = forecast_regression(*args, difference)
    adds = np.array([[float(j <= i and (i - j) % difference == 0) for j in range(7)] for i in range(7)])
    np.testing.assert_allclose(summed, adds @ mean)
    np.testing.assert_allclose(summed_cov, adds @ cov @ adds.T)


@pytest.mark.parametrize("horizon", [13, 48])
def test_moments_are_those_of_draws_from_the_same_regression(horizon: int) -> None:
    rng = np.random.default_rng(0)
    y, lags = np.zeros(400), np.array([1, 2, 5])
    for t in range(5, 400):
        y[t] = 0.6 * y[t - 1] - 0.2 * y[t - 2] + 0.3 * y[t - 5] + rng.normal()
    mean, cov, noise = fitted(y, lags)
    past = y[::-1][:5].copy()
    found, joint = forecast_regression(mean, cov, noise, lags, past, np.ones((horizon, 1)))
    paths = drawn(mean, cov, noise, lags, past, horizon)
    std = paths.std(axis=0)
    assert (np.abs(found - paths.mean(axis=0)) / std).max() < 0.02
    np.testing.assert_allclose(np.sqrt(np.diag(joint)), std, rtol=0.05)
