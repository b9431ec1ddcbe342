"""Estimators and plain models are used alike."""

import numpy as np

from onepass import BayesianPerceptron, BayesianPerceptronRegressor
from onepass.integrations.dask.models import is_estimator, log_evidence, update

X = np.random.default_rng(0).normal(size=(50, 2))
Y = X @ [1.0, -2.0]


def test_rows_are_learned_by_the_method_that_a_model_has() -> None:
    plain = BayesianPerceptron(2, "linear", noise=0.1)
    estimator = BayesianPerceptronRegressor(noise=0.1, prior_scale=1.0, intercept_scale=1.0, standardize=False)
    assert [is_estimator(model) for model in (plain, estimator)] == [False, True]
    for model in (plain, estimator):
        update(model, X[:20], Y[:20])
        update(model, X[20:], Y[20:])
    np.testing.assert_allclose(estimator.coef_, plain.mean[1:])
    assert log_evidence(plain) == plain.log_evidence
    np.testing.assert_allclose(log_evidence(estimator), log_evidence(plain))
