"""`predict_dist`: the same numbers as all other methods have, through a pipeline too."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onepass import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
)

X, Y = load_diabetes(return_X_y=True)
FLOWERS, KINDS = load_iris(return_X_y=True)
REGRESSORS = [
    BayesianPerceptronRegressor(),
    BayesianPerceptronRegressor(drift="auto", outliers=0.0),
    BayesianPerceptronRegressor(activation="exp", standardize=False),
    BayesianMLPRegressor((5,), random_state=0),
    BayesianMLPRegressor((5,), members=3, random_state=0),
]


@pytest.mark.parametrize("model", REGRESSORS, ids=str)
def test_numbers_are_those_of_the_other_methods(model: Any) -> None:
    model = clone(model).fit(X[:300], np.round(Y[:300]))
    seen = model.predict_dist(X[300:])
    mean, std = model.predict(X[300:], return_std=True)
    np.testing.assert_allclose(seen.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(seen.std, std, rtol=1e-12)
    np.testing.assert_allclose(seen.interval(0.8), model.predict_interval(X[300:], 0.8), rtol=1e-12)


@pytest.mark.parametrize("intervals", ["model", "adaptive"])
@pytest.mark.parametrize(
    ("model", "transform"),
    [(model, None) for model in REGRESSORS] + [(model, "log") for model in REGRESSORS if "exp" not in str(model)],
    ids=str,
)
def test_a_distribution_is_what_learning_the_row_scores(model: Any, transform: str | None, intervals: str) -> None:
    targets = np.round(Y)
    model = clone(model).set_params(target_transform=transform, intervals=intervals).fit(X[:300], targets[:300])
    for i in range(300, 310):
        row, y = X[i : i + 1], targets[i : i + 1]
        seen = model.predict_dist(row)
        expected = seen.mean, seen.std, seen.logpdf(y)
        limits = seen.interval(0.5)
        scored = model.predict_then_learn(row, y)
        np.testing.assert_allclose((scored.mean, scored.std, scored.log_density), expected, rtol=1e-12)
        if intervals == "adaptive":
            np.testing.assert_array_equal(scored.places.inside(0.5), (limits[0] <= y) & (y <= limits[1]))


@pytest.mark.parametrize(
    "model", [BayesianPerceptronClassifier(), BayesianMLPClassifier((5,), random_state=0)], ids=str
)
@pytest.mark.parametrize("n", [100, 150])
def test_probabilities_are_those_of_predict_proba(model: Any, n: int) -> None:
    model = clone(model).fit(FLOWERS[:n], KINDS[:n])
    seen = model.predict(FLOWERS[:n], return_dist=True)
    np.testing.assert_allclose(seen.probabilities, model.predict_proba(FLOWERS[:n]), rtol=1e-9, atol=1e-15)


def test_a_pipeline_passes_the_distribution_on() -> None:
    pipeline = make_pipeline(StandardScaler(), BayesianPerceptronRegressor()).fit(X, Y)
    alone = BayesianPerceptronRegressor().fit(StandardScaler().fit_transform(X), Y)
    found, expected = (
        pipeline.predict(X[:5], return_dist=True),
        alone.predict_dist(StandardScaler().fit(X).transform(X[:5])),
    )
    np.testing.assert_allclose(found.interval(), expected.interval(), rtol=1e-12)
    np.testing.assert_allclose(found.logpdf(Y[:5]), expected.logpdf(Y[:5]), rtol=1e-12)


def test_many_sparse_rows_are_predicted_as_few() -> None:
    model = BayesianPerceptronRegressor().fit(csr_array(X), Y)
    many = csr_array(np.tile(X, (12, 1)))
    seen, few = model.predict_dist(many), model.predict_dist(csr_array(X))
    np.testing.assert_allclose(seen.mean, np.tile(few.mean, 12), rtol=1e-12)
    np.testing.assert_allclose(seen.interval()[0], np.tile(few.interval()[0], 12), rtol=1e-12)
    np.testing.assert_allclose(seen.logpdf(np.tile(Y, 12)), np.tile(few.logpdf(Y), 12), rtol=1e-12)
    assert len(seen) == 12 * len(Y)


def test_several_targets_have_no_distribution_of_their_own() -> None:
    model = BayesianPerceptronRegressor().fit(X, np.column_stack([Y, -Y]))
    with pytest.raises(ValueError, match="2 columns"):
        model.predict_dist(X)
