"""Models that grow with their features."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import onepass
import onepass.activations
from onepass import BayesianPerceptron
from onepass.beliefs import forgetting
from onepass.models.mixture import with_drift
from onepass.river import PerceptronClassifier, PerceptronRegressor
from tests.helpers.river_rows import SCORE, X, rows


@pytest.mark.parametrize("drift", [0.0, 0.01, "auto"])
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_growing_is_as_if_all_features_had_been_known(
    covariance: str, drift: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "_WEIGHTS_PER_ROW", 1000)  # else steps of forgetting come later with more columns
    model = PerceptronClassifier(covariance=covariance, prior_scale=2.0, drift=drift)
    whole = with_drift(BayesianPerceptron, 25, cov=[16.0] + [4.0] * 25, covariance=covariance, drift=drift)
    seen = np.minimum(1 + np.arange(120) // 3, 25)  # a new feature every third row
    known = np.where(np.arange(25) < seen[:, None], X, 0.0)
    for x, n, row, y in zip(rows(), seen, known, SCORE > 0, strict=True):
        model.learn_one(dict(list(x.items())[:n]), y)
        whole.learn(row, float(y))
    assert model.n_seen == 120
    np.testing.assert_allclose(list(model.weights.values()), whole.mean[1:], rtol=1e-9, atol=1e-12)
    assert model.log_evidence == pytest.approx(whole.log_evidence)
    expected = whole.predict(X[0]).mean
    assert model.predict_proba_one(rows()[0])[True] == pytest.approx(expected)
    assert list(model.drift_.values()) == pytest.approx(list(whole.drift_.values()))


@pytest.mark.parametrize("drift", [0.0, "auto"])
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_growing_keeps_what_is_believed_of_outliers(
    covariance: str, drift: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "_WEIGHTS_PER_ROW", 1000)  # else steps of forgetting come later with more columns
    targets = np.where(np.arange(120) < 70, SCORE, SCORE + 40.0)  # a jump, after which it begins anew
    targets[[10, 30, 50, 100]] += 1e4
    model = PerceptronRegressor(covariance=covariance, outliers=0.1, drift=drift)
    options: dict[str, Any] = {"covariance": covariance, "noise": "learn", "outliers": 0.1, "drift": drift}
    whole = with_drift(BayesianPerceptron, 25, "linear", cov=[1e4] + [1.0] * 25, **options)
    seen = np.minimum(1 + np.arange(120) // 3, 25)
    known = np.where(np.arange(25) < seen[:, None], X, 0.0)
    for i, (x, n, row, y) in enumerate(zip(rows(), seen, known, targets, strict=True)):
        given = dict(list(x.items())[:n])
        # A feature that is new counts as one whose weight is at its prior.
        assert model.outlier_probability_one(given, y) == pytest.approx(whole.outlier_probability(row, y), abs=1e-9)
        model.learn_one(given, y)
        whole.learn(row, float(y))
        if i == 60:
            onepass.save(model, tmp_path / "model.safetensors")
            model = onepass.load(tmp_path / "model.safetensors")
    np.testing.assert_allclose(list(model.weights.values()), whole.mean[1:], rtol=1e-6, atol=1e-8)
    assert model.outliers_ == pytest.approx(whole.outliers_)
    assert model.outlier_probability_one(rows()[0], 1e9) > 0.9
    assert model.outlier_probability_one({**rows()[0], "new": 1e9}, 1e9) < 0.9  # who knows what that makes of it


def test_a_large_covariance_grows_in_the_form_it_is_held_in() -> None:
    wide = np.random.default_rng(0).normal(size=(60, 200))
    frame = pd.DataFrame(wide, columns=[f"x{i}" for i in range(200)])
    y = pd.Series(wide[:, 0] > 0)
    model = PerceptronClassifier()
    model.learn_many(frame, y)
    assert model._core.export_state()[1].keys() >= {"covariance"}
    more = frame.rename(columns={name: f"y{name}" for name in frame.columns[:150]})
    model.learn_many(more, y)
    whole = BayesianPerceptron(350, cov=[16.0] + [1.0] * 350).learn(np.hstack([wide, np.zeros((60, 150))]), y)
    whole.learn(np.hstack([np.zeros((60, 150)), wide[:, 150:], wide[:, :150]]), y)
    names = [*frame.columns, *more.columns[:150]]
    np.testing.assert_allclose([model.weights[name] for name in names], whole.mean[1:], atol=1e-10)


def test_forgetting_does_not_mind_features_that_come_late() -> None:
    """Columns kept in reserve are at their prior, and stay there whatever is forgotten."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(120, 12))
    for column in range(12):
        X[: 8 * column, column] = 0.0
    y = X @ rng.normal(size=12) + rng.normal(0, 0.1, 120)
    model = PerceptronRegressor(noise=0.1, forgetting=0.95)
    for x, target in zip(X, y, strict=True):
        model.learn_one({f"x{k}": value for k, value in enumerate(x) if value}, target)
    variances = [100.0**2] + 12 * [1.0]
    whole = BayesianPerceptron(12, "linear", noise=0.1, cov=variances, forgetting=0.95).learn(X, y)
    assert model.log_evidence == pytest.approx(whole.log_evidence, rel=1e-10)
    np.testing.assert_allclose(list(model.weights.values()), whole.mean[1:], atol=1e-10)
