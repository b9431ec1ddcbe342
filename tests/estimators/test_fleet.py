"""A model per key with a prior that is learned: it depends on the rows alone, and helps keys with few rows."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onepass import load, save
from onepass.estimators import BayesianPerceptronRegressor, FleetEstimator
from onepass.estimators.rows import Rows


def stores(n: int, n_keys: int, seed: int) -> tuple[Any, Any, list[str], Any]:
    rng = np.random.default_rng(seed)
    weights = rng.normal([1.0, -1.0, 0.5], 0.3, size=(n_keys, 3))
    which, X = rng.integers(n_keys, size=n), rng.normal(size=(n, 2))
    truth = weights[which, 0] + (weights[which, 1:] * X).sum(axis=1)
    return X, truth, [f"s{key}" for key in which], rng


def test_any_split_of_the_rows_gives_the_same_model() -> None:
    X, y, keys, _ = stores(700, 20, 0)
    whole = FleetEstimator(2).learn(Rows(X, y, keys=tuple(keys)))
    parts, at = FleetEstimator(2), 0
    for stop in (1, 64, 65, 130, 512, 513, 700):
        parts.predict_then_learn(Rows(X[at:stop], y[at:stop], keys=tuple(keys[at:stop])))
        at = stop
    for one, other in zip(whole.export_state()[1].items(), parts.export_state()[1].items(), strict=True):
        assert one[0] == other[0]
    np.testing.assert_array_equal(whole.predict(X, keys=keys), parts.predict(X, keys=keys))
    assert parts.n_seen_ == 700
    assert parts.n_keys == 20


@pytest.mark.parametrize("seed", range(3))
def test_keys_with_few_rows_are_predicted_better_than_by_one_model_or_alone(seed: int) -> None:
    X, truth, keys, rng = stores(600, 150, seed)
    y = truth + 0.3 * rng.normal(size=600)
    model = FleetEstimator(2).learn(Rows(X, y, keys=tuple(keys)))
    common = BayesianPerceptronRegressor().fit(X, y)
    alone = FleetEstimator(2, noise=0.3**2)
    alone._fleet.learn(X, y, keys=keys)  # without sharing
    errors = [
        np.abs(found - truth).mean()
        for found in (model.predict(X, keys=keys), common.predict(X), alone.predict(X, keys=keys))
    ]
    assert errors[0] < 0.95 * min(errors[1:])


def test_intervals_of_known_and_unknown_keys_hold_what_they_promise() -> None:
    X, truth, keys, rng = stores(4000, 80, 4)
    y = truth + 0.3 * rng.normal(size=4000)
    known = [key in {f"s{i}" for i in range(60)} for key in keys]
    model = FleetEstimator(2).learn(Rows(X, y, keys=tuple(keys)).at(np.flatnonzero(known)))
    for rows in (np.array(known), ~np.array(known)):
        low, high = model.predict_interval(X[rows], 0.9, keys=[k for k, yes in zip(keys, rows, strict=True) if yes])
        assert 0.84 < ((low < y[rows]) & (y[rows] < high)).mean() < 0.96


def test_labels_have_probabilities_for_every_key() -> None:
    X, truth, keys, rng = stores(3000, 30, 5)
    y = (rng.random(3000) < 1.0 / (1.0 + np.exp(-3.0 * truth))).astype(float)
    model = FleetEstimator(2, "sigmoid")
    predicted = model.predict_then_learn(Rows(X, y, keys=tuple(keys)))
    assert predicted.mean.shape == (3000, 2)
    np.testing.assert_allclose(predicted.mean.sum(axis=1), 1.0)
    np.testing.assert_allclose(predicted.log_density.sum(), model.log_evidence_)
    found = model.predict_proba(X, keys=keys)[np.arange(3000), y.astype(int)]
    assert np.log(found).mean() > -0.45
    assert (model.classes_ == [0, 1]).all()
    restored = FleetEstimator.from_state(*model.export_state())
    np.testing.assert_array_equal(restored.predict_proba(X, keys=keys), model.predict_proba(X, keys=keys))


def test_adaptive_intervals_hold_for_each_key_and_in_files(tmp_path: Path) -> None:
    rng, n = np.random.default_rng(5), 6000
    keys = rng.choice(["calm", "wild", "rare"], n, p=[0.5, 0.49, 0.01]).tolist()
    X = rng.normal(size=(n, 2))
    y = X.sum(axis=1) + rng.normal(size=n) * np.array([{"calm": 0.2, "wild": 2.0, "rare": 0.2}[key] for key in keys])
    model = FleetEstimator(2, intervals="adaptive")
    inside = []
    for part in np.split(np.arange(n), 60):
        own = [keys[i] for i in part]
        low, high = model.predict_interval(X[part], 0.9, keys=own)
        inside.append((low <= y[part]) & (y[part] <= high))
        model.learn(Rows(X[part], y[part], keys=tuple(own)))
    held, late = np.concatenate(inside), np.arange(n) >= 600
    for key in ("calm", "wild"):
        assert held[late & (np.array(keys) == key)].mean() == pytest.approx(0.9, abs=0.03)
    save(model, tmp_path / "fleet")
    twin: Any = load(tmp_path / "fleet")
    asked = ["calm", "wild", "rare", "new"]
    np.testing.assert_array_equal(
        twin.predict_dist(X[:4], keys=asked).interval(0.8), model.predict_interval(X[:4], 0.8, keys=asked)
    )
    with pytest.raises(ValueError, match="labels have probabilities"):
        FleetEstimator(2, "sigmoid", intervals="adaptive")


@pytest.mark.parametrize("intervals", ["model", "adaptive"])
def test_rows_are_scored_without_being_learned(intervals: str) -> None:
    rng = np.random.default_rng(3)
    X, y, keys = rng.normal(size=(200, 2)), rng.normal(size=200), tuple("ab"[i % 2] for i in range(200))
    model = FleetEstimator(2, intervals=intervals).learn(Rows(X[:199], y[:199], keys=keys[:199]))
    last = Rows(X[199:], y[199:], keys=keys[199:])
    scored, again = model.score(last), model.score(last)
    learned = model.predict_then_learn(last)
    for name in ("mean", "epistemic", "aleatoric", "log_density"):
        np.testing.assert_array_equal(getattr(scored, name), getattr(again, name))
        np.testing.assert_allclose(getattr(scored, name), getattr(learned, name), rtol=1e-12)
    assert (scored.places is None) == (intervals == "model")
    if scored.places is not None and learned.places is not None:
        assert scored.places.inside(0.95).tolist() == learned.places.inside(0.95).tolist()
