"""A model per key with a prior that is learned: it depends on the rows alone, and helps keys with few rows."""

from typing import Any

import numpy as np
import pytest

from onepass.estimators import BayesianPerceptronRegressor, FleetEstimator


def stores(n: int, n_keys: int, seed: int) -> tuple[Any, Any, list[str], Any]:
    rng = np.random.default_rng(seed)
    weights = rng.normal([1.0, -1.0, 0.5], 0.3, size=(n_keys, 3))
    which, X = rng.integers(n_keys, size=n), rng.normal(size=(n, 2))
    truth = weights[which, 0] + (weights[which, 1:] * X).sum(axis=1)
    return X, truth, [f"s{key}" for key in which], rng


def test_any_split_of_the_rows_gives_the_same_model() -> None:
    X, y, keys, _ = stores(700, 20, 0)
    whole = FleetEstimator(2).learn(X, y, keys=keys)
    parts, at = FleetEstimator(2), 0
    for stop in (1, 64, 65, 130, 512, 513, 700):
        parts.predict_then_learn(X[at:stop], y[at:stop], keys=keys[at:stop])
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
    model = FleetEstimator(2).learn(X, y, keys=keys)
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
    model = FleetEstimator(2).learn(X[known], y[known], keys=[k for k, yes in zip(keys, known, strict=True) if yes])
    for rows in (np.array(known), ~np.array(known)):
        low, high = model.predict_interval(X[rows], 0.9, keys=[k for k, yes in zip(keys, rows, strict=True) if yes])
        assert 0.84 < ((low < y[rows]) & (y[rows] < high)).mean() < 0.96


def test_labels_have_probabilities_for_every_key() -> None:
    X, truth, keys, rng = stores(3000, 30, 5)
    y = (rng.random(3000) < 1.0 / (1.0 + np.exp(-3.0 * truth))).astype(float)
    model = FleetEstimator(2, "sigmoid")
    predicted = model.predict_then_learn(X, y, keys=keys)
    assert predicted.mean.shape == (3000, 2)
    np.testing.assert_allclose(predicted.mean.sum(axis=1), 1.0)
    np.testing.assert_allclose(predicted.log_density.sum(), model.log_evidence_)
    found = model.predict_proba(X, keys=keys)[np.arange(3000), y.astype(int)]
    assert np.log(found).mean() > -0.45
    assert (model.classes_ == [0, 1]).all()
    restored = FleetEstimator.from_state(*model.export_state())
    np.testing.assert_array_equal(restored.predict_proba(X, keys=keys), model.predict_proba(X, keys=keys))
