"""Models for two classes that go on with three."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from onepass import BayesianMLPClassifier, BayesianPerceptronClassifier
from onepass.files.checkpoint import from_bytes, to_bytes

rng = np.random.default_rng(0)
KIND = rng.integers(0, 3, 1500)
CENTRES = np.array([[0.0, 0.0, 0.0], [2.0, 1.0, 0.0], [-1.0, 2.0, 1.0]])
MIXING = np.array([[1.0, 0.8, 0.0], [0.0, 0.6, 0.0], [0.0, 0.0, 1.0]])
X = rng.normal(size=(1500, 3)) @ MIXING + CENTRES[KIND]
Y = np.array(["m", "z", "a"])[KIND]
FIRST = np.flatnonzero(KIND < 2)[:200]
LATER = np.setdiff1d(np.arange(700), FIRST)
TEST = slice(700, None)
MODELS: list[Any] = [
    BayesianPerceptronClassifier(),
    BayesianPerceptronClassifier(standardize=False),
    BayesianPerceptronClassifier("probit"),
    BayesianPerceptronClassifier(covariance="neuron"),
    BayesianPerceptronClassifier(covariance="diagonal"),
    BayesianPerceptronClassifier(drift="auto"),
    BayesianPerceptronClassifier(prior_scale="auto"),
    BayesianMLPClassifier((6,)),
    BayesianMLPClassifier((6,), covariance="kronecker"),
    BayesianMLPClassifier((6,), members=2),
    BayesianMLPClassifier((6,), drift="auto"),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_third_class_after_the_warm_up_is_learned_and_the_first_two_are_not_forgotten(model: Any) -> None:
    model.fit(X[FIRST], Y[FIRST])
    two = model.predict_proba(X[TEST])
    one = LATER[np.flatnonzero(Y[LATER] == "a")[:1]]
    model.partial_fit(X[one], Y[one])
    assert model.classes_.tolist() == ["m", "z", "a"]
    assert model.n_seen_ == 201
    of_two = model.predict_proba(X[TEST])[:, :2]
    assert np.abs(of_two / of_two.sum(axis=1, keepdims=True) - two).mean() < 0.03
    model = from_bytes(to_bytes(model)).partial_fit(X[LATER], Y[LATER])
    assert model.score(X[TEST], Y[TEST]) > 0.84
    known = model.__class__(**model.get_params()).partial_fit(X[FIRST], Y[FIRST], classes=["a", "m", "z"])
    assert model.score(X[TEST], Y[TEST]) > known.partial_fit(X[LATER], Y[LATER]).score(X[TEST], Y[TEST]) - 0.05


def test_sparse_rows_go_on_with_three_classes_too() -> None:
    model = BayesianPerceptronClassifier(covariance="diagonal").fit(csr_array(X[FIRST]), Y[FIRST])
    model.partial_fit(csr_array(X[LATER]), Y[LATER])
    assert model.score(csr_array(X[TEST]), Y[TEST]) > 0.8


def test_a_step_has_no_log_odds() -> None:
    model = BayesianPerceptronClassifier("step").fit(X[FIRST], Y[FIRST])
    with pytest.raises(ValueError, match=r"activation='step' has no log odds, so a third class .*classes=\[...\]"):
        model.partial_fit(X[:20], Y[:20])
    assert model.classes_.tolist() == ["m", "z"]
    assert model.n_seen_ == 200


def test_one_row_of_a_third_class_does_not_take_over() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    y = np.where(X.sum(axis=1) > 0.0, "yes", "no")
    model = BayesianPerceptronClassifier().partial_fit(X[:500], y[:500])
    model.partial_fit(X[500:501], ["maybe"])
    assert (model.predict(X[501:]) == y[501:]).mean() > 0.97
    assert model.predict_proba(X[501:])[:, 2].mean() < 0.05
