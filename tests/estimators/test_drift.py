"""Estimators whose weights drift, at a rate that is given or learned."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import onepass
from onepass import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
)
from onepass.models.weighting import HYPOTHESES

rng = np.random.default_rng(0)
X = rng.normal(size=(240, 3))
SIGN = np.where(np.arange(240) < 120, 1.0, -1.0)
NUMBERS = X @ [2.0, -1.0, 1.0] * SIGN + 0.1 * rng.normal(size=240)
LABELS = np.where(NUMBERS > 0.0, "yes", "no")
ESTIMATORS = [
    (BayesianPerceptronClassifier(drift="auto"), LABELS),
    (BayesianPerceptronClassifier(prior_scale="auto", drift="auto"), LABELS),
    (BayesianPerceptronClassifier(drift="auto"), np.digitize(NUMBERS, [-1.0, 1.0])),
    (BayesianPerceptronRegressor(drift="auto", standardize=True, warm_up=50), NUMBERS),
    (BayesianPerceptronRegressor(drift="auto", standardize=False), np.column_stack([NUMBERS, -NUMBERS])),
    (BayesianMLPClassifier((4,), drift="auto"), LABELS),
    (BayesianMLPRegressor((4,), drift="auto", members=2), NUMBERS),
]


@pytest.mark.parametrize(("model", "y"), ESTIMATORS)
def test_rows_may_come_in_any_split_and_files_go_on_bit_for_bit(model: Any, y: Any, tmp_path: Path) -> None:
    whole, parts = clone(model).fit(X, y), clone(model)
    kinds = {"classes": np.unique(y)} if hasattr(model, "predict_proba") else {}
    parts.partial_fit(X[:110], y[:110], **kinds)
    onepass.save(parts, tmp_path / "model.safetensors")
    loaded = onepass.load(tmp_path / "model.safetensors")
    assert loaded.drift == "auto"
    for each in (parts, loaded):
        for i in range(110, 240, 23):
            each.partial_fit(X[i : i + 23], y[i : i + 23])
    predict = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    np.testing.assert_array_equal(getattr(loaded, predict)(X), getattr(parts, predict)(X))
    assert loaded.log_evidence_ == parts.log_evidence_
    if model.get_params().get("prior_scale") != "auto" and model.get_params().get("members", 1) == 1:
        np.testing.assert_allclose(getattr(whole, predict)(X), getattr(parts, predict)(X), rtol=1e-7, atol=1e-10)
        assert whole.log_evidence_ == pytest.approx(parts.log_evidence_, rel=1e-9)
    believed = whole.drift_ if isinstance(whole.drift_, list) else [whole.drift_]
    for each in believed:
        assert list(each) == list(HYPOTHESES)
        assert sum(each.values()) == pytest.approx(1.0)


@pytest.mark.parametrize(("model", "y"), ESTIMATORS)
def test_rows_predicted_before_they_are_learned_say_where_the_change_was(model: Any, y: Any) -> None:
    model = clone(model).fit(X[:100], y[:100])
    seen = model.predict_then_learn(X[100:], y[100:])
    assert seen.change_probability.shape == (140,)
    assert (seen.change_probability >= 0.0).all()
    assert seen.change_probability[20:40].max() > seen.change_probability[:20].max()
    assert np.isfinite(seen.log_density).all()
    low, high = model.predict_interval(X[:5])
    assert (low <= high).all()
    assert len(model.sample_y(X[:5], 3, random_state=0)) == 5


def test_probabilities_are_those_of_the_mixture() -> None:
    model = BayesianPerceptronClassifier(drift="auto", standardize=False).fit(X, LABELS)
    (core,) = model._learner.state.mixtures[0].members
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], core.predict(X).mean, rtol=1e-6)
    np.testing.assert_allclose(model.coef_[0], core.mean[1:])


def test_it_follows_a_change_that_a_model_without_drift_does_not() -> None:
    plain, drifting = (
        BayesianPerceptronRegressor(standardize=False),
        BayesianPerceptronRegressor(drift="auto", standardize=False),
    )
    for model in (plain, drifting):
        model.fit(X, NUMBERS)
    assert drifting.log_evidence_ > plain.log_evidence_ + 100.0
    assert plain.drift_ == {0.0: 1.0}


def test_the_rate_may_be_given() -> None:
    model = BayesianPerceptronRegressor(drift=0.01, standardize=False).fit(X, NUMBERS)
    assert model.drift_ == {0.01: 1.0}
    assert model._learner.state.mixtures[0].members[0].drift == 0.01
    again = BayesianPerceptronRegressor(drift=0.01, passes=3, standardize=False).fit(
        X, NUMBERS
    )  # where rows have faded none is removed
    assert np.isfinite(again.coef_).all()


@pytest.mark.parametrize("kind", [BayesianPerceptronClassifier, BayesianMLPClassifier])
def test_what_can_not_be_is_refused(kind: Any) -> None:
    with pytest.raises(ValueError, match=r"drift='auto'.*passes=1, got passes=2"):
        kind(drift="auto", passes=2).fit(X, LABELS)
    with pytest.raises(ValueError, match=r"drift must be a number in \[0, 1\] or 'auto', got -1"):
        kind(drift=-1.0).fit(X, LABELS)


def test_merging_refuses_it() -> None:
    prior = BayesianPerceptronClassifier(drift="auto").fit(X, LABELS)
    with pytest.raises(ValueError, match=r"drift='auto'.*no common order"):
        onepass.merge(prior, [prior])
