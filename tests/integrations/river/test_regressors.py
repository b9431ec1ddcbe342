"""Perceptrons as River's models: regressors, and classifiers where both are alike."""

import copy
import math
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from river import checks, datasets, evaluate, linear_model, metrics, optim, preprocessing

import onepass
import onepass.activations
from onepass import BayesianPerceptron
from onepass.river import PerceptronClassifier, PerceptronRegressor
from tests.helpers.river_rows import NAMES, SCORE, X, rows

MODELS = [
    PerceptronClassifier(),
    PerceptronClassifier(prior_scale=2.0, covariance="diagonal", forgetting=0.99),
    PerceptronRegressor(),
    PerceptronRegressor(noise=0.1, activation="relu", forgetting=0.99),
    PerceptronClassifier(drift="auto"),
    PerceptronRegressor(drift="auto"),
    PerceptronClassifier(outliers=0.1),
    PerceptronRegressor(outliers=0.05, covariance="diagonal"),
    PerceptronRegressor(standardize=True),
    PerceptronRegressor(missing="mean", standardize=True),
    PerceptronClassifier(missing="mean", drift="auto", fit_intercept=False),
]


@pytest.mark.parametrize(
    ("model", "check"),
    [
        pytest.param(
            model,
            check,
            id=f"{i}-{check.__name__}",
            marks=[pytest.mark.slow] if check.__name__ == "check_bounded_memory_growth" and i not in (0, 2) else [],
        )
        for i, model in enumerate(MODELS)
        for check in checks.yield_checks(model)
        if check.__name__ not in model._unit_test_skips()
    ],
)
def test_it_is_a_river_model(model: Any, check: Any) -> None:
    check(model.clone())


def test_labels_that_are_wrong_are_told() -> None:
    model, trusting = PerceptronClassifier(outliers=0.1), PerceptronClassifier()
    for x in np.linspace(-3.0, 3.0, 100):
        for each in (model, trusting):
            each.learn_one({"x": float(x)}, bool(x > 0.0))
    assert model.outlier_probability_one({"x": 3.0}, False) > 0.5 > model.outlier_probability_one({"x": 3.0}, True)
    assert trusting.outlier_probability_one({"x": 3.0}, False) == trusting.outliers_ == 0.0
    with pytest.raises(ValueError, match="y must be True or False, got 2"):
        model.outlier_probability_one({"x": 1.0}, 2)
    with pytest.raises(ValueError, match=r"outliers must be a number in \[0, 0\.5\)"):
        PerceptronClassifier(outliers=0.7)


@pytest.mark.parametrize(
    ("model", "wrong", "words"),
    [
        (PerceptronRegressor(), None, "y must be a finite number, got None; learn a row once its target is known"),
        (PerceptronRegressor(), float("nan"), "y must be a finite number, got nan"),
        (PerceptronRegressor(), "many", "y must be a finite number, got 'many'"),
        (PerceptronClassifier(), None, "y must be True or False, got None; learn a row once its target is known"),
    ],
)
def test_a_row_without_a_target_is_refused_and_leaves_nothing_behind(model: Any, wrong: Any, words: str) -> None:
    for call in (model.learn_one, model.outlier_probability_one):
        with pytest.raises(ValueError, match=words):
            call({"x": 1.0}, wrong)
    assert model.n_seen == 0
    assert model.weights == {}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_many_rows_are_one_row_after_the_other(frame: Any) -> None:
    table = frame(dict(zip(NAMES, X.T, strict=True)))
    series = pd.Series if frame is pd.DataFrame else pl.Series
    kinds: list[tuple[Any, Any]] = [(PerceptronClassifier, SCORE > 0), (PerceptronRegressor, SCORE)]
    for kind, y in kinds:
        one, many = kind(), kind()
        for x, target in zip(rows(), y, strict=True):
            one.learn_one(x, target)
        many.learn_many(table, series(y))
        np.testing.assert_allclose(list(many.weights.values()), list(one.weights.values()), rtol=1e-7, atol=1e-10)
        single = [one.predict_one(x) for x in rows()]
        np.testing.assert_allclose(np.asarray(many.predict_many(table), float), np.array(single, float), rtol=1e-6)


def test_it_beats_the_logistic_regression_of_river_at_its_best() -> None:
    losses = []
    log_loss: Any = metrics.LogLoss
    others = [linear_model.LogisticRegression(optim.SGD(rate), intercept_lr=rate) for rate in (0.003, 0.01, 0.03, 0.1)]
    for learner in (PerceptronClassifier(), *others):
        model = preprocessing.StandardScaler() | learner
        losses.append(evaluate.progressive_val_score(datasets.Phishing(), model, log_loss()).get())
    assert losses[0] < min(losses[1:])


