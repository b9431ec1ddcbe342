import numpy as np
import pytest
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, roc_auc_score

from onepass.evaluation.metrics import ClassScores, Curve, NumberScores

RNG = np.random.default_rng(0)


def test_class_scores_are_those_of_scikit_learn_however_rows_are_split() -> None:
    p = RNG.beta(0.5, 2.0, 5000)
    y = (RNG.random(5000) < p).astype(int)
    scores = ClassScores(2)
    for part in np.array_split(np.arange(5000), [1, 17, 900, 4000]):
        scores.add(y[part], np.column_stack([1 - p[part], p[part]]))
    found = scores.summary()
    assert found["accuracy"] == pytest.approx(accuracy_score(y, p > 0.5))
    assert found["log_loss"] == pytest.approx(log_loss(y, p))
    assert found["brier"] == pytest.approx(brier_score_loss(y, p))
    assert found["roc_auc"] == pytest.approx(roc_auc_score(y, p), abs=1e-3)
    assert found["calibration_error"] < 0.03


def test_several_classes_too() -> None:
    p = RNG.dirichlet([1.0, 2.0, 3.0], 4000)
    y = np.array([RNG.choice(3, p=row) for row in p])
    scores = ClassScores(3)
    scores.add(y, p)
    found = scores.summary()
    assert found["roc_auc"] == pytest.approx(roc_auc_score(y, p, multi_class="ovr"), abs=1e-3)
    assert found["log_loss"] == pytest.approx(log_loss(y, p))
    assert found["brier"] == pytest.approx(np.square(p - np.eye(3)[y]).sum(axis=1).mean())


def test_overconfidence_is_seen() -> None:
    p = RNG.uniform(0.0, 1.0, 20_000)
    y = (RNG.random(20_000) < p).astype(int)
    sure = p**3 / (p**3 + (1 - p) ** 3)
    errors = []
    for given in (p, sure):
        scores = ClassScores(2)
        scores.add(y, np.column_stack([1 - given, given]))
        errors.append(scores.summary()["calibration_error"])
    assert errors[0] < 0.01 < 0.1 < errors[1]


@pytest.mark.parametrize(("stretch", "error"), [(1.0, 0.01), (2.0, 0.3)])
def test_intervals_of_the_right_width_cover_what_they_should(stretch: float, error: float) -> None:
    mean, std = RNG.normal(size=50_000), RNG.uniform(0.5, 2.0, 50_000)
    y = mean + std * RNG.normal(size=50_000)
    scores = NumberScores()
    scores.add(y, mean, std * stretch)
    found = scores.summary()
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean((y - mean) ** 2)))
    assert found["mae"] == pytest.approx(np.abs(y - mean).mean())
    assert (found["calibration_error"] < 0.01) == (error == 0.01)
    if error == 0.01:
        for level in (50, 80, 95):
            assert found[f"coverage_{level}"] == pytest.approx(level / 100, abs=0.01)
        assert found["log_likelihood"] == pytest.approx(-np.log(std * np.sqrt(2 * np.pi)).mean() - 0.5, abs=0.01)


def test_a_curve_keeps_its_sums_whatever_its_length() -> None:
    values = RNG.normal(size=(100_000, 2))
    curve = Curve(2)
    for part in np.array_split(np.arange(100_000), [3, 500, 40_000]):
        curve.add(values[part])
    assert len(curve.rows) <= 256
    assert curve.rows[-1] == 100_000
    np.testing.assert_allclose(curve.sums.sum(axis=0), values.sum(axis=0))
    width = curve.rows[0]
    np.testing.assert_allclose(curve.means[1], values[width : 2 * width].mean(axis=0))
