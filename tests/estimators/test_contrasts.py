"""Coefficients of three or more classes are told less their mean over the classes, and so are their deviations."""

from typing import Any

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.special import softmax

from onepass import BayesianPerceptronClassifier

K, D = 4, 3


@pytest.fixture(scope="module")
def rows() -> Any:
    random = np.random.default_rng(3)
    X = random.normal(size=(2000, D)) * [1.0, 20.0, 0.1] + [0.0, 3.0, 1.0]
    logits = (X - X.mean(axis=0)) / X.std(axis=0) @ random.normal(size=(D, K))
    return X, np.array([random.choice(K, p=p) for p in softmax(logits, axis=1)])


def dense(model: Any) -> Any:
    """The covariance of the weights, those of a class after those of the one before."""
    return np.diag(model.weight_variances[0].ravel()) if model.covariance == "diagonal" else block_diag(*model.cov)


@pytest.mark.parametrize("covariance", ["full", "neuron", "diagonal"])
@pytest.mark.parametrize("options", [{}, {"prior_scale": "auto"}], ids=str)
def test_deviations_are_those_of_dense_algebra(covariance: Any, options: Any, rows: Any) -> None:
    model = BayesianPerceptronClassifier(covariance=covariance, standardize=True, **options).fit(
        rows[0][:300], rows[1][:300]
    )
    (ensemble,) = model._learner.state.mixtures
    centring = np.kron(np.eye(K) - 1.0 / K, np.eye(D + 1))
    means = [centring @ member.weights[0].ravel() for member in ensemble.members]
    covs = [centring @ dense(member) @ centring.T for member in ensemble.members]
    mean = sum(w * own for w, own in zip(ensemble.weights, means, strict=True))
    parts = zip(ensemble.weights, covs, means, strict=True)
    cov = sum(w * (own + np.outer(m - mean, m - mean)) for w, own, m in parts)
    scale = rows[0][:100].std(axis=0)
    std = np.sqrt(np.diag(cov)).reshape(K, D + 1)[:, 1:] / scale
    np.testing.assert_allclose(model.coef_std_, std, rtol=1e-6)
    np.testing.assert_allclose(model.coef_cov_, std**2, rtol=1e-6)
    np.testing.assert_allclose(model.coef_, mean.reshape(K, D + 1)[:, 1:] / scale, rtol=1e-6)
    intercept = mean.reshape(K, D + 1)[:, 0] - model.coef_ @ rows[0][:100].mean(axis=0)
    np.testing.assert_allclose(model.intercept_, intercept, rtol=1e-6)
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(model.intercept_.sum(), 0.0, atol=1e-9)


def test_more_rows_make_the_weights_known(rows: Any) -> None:
    X = (rows[0] - rows[0].mean(axis=0)) / rows[0].std(axis=0)
    few, many = (BayesianPerceptronClassifier(covariance="full").fit(X[:n], rows[1][:n]) for n in (500, 2000))
    assert many.coef_std_.max() < 0.15  # where what the classes have in common stays at 1 / sqrt(4)
    np.testing.assert_allclose(few.coef_std_ / many.coef_std_, 2.0, rtol=0.15)
