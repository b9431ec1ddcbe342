import copy
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import onepass
from onepass import (
    BayesianCommittee,
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianNetwork,
    BayesianPerceptron,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
)
from onepass.estimators.blueprints import SCALES, WIDE_SCALES
from onepass.estimators.rows import Rows

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4)) * [1.0, 2.0, 0.5, 1.0] + [0.0, 3.0, 0.0, -1.0]
SCORE = X @ [1.0, -0.5, 2.0, 0.0] + 1.0
NUMBERS = SCORE + rng.normal(0, 0.5, 300)
LABELS = np.where(SCORE + rng.logistic(size=300) > 0, "yes", "no")
THREE = np.array(["low", "mid", "top"])[np.digitize(SCORE + rng.normal(0, 0.3, 300), [-1.5, 1.5])]
TWO = np.column_stack([NUMBERS, 10.0 - 3.0 * SCORE + rng.normal(size=300)])

# As in `partial_fit`: `fit` of networks would shuffle its rows, and go over them again.
IN_ORDER: dict[str, Any] = {"passes": 1, "shuffle": False}
CLASSIFIERS: list[dict[str, Any]] = [
    {},
    {"prior_scale": "auto"},
    {"standardize": True},
    {"standardize": True, "prior_scale": "auto", "warm_up": 37, "covariance": "diagonal"},
    {"activation": "probit", "forgetting": 0.99, "fit_intercept": False},
]
REGRESSORS: list[dict[str, Any]] = [
    {"standardize": False},
    {"standardize": False, "prior_scale": "auto"},
    {"standardize": True, "warm_up": 50},
    {"standardize": True, "noise": 0.25, "prior_scale": "auto"},
    {"activation": "relu", "standardize": True, "covariance": "diagonal"},
]
ALL: list[tuple[Any, Any]] = [
    *[(BayesianPerceptronClassifier(**options), LABELS) for options in CLASSIFIERS],
    *[(BayesianPerceptronRegressor(**options), NUMBERS) for options in REGRESSORS],
    (BayesianPerceptronRegressor(standardize=True, prior_scale="auto"), TWO),
    (BayesianPerceptronClassifier(standardize=True, prior_scale="auto"), THREE),
    (BayesianPerceptronClassifier(covariance="diagonal"), THREE),
    (BayesianMLPClassifier((5,), **IN_ORDER), THREE),
    (BayesianMLPClassifier((5,), prior_scale="auto"), LABELS),
    (BayesianMLPClassifier((5,), members=3, **IN_ORDER), THREE),
    (BayesianMLPRegressor((5,), members=2, **IN_ORDER), NUMBERS),
    (BayesianMLPRegressor((5,), noise=0.3, **IN_ORDER), TWO),
]


def outputs(model: Any, rows: Any = X) -> np.ndarray:
    return np.asarray(model.predict_proba(rows) if hasattr(model, "predict_proba") else model.predict(rows))


@pytest.mark.parametrize(("model", "y"), ALL)
@pytest.mark.parametrize("cuts", [[1], [20, 30, 31, 99, 200], list(range(1, 120, 7))])
def test_fit_is_partial_fit_in_any_split(model: Any, y: Any, cuts: list[int]) -> None:
    whole = clone(model).fit(X, y)
    split = clone(model)
    for start, end in zip([0, *cuts], [*cuts, 300], strict=True):
        extra = {"classes": np.unique(y)} if hasattr(model, "predict_proba") and start == 0 else {}
        split.partial_fit(X[start:end], y[start:end], **extra)
    np.testing.assert_allclose(outputs(split), outputs(whole), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(split.log_evidence_, whole.log_evidence_, rtol=1e-9)
    assert split.n_seen_ == whole.n_seen_ == 300


def test_a_classifier_is_the_perceptron() -> None:
    model = BayesianPerceptronClassifier(prior_scale=2.0, intercept_scale=5.0, standardize=False).fit(X, LABELS)
    core = BayesianPerceptron(4, cov=[25.0, 4.0, 4.0, 4.0, 4.0]).learn(X, LABELS == "yes")
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], core.predict(X).mean)
    np.testing.assert_array_equal(model.coef_[0], core.mean[1:])
    np.testing.assert_array_equal(model.intercept_, core.mean[:1])
    np.testing.assert_allclose(model.coef_cov_, core.cov[1:, 1:])
    assert model.log_evidence_ == core.log_evidence
    low, high = model.predict_interval(X, 0.8)
    np.testing.assert_allclose((low, high), core.interval(X, 0.8))
    np.testing.assert_array_equal(model.classes_, ["no", "yes"])


