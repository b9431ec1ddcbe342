"""The intercept's default prior suits the activation: one too wide predicts targets, or a noise, of any size."""

from typing import Any

import numpy as np
import pytest

from onepass import BayesianPerceptronRegressor


@pytest.mark.parametrize("offset", [-2.0, 0.0, 3.0])
@pytest.mark.parametrize("options", [{"noise": 0.01}, {"observation": "gaussian", "noise": 0.01}], ids=str)
def test_an_exponential_of_gaussian_targets_is_learned(offset: Any, options: Any) -> None:
    random = np.random.default_rng(5)
    X, size = random.normal(size=(600, 3)), np.exp(offset)
    y = np.exp(X @ [0.4, -0.3, 0.2] + offset) + 0.1 * size * random.normal(size=600)
    model = BayesianPerceptronRegressor("exp", **{**options, "noise": 0.01 * size**2}).fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > 0.9


@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
@pytest.mark.parametrize("offset", [0.0, 2.0, 3.0])
def test_intervals_of_relu_are_as_wide_as_the_noise_wherever_targets_lie(activation: Any, offset: Any) -> None:
    random = np.random.default_rng(6)
    X = random.normal(size=(900, 4)) * 3.0 + 1.0
    y = 50.0 * (np.maximum((X - 1.0) / 3.0 @ [0.6, -0.5, 0.3, 0.2] + offset, 0.0) + 0.3 * random.normal(size=900))
    model = BayesianPerceptronRegressor(activation).fit(X[:500], y[:500])
    low, high = model.predict_interval(X[500:])
    assert np.mean(high - low) / (2.0 * 1.96 * 15.0) == pytest.approx(1.0, abs=0.15)
    assert 0.91 < np.mean((y[500:] > low) & (y[500:] < high)) < 0.98


def test_the_others_and_numbers_stay_as_they_are() -> None:
    for options in (
        {"activation": "relu", "intercept_scale": 4.0},
        {},
        {"activation": "exp"},
        {"activation": "relu", "standardize": False},
    ):
        model = BayesianPerceptronRegressor(**options).fit(np.ones((3, 1)), np.arange(3.0))
        assert model._learner.blueprint.intercept_scale == 4.0
    with pytest.raises(ValueError, match="intercept_scale must be"):
        BayesianPerceptronRegressor(intercept_scale="wide").fit(np.ones((3, 1)), np.arange(3.0))
