"""Mixtures of Gaussians: exact quantiles, and moments that a part of negligible weight does not ruin."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from onepass import BayesianCommittee, BayesianNetwork, BayesianPerceptron, Mixture
from onepass.likelihoods.mixtures import Gaussians, counted_weights, mixture_moments
from onepass.models.weighting import restore_weighting

LEVELS = (0.001, 0.025, 0.3, 0.5, 0.7, 0.975, 0.999)


def quantile_by_brent(weights: np.ndarray, means: np.ndarray, stds: np.ndarray, level: float) -> float:
    """The quantile of one mixture by SciPy's root finder, on the side on which probabilities are small."""

    def excess(x: float) -> float:
        if level <= 0.5:
            return float(weights @ ndtr((x - means) / stds) - level)
        return float((1.0 - level) - weights @ ndtr((means - x) / stds))

    quantiles = means + ndtri(level) * stds
    low, high = quantiles.min(), quantiles.max()
    margin = 1e-9 * max(abs(low), abs(high), stds.max())
    return float(brentq(excess, low - margin, high + margin, xtol=1e-300, rtol=1e-15, maxiter=2000))


def mixture_quantile(weights: np.ndarray, means: np.ndarray, stds: np.ndarray, level: float) -> np.ndarray:
    flat = (len(weights), -1)
    mixture = Gaussians(weights.reshape(flat), means.reshape(flat), stds.reshape(flat))
    return mixture.at_normal_score(ndtri(np.array([level]))).reshape(means.shape[1:])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("seed", range(20))
def test_quantiles_are_those_of_a_root_finder(seed: int, level: float) -> None:
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 8))
    weights = rng.dirichlet(np.full(k, rng.choice([0.2, 1.0, 10.0])))
    means, stds = rng.normal(size=(k, 4)) * 10.0 ** rng.uniform(-3, 6), 10.0 ** rng.uniform(-9, 3, size=(k, 4))
    expected = [quantile_by_brent(weights, means[:, i], stds[:, i], level) for i in range(4)]
    np.testing.assert_allclose(mixture_quantile(weights, means, stds, level), expected, rtol=1e-10)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("far", [1e3, 1e20, -1e20, 1e300])