def test_more_classes_are_one_joint_softmax() -> None:
    model = BayesianPerceptronClassifier(prior_scale=2.0, intercept_scale=5.0, standardize=False).fit(X, THREE)
    options: dict[str, Any] = {"observation": "categorical", "covariance": "full", "prior_scale": 2.0}
    core = BayesianNetwork(4, (), 3, intercept_scale=5.0, **options)
    core.learn(X, np.searchsorted(["low", "mid", "top"], THREE))
    np.testing.assert_allclose(model.predict_proba(X), core.predict(X).mean)
    np.testing.assert_allclose(model.predict_proba(X, return_std=True)[1] ** 2, core.predict(X).epistemic)
    assert model.score(X, THREE) > 0.85
    assert model.coef_.shape == model.coef_cov_.shape == (3, 4)
    assert model.intercept_.shape == (3,)
    assert (model.coef_cov_ > 0).all()
    low, high = model.predict_interval(X, 0.9)
    p = model.predict_proba(X)
    assert ((low <= p) & (p <= high)).all()
    scaled = BayesianPerceptronClassifier(standardize=True).fit(X, THREE)
    odds = X @ scaled.coef_.T + scaled.intercept_
    assert (odds.argmax(axis=1) == scaled.predict_proba(X).argmax(axis=1)).mean() > 0.95
    with pytest.raises(ValueError, match="fit_intercept=False works with two classes only"):
        BayesianPerceptronClassifier(fit_intercept=False).fit(X, THREE)


def test_a_regressor_is_bayesian_linear_regression() -> None:
    model = BayesianPerceptronRegressor(noise=0.25, prior_scale=10.0, intercept_scale=3.0, standardize=False).fit(
        X, NUMBERS
    )
    design = np.column_stack([X, np.ones(300)])
    cov = np.linalg.inv(np.diag([0.01, 0.01, 0.01, 0.01, 1 / 9.0]) + design.T @ design / 0.25)
    mean = cov @ design.T @ NUMBERS / 0.25
    np.testing.assert_allclose([*model.coef_, model.intercept_], mean, rtol=1e-8)
    np.testing.assert_allclose(model.coef_cov_, cov[:4, :4], rtol=1e-8)
    predicted, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(predicted, design @ mean)
    np.testing.assert_allclose(std**2, np.einsum("ni,ij,nj->n", design, cov, design) + 0.25)
    low, high = model.predict_interval(X, 0.9)
    np.testing.assert_allclose(high - low, 2 * 1.6448536269514722 * std)


@pytest.mark.parametrize("model", [BayesianPerceptronClassifier, BayesianPerceptronRegressor, BayesianMLPClassifier])
@pytest.mark.parametrize(("given", "error"), [(0.0, ValueError), (-1.0, ValueError), ("wide", ValueError)])
def test_an_intercept_scale_is_a_positive_number(model: Any, given: Any, error: Any) -> None:
    with pytest.raises(error, match="intercept_scale must"):
        model(intercept_scale=given).fit(X, LABELS if "Classifier" in model.__name__ else NUMBERS)


def test_an_intercept_has_a_prior_of_its_own_in_all_members() -> None:
    model = BayesianPerceptronClassifier(prior_scale="auto", intercept_scale=7.0).partial_fit(X[:2], ["no", "yes"])
    blueprint = model._learner.blueprint
    fresh = [blueprint.member(scale, 1.0) for scale in blueprint.scales()]
    np.testing.assert_allclose([np.diag(member.cov)[0] for member in fresh], 49.0)
    np.testing.assert_allclose([np.diag(member.cov)[1] for member in fresh], np.square(blueprint.scales()))
    model.set_params(intercept_scale=None).fit(X[:2], ["no", "yes"])
    assert np.diag(model._learner.blueprint.member(3.0, 1.0).cov)[0] == 9.0


def test_standardising_is_a_scaler_before_and_units_of_the_data_after() -> None:
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    scaled, by_hand = BayesianPerceptronClassifier(warm_up=300), BayesianPerceptronClassifier(standardize=False)
    scaled.fit(X, LABELS)
    by_hand.fit(Z, LABELS)
    np.testing.assert_allclose(scaled.predict_proba(X), by_hand.predict_proba(Z), rtol=1e-9)
    np.testing.assert_allclose(
        X @ scaled.coef_[0] + scaled.intercept_, Z @ by_hand.coef_[0] + by_hand.intercept_, rtol=1e-7, atol=1e-9
    )
    regressor = BayesianPerceptronRegressor(standardize=True, warm_up=300).fit(X, NUMBERS)
    # Coefficients are averaged over the learned noise; predictions are made at one noise.
    mean, std = regressor.predict(X, return_std=True)
    np.testing.assert_allclose((X @ regressor.coef_ + regressor.intercept_ - mean) / std, 0.0, atol=1e-3)
    fixed = BayesianPerceptronRegressor(standardize=True, warm_up=300, noise=0.1).fit(X, NUMBERS)
    np.testing.assert_allclose(X @ fixed.coef_ + fixed.intercept_, fixed.predict(X), rtol=1e-7)
    by_hand = BayesianPerceptronRegressor(standardize=False, prior_scale=np.sqrt(3.0 / 4.0), noise_start=0.1)
    by_hand.fit(Z, (NUMBERS - NUMBERS.mean()) / NUMBERS.std())
    np.testing.assert_allclose(regressor.noise_, by_hand.noise_ * NUMBERS.var(), rtol=1e-9)
    assert regressor.log_evidence_ == 0.0  # all rows set the scale
    squares = X[:, :, None] * X[:, None, :]
    assert (np.tensordot(squares, regressor.coef_cov_, 2) > 0).all()


