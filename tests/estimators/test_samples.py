"""Draws of functions and of new targets, against what is predicted and against the posterior."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, WhiteKernel

from onepass import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
)

random = np.random.default_rng(0)
X = random.normal(size=(400, 3))
SCORE = X @ [1.0, -2.0, 0.5]
NUMBERS = 50.0 + 10.0 * SCORE + 5.0 * random.normal(size=400)
COUNTS = random.poisson(np.exp(0.3 * SCORE))
LABELS = np.where(SCORE + random.logistic(size=400) > 0.0, "yes", "no")
THREE = np.digitize(SCORE + random.logistic(size=400), [-1.0, 1.0])
DRAWS = 20_000


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (BayesianPerceptronRegressor(), NUMBERS),
        (BayesianPerceptronRegressor(prior_scale="auto", drift="auto"), NUMBERS),
        (BayesianPerceptronRegressor(noise=25.0, standardize=False, prior_scale=50.0), NUMBERS),
        (BayesianPerceptronRegressor("relu"), np.abs(NUMBERS)),
        (BayesianMLPRegressor((5,)), NUMBERS),
        (BayesianMLPRegressor((5,), observation="heteroscedastic"), NUMBERS),
        (BayesianMLPRegressor((5,), members=2), NUMBERS),
        (BayesianPerceptronRegressor("exp", observation="poisson"), COUNTS),
        (BayesianPerceptronRegressor("exp"), COUNTS),
        (BayesianMLPRegressor((5,), observation="negative_binomial"), COUNTS),
    ],
    ids=lambda given: repr(given) if hasattr(given, "fit") else "",
)
def test_new_targets_have_the_moments_that_are_predicted(model: Any, y: Any) -> None:
    model.fit(X, y)
    mean, std = model.predict(X[:20], return_std=True)
    drawn = model.sample_y(X[:20], DRAWS, random_state=2)  # with few draws from members that are wide and unlikely
    assert drawn.shape == (20, DRAWS)
    assert_allclose((drawn.mean(axis=1) - mean) / std, 0.0, atol=0.05)
    assert_allclose(drawn.std(axis=1) / std, 1.0, atol=0.05)
    low, high = model.predict_interval(X[:20], 0.8)
    inside = ((drawn >= low[:, None]) & (drawn <= high[:, None])).mean(axis=1)
    assert inside.min() > 0.78
    if model._likelihood.is_count:
        np.testing.assert_array_equal(drawn, np.round(drawn))
        assert drawn.min() == 0.0
    else:
        assert inside.max() < 0.82
    np.testing.assert_array_equal(drawn[:, :5], model.sample_y(X[:20], DRAWS, random_state=2)[:, :5])
    assert not np.array_equal(drawn, model.sample_y(X[:20], DRAWS, random_state=1))


def test_new_targets_are_drawn_as_by_a_gaussian_process() -> None:
    model = BayesianPerceptronRegressor(noise=25.0, prior_scale=5.0, intercept_scale=5.0, standardize=False)
    model.fit(X[:10], NUMBERS[:10])
    kernel = ConstantKernel(25.0) * DotProduct(1.0) + WhiteKernel(25.0)
    process = GaussianProcessRegressor(kernel, optimizer=None).fit(X[:10], NUMBERS[:10])
    ours, theirs = (one.sample_y(X[10:14], DRAWS, random_state=0) for one in (model, process))
    assert ours.shape == theirs.shape
    assert_allclose(ours.mean(axis=1), theirs.mean(axis=1), atol=0.3)
    assert_allclose(np.cov(ours), np.cov(theirs), atol=2.0)
    functions = model.sample_function(X[10:14], DRAWS, random_state=0)
    assert_allclose(np.cov(ours) - np.cov(functions), 25.0 * np.eye(4), atol=2.0)


def test_inputs_that_are_missing_make_targets_vary() -> None:
    holes = np.where(random.uniform(size=X.shape) < 0.2, np.nan, X)
    model = BayesianPerceptronRegressor(missing="mean").fit(holes, NUMBERS)
    rows = np.array([[0.0, 0.0, 0.0], [0.0, np.nan, 0.0]])
    _, std = model.predict(rows, return_std=True)
    drawn = model.sample_y(rows, DRAWS, random_state=0)
    assert std[1] > 1.5 * std[0]
    assert_allclose(drawn.std(axis=1) / std, 1.0, atol=0.05)


def test_several_outputs_have_noises_of_their_own() -> None:
    both = np.column_stack([NUMBERS, SCORE + random.normal(size=400)])
    model = BayesianPerceptronRegressor().fit(X, both)
    mean, std = model.predict(X[:3], return_std=True)
    drawn = model.sample_y(X[:3], DRAWS, random_state=0)
    assert drawn.shape == (3, 2, DRAWS)
    assert_allclose((drawn.mean(axis=2) - mean) / std, 0.0, atol=0.05)
    assert_allclose(drawn.std(axis=2) / std, 1.0, atol=0.05)
    assert abs(np.corrcoef(drawn[0])[0, 1]) < 0.05


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (BayesianPerceptronClassifier(), LABELS),
        (BayesianPerceptronClassifier(prior_scale="auto"), LABELS),
        (BayesianPerceptronClassifier(), THREE),
        (BayesianMLPClassifier((5,)), LABELS),
        (BayesianMLPClassifier((5,), members=2), THREE),
    ],
    ids=lambda given: repr(given) if hasattr(given, "fit") else "",
)
def test_labels_are_drawn_with_the_probabilities_that_are_predicted(model: Any, y: Any) -> None:
    model.fit(X, y)
    drawn = model.sample_y(X[:10], 4000, random_state=1)
    assert drawn.shape == (10, 4000)
    assert set(np.unique(drawn)) <= set(model.classes_)
    found = np.column_stack([(drawn == label).mean(axis=1) for label in model.classes_])
    assert_allclose(found, model.predict_proba(X[:10]), atol=0.05)
    np.testing.assert_array_equal(drawn, model.sample_y(X[:10], 4000, random_state=1))


def test_the_number_of_draws_is_checked() -> None:
    model = BayesianPerceptronRegressor().fit(X, NUMBERS)
    for draw in (model.sample_y, model.sample_function):
        with pytest.raises(ValueError, match="n_samples must be a whole number of at least 1, got 0"):
            draw(X, 0)
