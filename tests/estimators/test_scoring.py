"""Rows that are scored and not learned get what they would get just before being learned."""

import copy
from typing import Any

import numpy as np
import pytest

from onepass import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
)
from onepass.estimators import learner_of
from onepass.estimators.rows import Rows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = X @ [1.0, -2.0, 0.5] + 0.3 * RNG.normal(size=200)
LABELS = np.digitize(Y, [-1.0, 1.0])


@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (BayesianPerceptronRegressor(), Y),
        (BayesianPerceptronRegressor(outliers=0.05, prior_scale="auto"), Y),
        (BayesianPerceptronRegressor("exp", observation="negative_binomial"), np.floor(np.abs(Y))),
        (BayesianPerceptronClassifier(outliers=0.05), Y > 0.0),
        (BayesianPerceptronClassifier(), LABELS),
        (BayesianMLPRegressor((4,)), Y),
        (BayesianMLPClassifier((4,)), LABELS),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else "",
)
def test_a_row_is_scored_as_before_it_is_learned(estimator: Any, y: Any) -> None:
    model = estimator.fit(X, y)
    targets = y.astype(np.float64)
    before = model.n_seen_
    found = learner_of(model).score(Rows(X[:5], targets[:5]))
    assert model.n_seen_ == before
    for row in range(5):
        learned = learner_of(copy.deepcopy(model)).predict_then_learn(Rows(X[row : row + 1], targets[row : row + 1]))
        for name in ("mean", "epistemic", "aleatoric", "log_density", "outlier_probability"):
            np.testing.assert_allclose(getattr(found, name)[row], getattr(learned, name)[0], rtol=1e-9, atol=1e-12)
