"""Targets that are all equal so far, one alone among them, say nothing of how much the next ones vary."""

import warnings
from typing import Any

import numpy as np
import pytest

from onepass import BayesianMLPRegressor, BayesianPerceptronRegressor

REGRESSORS = [BayesianPerceptronRegressor, BayesianMLPRegressor]


@pytest.fixture(scope="module")
def prices() -> Any:
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 3)) * [1.0, 400.0, 0.2] + [0.0, 2000.0, 5.0]
    y = 2e5 + 6e4 * ((X - X.mean(axis=0)) / X.std(axis=0)) @ [0.6, 0.7, -0.3] + 1e4 * random.normal(size=300)
    return X, y


@pytest.mark.parametrize("regressor", REGRESSORS)
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_after_one_row_the_next_may_be_away_by_its_size(regressor: Any, unit: Any, prices: Any) -> None:
    X, y = prices
    _, std = regressor().partial_fit(X[:1], unit * y[:1]).predict(X[1:20], return_std=True)
    assert np.all(std > 0.2 * unit * y[0])
    assert np.median(std) < 20.0 * unit * y[0]


@pytest.mark.parametrize("regressor", REGRESSORS)
def test_the_second_row_is_no_great_surprise(regressor: Any, prices: Any) -> None:
    predicted = regressor().predict_then_learn(*(part[:3] for part in prices))
    z = (prices[1][:3] - predicted.mean) / predicted.std
    assert np.abs(z[1:]).max() < 5.0


@pytest.mark.parametrize("regressor", REGRESSORS)
def test_targets_that_vary_only_after_the_warm_up_are_learned_after_a_warning(regressor: Any, prices: Any) -> None:
    X, y = prices[0], prices[1].copy()
    y[:100] = 2e5
    with pytest.warns(UserWarning, match=r"all 200000 in the first 100 rows.*set to 200000.*raise warm_up"):
        model = regressor().partial_fit(X, y)
    assert model.score(X[100:], y[100:]) > -0.5  # and not a million below 0
    with pytest.warns(UserWarning, match=r"targets are all 0 in.*set to 1:"):
        regressor().fit(X[:100], np.zeros(100))


def test_of_several_outputs_each_has_its_scale(prices: Any) -> None:
    X, y = prices
    Y = np.column_stack([y, np.full(len(y), -3e3), np.where(np.arange(len(y)) < 50, np.nan, 7e4)])
    with pytest.warns(UserWarning, match="in the first 100 rows") as told:
        model = BayesianPerceptronRegressor().fit(X, Y)
    assert sorted(str(one.message).split(" are")[0][-8:] for one in told) == ["output 1", "output 2"]
    assert model._learner.state.targets.scale == pytest.approx([y[:100].std(), 3e3, 7e4])


def test_two_rows_that_differ_set_the_scale_as_ever_without_a_warning(prices: Any) -> None:
    X, y = prices
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BayesianPerceptronRegressor().fit(X[:2], y[:2])
        BayesianPerceptronRegressor().fit(X[:50], np.full(50, 3.0))  # the warm-up is not over
    assert model._learner.state.targets.scale[0] == pytest.approx(np.std(y[:2]))
