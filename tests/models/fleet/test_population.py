"""The prior of new keys, given or learned from the keys there are."""

import copy
from typing import Any

import numpy as np
import pytest

from onepass import BayesianPerceptron, PerceptronFleet
from tests.helpers.fleets import D, same

MEANS, STDS = [1.0, -2.0, 0.5, 1.5], [0.3, 0.5, 0.2, 0.4]


def shops(n_keys: int, rows: int, seed: int, labels: bool = True) -> dict[str, Any]:
    """Keys whose weights are drawn from one population."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(MEANS, STDS, size=(n_keys, 4))
    keys = rng.permutation(np.repeat(np.arange(n_keys), rows)) + 1000 * seed
    X = rng.normal(size=(len(keys), 3))
    a = weights[keys - 1000 * seed, 0] + (X * weights[keys - 1000 * seed, 1:]).sum(axis=1)
    y = rng.random(len(keys)) < 1 / (1 + np.exp(-a)) if labels else a + rng.normal(size=len(a))
    return {"X": X, "y": y.astype(float), "keys": keys}


def test_new_keys_do_better_from_the_population_than_from_a_flat_prior() -> None:
    fleet = PerceptronFleet(3, cov=4.0).learn(**shops(400, 30, seed=1))
    losses = []
    flat, rich = copy.deepcopy(fleet), fleet
    rich.prior = fleet.population()
    for one in (flat, rich):
        rows = shops(200, 10, seed=2)
        p = one.predict_then_learn(**rows).mean
        losses.append(-np.mean(np.log(np.where(rows["y"] > 0.5, p, 1 - p))))
    assert losses[1] < losses[0] - 0.05
    same(rich.perceptron(1000), flat.perceptron(1000))  # keys there were keep what they are


@pytest.mark.parametrize("noise", [1.0, "learn"])
def test_the_population_is_found_again_also_from_keys_of_different_priors(noise: Any) -> None:
    fleet = PerceptronFleet(3, "linear", noise=noise, cov=100.0).learn(**shops(300, 30, seed=1, labels=False))
    first = fleet.population()
    fleet.prior = first
    fleet.learn(**shops(700, 10, seed=2, labels=False))
    # Ten rows leave a noise that is not known vague, and the weights with it.
    for population, tolerance in ((first, 0.1), (fleet.population(), 0.07 if noise == 1.0 else 0.09)):
        np.testing.assert_allclose(population.mean, MEANS, atol=tolerance)
        np.testing.assert_allclose(np.sqrt(np.diag(population.cov)), STDS, atol=tolerance)
        assert population.n_seen == 0
    if noise == "learn":
        keys = [fleet.perceptron(key) for key in fleet.keys()]  # noqa: SIM118 (it is no dictionary)
        weights = [model.export_state()[1]["running"][1] for model in keys]
        pooled = np.average([model.noise for model in keys], weights=weights)
        assert fleet.population().noise == pytest.approx(pooled)


def test_a_prior_must_suit_the_fleet() -> None:
    fleet = PerceptronFleet(D, "linear", noise="learn")
    with pytest.raises(ValueError, match="at least two keys that have learned rows, got 0"):
        fleet.population()
    with pytest.raises(ValueError, match="known exactly"):
        PerceptronFleet(D, cov=0.0).learn(np.ones((2, D)), [1, 0], keys=[1, 2]).population()
    with pytest.raises(TypeError, match="must be a BayesianPerceptron"):
        fleet.prior = 1.0  # type: ignore[assignment]
    with pytest.raises(ValueError, match="prior has n_features=2 where the fleet has 3"):
        fleet.prior = BayesianPerceptron(2, "linear", noise="learn")
    with pytest.raises(ValueError, match="prior has activation="):
        fleet.prior = BayesianPerceptron(D, "relu", noise="learn")
    with pytest.raises(ValueError, match="covariance='full'"):
        fleet.prior = BayesianPerceptron(D, "linear", noise="learn", covariance="diagonal")


def test_a_prior_must_have_the_noise_of_the_fleet() -> None:
    learned = PerceptronFleet(D, "linear", noise="learn", noise_window=50)
    with pytest.raises(ValueError, match=r"prior has noise=0\.1 where the fleet has noise='learn'"):
        learned.prior = BayesianPerceptron(D, "linear", noise=0.1)
    with pytest.raises(ValueError, match="prior has noise_window=20 where the fleet has 50"):
        learned.prior = BayesianPerceptron(D, "linear", noise="learn", noise_window=20)
    with pytest.raises(ValueError, match="prior has noise_window=None where the fleet has 50"):
        learned.prior = BayesianPerceptron(D, "linear", noise="learn")
    with pytest.raises(ValueError, match=r"prior has noise='learn' where the fleet has noise=0\.1"):
        PerceptronFleet(D, "linear", noise=0.1).prior = BayesianPerceptron(D, "linear", noise="learn")
    learned.prior = BayesianPerceptron(D, "linear", noise="learn", noise_window=50, cov=2.0)


def test_pooled_keys_are_what_they_would_be_had_they_started_from_the_population() -> None:
    rng = np.random.default_rng(5)
    keys = rng.integers(30, size=400)
    X = rng.normal(size=(400, 2))
    y = (X * rng.normal([1.0, -1.0], 0.5, size=(30, 2))[keys]).sum(axis=1) + rng.normal(size=400)
    fleet = PerceptronFleet(2, "linear", noise=1.0, cov=9.0).learn(X, y, keys=keys)
    evidence = fleet.log_evidence
    pooled = fleet.pool()
    fresh = PerceptronFleet(2, "linear", noise=1.0, cov=9.0)
    fresh.prior = pooled.prior
    fresh.learn(X, y, keys=keys)
    for key in [*range(30), 99]:
        seen, expected = (one.predict(X[:3], keys=[key] * 3) for one in (pooled, fresh))
        np.testing.assert_allclose(seen.mean, expected.mean, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(seen.epistemic, expected.epistemic, rtol=1e-8)
    assert pooled.log_evidence == evidence  # what was predicted before stays predicted
    again = PerceptronFleet.from_state(*pooled.export_state())
    np.testing.assert_array_equal(again.predict(X, keys=keys).mean, pooled.predict(X, keys=keys).mean)


def test_pooling_with_another_noise_is_as_if_all_rows_had_come_with_it() -> None:
    rng = np.random.default_rng(6)
    keys, X = np.repeat(np.arange(40), 5), rng.normal(size=(200, 1))
    y = X[:, 0] + 0.3 * rng.normal(size=200)
    fleet = PerceptronFleet(1, "linear", noise=1.0).learn(X, y, keys=keys).pool(noise=0.1)
    fresh = PerceptronFleet(1, "linear", noise=0.1)
    fresh.prior = fleet.prior
    fresh.learn(X, y, keys=keys)
    seen, expected = (one.predict(X, keys=keys) for one in (fleet, fresh))
    np.testing.assert_allclose(seen.mean, expected.mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(seen.epistemic, expected.epistemic, rtol=1e-8)
    np.testing.assert_array_equal(seen.aleatoric, 0.1)
    with pytest.raises(ValueError, match="noise can't be set in a fleet with noise='learn'"):
        PerceptronFleet(1, "linear", noise="learn").learn(X, y, keys=keys).pool(noise=0.1)


def test_a_population_of_few_keys_is_less_certain_than_the_most_probable_one() -> None:
    rng = np.random.default_rng(7)
    keys, X = rng.integers(3, size=300), rng.normal(size=(300, 4))
    fleet = PerceptronFleet(4, "linear", noise=0.1).learn(X, X @ np.ones(4) + rng.normal(size=300), keys=keys)
    narrow = fleet.population()
    assert (np.diag(fleet.pool().prior.cov) > 1.5 * np.diag(narrow.cov)).all()
    with pytest.raises(ValueError, match="two keys"):
        PerceptronFleet(4, "linear", noise=0.1).pool()
