"""Calibrated probabilities of classifiers: in any split, after several passes, with new classes, and in files."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from onepass import BayesianMLPClassifier, BayesianPerceptronClassifier, load, merge, save
from onepass.export.models import estimator_program
from onepass.export.programs import NotExportableError
from onepass.models.calibration import CalibrationMap

RNG = np.random.default_rng(0)
N = 1200
X = RNG.normal(size=(N, 3))
_LEVEL = np.repeat(2.0 * RNG.normal(size=N // 60), 60)  # which moves, and no input says so
Y = np.array(["no", "yes"])[(X.sum(axis=1) + _LEVEL + RNG.logistic(size=N) > 0.0).astype(int)]
THREE = np.where(X[:, 0] + _LEVEL + RNG.logistic(size=N) > 1.5, "maybe", Y)
MODELS: dict[str, Any] = {
    "perceptron": BayesianPerceptronClassifier(probabilities="adaptive"),
    "softmax": BayesianPerceptronClassifier(probabilities="adaptive"),
    "probit": BayesianPerceptronClassifier("probit", probabilities="adaptive", standardize=False, prior_scale="auto"),
    "drift": BayesianPerceptronClassifier(probabilities="adaptive", drift="auto"),
    "network": BayesianMLPClassifier((5,), probabilities="adaptive", shuffle=False, passes=1),
    "committee": BayesianMLPClassifier((5,), members=2, probabilities="adaptive", shuffle=False, passes=1),
}


def of(name: str) -> tuple[Any, np.ndarray]:
    return clone(MODELS[name]), THREE if name in ("softmax", "committee") else Y


@pytest.mark.parametrize("name", ["perceptron", "softmax", "network"])
def test_they_are_worth_more_where_the_stream_moves_and_the_scores_are_theirs(name: str) -> None:
    model, y = of(name)
    plain = clone(model).set_params(probabilities="model").predict_then_learn(X, y, classes=np.unique(y))
    rows = model.predict_then_learn(X, y, classes=np.unique(y))
    places = np.searchsorted(model.classes_, y)
    assert rows.log_density[100:].mean() > plain.log_density[100:].mean() + 0.015
    np.testing.assert_allclose(rows.log_density[100:], np.log(rows.mean[np.arange(N), places][100:]), rtol=1e-12)
    assert (rows.log_density[:100] == 0.0).sum() + np.isnan(rows.log_density[:100]).sum() >= 99  # as of the model's


@pytest.mark.parametrize("name", MODELS)
def test_rows_learned_in_any_split_give_the_same(name: str) -> None:
    (whole, y), (single, _), (both, _) = of(name), of(name), of(name)
    whole.fit(X[:300], y[:300])
    for start, stop in ((0, 1), (1, 2), (2, 130), (130, 131), (131, 300)):
        single.partial_fit(X[start:stop], y[start:stop], classes=np.unique(y))
        both.predict_then_learn(X[start:stop], y[start:stop], classes=np.unique(y))
    for other in (single, both):
        np.testing.assert_allclose(other.predict_proba(X[:9]), whole.predict_proba(X[:9]), rtol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_the_models_own_stay_available_and_everything_else_agrees(name: str) -> None:
    model, y = of(name)
    plain = clone(model).set_params(probabilities="model").fit(X[:700], y[:700])
    model.fit(X[:700], y[:700])
    for rows in (X[:1], X[:20]):
        found, own = model.predict_proba(rows), model.predict_proba(rows, calibrated=False)
        np.testing.assert_allclose(own, plain.predict_proba(X[:20])[: len(rows)], rtol=1e-9)
        assert not np.allclose(found, own, atol=1e-3)
        seen = model.predict_dist(rows)
        np.testing.assert_allclose(seen.probabilities, found, rtol=1e-9)
        np.testing.assert_allclose(model.predict_log_proba(rows), np.log(found), rtol=1e-12)
        np.testing.assert_array_equal(model.predict(rows), model.classes_[found.argmax(axis=1)])
        np.testing.assert_allclose(seen.interval(0.8), plain.predict_dist(rows).interval(0.8), rtol=1e-12)
        np.testing.assert_allclose(seen.pdf(np.ones(len(rows))), found[:, 1], rtol=1e-9)


@pytest.mark.parametrize("name", ["perceptron", "softmax"])
def test_an_estimator_learns_the_map_of_what_it_predicts(name: str) -> None:
    model, y = of(name)
    model.set_params(standardize=False)
    own = clone(model).set_params(probabilities="model").predict_then_learn(X, y, classes=np.unique(y))
    calibration = CalibrationMap(len(np.unique(y)))
    expected = calibration.calibrate_then_learn(own.mean, np.searchsorted(np.unique(y), y).astype(float))
    np.testing.assert_allclose(model.predict_then_learn(X, y, classes=np.unique(y)).mean, expected, rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X[:9]), calibration(model.predict_proba(X[:9], calibrated=False)))


@pytest.mark.parametrize(
    "model",
    [
        BayesianPerceptronClassifier(probabilities="adaptive", passes=3),
        BayesianMLPClassifier((5,), probabilities="adaptive", passes=3, shuffle=False),
    ],
    ids=str,
)
def test_of_several_passes_the_first_teaches_the_map(model: Any) -> None:
    several, once = clone(model).fit(X[:400], Y[:400]), clone(model).set_params(passes=1).fit(X[:400], Y[:400])
    given = np.array([[0.2, 0.8], [0.9, 0.1]])
    np.testing.assert_allclose(several._learner.calibrated(given), once._learner.calibrated(given), rtol=1e-9)
    assert not np.array_equal(several.predict_proba(X[:5]), once.predict_proba(X[:5]))


def test_classes_that_come_later_get_maps() -> None:
    model = BayesianPerceptronClassifier(probabilities="adaptive").fit(X[:600], Y[:600])
    before = model.predict_proba(X[:50])
    model.partial_fit(X[600:601], ["other"])
    assert model.predict_proba(X[:50]).shape == (50, 3)
    ratio = model.predict_proba(X[:50])[:, 1] / model.predict_proba(X[:50])[:, :2].sum(axis=1)
    assert np.corrcoef(ratio, before[:, 1])[0, 1] > 0.99
    model.partial_fit(X[601:], THREE[601:])
    assert model.classes_.tolist() == ["no", "yes", "other", "maybe"]
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_rows_count_by_their_weight() -> None:
    weights = np.where(np.arange(N) % 2, 0.0, 1.0)
    weighted = clone(MODELS["perceptron"]).fit(X, Y, sample_weight=weights)
    half = clone(MODELS["perceptron"]).fit(X[::2], Y[::2])
    np.testing.assert_allclose(weighted.predict_proba(X[:4]), half.predict_proba(X[:4]), rtol=1e-9)


def test_a_call_that_fails_leaves_the_map_as_it_was() -> None:
    model = clone(MODELS["perceptron"]).fit(X, Y)
    before = model.predict_proba(X[:4])
    wrong = X[:5].copy()
    wrong[4] = 1e200
    for rows in (wrong, wrong[4:]):
        with pytest.raises(ValueError, match=r"."), np.errstate(all="ignore"):
            model.partial_fit(rows, Y[: len(rows)])
        np.testing.assert_array_equal(model.predict_proba(X[:4]), before)


@pytest.mark.parametrize("name", ["perceptron", "softmax"])
@pytest.mark.parametrize("n", [60, 500])
def test_a_saved_classifier_goes_on_as_it_was(tmp_path: Path, name: str, n: int) -> None:
    model, y = of(name)
    model.partial_fit(X[:n], y[:n], classes=np.unique(y))
    save(model, tmp_path / "model")
    restored = load(tmp_path / "model")
    for one in (model, restored):
        one.partial_fit(X[n : n + 100], y[n : n + 100])
    np.testing.assert_array_equal(restored.predict_proba(X[:9]), model.predict_proba(X[:9]))


def test_what_can_not_be_merged_or_exported_says_so() -> None:
    prior = clone(MODELS["perceptron"]).fit(X[:400], Y[:400])
    with pytest.raises(ValueError, match="probabilities='adaptive'"):
        merge(prior, [copy.deepcopy(prior).partial_fit(X[400:], Y[400:])])
    with pytest.raises(NotExportableError, match="probabilities='adaptive'"):
        estimator_program(prior, "model")


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(ValueError, match="probabilities must be one of 'model', 'adaptive'"):
        BayesianPerceptronClassifier(probabilities="calibrated").fit(X, Y)
