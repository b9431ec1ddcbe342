"""A single row goes to the kernel the short way, and arrives as it would by the long one."""

import copy
import pickle
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

import onepass
from onepass import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    BayesianPerceptronClassifier,
    BayesianPerceptronRegressor,
)
from onepass.files.checkpoint import to_bytes

MOST_FRAMES, MOST_FILES = 12, 8

RNG = np.random.default_rng(0)
X = RNG.normal(size=(160, 3)) * [1.0, 5.0, 0.1] + 2.0
Y = X @ [1.0, -0.4, 3.0] + 0.1 * RNG.normal(size=160)
LABELS = np.where(np.median(Y) < Y, "yes", "no")
THREE = np.digitize(Y, np.quantile(Y, [0.3, 0.7]))
COUNTS = RNG.poisson(np.exp(0.3 * X[:, 0]))
MODELS: list[tuple[Any, Any]] = [
    (BayesianPerceptronRegressor(), Y),
    (BayesianPerceptronRegressor(standardize=False, prior_scale=3.0), Y),
    (BayesianPerceptronRegressor(outliers=0.02), Y),
    (BayesianPerceptronRegressor(forgetting=0.98), Y),
    (BayesianPerceptronRegressor(drift="auto"), Y),
    (BayesianPerceptronRegressor(prior_scale="auto"), Y),
    (BayesianPerceptronRegressor(covariance="diagonal"), Y),
    (BayesianPerceptronRegressor("exp"), COUNTS),
    (BayesianPerceptronClassifier(), LABELS),
    (BayesianPerceptronClassifier(), THREE),
    (BayesianMLPRegressor((4,), passes=1), Y),
    (BayesianMLPClassifier((4,), passes=1), LABELS),
    (BayesianMLPClassifier((4,), passes=1, members=2), THREE),
]


def python_calls(call: Any, *args: Any) -> list[tuple[str, str]]:
    """All Python functions that a call runs, each with its file."""
    calls: list[tuple[str, str]] = []

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            calls.append((frame.f_code.co_qualname, frame.f_code.co_filename))

    sys.setprofile(note)
    try:
        call(*args)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(
    ("model", "y"),
    [MODELS[0], MODELS[1], (BayesianPerceptronClassifier(), LABELS)],
    ids=["regressor", "not standardised", "classifier"],
)
def test_few_functions_are_called_for_one_row(model: Any, y: Any) -> None:
    model = clone(model).fit(X[:120], y[:120])
    row, target = X[120:121], y[120:121]
    model.partial_fit(row, target)  # which makes what is made once
    calls = python_calls(model.partial_fit, row, target)
    assert len(calls) <= MOST_FRAMES, calls
    assert len({file for _, file in calls}) <= MOST_FILES, calls
    assert model.n_seen_ == 122
    if isinstance(model, BayesianPerceptronRegressor):
        model.predict(row)
        calls = python_calls(model.predict, row)
        assert len(calls) <= MOST_FRAMES, calls
        assert len({file for _, file in calls}) <= MOST_FILES, calls


@pytest.mark.parametrize(("model", "y"), MODELS, ids=str)
def test_the_short_way_learns_and_predicts_as_the_long_one(model: Any, y: Any) -> None:
    short = clone(model).fit(X[:110], y[:110])
    long = copy.deepcopy(short)
    for i in range(110, 160):
        row, target = X[i : i + 1], y[i : i + 1]
        short.partial_fit(row, target)
        long.partial_fit(row.tolist(), target)  # a list goes the long way
    assert short.n_seen_ == long.n_seen_ == 160
    assert short.log_evidence_ == pytest.approx(long.log_evidence_, rel=1e-12)
    for i in range(5):
        one, many = short.predict(X[i : i + 1]), long.predict(X[:5])[i : i + 1]
        if y.dtype.kind == "f":
            np.testing.assert_allclose(one, many, rtol=1e-10)
            deviations = short.predict(X[i : i + 1], return_std=True)[1], long.predict(X[:5], return_std=True)[1]
            np.testing.assert_allclose(deviations[0], deviations[1][i : i + 1], rtol=1e-10)
        elif hasattr(model, "predict_proba"):
            np.testing.assert_array_equal(one, many)
            chances = short.predict_proba(X[i : i + 1])[0], long.predict_proba(X[:5])[i]
            np.testing.assert_allclose(*chances, rtol=1e-9, atol=1e-12)
        if hasattr(model, "predict_interval"):
            sides = zip(short.predict_interval(X[i : i + 1], 0.9), long.predict_interval(X[:5], 0.9), strict=True)
            for limit, limits in sides:
                np.testing.assert_allclose(limit, limits[i : i + 1], rtol=1e-9)
        assert one.shape == (1,)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("make", [BayesianPerceptronRegressor, BayesianPerceptronClassifier, BayesianMLPRegressor])
