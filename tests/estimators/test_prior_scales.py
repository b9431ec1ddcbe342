"""A prior scale for each feature, and a noise that starts where the user says."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm
from sklearn.linear_model import BayesianRidge

import onepass
from onepass import BayesianNetwork, BayesianPerceptron, BayesianPerceptronClassifier, BayesianPerceptronRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 4))
Y = X @ [1.0, 0.0, 2.0, 0.0] + RNG.normal(0.0, 0.1, 80)
SCALES = np.array([1.0, 0.1, 2.0, 0.5])


@pytest.mark.parametrize(
    ("kind", "y", "options"),
    [
        (BayesianPerceptronRegressor, Y, {"noise": 0.1, "standardize": False}),
        (BayesianPerceptronRegressor, Y, {"noise": 0.1, "standardize": False, "covariance": "diagonal"}),
        (BayesianPerceptronClassifier, Y > 0.0, {"standardize": False}),
        (BayesianPerceptronClassifier, np.digitize(Y, [-1.0, 1.0]), {"standardize": False}),
        (BayesianPerceptronClassifier, np.digitize(Y, [-1.0, 1.0]), {"covariance": "neuron", "standardize": False}),
    ],
)
def test_a_scale_per_feature_is_that_feature_scaled(kind: Any, y: Any, options: Any, tmp_path: Path) -> None:
    model = kind(prior_scale=SCALES, **options).fit(X, y)
    scaled = kind(prior_scale=1.0, **options).fit(X * SCALES, y)
    assert model.log_evidence_ == pytest.approx(scaled.log_evidence_, rel=1e-9)
    np.testing.assert_allclose(model.coef_, scaled.coef_ * SCALES, rtol=1e-7, atol=1e-10)
    onepass.save(model, tmp_path / "m")
    loaded = onepass.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.partial_fit(X, y).coef_, model.partial_fit(X, y).coef_)


def test_scales_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"prior_scale must be one number or 4, one per feature, got shape \(2,\)"):
        BayesianPerceptronRegressor(prior_scale=[1.0, 2.0]).fit(X, Y)
    with pytest.raises(ValueError, match="prior_scale must be a positive number"):
        BayesianPerceptronRegressor(prior_scale=[1.0, -1.0, 1.0, 1.0]).fit(X, Y)
    with pytest.raises(ValueError, match="prior_scale must be one number for a network with hidden layers"):
        BayesianNetwork(4, (3,), prior_scale=SCALES)
    with pytest.raises(ValueError, match="one per feature"):
        BayesianNetwork(4, (), prior_scale=[1.0, 2.0])


def test_a_learned_noise_starts_where_it_is_told_to() -> None:
    assert BayesianPerceptron(4, "linear", noise="learn", noise_start=3.0).noise == 3.0
    prior_cov = 16.0 + X @ X.T  # of the targets' means: an intercept of standard deviation 4, weights of 1
    logs = np.arange(-10.0, 5.0, 0.02)
    densities = [multivariate_normal.logpdf(Y, cov=prior_cov + np.exp(log) * np.eye(len(Y))) for log in logs]
    for start in (0.01, 1.0, 100.0):
        model = BayesianPerceptronRegressor(noise_start=start, standardize=False).fit(X, Y)
        expected = logsumexp(densities + norm.logpdf(logs, np.log(start), 3.0)) + np.log(0.02)
        assert model.log_evidence_ == pytest.approx(expected, abs=0.02)
    with pytest.raises(ValueError, match="noise_start must be"):
        BayesianPerceptronRegressor(noise_start=0.0).fit(X, Y)


@pytest.mark.parametrize("d", [1, 3, 4, 12, 100])
def test_the_default_prior_explains_three_times_the_variance_of_the_targets_at_most(d: int) -> None:
    rng = np.random.default_rng(d)
    rows = rng.normal(size=(100, d)) * 10.0 ** rng.uniform(-2.0, 2.0, d) + 7.0
    y = 50.0 + rows[:, 0] + rng.normal(size=100)
    scale, unit = min(1.0, np.sqrt(3.0 / d)), np.std(y)
    default = BayesianPerceptronRegressor().fit(rows, y)
    named = BayesianPerceptronRegressor(prior_scale=scale, noise_start=float(0.1 * unit**2)).fit(rows, y)
    np.testing.assert_allclose(default.coef_, named.coef_, rtol=1e-9)
    stds = np.sqrt(np.diag(named.coef_cov_))
    np.testing.assert_allclose(
        default.coef_cov_ / np.outer(stds, stds), named.coef_cov_ / np.outer(stds, stds), atol=1e-9
    )
    before = BayesianPerceptronRegressor(noise=1e12).fit(rows, y)  # by which nothing is learned
    latent = np.einsum("ij,jk,ik->i", rows - rows.mean(axis=0), before.coef_cov_, rows - rows.mean(axis=0))
    assert latent.mean() == pytest.approx(min(d, 3) * unit**2, rel=1e-3)


def test_the_default_prior_of_sparse_rows_counts_their_entries() -> None:
    rng = np.random.default_rng(0)
    rows = csr_array(random_array((200, 5000), density=0.002, rng=rng, data_sampler=rng.standard_normal))
    y = np.asarray(rows.sum(axis=1)) + 0.1 * rng.normal(size=200)
    default = BayesianPerceptronRegressor(covariance="diagonal", warm_up=200).fit(rows, y)
    scale = np.sqrt(3.0 / (rows.nnz / 200))
    named = BayesianPerceptronRegressor(
        covariance="diagonal", warm_up=200, prior_scale=scale, noise_start=float(0.1 * np.var(y))
    ).fit(rows, y)
    np.testing.assert_allclose(default.coef_, named.coef_, rtol=1e-9)


def test_elsewhere_the_default_prior_scale_is_one() -> None:
    counts = np.random.default_rng(0).poisson(np.exp(0.3 * Y))
    for options, y in (
        ({"standardize": False}, Y),
        ({"activation": "relu"}, np.maximum(Y, 0.0)),
        ({"activation": "exp"}, counts),
    ):
        default = BayesianPerceptronRegressor(**options).fit(X, y)
        np.testing.assert_array_equal(
            default.coef_, BayesianPerceptronRegressor(prior_scale=1.0, **options).fit(X, y).coef_
        )
    with pytest.raises(ValueError, match=r"prior_scale must be a positive number, .* or 'auto', got None"):
        BayesianPerceptronClassifier(prior_scale=None).fit(X, Y > 0.0)
    with pytest.raises(ValueError, match=r"prior_scale must be a positive number, .*, 'auto' or None, got 0"):
        BayesianPerceptronRegressor(prior_scale=0).fit(X, Y)


@pytest.mark.parametrize(("active", "noise_std"), [(200, 1.0), (10, 1.0), (200, 0.1), (10, 0.1)])
def test_intervals_of_fewer_rows_than_features_are_not_much_wider_than_those_of_a_learned_prior(
    active: int, noise_std: float
) -> None:
    widths, inside = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        rows, weights = rng.normal(size=(600, 200)), np.zeros(200)
        weights[:active] = rng.normal(size=active) / np.sqrt(active)
        y = rows @ weights + noise_std * rng.normal(size=600)
        model = BayesianPerceptronRegressor().fit(rows[:100], y[:100])
        _, std = BayesianRidge().fit(rows[:100], y[:100]).predict(rows[100:], return_std=True)
        low, high = model.predict_interval(rows[100:])
        widths.append(np.mean(high - low) / np.mean(3.92 * std))
        inside.append(np.mean((low <= y[100:]) & (y[100:] <= high)))
    assert np.mean(widths) < 2.0
    assert np.mean(inside) > 0.95
