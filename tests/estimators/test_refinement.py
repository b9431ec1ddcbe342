"""Batches of rows that networks learn with `fit`: in a random order, and more than once if that helps."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import onepass
from onepass import BayesianMLPClassifier, BayesianMLPRegressor, BayesianNetwork
from onepass.estimators import refinement
from onepass.estimators.refinement import PASSES, best_passes, held_out_densities, trial_split
from onepass.estimators.rows import Rows

rng = np.random.default_rng(3)
X = rng.normal(size=(300, 3))
WAVY = np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.02 * rng.normal(size=300)
NOISE = rng.normal(size=300)


def wandering(seed: int) -> tuple[Any, Any]:
    """Rows whose level changes every 300 rows; the last level is far from their mean."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(3000, 4))
    level = np.repeat([*random.normal(size=9), 2.0], 300)
    return rows, rows[:, 0] + np.abs(rows[:, 1]) + 1.5 * level + 0.5 * random.normal(size=3000)


def rmse(model: Any, rows: Any, y: Any) -> float:
    return float(np.sqrt(np.mean((model.predict(rows) - y) ** 2)))


@pytest.mark.parametrize("seed", range(3))
def test_a_table_whose_relation_wanders_is_learned_as_a_whole(seed: int) -> None:
    rows, y = wandering(seed)
    model = BayesianMLPRegressor((20,), passes=1, random_state=seed)
    shuffled, in_order = clone(model).fit(rows, y), clone(model).set_params(shuffle=False).fit(rows, y)
    levelled = y - y.mean() - (rows[:, 0] + np.abs(rows[:, 1]) - np.abs(rows[:, 1]).mean())
    assert rmse(shuffled, rows, y) < 1.1 * levelled.std()
    assert rmse(in_order, rows, y) > 1.2 * rmse(shuffled, rows, y)
    low, high = shuffled.predict_interval(rows)
    assert 0.93 < np.mean((low < y) & (y < high)) < 0.99


def test_the_random_order_is_that_of_the_seed() -> None:
    model = BayesianMLPRegressor((5,), passes=1, standardize=False, random_state=7).fit(X, WAVY)
    order = np.random.default_rng([7, 300]).permutation(300)
    expected = BayesianNetwork(3, (5,), seed=7).learn(X[order], WAVY[order])
    np.testing.assert_allclose(model.predict(X), expected.predict(X).mean, rtol=1e-10)
    other = BayesianMLPRegressor((5,), passes=1, standardize=False, random_state=8).fit(X, WAVY)
    assert not np.allclose(other.predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("options", "shuffles"),
    [
        ({}, True),
        ({"shuffle": True, "drift": 0.01}, True),
        ({"shuffle": False}, False),
        ({"drift": 0.01}, False),
        ({"drift": "auto"}, False),
        ({"forgetting": 0.99}, False),
        ({"prior_scale": "auto"}, False),
    ],
)
def test_rows_are_shuffled_unless_their_order_is_needed(options: dict[str, Any], shuffles: bool) -> None:
    whole = BayesianMLPRegressor((4,), passes=1, **options).fit(X, WAVY)
    parts = BayesianMLPRegressor((4,), passes=1, **options).partial_fit(X, WAVY)
    assert np.allclose(whole.predict(X), parts.predict(X)) is not shuffles


@pytest.mark.parametrize(("y", "passes"), [(WAVY, 5), (NOISE, 1)])
def test_the_number_of_passes_is_what_predicts_rows_held_out_better(y: Any, passes: int) -> None:
    model = BayesianMLPRegressor((10,), random_state=1).fit(X, y)
    assert model.n_passes_ == passes
    same = BayesianMLPRegressor((10,), passes=passes, random_state=1).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), same.predict(X))
    assert model.log_evidence_ == same.log_evidence_


def test_the_densities_are_those_of_networks_that_made_so_many_passes() -> None:
    learned, held_out = trial_split(Rows(X, WAVY[:, None]), np.random.default_rng(0)) or (None, None)
    assert learned is not None
    assert held_out is not None
    assert (len(learned), len(held_out)) == (240, 60)
    assert len(np.unique(np.concatenate([learned.X, held_out.X])[:, 0])) == 300  # no row is in both
    found = held_out_densities(BayesianNetwork(3, (6,)), Rows(learned.X, learned.y[:, 0]), Rows(held_out.X, held_out.y))
    for number, total in zip(PASSES, found, strict=True):
        network = BayesianNetwork(3, (6,)).learn(learned.X, learned.y[:, 0], passes=number, refine="ep")
        assert total == pytest.approx(network.log_predictive(held_out.X, held_out.y[:, 0]).sum())
    assert best_passes(np.array([1.0, 2.0])) == 5
    assert best_passes(np.array([2.0, 2.0])) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"covariance": "neuron"},
        {"refine": "reuse"},
        {"drift": 0.01},
        {"drift": "auto"},
        {"forgetting": 0.99},
        {"prior_scale": "auto"},
        {"outliers": 0.05},
    ],
)
def test_one_pass_is_made_where_more_would_not_be_sound(options: dict[str, Any]) -> None:
    assert BayesianMLPRegressor((4,), **options).fit(X, WAVY).n_passes_ == 1


def test_one_pass_is_made_of_few_rows_and_of_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    assert BayesianMLPRegressor((4,)).fit(X[:49], WAVY[:49]).n_passes_ == 1
    model = BayesianMLPRegressor((10,), random_state=1)
    assert clone(model).fit(X, WAVY).n_passes_ == 5
    monkeypatch.setattr("onepass.estimators.learner.MOST_SITE_NUMBERS", 300 * (3 + 10 + 1) * 2 - 1)
    assert model.fit(X, WAVY).n_passes_ == 1


def test_the_sample_of_a_large_batch_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refinement, "_MOST_ROWS", 100)
    learned, held_out = trial_split(Rows(X, WAVY[:, None]), np.random.default_rng(0)) or (Rows(X[:0], X[:0]),) * 2
    assert (len(learned), len(held_out)) == (80, 20)


def test_several_outputs_weights_and_classes_are_refined_and_saved(tmp_path: Path) -> None:
    both, weights = np.column_stack([WAVY, np.where(np.arange(300) % 3, NOISE, np.nan)]), rng.uniform(0.0, 2.0, 300)
    model = BayesianMLPRegressor((10,), members=2).fit(X, both, sample_weight=weights)
    assert model.n_passes_ in PASSES
    onepass.save(model, tmp_path / "model")
    assert onepass.load(tmp_path / "model").n_passes_ == model.n_passes_
    assert model.partial_fit(X, both).n_passes_ in PASSES
    classes = BayesianMLPClassifier((10,)).fit(X, np.digitize(WAVY, [-0.3, 0.3]))
    assert classes.n_passes_ in PASSES
    assert classes.score(X, np.digitize(WAVY, [-0.3, 0.3])) > 0.6
    assert BayesianMLPRegressor((4,)).partial_fit(X, WAVY).n_passes_ == 1


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"shuffle": "yes"}, ValueError, "shuffle must be True, False or 'auto', got 'yes'"),
        ({"shuffle": None}, ValueError, "shuffle must be True, False or 'auto', got None"),
        ({"passes": "many"}, ValueError, "passes must be 'auto' or a whole number of at least 1, got 'many'"),
    ],
)
def test_what_is_neither_a_choice_nor_auto_is_refused(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        BayesianMLPRegressor((4,), **options).fit(X, WAVY)
