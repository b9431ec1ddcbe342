"""Counts by mean and variance, against SciPy's negative binomial, Poisson and binomial distributions."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, nbinom, poisson

from onepass import Prediction
from onepass.activations import as_activation
from onepass.likelihoods.whole_numbers import WholeNumbers, least_variance
from onepass.models.distribution import Family
from onepass.models.prediction import PredictedMoments

K = np.arange(400.0)


def counts(mean: float, var: float) -> Prediction:
    return Prediction(Family(WholeNumbers(), as_activation("linear")), PredictedMoments(mean, 0.0, mean, 0.0, var))


def negative_binomial(mean: float, var: float) -> Any:
    return nbinom(mean**2 / (var - mean), mean / var)


@pytest.mark.parametrize(
    ("mean", "var", "expected"),
    [
        (0.3, 0.5, negative_binomial(0.3, 0.5)),
        (20.0, 90.0, negative_binomial(20.0, 90.0)),
        (2.0, 2.0, poisson(2.0)),
        (100.0, 100.0, poisson(100.0)),
        (0.3, 0.21, binom(1, 0.3)),
        (12.0, 4.8, binom(20, 0.6)),
        (7.0, 0.0, binom(7, 1.0)),
    ],
)
def test_the_distribution_is_the_named_one(mean: float, var: float, expected: Any) -> None:
    found = counts(mean, var)
    np.testing.assert_allclose(found.cdf(K), expected.cdf(K), atol=1e-12)
    np.testing.assert_allclose(found.pdf(K), expected.pmf(K), atol=1e-12)
    levels = np.array([1e-4, 0.025, 0.31, 0.5, 0.977, 0.9999])
    np.testing.assert_array_equal(found.ppf(levels), np.maximum(expected.ppf(levels), 0.0))
    assert found.cdf(2.7) == found.cdf(2.0)
    assert found.cdf(-0.5) == 0.0


@pytest.mark.parametrize("mean", [0.02, 0.5, 1.3, 2.5, 9.9])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_with_any_variance_probabilities_add_up_and_the_mean_is_close(mean: float, share: float) -> None:
    least = float(least_variance(np.array(mean)))
    found = counts(mean, least + share * (mean - least))
    assert found.pdf(K).sum() == pytest.approx(1.0)
    np.testing.assert_allclose(np.cumsum(found.pdf(K)), found.cdf(K), atol=1e-12)
    assert K @ found.pdf(K) == pytest.approx(mean, rel=0.05)


def test_a_variance_that_no_count_can_have_is_the_least_possible() -> None:
    np.testing.assert_allclose(counts(0.3, 1e-9).pdf([0.0, 1.0, 2.0]), [0.7, 0.3, 0.0], atol=1e-12)


def test_what_is_not_a_count_has_no_probability() -> None:
    assert (counts(2.0, 3.0).logpdf([-1.0, 0.5]) == -np.inf).all()
    assert np.isnan(counts(2.0, 3.0).cdf(np.nan))


def test_near_poisson_nothing_jumps() -> None:
    for var in (2.0 - 3e-6, 2.0 + 3e-6):
        np.testing.assert_allclose(counts(2.0, var).cdf(K), poisson(2.0).cdf(K), atol=1e-5)
        np.testing.assert_allclose(counts(2.0, var).pdf(K), poisson(2.0).pmf(K), atol=1e-5)


def test_draws_have_the_moments() -> None:
    drawn = counts(0.8, 1.9).sample(100_000, 0)
    assert drawn.mean() == pytest.approx(0.8, abs=0.02)
    assert drawn.var() == pytest.approx(1.9, rel=0.03)
    assert (drawn == np.floor(drawn)).all()


def test_large_counts_have_the_quantiles_of_a_normal() -> None:
    low, high = counts(1e9, 1e10).interval(0.95)
    assert (low, high) == pytest.approx((1e9 - 1.96e5, 1e9 + 1.96e5), abs=200)
    assert low == np.floor(low)


def test_certain_levels_have_the_ends() -> None:
    assert counts(2.0, 3.0).ppf(0.0) == 0.0
    assert counts(2.0, 3.0).ppf(1.0) == np.inf


@pytest.mark.parametrize(("mean", "var"), [(0.1, 0.2), (3.0, 2.0), (5000.0, 9000.0), (1e7, 1e13)])
def test_many_counts_are_those_that_are_found_one_by_one(mean: float, var: float) -> None:
    parts = counts(mean, var)._number_parts()
    z = np.linspace(-5.5, 5.5, 301)[:, None]
    one_by_one = WholeNumbers().at_normal_score(parts, z)
    np.testing.assert_array_equal(WholeNumbers().each_at_normal_scores(parts, z), one_by_one)