@pytest.mark.parametrize("model", MODELS)
def test_files_copies_and_pickles_go_on_bit_for_bit(model: Any, tmp_path: Path) -> None:
    model = model.clone()
    for x, y in zip(rows()[:60], SCORE, strict=False):
        model.learn_one(dict(list(x.items())[:20]), y > 0 if isinstance(model, PerceptronClassifier) else y)
    onepass.save(model, tmp_path / "model")
    others = [onepass.load(tmp_path / "model"), copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    for one in (model, *others):
        for x, y in zip(rows()[60:], SCORE[60:], strict=True):
            one.learn_one(x, y > 0 if isinstance(model, PerceptronClassifier) else y)
    for other in others:
        assert other.weights == model.weights
        assert other.log_evidence == model.log_evidence


def test_missing_river_is_a_one_line_hint() -> None:
    code = "import sys; sys.modules['river'] = None; import onepass.river"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip().endswith(
        "MissingExtraError: onepass.river needs river: pip install 'onepass-learn[river]'"
    )


def test_targets_far_from_zero_are_found_by_the_intercept() -> None:
    """River's own linear regression has an intercept that nothing holds back."""
    errors = []
    rows: Any = datasets.TrumpApproval
    mae: Any = metrics.MAE
    for learner in (PerceptronRegressor(), linear_model.LinearRegression()):
        model = preprocessing.StandardScaler() | learner
        errors.append(evaluate.progressive_val_score(rows(), model, mae()).get())
    assert errors[0] < errors[1] < 2.0


def test_a_row_that_is_refused_leaves_no_trace() -> None:
    model = PerceptronClassifier(forgetting=0.9)
    model.learn_one({"a": 1.0}, True)
    with pytest.raises(ValueError, match="feature 'new' must be a finite number, got nan"):
        model.learn_one({"new": float("nan")}, True)
    for bad in ("no", 2, float("nan")):
        with pytest.raises(ValueError, match=r"y must be True or False.*SoftmaxClassifier"):
            model.learn_one({"new": 1.0}, bad)
    assert list(model.weights) == ["a"]


@pytest.mark.parametrize("observation", ["poisson", "negative_binomial"])
def test_counts_are_learned_as_by_a_perceptron_that_knew_all_features(observation: str, tmp_path: Path) -> None:
    counts = np.random.default_rng(1).poisson(np.exp(1.0 + 0.5 * X[:, 0]))
    model = PerceptronRegressor(activation="exp", observation=observation)
    for i, (x, y) in enumerate(zip(rows(), counts, strict=True)):
        model.learn_one(dict(list(x.items())[: 1 if i < 20 else 3]), int(y))
        if i == 10:
            onepass.save(model, tmp_path / "model")
            model = onepass.load(tmp_path / "model")
    known = np.where((np.arange(3) < 1) | (np.arange(120) >= 20)[:, None], X[:, :3], 0.0)
    whole = BayesianPerceptron(3, "exp", cov=[16.0, 1.0, 1.0, 1.0], observation=observation).learn(known, counts)
    assert model.log_evidence == pytest.approx(whole.log_evidence, rel=1e-9)
    seen, given = whole.predict(X[0, :3]), dict(list(rows()[0].items())[:3])
    predicted = model.predict_one(given, with_dist=True)
    assert (predicted.mu, predicted.sigma**2) == pytest.approx((seen.mean, seen.epistemic + seen.aleatoric))
    wider = model.predict_one({**given, "new": 1e6}, with_dist=True)
    assert predicted.mu < wider.mu < 100.0 * predicted.mu  # and not that of its tail
    with pytest.raises(ValueError, match="y must hold counts"):
        model.learn_one(given, 1.5)
    with pytest.raises(ValueError, match="needs an activation that is never negative"):
        PerceptronRegressor(observation=observation)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("activation", "noise", "expected"),
    [("relu", "learn", 1.0), ("leaky_relu", "learn", 1.0), ("exp", 0.04, math.e), ("tanh", "learn", math.tanh(1.0))],
)
def test_every_activation_learns_by_default(activation: str, noise: Any, expected: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = PerceptronRegressor(activation=activation, noise=noise)
    function = onepass.activations.as_activation(activation)
    for x in rng.normal(size=300).tolist():
        model.learn_one({"x": x}, float(function(np.array(1.0 + 0.5 * x))) + 0.2 * rng.normal())
    seen = model.predict_one({"x": 0.0}, with_dist=True)
    assert seen.mu == pytest.approx(expected, abs=0.08)
    assert seen.sigma == pytest.approx(0.2, abs=0.04)


def test_the_exponential_is_for_counts_unless_a_noise_is_given() -> None:
    rng = np.random.default_rng(2)
    auto = PerceptronRegressor(activation="exp")
    named = PerceptronRegressor(activation="exp", observation="negative_binomial")
    assert auto.observation == "auto"
    for x in rng.normal(size=200).tolist():
        y = int(rng.poisson(math.exp(1.0 + 0.5 * x)))
        auto.learn_one({"x": x}, y)
        named.learn_one({"x": x}, y)
    assert auto.log_evidence == named.log_evidence
    assert auto.predict_one({"x": 0.0}) == pytest.approx(math.e, rel=0.15)
    with pytest.raises(ValueError, match="y must hold counts"):
        auto.learn_one({"x": 0.0}, 1.5)
    gaussian = PerceptronRegressor(activation="exp", observation="gaussian")
    for x in rng.normal(size=200).tolist():
        gaussian.learn_one({"x": x}, math.exp(1.0 + 0.5 * x) + 0.2 * rng.normal())
    assert gaussian.predict_one({"x": 0.0}) == pytest.approx(math.e, abs=0.1)


@pytest.mark.parametrize("wrong", ["bernoulli", "foo"])
def test_an_observation_that_is_not_for_numbers_is_refused(wrong: str) -> None:
    words = f"observation must be one of 'auto', 'gaussian', 'negative_binomial', 'poisson', got {wrong!r}"
    with pytest.raises(ValueError, match=words):
        PerceptronRegressor(observation=wrong)


def test_standardised_rows_of_a_frame_are_one_row_after_the_other_and_a_refused_one_leaves_no_trace() -> None:
    one, many = PerceptronRegressor(standardize=True), PerceptronRegressor(standardize=True)
    for x, y in zip(rows(), SCORE, strict=True):
        one.learn_one(x, 10.0 * y)
    many.learn_many(pd.DataFrame(rows()), pd.Series(10.0 * SCORE))
    assert many.weights == one.weights
    before = one.predict_one(rows()[0])
    with pytest.raises(ValueError, match="feature 'new' must be a finite number"):
        one.learn_one({"new": math.nan}, 1e6)
    assert one.predict_one(rows()[0]) == before


@pytest.mark.parametrize(
    ("model", "close"),
    [
        (PerceptronClassifier(), 1e-9),
        (PerceptronClassifier(outliers=0.1), 0.03),  # weights are rescaled between rows, not between copies
        (PerceptronRegressor(noise=0.1, activation="relu"), 1e-9),
        (PerceptronRegressor(), 3e-3),  # a learned noise trusts copies less at first
    ],
)
def test_a_row_of_weight_three_is_a_row_that_comes_three_times(model: Any, close: float) -> None:
    weighed, repeated = model.clone(), model.clone()
    for i, (x, y) in enumerate(zip(rows(), SCORE, strict=True)):
        target = bool(y > 0) if isinstance(model, PerceptronClassifier) else float(y)
        weighed.learn_one(x, target, w=i % 4)
        for _ in range(i % 4):
            repeated.learn_one(x, target)
    assert weighed.weights == pytest.approx(repeated.weights, rel=1e-6, abs=close)
    assert weighed.n_seen == sum(i % 4 > 0 for i in range(len(SCORE)))


def test_a_row_of_half_a_weight_has_twice_the_noise() -> None:
    half, noisy = PerceptronRegressor(noise=0.5), PerceptronRegressor(noise=1.0)
    for x, y in zip(rows(), SCORE, strict=True):
        (preprocessing.StandardScaler() | half).learn_one(x, y, w=0.5)
        (preprocessing.StandardScaler() | noisy).learn_one(x, y)
    assert half.weights == pytest.approx(noisy.weights, rel=1e-9)
    twice, whole = PerceptronRegressor(noise=0.5), PerceptronRegressor(noise=0.2)
    for x, y in zip(rows(), SCORE, strict=True):
        twice.learn_one(x, y, w=2.5)
        whole.learn_one(x, y)
    assert twice.weights == pytest.approx(whole.weights, rel=1e-6)