def test_statistics_are_frozen_after_the_warm_up() -> None:
    model = BayesianPerceptronClassifier(standardize=True, warm_up=100).fit(X[:100], LABELS[:100])
    before = model._learner.state.inputs
    model.partial_fit(X[100:] * 50, LABELS[100:])
    assert model._learner.state.inputs is before
    assert model._learner.state.waiting is None


def test_several_outputs_are_several_perceptrons() -> None:
    both = BayesianPerceptronRegressor(standardize=False).fit(X, TWO)
    assert both.predict(X).shape == both.predict(X, return_std=True)[1].shape == (300, 2)
    assert both.coef_.shape == (2, 4)
    assert both.coef_cov_.shape == (2, 4, 4)
    assert both.noise_.shape == both.intercept_.shape == (2,)
    assert both.sample_y(X, 5, random_state=0).shape == (300, 2, 5)
    for i in range(2):
        one = BayesianPerceptronRegressor(standardize=False).fit(X, TWO[:, i])
        np.testing.assert_allclose(both.predict(X)[:, i], one.predict(X), rtol=1e-10)
    with pytest.raises(ValueError, match="y must have 2 columns as before, got 1"):
        both.partial_fit(X, NUMBERS)


@pytest.mark.filterwarnings("ignore:targets are of size")  # a prior of the wrong scale is the point
def test_the_ensemble_finds_the_scale_that_suits() -> None:
    noise = np.random.default_rng(1)
    inputs = noise.normal(size=(800, 10))
    small = inputs @ np.full(10, 0.1) + noise.normal(size=800)
    large = inputs @ noise.normal(0, 8.0, 10) + noise.normal(size=800)
    scales = np.array([*SCALES, *WIDE_SCALES])
    means = [
        np.log(scales)
        @ BayesianPerceptronRegressor(prior_scale="auto", standardize=False).fit(inputs[:60], y[:60]).prior_weights_
        for y in (small, large)
    ]
    assert means[0] < means[1]
    model = BayesianPerceptronRegressor(prior_scale="auto", standardize=False).fit(inputs, large)
    singles = [
        BayesianPerceptronRegressor(
            prior_scale=scale, intercept_scale=scale if scale in WIDE_SCALES else 4.0, standardize=False
        ).fit(inputs, large)
        for scale in scales
    ]
    evidences = [single.log_evidence_ for single in singles]
    assert model.log_evidence_ == pytest.approx(np.logaddexp.reduce(evidences) - np.log(len(evidences)))
    low, high = model.predict_interval(inputs, 0.9)
    assert ((low < large) & (large < high)).mean() == pytest.approx(0.9, abs=0.03)


HOUSES = 2e5 + 4e4 * (X @ [1.0, -0.5, 2.0, 0.0]) + 2e4 * rng.normal(size=300)


@pytest.mark.parametrize("factor", [1e-6, 1.0, 100.0])
@pytest.mark.parametrize(
    "model",
    [
        BayesianPerceptronRegressor(),
        BayesianPerceptronRegressor(prior_scale="auto"),
        BayesianPerceptronRegressor(standardize=False, prior_scale="auto"),
        BayesianPerceptronRegressor(standardize=False, prior_scale="auto", covariance="diagonal"),
        BayesianMLPRegressor((5,)),
    ],
)
def test_targets_in_any_unit_are_learned_behind_a_scaler(model: Any, factor: float) -> None:
    y = factor * HOUSES
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline = make_pipeline(StandardScaler(), clone(model)).fit(X[:200], y[:200])
    assert pipeline.score(X[200:], y[200:]) > 0.9
    low, high = pipeline[-1].predict_interval(pipeline[0].transform(X[200:]), 0.9)
    assert ((low < y[200:]) & (y[200:] < high)).mean() > 0.8


def test_numbers_that_are_not_negative_may_be_large() -> None:
    y = np.maximum(HOUSES - 2e5, 0.0)
    model, small = (BayesianPerceptronRegressor("relu").fit(X[:200], values[:200]) for values in (y, 1e-5 * y))
    np.testing.assert_allclose(model.predict(X), 1e5 * small.predict(X))
    assert model.score(X[200:], y[200:]) > 0.7


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("missing", ["error", "mean"])
def test_a_row_of_weight_w_is_w_copies_of_it(standardize: bool, missing: str) -> None:
    weights = rng.integers(0, 4, 300)
    index = np.repeat(np.arange(300), weights)
    # All rows set the scale, of which the copies are as many as the weights say.
    options: dict[str, Any] = {"standardize": standardize, "warm_up": 1000, "missing": missing}
    for model in (BayesianPerceptronClassifier(**options), BayesianPerceptronClassifier(prior_scale="auto", **options)):
        weighted = clone(model).fit(X, LABELS, sample_weight=weights)
        repeated = clone(model).partial_fit(X[index], LABELS[index])
        close: Any = {"rtol": 1e-9} if isinstance(model.prior_scale, float) else {"atol": 1e-3}
        np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), **close)
        assert weighted.n_seen_ == np.count_nonzero(weights)
        assert weighted.weight_sum_ == weights.sum()
    for noise, share in ((1.0, 1e-6), ("learn", 0.5)):
        model = BayesianPerceptronRegressor(noise=noise, **options)
        weighted = clone(model).fit(X, NUMBERS, sample_weight=weights)
        repeated = clone(model).partial_fit(X[index], NUMBERS[index])
        np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=share * repeated.coef_std_.min())
        np.testing.assert_allclose(weighted.coef_std_, repeated.coef_std_, rtol=max(share / 10, 1e-6))


