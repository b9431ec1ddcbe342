"""Scores, shares and widths of forecasts, against the same written out."""

import numpy as np
import pytest

from onepass.engine.forecasting import (
    ForecastWorkspace,
    empty_sizing,
    forecast_series,
    learn_values,
    member_regression,
    posterior_weights,
)
from onepass.engine.lag_sums import AT_SCORED, AT_STEP, Plan, normal_equations
from tests.engine.test_lag_sums import plan

NO_INPUTS = np.zeros((1, 1))


class Series:
    """A record that learns and forecasts."""

    def __init__(self, own: Plan) -> None:
        self.plan, self.record, self.priors = own, np.zeros((1, own.size)), own.empty_priors()
        self.sizing, self.work = empty_sizing(own.horizon), ForecastWorkspace(own, own.horizon)
        own.begin(self.record[0], 0.0)

    def learn(self, y: np.ndarray) -> None:
        args = (y, np.zeros((len(y), 1)), np.zeros(len(y), dtype=np.int64), self.record, self.priors, self.sizing)
        learn_values(self.plan, *args, self.work)

    def forecast(self) -> np.ndarray:
        args = (self.record[0], NO_INPUTS, self.priors, self.sizing, self.work)
        return np.asarray(forecast_series(self.plan, *args))


def walk(n: int) -> np.ndarray:
    return np.asarray(60.0 + np.cumsum(np.random.default_rng(2).normal(size=n)))


def test_members_are_weighed_by_the_errors_of_their_last_forecasts() -> None:
    y, series, errors = walk(120), Series(plan()), []
    for t in range(len(y)):
        if series.record[0, AT_STEP] == 0.0:  # an origin: what members say is what they are scored by
            series.forecast()
            means = series.work.arrays[0].copy()
            errors.append(np.abs(means[:, : len(y) - t] - y[t : t + 5]))
        series.learn(y[t : t + 1])
    assert series.record[0, AT_SCORED] == len(errors) - 1 > 3
    series.forecast()
    mae = np.concatenate(errors[-3:], axis=1).mean(axis=1)
    expected = np.exp(-(mae - mae.min()) / (0.2 * mae.min()))
    np.testing.assert_allclose(series.work.arrays[3], expected / expected.sum(), rtol=1e-9)


def test_forecasting_changes_nothing() -> None:
    series = Series(plan())
    series.learn(walk(90))
    before = series.record.copy()
    first = series.forecast()
    np.testing.assert_array_equal(series.record, before)
    np.testing.assert_array_equal(series.forecast(), first)


def test_weights_are_the_posterior_of_the_sums() -> None:
    series = Series(plan())
    series.learn(walk(150))
    matrix, targets, _, _ = normal_equations(series.plan, series.record[0], 1)
    found = posterior_weights(series.plan, series.record[0], 1, 1, series.priors, series.work)
    assert found is not None
    mean, cov = found
    np.testing.assert_allclose(mean, np.linalg.solve(matrix + 10.0 * np.eye(len(matrix)), targets))
    unit = np.linalg.inv(matrix + 10.0 * np.eye(len(matrix)))
    np.testing.assert_allclose(cov / cov[0, 0], unit / unit[0, 0])


def autoregressive(weight: float) -> np.ndarray:
    changes = np.random.default_rng(4).normal(size=150)
    for t in range(1, len(changes)):
        changes[t] += weight * changes[t - 1]
    return np.asarray(60.0 + np.cumsum(changes))


@pytest.mark.parametrize("weight", [0.0, 0.95])
def test_a_series_tells_how_far_its_weights_are_from_the_prior(weight: float) -> None:
    series = Series(plan())
    series.learn(autoregressive(weight))
    matrix, targets, squares, n = normal_equations(series.plan, series.record[0], 1)
    p = len(matrix)
    first = np.linalg.solve(matrix + 10.0 * np.eye(p), targets)
    left = 10.0 * np.trace(np.linalg.inv(matrix + 10.0 * np.eye(p)))
    noise = (squares - 2.0 * first @ targets + first @ matrix @ first + 0.02) / (n - (p - left) + 2.0)
    tightness = (p - left + 5.0) / (10.0 * first @ first / noise + 5.0)
    assert tightness > 1.2 if weight == 0.0 else tightness < 0.8
    expected = np.linalg.solve(matrix + 10.0 * tightness * np.eye(p), targets)
    found, _ = member_regression(series.plan, series.record[0].copy(), 1, NO_INPUTS, series.priors, series.work)
    np.testing.assert_allclose(found[:4], expected[:4], rtol=1e-6)


def test_a_given_prior_replaces_the_first_one() -> None:
    series = Series(plan())
    series.learn(walk(150))
    (_, p, at) = series.plan.tier_places(1)[1]
    series.priors[at], series.priors[at + 1 : at + 1 + p] = 1.0, 0.2
    series.priors[at + 1 + p : at + 1 + p + p * p] = (1e9 * np.eye(p)).ravel()
    found = posterior_weights(series.plan, series.record[0], 1, 1, series.priors, series.work)
    assert found is not None
    np.testing.assert_allclose(found[0], 0.2, atol=1e-6)
