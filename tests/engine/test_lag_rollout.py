"""Moments of values some steps ahead, against exact formulas and against draws from the same regression."""

import numpy as np
import pytest
from benchmarks.forecasting.rollout import LAGS, autoregression, drawn, fitted

from onepass.engine.lag_rollout import forecast_regression


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
    y = autoregression(400, 0)
    mean, cov, noise = fitted(y, LAGS)
    past = y[::-1][:5].copy()
    found, joint = forecast_regression(mean, cov, noise, LAGS, past, np.ones((horizon, 1)))
    paths = drawn(mean, cov, noise, LAGS, past, horizon)
    std = paths.std(axis=0)
    assert (np.abs(found - paths.mean(axis=0)) / std).max() < 0.02
    np.testing.assert_allclose(np.sqrt(np.diag(joint)), std, rtol=0.05)
