"""Steps of a forecast together: paths, sums, and limits."""

import pickle

import numpy as np
import pytest

from onepass.forecasting import CountForecast, Forecast

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


# Counts.

COUNT_MEAN = np.array([0.3, 2.0, 20.0, 5.0])
COUNT_STD = np.array([0.8, 1.8, 6.0, 2.0])  # one varies less than a Poisson count
COUNT_COV = np.outer(COUNT_STD, COUNT_STD) * np.fromfunction(lambda i, j: 0.6 ** np.abs(i - j), (4, 4))


def test_all_that_is_said_of_counts_are_whole_numbers() -> None:
    forecast = CountForecast(COUNT_MEAN, COUNT_COV)
    found = [*forecast.interval(0.9), forecast.ppf(0.3), forecast.sample(50, 0), forecast.sample_paths(50, 0)]
    total = forecast.total()
    for numbers in (*found, np.array([total.ppf(0.2), *total.interval(0.5)])):
        assert (numbers >= 0.0).all()
        np.testing.assert_array_equal(numbers, np.floor(numbers))
    assert forecast.is_count
    assert forecast.limit == 0.0


def test_zero_has_a_probability_of_its_own() -> None:
    found = CountForecast(COUNT_MEAN, COUNT_COV)
    np.testing.assert_allclose(found.pdf(0.0), found.cdf(0.0))
    assert found.pdf(0.0)[0] > 0.7
    assert (found.logpdf(0.5) == -np.inf).all()
    assert (found.cdf(-1.0) == 0.0).all()


def test_paths_of_counts_have_the_moments_and_margins_of_the_forecast() -> None:
    forecast = CountForecast(COUNT_MEAN, COUNT_COV)
    paths = forecast.sample_paths(100_000, 0)
    np.testing.assert_allclose(paths.mean(axis=0), COUNT_MEAN, rtol=0.03)
    np.testing.assert_allclose(paths.std(axis=0), COUNT_STD, rtol=0.03)
    np.testing.assert_allclose(np.corrcoef(paths.T), COUNT_COV / np.outer(COUNT_STD, COUNT_STD), atol=0.06)
    for step, probability in enumerate(forecast.cdf(2.0)):
        assert (paths[:, step] <= 2.0).mean() == pytest.approx(probability, abs=0.01)


def test_the_total_of_counts_is_the_sum_of_paths() -> None:
    forecast = CountForecast(COUNT_MEAN, COUNT_COV)
    for start, stop in ((0, None), (0, 2), (1, 3)):
        sums, total = forecast.sample_paths(100_000, 0)[:, start:stop].sum(axis=1), forecast.total(start, stop)
        assert total.mean == pytest.approx(sums.mean(), rel=0.02)
        assert total.std == pytest.approx(sums.std(), rel=0.06)
        for level in (0.05, 0.5, 0.95):
            assert (sums <= total.ppf(level)).mean() == pytest.approx(total.cdf(total.ppf(level)), abs=0.04)
    with pytest.raises(ValueError, match="none of them"):
        forecast.total(4)


def test_forecasts_of_counts_are_pickled_and_take_other_moments() -> None:
    forecast = CountForecast(COUNT_MEAN, COUNT_COV)
    copy = pickle.loads(pickle.dumps(forecast))
    np.testing.assert_array_equal(copy.interval()[1], forecast.interval()[1])
    np.testing.assert_array_equal(copy.sample_paths(5, 0), forecast.sample_paths(5, 0))
    other = forecast.with_moments(COUNT_MEAN - 1.0, COUNT_COV)
    assert isinstance(other, CountForecast)
    assert other.mean[0] == pytest.approx(0.0, abs=1e-6)
