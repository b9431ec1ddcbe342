import copy
import math
import pickle
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from river import checks, datasets, evaluate, linear_model, metrics, optim, preprocessing

import onepass
import onepass.activations
from onepass import BayesianPerceptron
from onepass.beliefs import forgetting
from onepass.models.mixture import with_drift
from onepass.river import PerceptronClassifier, PerceptronRegressor

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


NAMES = [f"x{i}" for i in range(25)]
rng = np.random.default_rng(0)
X = rng.normal(size=(120, 25))
SCORE = X[:, :3].sum(axis=1) + rng.normal(size=120)


def rows(names: list[str] = NAMES) -> list[dict[str, float]]:
    return [dict(zip(names, row.tolist(), strict=False)) for row in X]


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


def test_a_large_covariance_grows_in_the_form_it_is_held_in() -> None:
    wide = rng.normal(size=(60, 200))
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


def test_missing_features_count_as_zero_and_strange_ones_widen() -> None:
    model = PerceptronRegressor(noise=0.1, prior_scale=3.0)
    for x, y in zip(rows(), SCORE, strict=True):
        model.learn_one(x, y)
    some = dict.fromkeys(NAMES[:4], 1.0)
    row = np.zeros(25)
    row[:4] = 1.0
    assert model.predict_one(some) == pytest.approx(model.predict_one(dict(zip(NAMES, row.tolist(), strict=True))))
    near, far = (model.predict_one(x, with_dist=True) for x in (some, {**some, "new": 2.0}))
    assert far.mu == pytest.approx(near.mu)
    assert far.sigma**2 == pytest.approx(near.sigma**2 + 4.0 * 9.0)
    assert "new" not in model.weights


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


def test_features_named_by_numbers_and_tuples_are_saved(tmp_path: Path) -> None:
    model = PerceptronClassifier()
    model.learn_one({1: 0.5, ("a", 2): -1.0, "1": 2.0}, True)
    onepass.save(model, tmp_path / "model")
    assert onepass.load(tmp_path / "model").weights == model.weights
    model.learn_one({1.5: 1.0}, True)
    with pytest.raises(TypeError, match=r"strings, integers or tuples of these, got 1\.5"):
        onepass.save(model, tmp_path / "model")


def test_gaps_in_frames_are_named() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, None]})
    model = PerceptronRegressor()
    with pytest.raises(ValueError, match=r"feature 'b' must be finite, got nan in row 1; .*fillna"):
        model.learn_many(frame, pd.Series([1.0, 2.0]))
    assert model.weights == {}


def test_a_row_that_is_refused_leaves_no_trace() -> None:
    model = PerceptronClassifier(forgetting=0.9)
    model.learn_one({"a": 1.0}, True)
    with pytest.raises(ValueError, match="feature 'new' must be a finite number, got nan"):
        model.learn_one({"new": float("nan")}, True)
    for bad in ("no", 2, float("nan")):
        with pytest.raises(ValueError, match=r"y must be True or False.*SoftmaxClassifier"):
            model.learn_one({"new": 1.0}, bad)
    assert list(model.weights) == ["a"]


@pytest.mark.parametrize("name", ["known", "new"])
@pytest.mark.parametrize("value", [math.nan, math.inf, "x", None])
def test_what_is_no_number_is_refused_by_name_in_predictions_too(name: str, value: Any) -> None:
    model = PerceptronClassifier()
    model.learn_one({"known": 1.0}, True)
    for call in (model.predict_proba_one, lambda x: model.learn_one(x, True)):
        with pytest.raises(ValueError, match=f"feature {name!r} must be a finite number"):
            call({name: value})
    if isinstance(value, float):
        with pytest.raises(ValueError, match=f"feature {name!r} must be finite"):
            model.predict_proba_many(pd.DataFrame({name: [1.0, value]}))


