"""An estimator that has learned nothing answers by its prior, can be saved, and then learns as any other."""

from typing import Any

import numpy as np
import pytest

from onepass import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
)
from onepass.estimators import learner_of, start_learner
from onepass.files.checkpoint import from_bytes, to_bytes

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 2))
CASES: list[tuple[Any, Any, Any]] = [
    (BayesianPerceptronRegressor(standardize=False), X[:, 0], None),
    (BayesianPerceptronRegressor(activation="exp", standardize=False), rng.poisson(2.0, 30), None),
    (BayesianPerceptronRegressor(standardize=False, missing="mean", prior_scale="auto"), X[:, 0], None),
    (BayesianPerceptronClassifier(standardize=False), X[:, 0] > 0.0, [False, True]),
    (BayesianPerceptronClassifier(standardize=False, drift="auto"), np.arange(30) % 3, [0, 1, 2]),
    (BayesianMLPRegressor((4,), standardize=False, covariance="kronecker"), X[:, 0], None),
    (BayesianMLPClassifier((4,), standardize=False), np.arange(30) % 3, [0, 1, 2]),
]


@pytest.mark.parametrize(("model", "y", "classes"), CASES, ids=str)
def test_a_started_estimator_learns_as_one_that_was_not(model: Any, y: Any, classes: Any) -> None:
    options = {} if classes is None else {"classes": classes}
    expected = to_bytes(model.partial_fit(X[:1], y[:1], **options).partial_fit(X[1:], y[1:]))
    started = model
    start_learner(started, 2, classes)
    started = from_bytes(to_bytes(started))
    assert started.n_seen_ == 0
    assert np.isfinite(started.predict(X).astype(float)).all()
    assert to_bytes(started.partial_fit(X[:1], y[:1]).partial_fit(X[1:], y[1:])) == expected


def test_an_estimator_that_takes_scales_from_rows_can_t_start_without() -> None:
    with pytest.raises(
        ValueError,
        match="only with standardize=False, got standardize=True, which takes its scales from the first rows",
    ):
        start_learner(BayesianPerceptronRegressor(standardize=True), 2)


def test_a_classifier_needs_its_classes() -> None:
    with pytest.raises(ValueError, match="at least two classes, got none"):
        start_learner(BayesianPerceptronClassifier(standardize=False), 2)


def test_closed_blocks_make_saving_in_between_no_difference() -> None:
    for members in (1, 2):
        model = BayesianMLPRegressor((4,), covariance="kronecker", members=members, warm_up=5).fit(X, X[:, 0])
        other = from_bytes(to_bytes(model))
        for row in X:
            for one in (model, other):
                one.partial_fit(row[None], row[:1])
                learner_of(one).close_block()
            other = from_bytes(to_bytes(other))
        assert to_bytes(model) == to_bytes(other)
