"""Peers at their best: the setting is chosen on the stream, without a look at the row that is predicted."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier

from onepass._typing import FloatArray
from onepass.evaluation import evaluate
from onepass.evaluation.baselines import TunedBaseline, installed_baselines, mlp, sgd
from tests.helpers.tables import trips, write_csv


class Constant:
    """Predicts one number, and notes what it has learned; refuses targets above a limit."""

    def __init__(self, value: float, limit: float = np.inf) -> None:
        self.setting = f"value={value:g}"
        self.value, self.limit = value, limit
        self.learned: list[float] = []
        self.weights: FloatArray | None = None

    def predict(self, X: FloatArray) -> FloatArray:
        return np.full(len(X), self.value)

    takes_weights = True

    def predict_then_learn(self, X: FloatArray, y: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        if (y > self.limit).any():
            raise ValueError("out of bounds")
        self.learned += y.tolist()
        self.weights = weights
        return self.predict(X)


def rows(y: list[float]) -> tuple[FloatArray, FloatArray]:
    return np.zeros((len(y), 1)), np.array(y)


def test_the_setting_that_was_best_before_a_row_predicts_it() -> None:
    model = TunedBaseline("constant", 0, [Constant(0.0), Constant(1.0)])
    # Later rows count more: the second setting is ahead after the first row, the first after the last. If all counted
    # alike, the second would still be ahead there.
    X, y = rows([1.0, 1.0, 0.2, 0.0])
    expected, losses = [], np.zeros(2)
    for number, target in enumerate(y, 1):
        expected.append([0.0, 1.0][int(losses.argmin())])
        losses += [number * target**2, number * (target - 1.0) ** 2]
    np.testing.assert_array_equal(model.predict_then_learn(X, y), expected)
    assert expected == [0.0, 1.0, 1.0, 1.0]
    assert model.setting == "value=0"
    np.testing.assert_array_equal(model.predict(X[:2]), [0.0, 0.0])


def test_the_choice_is_the_same_in_any_split_of_the_stream() -> None:
    y = np.random.default_rng(0).normal(0.4, 1.0, 40)
    X = np.zeros((40, 1))
    whole, parts = (TunedBaseline("c", 0, [Constant(v) for v in (0.0, 0.3, 0.6)]) for _ in range(2))
    expected = whole.predict_then_learn(X, y)
    found = [parts.predict_then_learn(X[k : k + 7], y[k : k + 7]) for k in range(0, 40, 7)]
    np.testing.assert_array_equal(np.concatenate(found), expected)


def test_a_setting_that_cannot_go_on_drops_out_and_the_last_one_tells_why() -> None:
    fragile, sound = Constant(1.0, limit=5.0), Constant(0.0, limit=50.0)
    model = TunedBaseline("constant", 0, [fragile, sound])
    model.learn(*rows([1.0, 1.0]))
    assert model.setting == "value=1"
    np.testing.assert_array_equal(model.predict_then_learn(*rows([1.0, 9.0])), [0.0, 0.0])
    assert model.setting == "value=0"
    assert sound.learned == [1.0, 1.0, 1.0, 9.0]
    with pytest.raises(ValueError, match="out of bounds"):
        model.learn(*rows([99.0]))


def test_gradient_descent_at_its_best_beats_its_defaults() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 5))
    y = (X @ [2.0, -1.0, 0.5, 0.0, 0.0] + rng.logistic(size=600) > 0).astype(float)
    tuned = sgd(2).learn(X[:150], y[:150]).predict(X[300:])
    plain = SGDClassifier(loss="log_loss", random_state=0).partial_fit(X[:150], y[:150], classes=[0, 1])
    truth = y[300:].astype(int)
    losses = [
        -np.log(p[np.arange(300), truth]).mean() for p in (tuned, np.clip(plain.predict_proba(X[300:]), 1e-15, 1))
    ]
    assert losses[0] < 0.6
    assert losses[0] < 0.7 * losses[1]


def test_a_network_of_others_takes_a_step_per_row() -> None:
    candidate: Any = mlp(2, (4,))._candidates[0]
    X = np.random.default_rng(2).normal(size=(80, 2))
    candidate.predict_then_learn(X, (X[:, 0] > 0).astype(float))
    assert candidate._model._optimizer.t == 80


def test_a_network_stands_beside_networks_only() -> None:
    assert "scikit-learn MLPRegressor" not in [one.name for one in installed_baselines(0)]
    assert "scikit-learn MLPRegressor" in [one.name for one in installed_baselines(0, (3,))]


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_every_baseline_predicts_before_it_has_learned(n_classes: int) -> None:
    X = np.random.default_rng(3).normal(size=(30, 2))
    y = np.arange(30.0) % n_classes if n_classes else X[:, 0]
    for model in installed_baselines(n_classes, (3,)):
        found = model.predict_then_learn(X, y)
        assert found.shape == ((30, n_classes) if n_classes else (30,)), model.name
        assert np.isfinite(found).all(), model.name
        if n_classes:
            np.testing.assert_allclose(found[0], 1.0 / n_classes)
            np.testing.assert_allclose(model.predict(X).sum(axis=1), 1.0)


def test_weights_of_rows_reach_the_baselines_that_take_them() -> None:
    taking, refusing = Constant(0.0), Constant(1.0)
    weights = np.array([1.0, 3.0])
    TunedBaseline("constant", 0, [taking]).predict_then_learn(*rows([1.0, 1.0]), weights)
    assert taking.weights is weights
    refusing.takes_weights = False
    baseline = TunedBaseline("constant", 0, [Constant(0.0), refusing])
    baseline.predict_then_learn(*rows([1.0, 1.0]), weights)
    assert not baseline.takes_weights
    assert refusing.weights is None


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_a_row_of_weight_two_moves_a_baseline_more_than_one_of_weight_one(n_classes: int) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5][: n_classes - 1]).astype(float) if n_classes else X[:, 0]
    for light, heavy in zip(installed_baselines(n_classes), installed_baselines(n_classes), strict=True):
        if "Hoeffding" in light.name:
            continue  # a tree may split at the same row
        light.predict_then_learn(X, y, np.ones(60))
        heavy.predict_then_learn(X, y, np.full(60, 2.0))
        same = np.array_equal(light.predict(X), heavy.predict(X))
        assert same != light.takes_weights, light.name


def test_baselines_get_the_mean_for_a_missing_number(tmp_path: Path) -> None:
    rows = [{**row, "km": None if i % 5 == 0 else row["km"]} for i, row in enumerate(trips(200))]
    file = write_csv(tmp_path / "a.csv", [{name: row[name] for name in ("km", "car", "price")} for row in rows])
    trial = evaluate(file, target="price", compare=True, model_kind="perceptron")
    assert trial.failed == {}
    assert len(trial.baselines) >= 2
