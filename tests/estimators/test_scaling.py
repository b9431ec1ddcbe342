"""Warnings of targets that an activation can't have; standardisation itself is tested by what it does to estimators."""

import warnings

import numpy as np
import pytest

from onepass import BayesianPerceptronRegressor
from onepass.activations import as_activation
from onepass.estimators.scaling import warn_of_range

rng = np.random.default_rng(0)
NOISE = rng.normal(size=(500, 1))


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("sigmoid", 0, 1), ("tanh", -1, 1), ("hard_sigmoid", 0, 1), ("relu6", 0, 6), ("erf", -1, 1)],
)
def test_targets_beyond_the_range_of_a_bounded_activation(name: str, low: float, high: float) -> None:
    activation, width = as_activation(name), high - low
    with pytest.warns(UserWarning, match=f"between {low} and {high}, apart from noise, got .*'linear'"):
        warn_of_range(rng.uniform(low - width, high, (500, 1)), activation)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inside = rng.uniform(low, high, (500, 1))
        warn_of_range(inside + 0.1 * width * NOISE, activation)
        warn_of_range(np.where(inside > low + width / 2, np.nan, inside), activation)
        warn_of_range(np.full((3, 2), np.nan), activation)


@pytest.mark.parametrize("name", ["linear", "relu", "softplus", "exp"])
def test_an_unbounded_activation_takes_targets_of_any_size(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_range(1e3 * NOISE, as_activation(name))


def test_an_estimator_warns_at_its_first_rows() -> None:
    X, y = rng.normal(size=(50, 1)), 5.0 + rng.normal(size=50)
    for call in (BayesianPerceptronRegressor("sigmoid").fit, BayesianPerceptronRegressor("sigmoid").partial_fit):
        with pytest.warns(UserWarning, match="targets must lie between 0 and 1") as caught:
            call(X, y)
        assert caught[0].filename == __file__
