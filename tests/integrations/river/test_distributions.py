"""What River's models predict with `with_dist`: the numbers of the core models, as they are scored."""

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from river import compose, preprocessing

from onepass import BayesianPerceptron, load, save
from onepass.integrations.river.distributions import PredictedLabel, PredictedNumber
from onepass.river import MLPClassifier, MLPRegressor, PerceptronClassifier, PerceptronRegressor, SoftmaxClassifier

RNG = np.random.default_rng(0)
N = 1500
X = RNG.normal(size=(N, 2))
Y = X.sum(axis=1) + np.repeat([0.3, 2.0], N // 2) * RNG.normal(size=N)
COUNTS = RNG.poisson(np.exp(1.0 + 0.5 * X[:, 0])).astype(float)
ROWS = [dict(zip("ab", row, strict=True)) for row in X.tolist()]


@pytest.mark.parametrize("arguments", [{"noise": 0.2}, {}, {"activation": "exp"}, {"drift": "auto"}], ids=str)
def test_numbers_have_the_distribution_of_the_core_model_as_learning_scores_it(arguments: Any) -> None:
    y = COUNTS if "activation" in arguments else Y
    model = PerceptronRegressor(**arguments)
    pipeline = compose.Select("a", "b") | model
    for x, target in zip(ROWS[:60], y.tolist(), strict=False):
        pipeline.learn_one(x, target)
    for x, target in zip(ROWS[60:80], y[60:].tolist(), strict=False):
        row = np.append(list(x.values()), np.zeros(model._core.n_features - 2))
        seen, core = pipeline.predict_one(x, with_dist=True), model._core.predict(row)
        assert isinstance(seen, PredictedNumber)
        assert (seen.mu, seen.sigma) == pytest.approx((core.mean, core.std), rel=1e-12)
        assert (seen.cdf(target), seen.ppf(0.3)) == pytest.approx((core.cdf(target), core.ppf(0.3)), rel=1e-12)
        assert seen.interval(0.8) == pytest.approx(core.interval(0.8), rel=1e-12)
        density = seen.log_pdf(target)
        assert density == pytest.approx(core.logpdf(target), rel=1e-12)
        assert seen(target) == pytest.approx(np.exp(density), rel=1e-12)
        _, scores = copy.deepcopy(model._core).predict_score_learn(row, target)
        assert float(scores.log_densities[0]) == pytest.approx(density, rel=1e-12)
        pipeline.learn_one(x, target)
        assert seen.log_pdf(target) == pytest.approx(density, abs=0.1)  # the model has learned since


@pytest.mark.parametrize("kind", [PerceptronRegressor, MLPRegressor])
def test_standardised_targets_have_their_own_units(kind: Any) -> None:
    small, large = kind(standardize=True), kind(standardize=True)
    for x, y in zip(ROWS[:100], Y.tolist(), strict=False):
        small.learn_one(x, y)
        large.learn_one(x, 50.0 * y + 7000.0)
    one, other = (model.predict_one(ROWS[100], with_dist=True) for model in (small, large))
    assert other.mu == pytest.approx(7000.0 + 50.0 * one.mu, rel=1e-6)
    assert other.interval(0.9) == pytest.approx([7000.0 + 50.0 * side for side in one.interval(0.9)], rel=1e-6)
    assert other.log_pdf(7000.0) == pytest.approx(one.log_pdf(0.0) - np.log(50.0), abs=1e-5)


def test_the_most_probable_number_and_draws() -> None:
    model, counts = PerceptronRegressor(noise=0.2), PerceptronRegressor(activation="exp")
    for x, y, count in zip(ROWS[:100], Y.tolist(), COUNTS.tolist(), strict=False):
        model.learn_one(x, y)
        counts.learn_one(x, count)
    seen, other = (each.predict_one(ROWS[100], with_dist=True) for each in (model, counts))
    assert seen.mode == pytest.approx(seen.mu, abs=1e-3 * seen.sigma)
    assert other.mode == max(range(50), key=other)
    assert np.mean([seen.sample() for _ in range(500)]) == pytest.approx(seen.mu, abs=0.2 * seen.sigma)
    assert {other.sample() % 1.0 for _ in range(20)} == {0.0}
    assert seen.n_samples == 1


@pytest.mark.parametrize("kind", [PerceptronRegressor, PerceptronClassifier])
def test_a_prediction_is_copied_but_never_updated(kind: Any) -> None:
    model = kind()
    for x, y in zip(ROWS[:50], Y.tolist(), strict=False):
        model.learn_one(x, y > 0.0 if kind is PerceptronClassifier else y)
    seen = model.predict_one(ROWS[50], with_dist=True)
    for twin in (copy.deepcopy(seen), pickle.loads(pickle.dumps(seen))):
        assert repr(twin) == repr(seen)
        assert twin.interval() == seen.interval()
    for change in (seen.update, seen.revert):
        with pytest.raises(TypeError, match="let the model learn"):
            change(1.0)


@pytest.mark.parametrize(
    ("kind", "n_classes"),
    [(PerceptronClassifier, 2), (SoftmaxClassifier, 2), (SoftmaxClassifier, 3), (MLPClassifier, 2), (MLPClassifier, 3)],
)
def test_labels_have_the_probabilities_of_predict_proba_one(kind: Any, n_classes: int) -> None:
    labels: Any = Y > 0.0 if n_classes == 2 else np.array(["low", "middle", "high"])[np.digitize(Y, [-1.0, 1.0])]
    model = preprocessing.StandardScaler() | kind()
    assert kind().predict_one(ROWS[0]) is (False if kind is PerceptronClassifier else None)
    for x, label in zip(ROWS[:60], labels.tolist(), strict=False):
        model.learn_one(x, label)
    seen = model.predict_one(ROWS[60], with_dist=True)
    assert isinstance(seen, PredictedLabel)
    known = model.predict_proba_one(ROWS[60])
    assert {label: seen(label) for label in known} == known
    assert seen("never") == 0.0
    assert seen.mode == model.predict_one(ROWS[60]) == max(known, key=known.__getitem__)
    limits = seen.interval(0.9)
    assert set(limits) == set(known)
    assert all(0.0 <= low <= high <= 1.0 for low, high in limits.values())
    assert {seen.sample() for _ in range(300)} <= set(known)


@pytest.mark.parametrize("arguments", [{}, {"standardize": True}, {"drift": "auto"}, {"missing": "mean"}], ids=str)
def test_adaptive_intervals_hold_after_a_change(arguments: Any) -> None:
    model, plain = PerceptronRegressor(intervals="adaptive", **arguments), PerceptronRegressor(**arguments)
    inside: list[bool] = []
    for x, y in zip(ROWS, Y.tolist(), strict=True):
        if len(inside) % 10 == 0:
            assert model.predict_one(x) == pytest.approx(plain.predict_one(x), rel=1e-9, abs=1e-12)
        low, high = model.predict_one(x, with_dist=True).interval(0.9)
        inside.append(low <= y <= high)
        model.learn_one(x, y)
        plain.learn_one(x, y)
    for window in np.split(np.array(inside[150:1350]), 4):
        assert window.mean() == pytest.approx(0.9, abs=0.04)


def test_many_rows_are_tracked_as_one_after_the_other(tmp_path: Path) -> None:
    one, many = (PerceptronRegressor(intervals="adaptive") for _ in range(2))
    for x, y in zip(ROWS[:200], Y.tolist(), strict=False):
        one.learn_one(x, y)
    many.learn_many(pd.DataFrame(ROWS[:120]), pd.Series(Y[:120]))
    save(many, tmp_path / "model")
    many = load(tmp_path / "model")
    with pytest.raises(ValueError, match=r"overflow|finite"):
        many.learn_many(pd.DataFrame([*ROWS[120:125], {"a": 1e308, "b": 1e308}]), pd.Series([9.0] * 5 + [1e308]))
    many.learn_many(pd.DataFrame(ROWS[120:200]), pd.Series(Y[120:200]))
    limits = [model.predict_one(ROWS[200], with_dist=True).interval(0.8) for model in (one, many)]
    assert limits[0] == pytest.approx(limits[1], rel=1e-9)


def test_a_core_model_tracks_the_same() -> None:
    from onepass import AdaptiveIntervals

    model = PerceptronRegressor(intervals="adaptive", noise=0.3, fit_intercept=False)
    model.learn_many(pd.DataFrame(ROWS), pd.Series(Y))
    core = AdaptiveIntervals(BayesianPerceptron(2, "linear", noise=0.3, bias=False)).learn(X, Y)
    seen = model.predict_one(ROWS[0], with_dist=True).interval(0.9)
    assert seen == pytest.approx(core.interval(X[0], 0.9), rel=1e-9)
