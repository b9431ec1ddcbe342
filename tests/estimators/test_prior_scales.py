"""A prior scale for each feature, and a noise that starts where the user says."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

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
        (BayesianPerceptronClassifier, Y > 0.0, {}),
        (BayesianPerceptronClassifier, np.digitize(Y, [-1.0, 1.0]), {}),
        (BayesianPerceptronClassifier, np.digitize(Y, [-1.0, 1.0]), {"covariance": "neuron"}),
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
    near = BayesianPerceptronRegressor(noise_start=0.01, standardize=True, warm_up=20).fit(X, Y)
    far = BayesianPerceptronRegressor(noise_start=100.0, standardize=True, warm_up=20).fit(X, Y)
    assert near.log_evidence_ > far.log_evidence_
    with pytest.raises(ValueError, match="noise_start must be"):
        BayesianPerceptronRegressor(noise_start=0.0).fit(X, Y)
