"""Moments of values some steps ahead, against exact formulas, quadrature and draws from the same regression."""

import numpy as np
import pytest
from benchmarks.forecasting.rollout import PROCESSES, Belief, Process, drawn, fitted
from scipy.stats import truncnorm

from onepass.engine.lag_rollout import forecast_regression


def test_known_weights_give_the_variance_of_an_autoregression() -> None:
    mean, cov = forecast_regression(np.array([0.8, 0.0]), np.zeros((2, 2)), 2.0, [1], np.array([3.0]), np.ones((6, 1)))
    np.testing.assert_allclose(mean, 3.0 * 0.8 ** np.arange(1, 7))
    var = 2.0 * np.cumsum(0.64 ** np.arange(6))
    expected = [[var[min(i, j)] * 0.8 ** abs(i - j) for j in range(6)] for i in range(6)]
    np.testing.assert_allclose(cov, expected)


@pytest.mark.parametrize("difference", [1, 3])
def test_differences_are_added_up(difference: int) -> None:
    args = (np.array([0.5, 0.1]), np.diag([1e-4, 0.02]), 1.0, [1], np.array([1.0]), np.ones((7, 1)))
    mean, cov = forecast_regression(*args)
    summed, summed_cov = forecast_regression(*args, difference)
    adds = np.array([[float(j <= i and (i - j) % difference == 0) for j in range(7)] for i in range(7)])
    np.testing.assert_allclose(summed, adds @ mean)
    np.testing.assert_allclose(summed_cov, adds @ cov @ adds.T)


@pytest.mark.parametrize("horizon", [13, 24, 48])
@pytest.mark.parametrize("n", [60, 400])
@pytest.mark.parametrize("process", PROCESSES, ids=range(len(PROCESSES)))
def test_moments_are_those_of_draws_with_a_persistence_of_at_most_1(process: Process, n: int, horizon: int) -> None:
    y = process.series(n, 0)
    belief, past = fitted(y, process.lags), y[::-1][: max(process.lags)].copy()
    found, joint = forecast_regression(*belief, process.lags, past, np.ones((horizon, 1)), process.difference)
    paths, persistence = drawn(belief, process, past, horizon)
    bounded = paths[persistence <= 1.0]
    std = bounded.std(axis=0)
    assert (np.abs(found - bounded.mean(axis=0)) / std).max() < 0.02
    np.testing.assert_allclose(np.sqrt(np.diag(joint)), std, rtol=0.05)
    np.testing.assert_allclose(joint, np.cov(bounded.T), atol=0.1 * joint.max())
    assert np.linalg.eigvalsh(joint)[0] > 0.0


@pytest.mark.parametrize("horizon", [2, 20, 48])
@pytest.mark.parametrize("std", [0.001, 0.02, 0.15])
@pytest.mark.parametrize("root", [0.5, 0.9, 0.97, 1.0, 1.1])
def test_one_uncertain_weight_is_integrated_out(root: float, std: float, horizon: int) -> None:
    weights = truncnorm(-np.inf, (1.0 - root) / std, root, std).ppf(np.arange(0.5, 2000.0) / 2000.0)
    powers = weights[:, None] ** np.arange(horizon + 1)
    mean = 2.0 * powers[:, -1]
    var = np.square(powers[:, :-1]).sum(axis=1) * 0.5
    found, cov = forecast_regression(
        np.array([root]), np.array([[std**2]]), 0.5, [1], np.array([2.0]), np.zeros((horizon, 0))
    )
    deviation = np.sqrt(var.mean() + mean.var())
    assert found[-1] == pytest.approx(mean.mean(), abs=0.02 * deviation)
    assert np.sqrt(cov[-1, -1]) == pytest.approx(deviation, rel=0.05)


def test_a_belief_far_beyond_the_bound_ends_close_to_it() -> None:
    for mean, std in ((1.5, 0.05), (1.3, 0.001), (4.0, 1e-5)):
        found, cov = forecast_regression(
            np.array([mean]), np.array([[std**2]]), 1.0, [1], np.array([1.0]), np.zeros((30, 0))
        )
        np.testing.assert_allclose(found, 1.0, atol=0.2)
        np.testing.assert_allclose(np.diag(cov), np.arange(1, 31), rtol=0.15)


def test_beliefs_about_explosions_keep_their_covariances_possible() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        q = int(rng.integers(1, 6))
        lags = np.sort(rng.choice(np.arange(1, 15), q, replace=False))
        root = rng.normal(size=(q + 1, q + 1)) * 10.0 ** rng.uniform(-6.0, 0.5)
        mean = rng.normal(size=q + 1) * rng.choice([0.1, 1.0, 3.0])
        args = (mean, root @ root.T + 1e-12 * np.eye(q + 1), 10.0 ** rng.uniform(-8.0, 1.0))
        horizon, difference = int(rng.choice([1, 48, 200])), int(rng.choice([0, 1, 12]))
        past = 100.0 * rng.normal(size=15)
        found, cov = forecast_regression(*args, lags, past, np.ones((horizon, 1)), difference)
        assert np.isfinite(found).all()
        own = np.linalg.eigvalsh(cov)
        assert np.isfinite(own).all()
        assert own[0] >= -1e-14 * own[-1]


def test_a_belief_that_was_given_stays_as_it_is() -> None:
    belief = Belief(np.array([0.95, 0.1]), np.diag([0.01, 0.02]), 1.0)
    forecast_regression(*belief, [1], np.array([1.0]), np.ones((24, 1)))
    np.testing.assert_array_equal(belief.mean, [0.95, 0.1])
    np.testing.assert_array_equal(belief.cov, np.diag([0.01, 0.02]))


def test_more_weights_than_there_is_room_for_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 512 and 1024 together"):
        forecast_regression(np.zeros(700), np.eye(700), 1.0, np.arange(1, 700), np.zeros(700), np.ones((20, 1)))
