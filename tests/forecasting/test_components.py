"""What made a forecast: known levels, seasons and inputs are found again, and the parts add up to the mean."""

import pickle

import numpy as np
import pytest

from onepass.forecasting import BayesianForecaster, Components, Forecast, ForecastingFleet, Member

N, AHEAD = 240, 12
T = np.arange(N + AHEAD)
PATTERN = 10.0 * np.sin(2 * np.pi * T / 12)
X = np.random.default_rng(1).integers(0, 2, (N + AHEAD, 1)).astype(float)
X[N - 1] = 0.0
SEASONAL = Member((1,), difference=12)


def forecast_by(member: Member, series: np.ndarray) -> Forecast:
    return BayesianForecaster(12, AHEAD, members=[member]).learn(series[:N], X[:N]).forecast(AHEAD, X[N:])


@pytest.mark.parametrize(
    ("member", "effect"),
    [
        (SEASONAL, 15.0),
        (SEASONAL, 0.0),
        (Member((1, 12), waves=((12, range(1, 4)),)), 0.0),
        (Member(range(1, 15), difference=1), 0.0),
        (Member(range(1, 13), waves=((12, range(1, 4)),), difference=1), 0.0),
    ],
)
def test_level_seasons_and_inputs_of_a_sum_are_found(member: Member, effect: float) -> None:
    noise = np.random.default_rng(0).normal(0, 0.01, len(T))
    found = forecast_by(member, 100 + 0.2 * T + PATTERN + effect * X[:, 0] + noise).decomposition
    np.testing.assert_allclose(found.level, 100 + 0.2 * T[N:], atol=1.5)
    np.testing.assert_allclose(found.seasons, PATTERN[N:], atol=1.5)
    np.testing.assert_allclose(found.inputs, effect * X[N:, 0], atol=1.5)
    np.testing.assert_allclose(found.lags, 0.0, atol=1.5)


def test_a_logarithmic_member_is_divided_in_proportion() -> None:
    noise = np.random.default_rng(0).normal(0, 1e-3, len(T))
    logs = 4 + 0.002 * T + 0.02 * PATTERN + 0.3 * X[:, 0]
    forecast = forecast_by(Member((1,), difference=12, logarithm=True), np.exp(logs + noise))
    level = np.exp(4 + 0.002 * T[N:])
    np.testing.assert_allclose(forecast.decomposition.level, level, rtol=0.01)
    share = (forecast.mean - level) / (0.02 * PATTERN + 0.3 * X[:, 0])[N:]
    np.testing.assert_allclose(forecast.decomposition.inputs, share * 0.3 * X[N:, 0], rtol=0.05, atol=0.3)
    np.testing.assert_allclose(forecast.decomposition.seasons, share * 0.02 * PATTERN[N:], rtol=0.05, atol=0.3)


def test_what_the_latest_values_carry_on_belongs_to_lags() -> None:
    rng = np.random.default_rng(0)
    y = np.zeros(400)
    for t in range(1, 400):
        y[t] = 0.8 * y[t - 1] + rng.normal()
    model = BayesianForecaster(12, members=[Member((1,)), Member((1, 12, 24))]).learn(y)
    found = model.learn([8.0]).forecast(3).decomposition
    assert (np.diff(np.abs(found.lags)) < 0).all()
    assert found.lags[0] > 2.0


def test_components_add_up_to_the_mean_of_all_members() -> None:
    y = 100 + 0.2 * T + PATTERN + np.random.default_rng(0).normal(0, 2, len(T))
    model = BayesianForecaster(12).learn(y[:N])
    forecast = model.forecast(30)
    assert len(forecast.members) > 4
    np.testing.assert_allclose(sum(forecast.decomposition), forecast.mean, rtol=1e-12)
    np.testing.assert_allclose(sum(model.components_), model.forecast(24).mean, rtol=1e-12)
    assert np.abs(forecast.decomposition.lags).max() < 3.0
    model.learn(y[N:])  # a forecast is that of the time when it was made
    assert np.abs(forecast.decomposition.lags).max() < 3.0
    np.testing.assert_array_equal(forecast.decomposition.inputs, 0.0)


def test_series_of_a_fleet_have_components() -> None:
    fleet = ForecastingFleet(12)
    for key in range(10):
        noise = np.random.default_rng(key).normal(size=N)
        fleet.learn(50.0 * key + 100 + PATTERN[:N] + noise, keys=[key] * N)
    forecast = fleet.forecast(12, key=3)
    np.testing.assert_allclose(forecast.decomposition.level, 250.0, atol=3.0)
    np.testing.assert_allclose(forecast.decomposition.seasons, PATTERN[N:], atol=3.0)
    np.testing.assert_allclose(sum(forecast.decomposition), forecast.mean, rtol=1e-12)


def test_without_a_model_all_is_level() -> None:
    np.testing.assert_array_equal(Forecast(np.array([1.0, 2.0]), np.eye(2)).decomposition.level, [1.0, 2.0])
    walk = BayesianForecaster(1).learn([3.0, 4.0]).forecast(2)
    np.testing.assert_array_equal(walk.decomposition.level, walk.mean)


def test_components_are_pickled() -> None:
    forecast = BayesianForecaster(12).learn(100 + PATTERN[:100] + 0.1 * T[:100]).forecast(5)
    copy = pickle.loads(pickle.dumps(forecast)).decomposition
    assert isinstance(copy, Components)
    np.testing.assert_array_equal(copy, forecast.decomposition)