def test_a_row_of_weight_0_is_as_if_it_were_not_there() -> None:
    kept = rng.uniform(size=300) < 0.5
    holes = np.where(rng.uniform(size=X.shape) < 0.1, np.nan, X)
    holes[~kept] *= 1e6
    for model in (
        BayesianPerceptronRegressor(missing="mean", warm_up=50),
        BayesianPerceptronRegressor(missing="mean", standardize=False, prior_scale="auto"),
        BayesianMLPRegressor((4,), missing="mean", warm_up=50, **IN_ORDER),
    ):
        expected = clone(model).fit(holes[kept], NUMBERS[kept])
        found = [clone(model).fit(holes, NUMBERS, sample_weight=kept.astype(float)), clone(model)]
        found[1].predict_then_learn(holes, NUMBERS, kept.astype(float))
        for other in found:
            np.testing.assert_allclose(other.predict(X), expected.predict(X), rtol=1e-9)
            assert other.n_seen_ == expected.n_seen_
            assert other.log_evidence_ == pytest.approx(expected.log_evidence_)


@pytest.mark.parametrize(("wrong", "words"), [(-1.0, "0 .* or above"), (np.nan, "finite"), (np.inf, "finite")])
def test_a_wrong_weight_is_named_and_nothing_is_learned(wrong: float, words: str) -> None:
    weights = np.r_[np.ones(7), wrong, np.ones(292)]
    for model, y in ((BayesianPerceptronRegressor(), NUMBERS), (BayesianMLPClassifier((3,)), LABELS)):
        model.fit(X, y)
        before = model.log_evidence_
        for learn in (model.partial_fit, model.predict_then_learn):
            with pytest.raises(ValueError, match=f"sample_weight must be {words}.*, got {wrong} at index 7"):
                learn(X, y, sample_weight=weights)
        assert (model.n_seen_, model.log_evidence_) == (300, before)


FRACTIONS = rng.uniform(0.0, 2.6, 300)


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (BayesianPerceptronClassifier(), LABELS),
        (BayesianPerceptronClassifier(prior_scale="auto", standardize=True), LABELS),
        (BayesianPerceptronClassifier(covariance="diagonal", drift="auto"), LABELS),
        (BayesianPerceptronClassifier(), THREE),
        (BayesianPerceptronRegressor(standardize=True), NUMBERS),
        (BayesianPerceptronRegressor("exp", standardize=False), np.round(np.abs(NUMBERS))),
        (BayesianMLPClassifier((5,), **IN_ORDER), THREE),
        (BayesianMLPClassifier((5,), members=2, **IN_ORDER), LABELS),
        (BayesianMLPRegressor((5,), **IN_ORDER), NUMBERS),
    ],
)
def test_fractions_of_weights_count_between_the_whole_ones(model: Any, y: Any) -> None:
    less, more = np.floor(FRACTIONS), np.ceil(FRACTIONS)
    seen = [clone(model).fit(X, y, sample_weight=weights) for weights in (less, FRACTIONS, more)]
    evidences = [own.log_evidence_ for own in seen]
    assert evidences[0] > evidences[1] > evidences[2]
    rows = clone(model)
    for part in (slice(0, 130), slice(130, 300)):  # in any split, the warm-up among it
        options = {"classes": np.unique(y)} if hasattr(model, "predict_proba") else {}
        rows.partial_fit(X[part], y[part], sample_weight=FRACTIONS[part], **options)
    np.testing.assert_allclose(outputs(rows), outputs(seen[1]), rtol=1e-9)
    assert rows.log_evidence_ == pytest.approx(evidences[1])