def test_a_row_that_is_not_finite_is_refused_as_ever(make: Any, standardize: bool, value: float) -> None:
    y = LABELS if make is BayesianPerceptronClassifier else Y
    model = make(standardize=standardize).fit(X[:120] / [1.0, 5.0, 0.1], y[:120])
    before, bad = to_bytes(model), X[:1].copy()
    bad[0, 1] = value
    words = "Input X contains NaN: pass missing='mean'" if np.isnan(value) else "Input X contains infinity"
    with pytest.raises(ValueError, match=words):
        model.partial_fit(bad, y[:1])
    with pytest.raises(ValueError, match=words):
        model.predict(bad)
    if make is not BayesianPerceptronClassifier:
        with pytest.raises(ValueError, match="Input y contains"):
            model.partial_fit(X[:1], np.array([value]))
    assert to_bytes(model) == before


def test_what_needs_the_long_way_takes_it() -> None:
    model = BayesianPerceptronRegressor().fit(X[:120], Y[:120])
    expected = model.predict(X[:2])[:1]
    for row in (X[:1].astype(np.float32).astype(np.float64)[:, ::-1].copy()[:, ::-1], X[:1].astype(">f8")):
        np.testing.assert_allclose(model.predict(row), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(X[:1, :2])
    named = BayesianPerceptronRegressor().fit(pd.DataFrame(X[:120], columns=list("abc")), Y[:120])
    with pytest.warns(UserWarning, match="feature names"):
        named.predict(X[:1])
    with pytest.warns(UserWarning, match="1 target was set aside"):
        model.partial_fit(X[:1], np.array([1e9]))
    assert model.n_set_aside_ == 1
    counts = BayesianPerceptronRegressor("exp").fit(X[:120], COUNTS[:120])
    with pytest.raises(ValueError, match="y must hold counts"):
        counts.partial_fit(X[:1], np.array([-1.0]))
    classifier = BayesianPerceptronClassifier().fit(X[:120], LABELS[:120])
    classifier.partial_fit(X[:1], np.array(["maybe"]))
    assert classifier.classes_.tolist() == ["no", "yes", "maybe"]


# Arguments and names.

PUBLIC = {
    "fit",
    "get_metadata_routing",
    "get_params",
    "outlier_probability",
    "partial_fit",
    "predict",
    "predict_dist",
    "predict_interval",
    "predict_then_learn",
    "sample_function",
    "sample_y",
    "score",
    "set_fit_request",
    "set_params",
    "set_partial_fit_request",
    "set_score_request",
}
OF_CLASSIFIERS = {
    "decision_function",
    "predict_log_proba",
    "predict_proba",
    "set_predict_proba_request",
    "set_predict_request",
}


@pytest.mark.parametrize(
    ("model", "y", "more"),
    [
        (BayesianPerceptronRegressor(), Y, {"set_predict_request"}),
        (BayesianMLPRegressor((3,)), Y, {"set_predict_request"}),
        (BayesianPerceptronClassifier(), LABELS, OF_CLASSIFIERS),
        (BayesianMLPClassifier((3,)), LABELS, OF_CLASSIFIERS),
    ],
    ids=lambda given: type(given).__name__,
)
def test_public_names_are_those_that_users_of_scikit_learn_expect(model: Any, y: Any, more: set[str]) -> None:
    model = clone(model).fit(X[:110], y[:110])
    names = {name for name in dir(model) if not name.startswith("_") and not name.endswith("_")}
    assert names - set(model.get_params()) == PUBLIC | more


@pytest.mark.parametrize(("model", "y"), [(BayesianPerceptronRegressor(), Y), (BayesianMLPClassifier((3,)), LABELS)])
def test_an_argument_changed_between_calls_is_refused_by_its_name(model: Any, y: Any) -> None:
    model = pickle.loads(pickle.dumps(clone(model).partial_fit(X[:110], y[:110])))
    model.partial_fit(X[110:111], y[110:111])
    for name, value in {"outliers": 0.1, "warm_up": 7, "forgetting": 0.9}.items():
        before = getattr(model, name)
        model.set_params(**{name: value})
        for call in (model.partial_fit, model.predict_then_learn):
            for rows in (slice(111, 112), slice(111, 113)):
                with pytest.raises(
                    ValueError, match=f"^{name} was changed from {before!r} to {value!r} after the first"
                ):
                    call(X[rows], y[rows])
        model.set_params(**{name: before})
    assert model.n_seen_ == 111
    model.set_params(outliers=0.1).fit(X, y)
    assert model.outliers_ != 0.0


@pytest.mark.parametrize(("model", "y"), [(BayesianPerceptronRegressor(), Y), (BayesianMLPClassifier((3,)), LABELS)])
def test_what_only_fit_follows_may_change_between_calls(model: Any, y: Any) -> None:
    model, same = (clone(model).partial_fit(X[:110], y[:110]) for _ in range(2))
    changed = {"passes": 3, "refine": "ep", "shuffle": True}
    model.set_params(**{name: value for name, value in changed.items() if name in model.get_params()})
    for rows in (slice(110, 111), slice(111, 130)):
        model.partial_fit(X[rows], y[rows])
        same.partial_fit(X[rows], y[rows])
    np.testing.assert_array_equal(model.predict(X), same.predict(X))
    assert model.log_evidence_ == same.log_evidence_
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(model.fit(X, y).predict(X), again.predict(X))


@pytest.mark.parametrize("warm", [0, 5, 110])
@pytest.mark.parametrize(("model", "y"), [(BayesianPerceptronRegressor(), Y), (BayesianMLPClassifier((3,)), LABELS)])
def test_rows_of_weight_zero_change_nothing(model: Any, y: Any, warm: int) -> None:
    model, same = clone(model), clone(model)
    if warm:
        model.partial_fit(X[:warm], y[:warm])
        same.partial_fit(X[:warm], y[:warm])
    assert model.partial_fit(X[:60], y[60:120], sample_weight=np.zeros(60)) is model
    for one in (model, same):
        one.partial_fit(X[warm:130], y[warm:130])
    np.testing.assert_array_equal(model.predict(X), same.predict(X))
    assert (model.n_seen_, model.log_evidence_) == (same.n_seen_, same.log_evidence_)
    with pytest.raises(ValueError, match="sample_weight must contain at least one number above 0, got only zeros"):
        model.fit(X, y, sample_weight=np.zeros(len(X)))


def test_an_array_that_stays_the_same_was_not_changed() -> None:
    model = BayesianPerceptronRegressor(prior_scale=np.ones(3)).fit(X[:110], Y[:110])
    model.set_params(prior_scale=np.ones(3)).partial_fit(X[110:111], Y[110:111])
    with pytest.raises(ValueError, match="prior_scale was changed"):
        model.set_params(prior_scale=np.array([1.0, 1.0, 2.0])).partial_fit(X[110:111], Y[110:111])


def test_without_a_random_state_every_fit_draws_its_own() -> None:
    def fitted(state: Any) -> Any:
        return BayesianMLPRegressor((4,), random_state=state, passes=1).fit(X[:60], Y[:60]).predict(X[60:])

    assert not np.array_equal(fitted(None), fitted(None))
    np.testing.assert_array_equal(fitted(3), fitted(3))
    states = np.random.RandomState(0), np.random.RandomState(0)
    np.testing.assert_array_equal(fitted(states[0]), fitted(states[1]))
    # During the warm-up the networks are made again and again, from the seed that was drawn.
    model = BayesianMLPRegressor((4,), random_state=None, passes=1, shuffle=False).partial_fit(X[:30], Y[:30])
    seed = model._learner.blueprint.seed
    loaded = onepass.files.checkpoint.from_bytes(to_bytes(model)).partial_fit(X[30:60], Y[30:60])
    np.testing.assert_array_equal(
        loaded.predict(X[60:]), clone(model).set_params(random_state=seed).fit(X[:60], Y[:60]).predict(X[60:])
    )


def test_errors_name_the_arguments_of_the_estimator() -> None:
    for given, words in (
        ({"hidden_layer_sizes": (4, 0)}, "hidden_layer_sizes must be a whole number of at least 1, got 0"),
        ({"hidden_layer_sizes": "many"}, "hidden_layer_sizes must be a whole number"),
        ({"random_state": -1}, "random_state must be a whole number that is not negative, got -1"),
        ({"random_state": 0.5}, "random_state must be a whole number"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            BayesianMLPRegressor(**given).fit(X, Y)


# Classes that appear later.


@pytest.mark.parametrize(
    "model", [BayesianPerceptronClassifier(), BayesianMLPClassifier((5,)), BayesianPerceptronClassifier(drift="auto")]
)
def test_classes_that_appear_later_are_appended(model: Any) -> None:
    names = np.array(["m", "z", "a", "later"])
    first, second = np.isin(THREE, [0, 1]), np.arange(160) < 150
    y = names[THREE]
    model = clone(model).partial_fit(X[first][:40], y[first][:40])
    assert model.classes_.tolist() == ["m", "z"]
    model.partial_fit(X[second], y[second])  # in the warm-up: as if all had been known
    assert model.classes_.tolist() == ["m", "z", "a"]
    known = clone(model).partial_fit(X[first][:40], y[first][:40], classes=["a", "m", "z"])
    known.partial_fit(X[second], y[second])
    own = [model.classes_.tolist().index(label) for label in known.classes_]
    found, expected = model.predict_proba(X)[:, own], known.predict_proba(X)
    if isinstance(model, BayesianPerceptronClassifier):  # networks start from random weights for each class
        np.testing.assert_allclose(found, expected, atol=1e-6)
    X_later = X[150:] + np.array([30.0, 0.0, 0.0])
    model.partial_fit(X_later, np.repeat("later", 10))
    assert model.classes_.tolist() == ["m", "z", "a", "later"]
    assert model.predict_proba(X).shape == (160, 4)
    assert model.n_seen_ == 40 + 150 + 10
    again = onepass.files.checkpoint.from_bytes(to_bytes(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.predict_proba(X_later)[:, 3].mean() > model.predict_proba(X[:150])[:, 3].mean() + 0.2


def test_other_classes_than_those_that_were_named_are_refused() -> None:
    model = BayesianPerceptronClassifier().partial_fit(X[:10], LABELS[:10], classes=["no", "yes"])
    with pytest.raises(ValueError, match="y has the class 'perhaps', which is not among the classes"):
        model.partial_fit(X[:1], ["perhaps"])
    two = BayesianPerceptronClassifier().fit(X[:120], LABELS[:120])
    with pytest.raises(ValueError, match="labels must be alike"):
        two.partial_fit(X[:1], [3])
    assert two.classes_.tolist() == ["no", "yes"]


def test_none_among_the_targets_is_refused_as_nan_is() -> None:
    targets = Y.astype(object)
    targets[3] = None
    with pytest.raises(ValueError, match="Input y contains NaN"):
        BayesianPerceptronRegressor().fit(X, targets)
    with pytest.raises(ValueError, match="Input y contains NaN"):
        BayesianPerceptronRegressor().fit(X, Y).partial_fit(X[:1], [None])


@pytest.mark.parametrize("method", ["partial_fit", "predict_then_learn"])
@pytest.mark.parametrize("n_before", [5, 120], ids=["warm-up", "later"])
@pytest.mark.parametrize("kind", ["two outputs", "gaps", "many sparse rows"])
def test_rows_of_which_one_can_not_be_learned_leave_nothing_behind(kind: str, n_before: int, method: str) -> None:
    model = BayesianPerceptronRegressor(missing="mean" if kind == "gaps" else "error", covariance="full")
    rows, targets = X.copy(), np.column_stack([Y, Y]) if kind == "two outputs" else Y
    if kind == "many sparse rows":
        rows, targets = np.tile(rows, (30, 1)), np.tile(targets, 30)
    rows[-1, 0] = 1e200  # of which the square overflows
    if kind == "two outputs":
        targets[-1, 0] = np.nan
    model.partial_fit(rows[:n_before], targets[:n_before])
    before = to_bytes(model)
    more: Any = csr_array(rows[n_before:]) if kind == "many sparse rows" else rows[n_before:]
    with pytest.raises(ValueError, match="overflow"):
        getattr(model, method)(more, targets[n_before:])
    assert to_bytes(model) == before


def test_rows_of_a_warm_up_are_not_scored_one_by_one_either() -> None:
    one, together = BayesianPerceptronRegressor(warm_up=30), BayesianPerceptronRegressor(warm_up=30).fit(X[:40], Y[:40])
    for i in range(40):
        one.partial_fit(X[i : i + 1], Y[i : i + 1])
        assert (one.log_evidence_ == 0.0) == (i < 30)
    assert one.log_evidence_ == pytest.approx(together.log_evidence_, rel=1e-9)
