"""What all of River's models have in common: arguments, frames, gaps, weights and distributions."""

import copy
import inspect
import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

import onepass
from onepass import BayesianCommittee, BayesianPerceptron, _validation
from onepass.integrations.river.targets import Units
from onepass.river import MLPClassifier, MLPRegressor, PerceptronClassifier, PerceptronRegressor, SoftmaxClassifier

rng = np.random.default_rng(0)
NAMES = list("abcd")
X = rng.normal(size=(60, 4))
SCORE = X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=60)
ROWS = [dict(zip(NAMES, row.tolist(), strict=True)) for row in X]
MODELS: dict[str, tuple[Any, list[Any]]] = {
    "perceptron": (PerceptronClassifier("probit"), (SCORE > 0.0).tolist()),
    "softmax": (SoftmaxClassifier(), np.array(["low", "mid", "high"])[np.digitize(SCORE, [-0.5, 1.5])].tolist()),
    "mlp, labels": (MLPClassifier((3,)), (SCORE > 0.0).tolist()),
    "mlp, classes": (MLPClassifier(3, members=2), np.digitize(SCORE, [-0.5, 1.5]).tolist()),
    "linear": (PerceptronRegressor(noise=0.1), SCORE.tolist()),
    "linear, standardised": (PerceptronRegressor(standardize=True), (50.0 + 10.0 * SCORE).tolist()),
    "mlp, numbers": (MLPRegressor((3,), drift=0.01), SCORE.tolist()),
    "committee, standardised": (MLPRegressor((3,), members=2, standardize=True), (50.0 + 10.0 * SCORE).tolist()),
}
ALL = pytest.mark.parametrize("name", MODELS)


def start(name: str, **arguments: Any) -> tuple[Any, list[Any]]:
    model, targets = MODELS[name]
    return model.clone(arguments), targets


def predicted(model: Any, x: Any) -> dict[Any, float]:
    if hasattr(model, "predict_proba_one"):
        return dict(model.predict_proba_one(x))
    seen = model.predict_one(x, with_dist=True)
    return {"mu": seen.mu, "sigma": seen.sigma}


@pytest.mark.parametrize(
    ("river", "estimator"),
    [
        (PerceptronClassifier, onepass.BayesianPerceptronClassifier),
        (SoftmaxClassifier, onepass.BayesianPerceptronClassifier),
        (PerceptronRegressor, onepass.BayesianPerceptronRegressor),
        (MLPClassifier, onepass.BayesianMLPClassifier),
        (MLPRegressor, onepass.BayesianMLPRegressor),
    ],
)
def test_arguments_have_the_names_that_the_estimators_give_them(river: Any, estimator: Any) -> None:
    ours, theirs = (list(inspect.signature(kind).parameters) for kind in (river, estimator))
    # River has its own TargetTransformRegressor.
    only_batch = {"passes", "refine", "shuffle", "warm_up", "class_weight", "image_shape", "target_transform"}
    assert set(ours) <= set(theirs)
    missing = set(theirs) - set(ours) - only_batch
    assert missing <= ({"activation", "fit_intercept", "standardize"} if "Classifier" in river.__name__ else set())


@ALL
@pytest.mark.parametrize("frame", [pd, pl])
def test_rows_of_frames_are_one_row_after_the_other_by_their_weights(name: str, frame: Any) -> None:
    one, targets = start(name)
    many = one.clone()
    weights = [(1.0, 2.0, 0.0)[i % 3] for i in range(60)]
    for part in (slice(0, 20), slice(20, 60)):  # classes come in the middle of the frames
        for x, y, w in zip(ROWS[part], targets[part], weights[part], strict=True):
            one.learn_one(x, y, w=w)
        many.learn_many(frame.DataFrame(ROWS[part]), frame.Series(targets[part]), w=frame.Series(weights[part]))
    assert many.n_seen == one.n_seen == 40
    assert many.log_evidence == pytest.approx(one.log_evidence, rel=1e-9)
    for x in ROWS[:5]:
        assert predicted(many, x) == pytest.approx(predicted(one, x), rel=1e-7)
    table = frame.DataFrame([{**x, "new": 0.5} for x in ROWS])
    singly = [one.predict_one({**x, "new": 0.5}) for x in ROWS]
    if hasattr(one, "predict_proba_many"):
        found = many.predict_proba_many(table)
        for label, column in zip(one.classes, found.columns, strict=True):
            expected = [one.predict_proba_one({**x, "new": 0.5})[label] for x in ROWS]
            assert list(found[column]) == pytest.approx(expected, rel=1e-6)
        assert list(many.predict_many(table)) == singly
    else:
        assert list(many.predict_many(table)) == pytest.approx(singly, rel=1e-6)