def test_weights_of_rows_that_are_predicted_first() -> None:
    for model, y in (
        (BayesianPerceptronClassifier(), LABELS),
        (BayesianPerceptronRegressor(standardize=False), NUMBERS),
        (BayesianPerceptronRegressor(noise=0.3, standardize=False), NUMBERS),
        (BayesianMLPClassifier((5,), standardize=False), LABELS),
    ):
        first = clone(model).fit(X[:50], y[:50])
        learned = clone(first).fit(X[:50], y[:50]).partial_fit(X[50:], y[50:], sample_weight=FRACTIONS[50:])
        predicted = first.predict_then_learn(X[50:], y[50:], sample_weight=FRACTIONS[50:])
        assert len(predicted.mean) == len(predicted.log_density) == 250
        np.testing.assert_allclose(outputs(first), outputs(learned), rtol=1e-8)
    one = BayesianPerceptronRegressor(standardize=False).fit(X[:50], NUMBERS[:50])
    nothing = one.predict_then_learn(X[50:51], NUMBERS[50:51], sample_weight=[0.25])
    expected = clone(one).fit(X[:50], NUMBERS[:50]).predict(X[50:51])
    np.testing.assert_allclose(nothing.mean, expected)
    before = one.predict(X)
    one._learner.predict_then_learn(Rows(X, NUMBERS, np.zeros(300)))
    np.testing.assert_array_equal(one.predict(X), before)
    one._learner.learn(Rows(X, NUMBERS, np.zeros(300)))
    np.testing.assert_array_equal(one.predict(X), before)


def test_weights_and_passes_go_together_and_are_saved(tmp_path: Any) -> None:
    weights = rng.uniform(0.1, 3.0, 300)
    once = BayesianPerceptronRegressor(noise=0.3, standardize=False).fit(X, NUMBERS, weights)
    again = BayesianPerceptronRegressor(noise=0.3, passes=3, standardize=False).fit(X, NUMBERS, weights)
    np.testing.assert_allclose(again.coef_, once.coef_, rtol=1e-7)
    model = BayesianPerceptronRegressor(standardize=True).fit(X, NUMBERS, sample_weight=weights)
    onepass.save(model, tmp_path / "model")
    assert onepass.load(tmp_path / "model").log_evidence_ == model.log_evidence_


def test_with_fixed_noise_any_weight_divides_it() -> None:
    weights = rng.uniform(0, 3, 300)
    scaled = BayesianPerceptronRegressor(noise=0.3, standardize=True).fit(X, NUMBERS, weights)
    assert scaled.noise_ == pytest.approx(0.3)
    model = BayesianPerceptronRegressor(noise=0.3, fit_intercept=False, standardize=False).fit(X, NUMBERS, weights)
    precision = np.eye(4) + (X.T * weights) @ X / 0.3
    np.testing.assert_allclose(model.coef_, np.linalg.solve(precision, X.T @ (weights * NUMBERS) / 0.3), rtol=1e-8)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_name_the_features(frame: Any) -> None:
    names = ["a", "b", "c", "d"]
    table = frame(dict(zip(names, X.T, strict=True)))
    model = BayesianPerceptronClassifier().fit(table, LABELS)
    assert list(model.feature_names_in_) == names
    assert model.n_features_in_ == 4
    np.testing.assert_array_equal(outputs(model, table), outputs(BayesianPerceptronClassifier().fit(X, LABELS)))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame(dict(zip("wxyz", X.T, strict=True))))
    pandas_y = pd.Series(NUMBERS)
    BayesianPerceptronRegressor(standardize=False).fit(table, pandas_y).partial_fit(table, pandas_y)


@pytest.mark.parametrize(("model", "y"), ALL[:3] + ALL[5:8] + ALL[-4:])
def test_sparse_rows_are_learned_as_if_dense(model: Any, y: Any) -> None:
    dense = np.where(np.abs(X) > 0.5, X, 0.0)
    sparse = csr_array(dense)
    np.testing.assert_allclose(
        outputs(clone(model).fit(sparse, y), sparse), outputs(clone(model).fit(dense, y), dense), rtol=1e-9
    )


