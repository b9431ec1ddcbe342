"""Steps of a forecast together: paths, sums, and limits."""

import pickle

import numpy as np
import pytest

from onepass.forecasting import Forecast

MEAN = np.array([3.0, 1.0, 2.0])
COV = np.array([[1.0, 0.8, 0.5], [0.8, 2.0, 1.0], [0.5, 1.0, 3.0]])


def test_paths_have_the_moments_of_the_forecast() -> None:
    paths = Forecast(MEAN, COV).sample_paths(100_000, 0)
    np.testing.assert_allclose(paths.mean(axis=0), MEAN, atol=0.02)
    np.testing.assert_allclose(np.cov(paths.T), COV, atol=0.05)


def test_the_total_is_the_sum_of_paths() -> None:
    forecast = Forecast(MEAN, COV)
    paths = forecast.sample_paths(100_000, 0)
    assert forecast.total().mean == pytest.approx(6.0)
    assert forecast.total().std == pytest.approx(paths.sum(axis=1).std(), rel=0.01)
    assert forecast.total(1).var == pytest.approx(7.0)
    with pytest.raises(ValueError, match="none of them"):
        forecast.total(3)


def test_a_limit_holds_for_all_that_is_predicted() -> None:
    forecast = Forecast(MEAN, COV, limit=0.0)
    assert (forecast.interval(0.999)[0] >= 0.0).all()
    assert (forecast.ppf(0.001) >= 0.0).all()
    assert (forecast.sample_paths(1000, 0) >= 0.0).all()
    np.testing.assert_array_equal(forecast.mean, MEAN)


def test_densities_are_those_of_each_step() -> None:
    expected = -0.5 * (4.0 / np.diag(COV) + np.log(2 * np.pi * np.diag(COV)))
    np.testing.assert_allclose(Forecast(MEAN, COV).logpdf(MEAN + 2.0), expected)


def test_forecasts_are_pickled() -> None:
    copy = pickle.loads(pickle.dumps(Forecast(MEAN, COV, limit=0.0)))
    np.testing.assert_array_equal(copy.cov, COV)
    assert (copy.interval()[0] >= 0.0).all()