def test_a_part_of_negligible_weight_moves_no_quantile_however_far_it_is(far: float, level: float) -> None:
    weights, means, stds = np.array([0.7, 0.3, 1e-34]), np.array([0.0, 1.0, far]), np.array([1.0, 0.5, abs(far) / 10])
    without = quantile_by_brent(weights[:2], means[:2], stds[:2], level)
    assert mixture_quantile(weights, means, stds, level) == pytest.approx(without, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("level", LEVELS)
def test_a_far_part_with_some_weight_counts_by_its_weight(level: float) -> None:
    weights, means, stds = np.array([0.6, 0.4 - 1e-5, 1e-5]), np.array([0.0, 1.0, 1e20]), np.array([1.0, 0.5, 1.0])
    expected = quantile_by_brent(weights, means, stds, level)
    assert mixture_quantile(weights, means, stds, level) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("level", LEVELS)
def test_one_part_equal_parts_and_parts_without_variance_have_the_quantiles_they_should(level: float) -> None:
    z = ndtri(level)
    assert mixture_quantile(np.ones(1), np.array([2.0]), np.array([3.0]), level) == pytest.approx(2.0 + 3.0 * z)
    equal = mixture_quantile(np.full(5, 0.2), np.full((5, 3), 2.0), np.full((5, 3), 3.0), level)
    np.testing.assert_allclose(equal, 2.0 + 3.0 * z, rtol=1e-12)
    points = mixture_quantile(np.array([0.4, 0.6]), np.array([-1.0, 1.0]), np.zeros(2), level)
    assert points == pytest.approx(-1.0 if level < 0.4 else 1.0, rel=1e-10)


@pytest.mark.parametrize("z", [-60.0, -36.0, -8.0, -1.3, 0.0, 0.4, 9.0, 50.0])
def test_where_a_number_lies_is_the_inverse_of_the_number_that_lies_there(z: float) -> None:
    rng = np.random.default_rng(2)
    weights, means, stds = rng.dirichlet(np.ones(3), 4).T, rng.normal(size=(3, 4)), rng.uniform(0.5, 2.0, (3, 4))
    mixture = Gaussians(weights, means, stds)
    y = mixture.at_normal_score(np.array([z]))
    np.testing.assert_allclose(mixture.normal_score(y), z, rtol=1e-9 if abs(z) < 37.0 else 0.05, atol=1e-9)
    if abs(z) < 8.0:
        np.testing.assert_allclose((weights * ndtr((y - means) / stds)).sum(axis=0), ndtr(z), rtol=1e-9)


def test_a_part_of_negligible_weight_has_no_part_in_the_moments() -> None:
    weights, means, variances = np.array([0.7, 0.3, 1e-34]), np.array([0.0, 1.0, 1e20]), np.array([1.0, 0.25, 1e40])
    mean, var = mixture_moments(weights, means, variances)
    expected_mean, expected_var = mixture_moments(weights[:2], means[:2], variances[:2])
    assert (float(mean), float(var)) == pytest.approx((float(expected_mean), float(expected_var)), rel=1e-12)


def test_weights_of_each_row_lose_only_their_own_negligible_parts() -> None:
    weights = np.array([[0.5, 1.0 - 1e-20], [0.5, 1e-20]])
    means, variances = np.array([[0.0, 0.0], [1.0, 1e20]]), np.ones((2, 2))
    mean, var = mixture_moments(weights, means, variances)
    np.testing.assert_allclose(mean, [0.5, 0.0])
    np.testing.assert_allclose(var, [1.25, 1.0])


def test_a_member_that_went_astray_does_not_ruin_its_committee() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=200)
    sound = BayesianCommittee(2, (10,), members=3).learn(X, y)
    weights = sound.weights[:2] / sound.weights[:2].sum()
    arrays = sound._weighting.arrays
    lost = {"weights": np.append(weights, 1e-34)}
    astray = Mixture(sound.members, restore_weighting("stacked", {**arrays, **lost}, 3, 1))
    pair = Mixture(sound.members[:2], astray._weighting)
    expected_mean = weights @ [member.predict(X).mean for member in pair.members]
    before, limits_before = astray.predict(X), astray.interval(X)
    astray.members[2]._state.belief.mean[...] *= 1e10
    assert np.abs(astray.members[2].predict(X).mean).max() > 1e18
    with pytest.warns(UserWarning, match="member 2 of the mixture predicts"):
        after, limits = astray.predict(X), astray.interval(X)
    np.testing.assert_allclose(after.mean, expected_mean, rtol=1e-9)
    np.testing.assert_allclose(after.var, before.var, rtol=1e-9)
    np.testing.assert_allclose(limits, limits_before, rtol=1e-9)


def test_of_many_equal_parts_none_is_left_out() -> None:
    np.testing.assert_allclose(counted_weights(np.full((60, 2), 1 / 60)), 1 / 60)


@pytest.mark.parametrize(
    ("model", "arguments", "options"),
    [
        (BayesianPerceptron, (2, "linear"), {"noise": 0.1}),
        (BayesianNetwork, (2, (4,)), {"noise": 0.1, "calibrate": False}),
        (BayesianNetwork, (2, (4,)), {"covariance": "kronecker"}),
    ],
)
def test_what_a_mixture_predicts_are_the_moments_of_the_density_that_it_scores(
    model: Any, arguments: Any, options: Any
) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    mixture = Mixture.over_drift(model, *arguments, **options).learn(X, X[:, 0] + 0.3 * rng.normal(size=60))
    assert mixture.weights.min() < 0.02  # the least likely hypotheses are part of it
    x = np.array([1.5, -2.0])
    seen = mixture.predict(x)
    steps = np.linspace(-15.0, 15.0, 6001)
    unit = 0.01 * np.sqrt(seen.var)
    y, width = seen.mean + unit * np.sinh(steps), unit * np.cosh(steps)
    density = np.exp(mixture.log_predictive(np.tile(x, (len(y), 1)), y)) * width
    mean = np.trapezoid(y * density, steps)
    assert seen.mean == pytest.approx(mean, rel=1e-6)
    assert seen.var == pytest.approx(np.trapezoid((y - mean) ** 2 * density, steps), rel=1e-6)