@pytest.mark.parametrize("standardize", [True, False])
def test_huge_inputs_cause_no_warnings_of_numpy(standardize: bool) -> None:
    X = np.random.default_rng(0).normal(size=(50, 2))
    model = BayesianPerceptronRegressor(standardize=standardize).fit(X, X[:, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert np.isfinite(model.predict(1e300 * X)).all()
        if not standardize:
            with pytest.raises(ValueError, match=r"overflow float64.*rescale them"):
                clone(model).fit(1e300 * X, X[:, 0])


@pytest.mark.parametrize(
    ("model", "y"),
    [(BayesianPerceptronClassifier(standardize=True), LABELS), (BayesianPerceptronRegressor(), NUMBERS)],
)
def test_sparse_rows_that_stay_sparse_are_scaled_and_not_centred(model: Any, y: Any, tmp_path: Path) -> None:
    rows = np.where(np.abs(X) > 0.5, X, 0.0)
    sizes = np.array([np.sqrt(np.mean(column[column != 0.0] ** 2)) for column in rows[:100].T])
    model = clone(model).set_params(covariance="diagonal")
    sparse = csr_array(rows * [1e4, 1.0, 1e-4, 1.0])
    scaled = clone(model).fit(sparse, y)
    if y is LABELS:
        plain = clone(model).set_params(standardize=False).fit(csr_array(rows / sizes), y)
        np.testing.assert_allclose(outputs(scaled, sparse), outputs(plain, csr_array(rows / sizes)), rtol=1e-9)
    np.testing.assert_allclose(outputs(scaled, sparse.toarray()), outputs(scaled, sparse))
    split = clone(model).partial_fit(sparse[:30], y[:30])
    onepass.save(split, tmp_path / "waiting")  # whose rows are not centred after loading either
    split = onepass.load(tmp_path / "waiting").partial_fit(sparse[30:], y[30:])
    np.testing.assert_allclose(outputs(split, sparse), outputs(scaled, sparse))


def test_rare_entries_of_sparse_rows_are_no_small_columns() -> None:
    rows = np.zeros((5000, 2))
    rows[:, 0], rows[17, 1] = 1.0, 100.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BayesianPerceptronClassifier(covariance="diagonal", standardize=False).fit(csr_array(rows), np.arange(5000) % 2)
    rows[17, 1] = 1e5
    with pytest.warns(UserWarning, match="standardize=True"):
        BayesianPerceptronClassifier(covariance="diagonal", standardize=False).fit(csr_array(rows), np.arange(5000) % 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BayesianPerceptronClassifier(covariance="diagonal", standardize=True).fit(csr_array(rows), np.arange(5000) % 2)


def test_a_warning_names_features_of_very_different_scale() -> None:
    wide = pd.DataFrame(X * [1.0, 1e5, 1.0, 1.0], columns=["a", "income", "c", "d"])
    with pytest.warns(UserWarning, match=r"scale by a factor of .*'income' and 'c'.*standardize=True"):
        BayesianPerceptronClassifier(standardize=False).fit(wide, LABELS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BayesianPerceptronClassifier(standardize=True).fit(wide, LABELS)
        BayesianPerceptronClassifier(standardize=False).fit(X * [1.0, 0.0, 1.0, 1.0], LABELS)


@given(arrays(np.float64, (20, 2), elements=st.floats(-1.0, 1.0)), st.integers(-300, 300), st.integers(-300, 300))
def test_data_of_any_scale_are_standardised(rows: np.ndarray, power: int, target_power: int) -> None:
    rows = rows + np.arange(20)[:, None] * [1.0, -2.0]
    y = rows @ [1.0, 0.5] + 3.0 + np.sin(np.arange(20))
    plain = BayesianPerceptronRegressor(standardize=True).fit(rows, y)
    expected, std = plain.predict(rows, return_std=True)
    scaled, target = rows * 10.0**power, y * 10.0**target_power
    model = BayesianPerceptronRegressor(standardize=True).fit(scaled, target)
    predicted, predicted_std = model.predict(scaled, return_std=True)
    np.testing.assert_allclose(predicted / 10.0**target_power, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(predicted_std / 10.0**target_power, std, rtol=1e-6)


def test_targets_that_the_prior_cannot_reach_are_named() -> None:
    far = NUMBERS * 1000.0
    with pytest.warns(UserWarning, match=r"targets are of size .*standardize=True"):
        BayesianPerceptronRegressor(standardize=False).fit(X, far)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BayesianPerceptronRegressor(standardize=True).fit(X, far)
        BayesianPerceptronRegressor(prior_scale=1000.0, noise=1e5, standardize=False).fit(X, far)
        BayesianPerceptronRegressor(standardize=False).fit(X, NUMBERS).partial_fit(X, NUMBERS)


@pytest.mark.parametrize("weight", [1e9, 1e-9])
def test_weights_of_any_size_are_accepted(weight: float) -> None:
    weights = np.r_[weight, np.ones(299)]
    for model, y in ((BayesianPerceptronClassifier(), LABELS), (BayesianPerceptronRegressor(noise=1.0), NUMBERS)):
        model.fit(X, y, sample_weight=weights)
        assert np.isfinite(model.coef_).all()
        assert model.n_seen_ == 300


def test_classes_are_those_of_the_first_call() -> None:
    model = BayesianPerceptronClassifier().partial_fit(X, LABELS)
    with pytest.raises(ValueError, match="classes must be those of the first call"):
        model.partial_fit(X, LABELS, classes=["a", "b"])
    assert model.n_seen_ == 300
    with pytest.raises(ValueError, match="only one class"):
        BayesianPerceptronClassifier().partial_fit(X[:3], ["a"] * 3)
    late = BayesianPerceptronClassifier().partial_fit(X[:3], ["a"] * 3, classes=["a", "b"])
    assert late.predict_proba(X).shape == (300, 2)
    for y in ([True, False] * 150, [3, 7] * 150, [0.0, 1.0] * 150):
        assert set(BayesianPerceptronClassifier().fit(X, y).predict(X)) <= set(y)


def test_probabilities_keep_their_digits_in_both_tails() -> None:
    model = BayesianPerceptronClassifier().fit(X, LABELS)
    far = X[:1] * 0 + 100 * model.coef_
    for sign in (-1, 1):
        odds = model.decision_function(sign * far)
        assert np.isfinite(odds).all()
        assert np.sign(odds[0]) == sign
    proba, std = model.predict_proba(X, return_std=True)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert std.shape == (300, 2)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), proba, rtol=1e-7)
    np.testing.assert_array_equal(model.predict(X), model.classes_[(model.decision_function(X) > 0).astype(int)])


@pytest.mark.parametrize(("model", "y"), ALL)
def test_draws_average_to_the_prediction(model: Any, y: Any) -> None:
    model = clone(model).fit(X, y)
    drawn = model.sample_function(
        X[:20], 4000, random_state=3
    )  # of relu the mean is that of the moments, not of the draws
    expected = outputs(model, X[:20])
    if hasattr(model, "predict_proba") and len(model.classes_) == 2:
        expected = expected[:, 1]
    assert drawn.shape == (*expected.shape, 4000)
    np.testing.assert_allclose(drawn.mean(axis=-1), expected, atol=0.06 * max(1.0, np.abs(expected).max()))
    np.testing.assert_array_equal(drawn, model.sample_function(X[:20], 4000, random_state=3))


@pytest.mark.parametrize(("model", "y"), ALL)
@pytest.mark.parametrize("n", [30, 200])
def test_files_copies_and_pickles_go_on_bit_for_bit(model: Any, y: Any, n: int, tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = clone(model).fit(frame[:n], y[:n])
    onepass.save(model, tmp_path / "model")
    others = [onepass.load(tmp_path / "model"), copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    model.partial_fit(frame[n:], y[n:])
    for other in others:
        assert other.n_seen_ == n
        assert other.get_params() == model.get_params()
        other.partial_fit(frame[n:], y[n:])
        np.testing.assert_array_equal(outputs(other, frame), outputs(model, frame))
        assert other.log_evidence_ == model.log_evidence_
        assert list(other.feature_names_in_) == ["a", "b", "c", "d"]
        if hasattr(model, "classes_"):
            np.testing.assert_array_equal(other.classes_, model.classes_)
            assert other.classes_.dtype == model.classes_.dtype


def test_it_works_in_pipelines_and_searches() -> None:
    cancer, labels = load_breast_cancer(return_X_y=True, as_frame=True)
    pipeline = make_pipeline(StandardScaler(), BayesianPerceptronClassifier()).set_output(transform="pandas")
    search = GridSearchCV(pipeline, {"bayesianperceptronclassifier__prior_scale": [0.3, 1.0, "auto"]}, cv=3)
    search.fit(cancer, labels)
    assert search.best_score_ > 0.95
    numbers, targets = load_diabetes(return_X_y=True)
    model = BayesianPerceptronRegressor(standardize=True).fit(numbers, targets)
    assert model.score(numbers, targets) > 0.5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"prior_scale": 0.0},
            "prior_scale must be a positive number, an array with one per feature, (or 'auto'|'auto' or None), got 0",
        ),
        (
            {"prior_scale": "wide"},
            "prior_scale must be a positive number, an array with one per feature, (or 'auto'|'auto' or None), got 'w",
        ),
        ({"warm_up": 0, "standardize": True}, "warm_up must be a whole number"),
        ({"forgetting": 2.0}, "forgetting must be in"),
        ({"covariance": "block"}, "covariance must be one of"),
        ({"activation": "nope"}, "activation must be one of"),
    ],
)
def test_bad_arguments_are_named(options: dict[str, Any], words: str) -> None:
    for kind in (BayesianPerceptronClassifier, BayesianPerceptronRegressor):
        with pytest.raises(ValueError, match=words):
            kind(**options).fit(X, (NUMBERS > 0).astype(int))


def test_what_was_not_fitted_says_so(tmp_path: Path) -> None:
    for model in (BayesianPerceptronClassifier(), BayesianPerceptronRegressor(standardize=False)):
        for act in (lambda m: m.predict(X), lambda m: m.n_seen_, lambda m: onepass.save(m, tmp_path / "model")):
            with pytest.raises(NotFittedError):
                act(model)
        assert not hasattr(model, "coef_")


def test_more_passes_of_fit_are_those_of_the_committee_itself() -> None:
    y = np.sin(2.0 * X[:, 0]) + 0.3 * X[:, 1]
    model = BayesianMLPRegressor((10,), members=2, passes=4, shuffle=False, standardize=False).fit(X, y)
    committee = BayesianCommittee(4, (10,), members=2).learn(X, y, passes=4, refine="ep")
    np.testing.assert_allclose(model.predict(X), committee.predict(X).mean, rtol=1e-10)
    low, high = model.predict_interval(X)
    np.testing.assert_allclose(np.array([low, high]), np.array(committee.interval(X)), rtol=1e-6)
    once = BayesianMLPRegressor((10,), members=2, standardize=False, **IN_ORDER).fit(X, y)
    assert model.score(X, y) > once.score(X, y)
    assert model.n_seen_ == once.n_seen_ == 300


def test_the_warm_up_does_not_cut_passes_in_two() -> None:
    scaled = BayesianMLPRegressor((10,), passes=3, warm_up=300).fit(X, NUMBERS)
    rows = (X - X.mean(axis=0)) / X.std(axis=0)
    targets = (NUMBERS - NUMBERS.mean()) / NUMBERS.std()
    plain = BayesianMLPRegressor((10,), passes=3, standardize=False).fit(rows, targets)
    np.testing.assert_allclose(scaled.predict(X), plain.predict(rows) * NUMBERS.std() + NUMBERS.mean(), rtol=1e-6)


def test_partial_fit_goes_over_its_rows_once() -> None:
    once = BayesianMLPRegressor((10,), **IN_ORDER).fit(X, NUMBERS)
    more = BayesianMLPRegressor((10,), passes=5, shuffle=True).partial_fit(X, NUMBERS)
    np.testing.assert_allclose(more.predict(X), once.predict(X), rtol=1e-10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"members": 2, "prior_scale": "auto"}, "members=2 have different priors already"),
        ({"passes": 2, "prior_scale": "auto"}, "compares what one pass predicted"),
        ({"members": 0}, "members must be"),
        ({"passes": 0}, "passes must be"),
        ({"refine": "again"}, "refine must be"),
        ({"passes": 2, "refine": "ep", "covariance": "diagonal"}, "full"),
    ],
)
def test_members_and_passes_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BayesianMLPRegressor((5,), **options).fit(X, NUMBERS)