@ALL
def test_frames_before_the_first_row_and_empty_frames(name: str) -> None:
    model, targets = start(name)
    table = pd.DataFrame(ROWS[:3], index=[7, 8, 9])
    assert list(model.predict_many(table)) == [model.predict_one(x) for x in ROWS[:3]]
    assert list(model.predict_many(table).index) == [7, 8, 9]
    assert len(model.predict_many(table[:0])) == 0
    model.learn_many(table[:0], pd.Series(targets[:0]))
    assert (model.n_seen, model.features) == (0, ())
    with pytest.raises(ValueError, match="X and y must have the same number of rows, got 3 and 2"):
        model.learn_many(table, pd.Series(targets[:2]))
    with pytest.raises(ValueError, match="w must be a number, or a series of 3, one per row of X, got 2"):
        model.learn_many(table, pd.Series(targets[:3]), w=pd.Series([1.0, 2.0]))


@ALL
@pytest.mark.parametrize("n_before", [0, 30])
def test_frames_that_cannot_be_learned_leave_nothing_behind(name: str, n_before: int) -> None:
    model, targets = start(name, missing="mean")
    for x, y in zip(ROWS[:n_before], targets, strict=False):
        model.learn_one(x, y)
    twin = copy.deepcopy(model)
    good, wrong = [*ROWS[30:40], {"new": 1.0}], [*targets[30:40], None]
    for table, given in (
        (pd.DataFrame(good), wrong),
        (pd.DataFrame([*ROWS[30:40], {**ROWS[40], "new": math.inf}]), targets[30:41]),
        (pd.DataFrame([*ROWS[30:40], {**ROWS[40], "new": 1e300}]), [*targets[30:40], targets[40]]),
    ):
        with pytest.raises(ValueError, match=r"y must be|must be finite|overflow|far beyond"):
            model.learn_many(table, pd.Series(given, dtype=object))
    assert model.features == twin.features
    for one in (model, twin):
        for x, y in zip(ROWS[30:], targets[30:], strict=True):
            one.learn_one(x, y)
    assert pickle.dumps(model.export_state()) == pickle.dumps(twin.export_state())


def with_gaps(row: dict[str, float], how: str) -> dict[str, Any]:
    """A row without its first or second value: left out, None or NaN."""
    gap = "ab"[int(row["c"] > 0.0)]
    if row["d"] > 0.5:
        return row
    if how == "left out":
        return {name: value for name, value in row.items() if name != gap}
    return {**row, gap: None if how == "None" else math.nan}


@pytest.mark.parametrize("how", ["left out", "None", "NaN"])
@pytest.mark.parametrize(
    ("model", "estimator"),
    [
        (
            PerceptronRegressor(missing="mean", drift=0.01),
            onepass.BayesianPerceptronRegressor(
                missing="mean", standardize=False, prior_scale=1.0, intercept_scale=100.0, drift=0.01
            ),
        ),
        (
            PerceptronClassifier(missing="mean"),
            onepass.BayesianPerceptronClassifier(missing="mean", standardize=False),
        ),
        (
            MLPRegressor((3,), missing="mean", members=2, random_state=3),
            onepass.BayesianMLPRegressor((3,), missing="mean", members=2, random_state=3, standardize=False),
        ),
    ],
)
def test_gaps_are_filled_as_the_estimators_fill_them(model: Any, estimator: Any, how: str) -> None:
    model, estimator = model.clone(), clone(estimator)
    labels = isinstance(model, PerceptronClassifier)
    classes = {"classes": [False, True]} if labels else {}
    gappy_rows = [ROWS[0], *(with_gaps(x, how) for x in ROWS[1:])]  # all columns are known from the start
    for gappy, score in zip(gappy_rows, SCORE, strict=True):
        y = bool(score > 0.0) if labels else float(score)
        array = [[math.nan if gappy.get(name) is None else gappy[name] for name in NAMES]]
        if model.n_seen:
            if labels:
                assert model.predict_proba_one(gappy)[True] == pytest.approx(estimator.predict_proba(array)[0, 1])
            else:
                mean, std = estimator.predict(array, return_std=True)
                assert predicted(model, gappy) == pytest.approx({"mu": mean[0], "sigma": std[0]}, rel=1e-6)
        model.learn_one(gappy, y)
        estimator.partial_fit(array, [y], **classes)
    table = pd.DataFrame(gappy_rows)
    assert table.isna().sum().sum() > 20
    expected = [model.predict_one(x) for x in gappy_rows]
    assert list(model.predict_many(table)) == pytest.approx(expected)
    many = model.clone()
    many.learn_many(table, pd.Series(SCORE > 0.0 if labels else SCORE))
    assert many.log_evidence == pytest.approx(model.log_evidence, rel=1e-9)
    assert predicted(many, gappy_rows[1]) == pytest.approx(predicted(model, gappy_rows[1]), rel=1e-7)


