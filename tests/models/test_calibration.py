"""The map from a model's probabilities to calibrated ones: what it learns, in any split, with new classes, in files."""

import json

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from onepass.models.calibration import CalibrationMap

RNG = np.random.default_rng(0)
N = 3000
LOGITS = 1.5 * RNG.normal(size=(N, 4))
PLACES = (LOGITS + RNG.gumbel(size=LOGITS.shape)).argmax(axis=1).astype(float)
SURE = softmax(3.0 * LOGITS, axis=1)


def log_loss(probabilities: np.ndarray, places: np.ndarray) -> float:
    return float(-np.log(probabilities[np.arange(len(places)), places.astype(int)]).mean())


def of(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the first classes alone, by a model that is far too sure of them."""
    seen = np.flatnonzero(n_classes > PLACES)
    return softmax(3.0 * LOGITS[seen, :n_classes], axis=1), PLACES[seen]


def test_two_classes_learn_the_line_of_a_logistic_regression_on_the_log_odds() -> None:
    odds = RNG.normal(size=6000)
    labels = (RNG.random(6000) < expit(0.4 * odds - 1.0)).astype(float)
    p = expit(odds)
    calibration = CalibrationMap(2).learn(np.column_stack([1.0 - p, p]), labels)
    points = expit(np.linspace(-2.0, 2.0, 5))
    found = calibration(np.column_stack([1.0 - points, points]))
    expected = LogisticRegression(C=1e6).fit(odds[:, None], labels).predict_proba(np.linspace(-2.0, 2.0, 5)[:, None])
    np.testing.assert_allclose(found, expected, atol=0.04)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_a_model_that_is_too_sure_is_corrected_and_one_that_is_right_stays(n_classes: int) -> None:
    sure, places = of(n_classes)
    right = softmax(np.log(sure) / 3.0, axis=1)
    corrected, kept = (CalibrationMap(n_classes).calibrate_then_learn(p, places) for p in (sure, right))
    best = log_loss(right, places)
    assert log_loss(sure, places) > best + 0.1
    assert log_loss(corrected, places) < best + 0.02
    assert log_loss(kept, places) < best + 0.01
    for found in (corrected, kept):
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)


def test_before_the_first_row_two_classes_have_the_mean_over_maps_around_the_identity() -> None:
    p = np.array([0.003, 0.2, 0.5, 0.9])
    odds = np.log(p / (1.0 - p))
    nodes, shares = np.polynomial.hermite_e.hermegauss(101)
    std = np.sqrt(0.3**2 + (0.3 * odds) ** 2 + (2.0 * p - 1.0) ** 2)
    expected = expit(odds[:, None] + std[:, None] * nodes) @ (shares / shares.sum())
    found = CalibrationMap(2)(np.column_stack([1.0 - p, p]))
    np.testing.assert_allclose(found, np.column_stack([1.0 - expected, expected]), atol=1e-3)


@pytest.mark.parametrize("n_classes", [1, 2, 4])
def test_before_the_first_row_the_order_of_probabilities_stays(n_classes: int) -> None:
    given = softmax(RNG.normal(size=(20, n_classes)), axis=1)
    np.testing.assert_array_equal(CalibrationMap(n_classes)(given).argsort(axis=1), given.argsort(axis=1))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_any_split_learns_the_same(n_classes: int) -> None:
    sure, places = of(n_classes)
    whole, parts, single = (CalibrationMap(n_classes) for _ in range(3))
    found = whole.calibrate_then_learn(sure[:300], places[:300])
    pairs = [(sure[part], places[part]) for part in np.split(np.arange(300), [1, 2, 150])]
    rows = np.concatenate([parts.calibrate_then_learn(*pair) for pair in pairs])
    for i in range(300):
        single.learn(sure[i : i + 1], places[i : i + 1])
    np.testing.assert_allclose(rows, found, rtol=1e-9)
    for other in (parts, single):
        np.testing.assert_allclose(other(sure[:50]), whole(sure[:50]), rtol=1e-9)


def test_rows_of_weight_0_and_unknown_class_are_calibrated_and_not_learned() -> None:
    places, weights = PLACES[:400].copy(), np.ones(400)
    places[::3], weights[1::3] = np.nan, 0.0
    kept = np.arange(400) % 3 == 2
    some, alone = CalibrationMap(4), CalibrationMap(4)
    found = some.calibrate_then_learn(SURE[:400], places, weights)
    expected = alone.calibrate_then_learn(SURE[:400][kept], PLACES[:400][kept])
    np.testing.assert_allclose(found[kept], expected, rtol=1e-9)
    np.testing.assert_allclose(some(SURE[:50]), alone(SURE[:50]), rtol=1e-9)


def test_a_third_class_leaves_what_was_learned_of_two() -> None:
    sure, places = of(2)
    two = CalibrationMap(2).learn(sure, places)
    three = two.with_classes(3)
    before = two(sure[:20])
    unlikely = np.column_stack([sure[:20] * (1.0 - 1e-9), np.full(20, 1e-9)])
    np.testing.assert_allclose(three(unlikely)[:, :2], before, atol=2e-3)
    more, classes = of(3)
    three.learn(more, classes)  # which leaves the map that it came from
    np.testing.assert_array_equal(two(sure[:20]), before)
    np.testing.assert_array_equal(three.with_classes(4).copy()(SURE[:5]).shape, (5, 4))


def test_classes_that_are_certain_stay_finite() -> None:
    given = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    calibration = CalibrationMap(3)
    found = calibration.calibrate_then_learn(given, np.array([1.0, 0.0]))
    assert np.isfinite(np.log(found)).all()
    assert np.isfinite(np.log(calibration(given))).all()


def test_it_goes_on_from_a_file_as_it_was() -> None:
    mirrored = CalibrationMap(2).learn(*of(2)).with_classes(4).learn(SURE[:500], PLACES[:500])
    parameters, arrays = mirrored.export_state()
    restored = CalibrationMap.from_state(json.loads(json.dumps(parameters)), arrays)
    for one in (mirrored, restored):
        one.learn(SURE[500:600], PLACES[500:600])
    np.testing.assert_array_equal(restored(SURE[600:700]), mirrored(SURE[600:700]))
    with pytest.raises(ValueError, match="4 maps"):
        CalibrationMap.from_state({**parameters, "maps": parameters["maps"][:3]}, arrays)