def count_problem(n: int = 600) -> tuple[Any, Any]:
    random = np.random.default_rng(3)
    rows = random.normal(size=(n, 3)) * [1.0, 20.0, 0.01] + [5.0, -40.0, 0.0]
    rate = np.exp(1.0 + 0.4 * (rows[:, 0] - 5.0) - 0.02 * (rows[:, 1] + 40.0))
    return rows, random.poisson(rate * random.gamma(2.0, 0.5, n))


def test_exp_learns_counts_whose_dispersion_it_finds() -> None:
    rows, counts = count_problem(3000)
    model = BayesianPerceptronRegressor("exp", standardize=True).fit(rows[:2500], counts[:2500])
    assert model.noise_ == pytest.approx(0.5, rel=0.2)
    np.testing.assert_array_equal(model._learner.state.targets.scale, 1.0)
    np.testing.assert_allclose(model.coef_[:2], [0.4, -0.02], rtol=0.2)
    mean, std = model.predict(rows[2500:], return_std=True)
    assert np.mean((counts[2500:] - mean) ** 2 / std**2) == pytest.approx(1.0, abs=0.25)
    low, high = model.predict_interval(rows[2500:], 0.9)
    assert ((low >= 0.0) & (low == np.floor(low)) & (low <= high)).all()
    # Intervals of small counts, whose limits are whole, hold more than they say.
    assert 0.87 < ((low <= counts[2500:]) & (counts[2500:] <= high)).mean() < 0.98
    gaussian = BayesianPerceptronRegressor("exp", noise=0.1, standardize=False)
    assert (gaussian._likelihood.name, model._likelihood.name) == ("gaussian", "negative_binomial")
    with pytest.raises(ValueError, match=r"y must hold counts 0, 1, 2, \.\.\. for observation='negative_binomial'"):
        BayesianPerceptronRegressor("exp", standardize=False).fit(rows[:2], [3, -1])
    with pytest.raises(
        ValueError, match="observation must be one of 'auto', 'gaussian', 'negative_binomial', 'poisson'"
    ):
        BayesianPerceptronRegressor(observation="binomial", standardize=False).fit(rows[:2], [3, 1])


