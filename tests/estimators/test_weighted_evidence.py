"""A row of weight w is w copies of it, in the evidence too."""

from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from onepass import BayesianPerceptronRegressor, load, save

random = np.random.default_rng(0)
X = random.normal(size=(60, 3))
Y = np.column_stack([X.sum(axis=1), X[:, 0]]) + 0.5 * random.normal(size=(60, 2))
WEIGHTS = random.integers(0, 4, 60).astype(float)


@pytest.mark.parametrize("outputs", [0, [0, 1]], ids=["one", "two"])
@pytest.mark.parametrize("noise", [0.25, "learn"])
def test_whole_weights_are_repeated_rows(noise: Any, outputs: Any, tmp_path: Any) -> None:
    y = Y[:, outputs]
    options = {"noise": noise, "standardize": False}
    index = np.repeat(np.arange(60), WEIGHTS.astype(int))
    expected = BayesianPerceptronRegressor(**options).partial_fit(X[index], y[index]).log_evidence_
    fitted = BayesianPerceptronRegressor(**options).fit(X[:25], y[:25], WEIGHTS[:25])
    fitted.partial_fit(X[25:], y[25:], WEIGHTS[25:])
    predicted = BayesianPerceptronRegressor(**options)
    predicted.predict_then_learn(X, y, WEIGHTS)
    close: Any = {"abs": 0.1} if noise == "learn" else {"rel": 1e-9}  # a learned noise trusts copies less at first
    assert fitted.log_evidence_ == pytest.approx(expected, **close)
    assert predicted.log_evidence_ == pytest.approx(expected, **close)
    save(fitted, tmp_path / "weighted.onepass")
    assert load(tmp_path / "weighted.onepass").log_evidence_ == fitted.log_evidence_


@pytest.mark.parametrize("weight", [0.3, 2.5])
def test_of_a_fraction_the_likelihood_is_taken_to_its_power(weight: Any) -> None:
    model = BayesianPerceptronRegressor(noise=0.25, standardize=False, fit_intercept=False)
    model.fit(np.array([[2.0]]), np.array([1.0]), np.array([weight]))
    expected, _ = quad(lambda w: norm.pdf(w) * norm.pdf(1.0, 2.0 * w, 0.5) ** weight, -10.0, 10.0, points=[0.5])
    assert model.log_evidence_ == pytest.approx(np.log(expected), rel=1e-6)


def test_the_scale_of_targets_counts_as_often_as_rows_do() -> None:
    later, weights = slice(20, 60), np.where(np.arange(60) < 20, 1.0, WEIGHTS)
    index = np.repeat(np.arange(60), weights.astype(int))
    options: dict[str, Any] = {"noise": 0.25, "warm_up": 20}
    found = BayesianPerceptronRegressor(**options).fit(X, 7.0 * Y[:, 0], weights)
    expected = BayesianPerceptronRegressor(**options).partial_fit(X[index], 7.0 * Y[index, 0])
    assert weights[later].sum() != 40.0
    assert found.log_evidence_ == pytest.approx(expected.log_evidence_, rel=1e-9)
