from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import onepass
from onepass import BayesianMLPClassifier, BayesianPerceptronClassifier, BayesianPerceptronRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 3))
RARE = np.where(X[:, 0] + 0.5 * rng.normal(size=400) > 1.6, "rare", "usual")
THREE = np.array(["low", "mid", "top"])[np.digitize(X[:, 0], [-1.0, 1.5])]


@pytest.mark.parametrize("model", [BayesianPerceptronClassifier(standardize=True), BayesianMLPClassifier((4,))])
@pytest.mark.parametrize("y", [RARE, THREE])
def test_class_weights_are_weights_of_rows(model: Any, y: Any, tmp_path: Path) -> None:
    names, counts = np.unique(y, return_counts=True)
    balanced = dict(zip(names.tolist(), (400 / (len(names) * counts)).tolist(), strict=True))
    own = rng.uniform(0.5, 1.5, 400)
    for given, meant in (("balanced", balanced), ({names[0]: 2.5}, {names[0]: 2.5})):
        weights = own * np.array([meant.get(label, 1.0) for label in y])
        expected = clone(model).fit(X, y, sample_weight=weights).predict_proba(X)
        weighted = clone(model).set_params(class_weight=given).fit(X, y, sample_weight=own)
        np.testing.assert_allclose(weighted.predict_proba(X), expected)
        onepass.save(weighted, tmp_path / "model")
        again = onepass.load(tmp_path / "model")
        assert again.class_weight == given
    again.partial_fit(X[:10], y[:10])
    again.predict_then_learn(X[10:20], y[10:20])
    weighted.partial_fit(X[:20], y[:20])
    np.testing.assert_allclose(again.predict_proba(X), weighted.predict_proba(X), rtol=1e-6)


def test_balance_finds_more_of_a_rare_class() -> None:
    found = [
        (BayesianPerceptronClassifier(class_weight=given).fit(X, RARE).predict(X) == "rare").mean()
        for given in (None, "balanced")
    ]
    assert found[1] > 1.5 * found[0]


def test_a_balance_nobody_knows_is_told() -> None:
    model = BayesianPerceptronClassifier(class_weight="balanced")
    with pytest.raises(ValueError, match=r"needs the counts of all rows, so it works with fit only.*pass a dictionary"):
        model.partial_fit(X, RARE)
    with pytest.raises(ValueError, match="works with fit only"):
        model.predict_then_learn(X, RARE)
    for wrong, message in (
        (3.0, "must be None"),
        ({"rare": -1.0}, r"class_weight\['rare'\] must be"),
        ({"x": 1.0}, "'x'"),
    ):
        with pytest.raises(ValueError, match=message):
            model.set_params(class_weight=wrong).fit(X, RARE)


def test_standard_deviations_of_the_coefficients() -> None:
    numbers = X @ [1.0, 2.0, 3.0]
    two = np.column_stack([numbers, -numbers])
    for covariance in ("full", "diagonal"):
        for y in (numbers, two):
            model: Any = BayesianPerceptronRegressor(covariance=covariance, noise=1.0).fit(X, y)
            assert model.coef_std_.shape == model.coef_.shape
        exact = BayesianPerceptronRegressor(noise=1.0, standardize=False).fit(X, numbers)
        design = np.column_stack([np.ones(400), X])
        precision = np.diag([1.0 / 16.0, 1.0, 1.0, 1.0]) + design.T @ design
        np.testing.assert_allclose(exact.coef_std_, np.sqrt(np.diag(np.linalg.inv(precision)))[1:])
        for y in (RARE, THREE):
            model = BayesianPerceptronClassifier(covariance=covariance).fit(X, y)
            assert model.coef_std_.shape == model.coef_.shape
            assert (model.coef_std_ > 0.0).all()


def test_a_row_alone_has_the_probabilities_that_it_has_among_others() -> None:
    for model in (BayesianPerceptronClassifier(drift="auto"), BayesianPerceptronClassifier(prior_scale="auto")):
        model.fit(X, RARE)
        np.testing.assert_allclose(model.predict_proba(X[:1]), model.predict_proba(X[:2])[:1], rtol=1e-12)