@pytest.mark.parametrize(
    "model",
    [
        BayesianPerceptronRegressor("exp", standardize=True),
        BayesianPerceptronRegressor("exp", standardize=True, prior_scale="auto", warm_up=30),
        BayesianPerceptronRegressor("softplus", observation="poisson", standardize=True),
        BayesianMLPRegressor((4,), observation="negative_binomial", **IN_ORDER),
        BayesianMLPRegressor((4,), observation="poisson", members=2, **IN_ORDER),
    ],
    ids=str,
)
def test_counts_in_any_split_in_files_and_for_several_outputs(model: Any, tmp_path: Path) -> None:
    rows, counts = count_problem(200)
    both = np.column_stack([counts, counts[::-1]])
    whole = clone(model).fit(rows, both)
    parts = clone(model)
    for part in np.array_split(np.arange(200), 7):
        parts.partial_fit(rows[part], both[part])
    np.testing.assert_allclose(parts.predict(rows), whole.predict(rows), rtol=1e-7)
    assert whole.predict(rows).shape == (200, 2)
    assert whole.sample_y(rows[:3], 2, 0).shape == (3, 2, 2)
    onepass.save(whole, tmp_path / "counts")
    loaded = onepass.load(tmp_path / "counts")
    np.testing.assert_array_equal(loaded.predict_interval(rows[:9]), whole.predict_interval(rows[:9]))
    assert loaded.partial_fit(rows, both).log_evidence_ == whole.partial_fit(rows, both).log_evidence_
    assert loaded.prior_weights_.sum() == pytest.approx(2.0)