def test_an_unknown_feature_widens_a_perceptron_and_is_not_zero() -> None:
    model = PerceptronRegressor(missing="mean", noise=0.01)
    plain = PerceptronRegressor(noise=0.01)
    for x in (X[:, 0] + 5.0).tolist():
        for each in (model, plain):
            each.learn_one({"x": x}, 2.0 * x)
    unknown, zero = (each.predict_one({}, with_dist=True) for each in (model, plain))
    assert zero.mu == pytest.approx(0.0, abs=0.5)
    assert unknown.mu == pytest.approx(2.0 * (X[:, 0].mean() + 5.0), abs=0.5)
    assert unknown.sigma == pytest.approx(2.0 * X[:, 0].std(), rel=0.1)
    for wrong in (math.inf, "x"):
        with pytest.raises(ValueError, match="feature 'x' must be a finite number"):
            model.learn_one({"x": wrong, "y": None}, 1.0)
    assert model.features == ("x",)
    with pytest.raises(ValueError, match="missing must be one of 'error', 'mean', got 'zero'"):
        PerceptronRegressor(missing="zero")


def test_members_are_those_of_a_committee() -> None:
    model = MLPRegressor((4,), members=3, random_state=5)
    committee = BayesianCommittee(4, (4,), members=3, seed=5, observation="gaussian", noise="learn")
    for x, row, y in zip(ROWS, X, SCORE.tolist(), strict=True):
        model.learn_one(x, y)
        committee.learn(row, y)
    seen = committee.predict(X[0])
    expected = {"mu": seen.mean, "sigma": math.sqrt(seen.epistemic + seen.aleatoric)}
    assert predicted(model, ROWS[0]) == pytest.approx(expected, rel=1e-9)
    assert model.log_evidence == pytest.approx(committee.log_evidence, rel=1e-12)
    with pytest.raises(ValueError, match="members must be a whole number of at least 1, got 0"):
        MLPClassifier(members=0)


def test_a_perceptron_may_have_no_intercept() -> None:
    model = PerceptronRegressor(noise=0.1, noise_start=None, fit_intercept=False, prior_scale=2.0)
    whole = BayesianPerceptron(4, "linear", bias=False, noise=0.1, cov=4.0).learn(X, SCORE)
    for x, y in zip(ROWS, SCORE.tolist(), strict=True):
        model.learn_one(x, y)
    assert [model.weights[name] for name in NAMES] == pytest.approx(whole.mean.tolist())


@pytest.mark.parametrize("arguments", [{}, {"drift": 0.05}, {"forgetting": 0.9}], ids=str)
@pytest.mark.parametrize("kind", [PerceptronRegressor, MLPRegressor])
def test_the_distribution_that_is_predicted_is_the_one_that_is_scored(kind: Any, arguments: Any) -> None:
    model = kind(noise=0.2, **arguments)
    rows = [{**x, "late": 0.7} if i > 30 else x for i, x in enumerate(ROWS)]
    for i, (x, y) in enumerate(zip(rows, SCORE.tolist(), strict=True)):
        before, density = model.log_evidence, model.predict_one(x, with_dist=True).log_pdf(y)
        model.learn_one(x, y)
        if i not in (0, 31) or kind is PerceptronRegressor:  # a network leaves out what it has never learned
            assert model.log_evidence - before == pytest.approx(density, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("centres", [True, False])
def test_a_target_of_weight_three_moves_the_units_as_three_do(centres: bool) -> None:
    whole, parts = Units(centres), Units(centres)
    for i, y in enumerate([7.0, 7.0, -2.0, 11.0]):
        whole = whole.with_target(y, 1.0 + i)
        for _ in range(1 + i):
            parts = parts.with_target(y, 1.0)
    assert whole[1:] == pytest.approx(parts[1:])
    targets = np.repeat([7.0, 7.0, -2.0, 11.0], [1, 2, 3, 4])
    assert whole.scale == pytest.approx(targets.std(ddof=1) if centres else np.sqrt(np.mean(targets**2)))


def test_a_row_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What made the row has found its numbers finite, so no array is searched for others."""
    models: list[tuple[Any, Any]] = [(PerceptronClassifier(), True), (PerceptronRegressor(standardize=True), 3.0)]
    for model, y in models:
        model.learn_one(ROWS[0], y)
        with monkeypatch.context() as patch:
            patch.setattr(_validation, "_all_finite", None)
            for x in ROWS[1:10]:
                model.learn_one(x, y)
                model.predict_one(x)
        assert model.n_seen == 10


@ALL
def test_clones_have_the_arguments_and_nothing_learned(name: str) -> None:
    model, targets = start(name)
    model.learn_one(ROWS[0], targets[0])
    twin = model.clone()
    assert (twin.n_seen, twin.features) == (0, ())
    assert twin._get_params() == model._get_params()
    assert repr(twin) == repr(model)