def test_a_huge_value_of_a_feature_never_met_says_nothing() -> None:
    model = PerceptronClassifier()
    model.learn_one({"known": 1.0}, True)
    assert model.predict_proba_one({"new": 1e200})[True] == pytest.approx(0.5, abs=0.01)
    assert PerceptronRegressor().predict_one({"new": 1e200}, with_dist=True).sigma > 1e100


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
    assert (predicted.mu, predicted.sigma**2) == pytest.approx((seen.mean, seen.var + seen.noise_var))
    wider = model.predict_one({**given, "new": 1e6}, with_dist=True)
    assert predicted.mu < wider.mu < 100.0 * predicted.mu  # and not that of its tail
    with pytest.raises(ValueError, match="y must hold counts"):
        model.learn_one(given, 1.5)
    with pytest.raises(ValueError, match="needs an activation that is never negative"):
        PerceptronRegressor(observation=observation)


def test_rows_may_be_any_mapping() -> None:
    model, other = PerceptronClassifier(), PerceptronClassifier()
    for x in rows()[:20]:
        model.learn_one(x, True)
        other.learn_one(MappingProxyType(x), np.True_)
    assert other.weights == model.weights


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


def test_standardised_targets_are_those_of_rivers_scaler_with_their_distribution() -> None:
    ours: Any = PerceptronRegressor(standardize=True)
    theirs: Any = preprocessing.TargetStandardScaler(PerceptronRegressor())
    targets = (5000.0 + 300.0 * SCORE).tolist()
    inside = []
    for x, y in zip(rows(NAMES[:3]), targets, strict=True):
        seen = ours.predict_one(x, with_dist=True)
        inside.append(abs(y - seen.mu) < 1.96 * seen.sigma)
        for model in (ours, theirs):
            model.learn_one(x, y)
        assert ours.predict_one(x) == pytest.approx(theirs.predict_one(x), rel=1e-9)
    assert np.mean(inside[20:]) > 0.85
    assert seen.sigma == pytest.approx(300.0, rel=0.25)  # the noise has a standard deviation of 1
    assert list(ours.weights.values()) == pytest.approx([300.0] * 3, abs=100.0)
    pipeline = preprocessing.StandardScaler() | ours
    assert pipeline.predict_one(rows()[0], with_dist=True).sigma > 100.0
    assert ours.predict_many(pd.DataFrame(rows(NAMES[:3]))).tolist() == pytest.approx(
        [ours.predict_one(x) for x in rows(NAMES[:3])]
    )


@pytest.mark.parametrize("activation", ["linear", "relu"])
@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_standardised_targets_may_have_any_unit(activation: str, size: float) -> None:
    small, large = (PerceptronRegressor(activation=activation, standardize=True, outliers=0.05) for _ in range(2))
    for x, y in zip(rows(), np.maximum(2.0 + SCORE, 0.0).tolist(), strict=True):
        small.learn_one(x, y)
        large.learn_one(x, size * y)
    one, other = (model.predict_one(rows()[0], with_dist=True) for model in (small, large))
    assert (size * one.mu, size * one.sigma) == pytest.approx((other.mu, other.sigma), rel=1e-4)
    assert large.outlier_probability_one(rows()[0], 1e3 * size) > 0.9 > large.outlier_probability_one(rows()[0], size)


def test_one_target_or_some_that_are_the_same_have_a_scale() -> None:
    for value in (0.0, 700.0):
        model = PerceptronRegressor(standardize=True)
        for _ in range(3):
            model.learn_one({"x": 1.0}, value)
            seen = model.predict_one({"x": 1.0}, with_dist=True)
            assert seen.mu == pytest.approx(value)
            assert 0.0 < seen.sigma < math.inf


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


@pytest.mark.parametrize("arguments", [{"activation": "exp"}, {"activation": "tanh"}])
def test_targets_that_have_their_own_units_are_not_standardised(arguments: Any) -> None:
    with pytest.raises(ValueError, match=r"standardize=True needs observation='gaussian' and activation='linear'"):
        PerceptronRegressor(standardize=True, **arguments)
    with pytest.raises(TypeError, match="standardize must be True or False, got 'yes'"):
        PerceptronRegressor(standardize="yes")  # type: ignore[arg-type]


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


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf, "two", None])
def test_a_wrong_weight_is_refused(wrong: Any) -> None:
    model = PerceptronRegressor()
    with pytest.raises(ValueError, match=r"w must be 0 for a row that is left out, or a finite number above, got "):
        model.learn_one({"x": 1.0}, 1.0, w=wrong)
    model.learn_one({"x": 1.0}, 1.0, w=0)
    assert (model.n_seen, model.weights) == (0, {})
