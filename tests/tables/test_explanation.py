"""What columns add to a prediction: they add up to it, and are what the weights, or brute force, say."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onepass.tables.explanation import Explanation, explain
from onepass.tables.inputs import Inputs, steps
from onepass.tables.model import TabularModel
from onepass.tables.schema import SchemaOptions, infer_model
from onepass.tables.settings import Settings
from onepass.tables.targets import LogTarget
from tests.helpers.tables import clicks, trips, write_csv


def learned(tmp_path: Path, target: str, rows: list[dict[str, Any]], **settings: Any) -> tuple[TabularModel, Any]:
    """A model of these rows, and the encoded rows."""
    inputs = Inputs((str(write_csv(tmp_path / "a.csv", rows)),))
    task = settings.pop("task", None)
    settings.setdefault("model_kind", "perceptron")
    options = SchemaOptions(target, task=task, ignore=("id", "town"), settings=Settings(**settings))
    if "town" not in rows[0]:
        options = SchemaOptions(target, task=task, settings=Settings(**settings))
    model, _ = infer_model(inputs.sources(), options, rereadable=True)
    found = []
    for step in steps(model, inputs, inputs.sources()):
        model.learn(step.rows)
        found.append(step.rows)
    assert len(found) > 0
    return model, found[0]


def log_odds(p: Any) -> Any:
    return np.log(p / (1.0 - p))


@pytest.mark.parametrize(
    "settings",
    [{}, {"covariance": "diagonal"}, {"prior_scale": "auto"}, {"drift": "auto"}, {"outliers": 0.05}],
    ids=str,
)
def test_what_columns_add_is_the_prediction_of_a_linear_model(tmp_path: Path, settings: dict[str, Any]) -> None:
    model, rows = learned(tmp_path, "price", trips(600), **settings)
    found = explain(model, rows.X[:50])
    np.testing.assert_allclose(found.total, model.predictions(rows.X[:50], 0.9)["mean"], rtol=1e-9)
    assert found.columns == ("km", "car", "start", "vip", "wait")
    assert (found.std[:, 0] > 0.0).all()


def test_the_parts_of_a_perceptron_are_those_of_its_weights(tmp_path: Path) -> None:
    model, rows = learned(tmp_path, "price", trips(600))
    found = explain(model, rows.X[:20])
    names, scale = model.encoding.features, model.target.scale  # type: ignore[union-attr]
    belief = model.estimator._learner.state.mixtures[0].members[0]
    car = [i for i, name in enumerate(names) if name.startswith("car=")]
    shares = dict(zip(car, [*next(iter(model.encoding.groups()))[1], 0.0], strict=True))  # no other kinds
    for row, own, std in zip(rows.X[:20], found.add[:, 1], found.std[:, 1], strict=True):
        gap = np.zeros(len(names) + 1)
        for i in car:
            gap[i + 1] = row[i] - shares[i]
        assert own == pytest.approx(gap @ belief.mean * scale)
        assert std == pytest.approx(np.sqrt(gap @ belief.cov @ gap) * scale)
    # A truth that is known: 1.8 per kilometre, 5 for a van over a sedan, 4 for a guest.
    km = rows.X[:20, names.index("km")] * model.encoding.columns[0].scale  # type: ignore[attr-defined]
    np.testing.assert_allclose(found.add[:, 0], 1.8 * km, atol=0.8)


def test_log_odds_of_two_classes_and_log_rates_of_counts(tmp_path: Path) -> None:
    model, rows = learned(tmp_path, "clicked", clicks(900))
    found = explain(model, rows.X[:40])
    seen = model.estimator._learner.state.mixtures[0].members[0].predict(np.nan_to_num(rows.X[:40]))
    np.testing.assert_allclose(found.total, seen.pre_mean, rtol=1e-9, atol=1e-12)
    counts = [{**row, "price": int(row["km"])} for row in trips(500)]
    model, rows = learned(tmp_path, "price", counts, task="counts")
    found = explain(model, rows.X[:40])
    seen = model.estimator._learner.state.mixtures[0].members[0].predict(np.nan_to_num(rows.X[:40]))
    np.testing.assert_allclose(found.total, seen.pre_mean, rtol=1e-9, atol=1e-12)


def test_networks_and_several_classes_add_up_too(tmp_path: Path) -> None:
    model, rows = learned(tmp_path, "price", trips(500), hidden=(6,))
    found = explain(model, rows.X[:15])
    np.testing.assert_allclose(found.total, model.predictions(rows.X[:15], 0.9)["mean"], rtol=1e-9)
    assert abs(found.add[:, 0]).mean() > 5 * abs(found.add[:, 4]).mean()  # kilometres matter, waiting does not
    model, rows = learned(tmp_path, "kind", clicks(900))
    found = explain(model, rows.X[:15])
    best = np.column_stack([values for name, values in model.predictions(rows.X[:15], 0.9).items() if name != "label"])
    np.testing.assert_allclose(found.total, log_odds(best.astype(float).max(axis=1)), rtol=1e-9)
    model, rows = learned(tmp_path, "clicked", clicks(900), hidden=(4,))
    found = explain(model, rows.X[:15])
    probability = model.estimator.predict_proba(rows.X[:15])[:, 1]
    np.testing.assert_allclose(found.total, log_odds(probability), rtol=1e-9, atol=1e-12)


def test_in_a_network_without_interactions_the_parts_are_the_changes_one_at_a_time(tmp_path: Path) -> None:
    # Two switches of a function of pairs: the Shapley value by its definition, over all orders.
    model, _ = learned(tmp_path, "price", [{k: row[k] for k in ("km", "vip", "price")} for row in trips(400)])

    class Product:
        """x1 x2 + 2 x1, whose Shapley values are known."""

        hidden_layer_sizes = (1,)

        def predict(self, X: Any) -> Any:
            return X[:, 0] * X[:, 1] + 2.0 * X[:, 0]

        def sample_function(self, X: Any, n: int, random_state: int) -> Any:
            return np.outer(self.predict(X), np.linspace(0.9, 1.1, n))

    model.estimator = Product()
    X = np.array([[2.0, 1.0], [-1.0, 0.5]])
    found = explain(model, X)
    scale = model.target.scale  # type: ignore[union-attr]
    np.testing.assert_allclose(found.add[:, 0], (0.5 * X[:, 0] * X[:, 1] + 2.0 * X[:, 0]) * scale)
    np.testing.assert_allclose(found.add[:, 1], 0.5 * X[:, 0] * X[:, 1] * scale)
    assert (found.std > 0.0).all()


def test_standard_deviations_of_a_network_are_near_those_of_its_linear_part(tmp_path: Path) -> None:
    exact, rows = learned(tmp_path, "clicked", clicks(900))
    drawn = explain(exact, rows.X[:30]).std
    # The same perceptron, by drawing functions as for a network.
    from onepass.tables import explanation

    found = explanation._by_switching(exact, rows.X[:30])
    np.testing.assert_allclose(found[3], drawn, rtol=0.35, atol=0.02)


def test_a_model_per_key_is_explained_by_the_model_of_the_key(tmp_path: Path) -> None:
    model, rows = learned(tmp_path, "price", trips(900), by="car")
    keys = [*rows.keys[:30], "new"]
    X = np.vstack([rows.X[:30], rows.X[:1]])
    found = explain(model, X, keys)
    assert isinstance(found, Explanation)
    np.testing.assert_allclose(found.total, model.predictions(X, 0.9, keys)["mean"], rtol=1e-9)
    assert len(set(found.baseline.round(6))) == 4  # three kinds of cars, and one that never came


def test_a_table_has_two_columns_for_each(tmp_path: Path) -> None:
    model, rows = learned(tmp_path, "clicked", clicks(300))
    table = explain(model, rows.X[:4]).table()
    assert list(table)[:4] == ["baseline", "std_baseline", "add_age", "std_age"]
    assert all(len(values) == 4 for values in table.values())


@pytest.mark.parametrize("settings", [{"covariance": "low_rank"}, {"activation": "relu"}, {"activation": "tanh"}])
def test_every_perceptron_of_numbers_adds_up_to_its_mean(tmp_path: Path, settings: dict[str, Any]) -> None:
    model, rows = learned(tmp_path, "price", trips(400), **settings)
    found = explain(model, rows.X[:20])
    np.testing.assert_allclose(found.total, model.predictions(rows.X[:20], 0.95)["mean"], rtol=1e-6)


def test_low_rank_is_explained_as_its_covariance_says(tmp_path: Path) -> None:
    model, rows = learned(tmp_path, "price", trips(400), covariance="low_rank")
    found = explain(model, rows.X[:20])
    # The same by a network's own moments: those of rows in which nothing but the column differs from 0.
    member = model.estimator._learner.state.mixtures[0].members[0]
    column = np.zeros_like(rows.X[:20])
    column[:, 0] = rows.X[:20, 0]
    scale = model.target.scale  # type: ignore[union-attr]
    bias = member.predict(np.zeros((1, column.shape[1])))
    np.testing.assert_allclose(found.add[:, 0], (member.predict(column).mean - bias.mean) * scale, rtol=1e-9)
    # var(b + a) + var(b - a) = 2 var(b) + 2 var(a), and the bias b is in every prediction.
    both = member.predict(column).var + member.predict(-column).var
    np.testing.assert_allclose(found.std[:, 0], np.sqrt(both / 2.0 - bias.var) * scale, rtol=1e-6)


def test_a_logarithm_is_explained_as_such(tmp_path: Path) -> None:
    rows = [{**row, "price": float(np.exp(row["price"] / 10.0))} for row in trips(500)]
    model, encoded = learned(tmp_path, "price", rows)
    assert isinstance(model.target, LogTarget)
    found = explain(model, encoded.X[:20])
    low, high = (model.predictions(encoded.X[:20], 1e-9)[name] for name in ("lower", "upper"))
    np.testing.assert_allclose(found.total, np.log(0.5 * (low + high)), rtol=1e-6)
