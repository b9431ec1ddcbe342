"""Shards whose targets may not be trusted: what rows say is a Gaussian site still, unless an alarm came in between."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from onepass import BayesianNetwork, BayesianPerceptron, Mixture, merge
from onepass.engine.outliers import Trust
from onepass.merging import Merging, Rounds
from tests.helpers.merging import labelled_rows, learned_apart, linear_rows


def spiked_rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X, y = linear_rows(n, seed=seed)
    rng = np.random.default_rng(seed + 10)
    return X, np.where(rng.random(n) < 0.1, 200.0 * rng.normal(size=n), y)


def trust_of(model: Any) -> np.ndarray:
    return np.asarray(model._state.progress.trust.to_array())


def gap(one: BayesianPerceptron, other: BayesianPerceptron) -> float:
    """Distance of the means in standard deviations."""
    return float(np.sqrt(np.mean(((one.mean - other.mean) / np.sqrt(np.diag(other.cov))) ** 2)))


@pytest.mark.parametrize("noise", [0.25, "learn"])
def test_shards_with_spikes_merge_to_nearly_what_one_model_learns(noise: Any) -> None:
    X, y = spiked_rows(2400)
    prior = BayesianPerceptron(4, "linear", noise=noise, cov=4.0, outliers=0.05).learn(X[:200], y[:200])
    whole = copy.deepcopy(prior).learn(X[200:], y[200:])
    parts = learned_apart(prior, X[200:], y[200:], 4)
    merged = merge(prior, parts)
    assert merged.n_seen == 2400
    assert merged.outliers == 0.05
    assert gap(merged, whole) < 0.3
    assert np.abs(merged.mean[1:] - [1.0, 2.0, 3.0, 4.0]).max() < 0.1
    # The rows that each model counted, over those that the prior had.
    counted = trust_of(prior)[:6] + sum(trust_of(part)[:6] - trust_of(prior)[:6] for part in parts)
    np.testing.assert_allclose(trust_of(merged)[:6], counted, rtol=1e-12)
    assert merged._state.progress.trust.rows == 2400.0
    np.testing.assert_allclose(merged._state.progress.trust.shares, whole._state.progress.trust.shares, atol=0.01)
    # It goes on: also an alarm finds the prior again.
    before = merged.cov
    merged.learn(np.zeros((30, 4)), np.full(30, 500.0))
    assert abs(merged.predict(np.zeros(4)).mean - 500.0) < 5.0 or merged.cov[0, 0] > before[0, 0]


def test_rounds_come_close_to_one_model() -> None:
    X, y = spiked_rows(2200)
    prior = BayesianPerceptron(4, "linear", noise=0.25, cov=4.0, outliers=0.05).learn(X[:200], y[:200])
    X, y = X[200:], y[200:]
    whole = copy.deepcopy(prior).learn(X, y, passes=5)  # expectation propagation over rows: no order among them
    rounds, shards, gaps = Rounds(prior, 8), list(zip(np.array_split(X, 8), np.array_split(y, 8), strict=True)), []
    for _ in range(3):
        model = rounds.take(
            [start and start.learn(*shard) for start, shard in zip(rounds.starts(), shards, strict=True)]
        )
        gaps.append(gap(model, whole))
    assert gaps[-1] < 0.15
    assert model.n_seen == 2200
    assert model._state.progress.trust.rows == 2200.0


def test_what_merges_travels_between_processes() -> None:
    X, y = spiked_rows(400)
    prior = BayesianPerceptron(4, "linear", noise=0.25, cov=4.0, outliers=0.05).learn(X[:200], y[:200])
    merging = pickle.loads(pickle.dumps(Merging(prior)))
    site = pickle.loads(pickle.dumps(merging.site(prior, copy.deepcopy(prior).learn(X[200:], y[200:]))))
    assert Trust(trust_of(merging.merged(site))).rows == 400.0
    np.testing.assert_allclose(trust_of(merging.cavity(site, site))[:6], trust_of(prior)[:6], rtol=1e-12)


def test_flipped_labels_merge_too() -> None:
    X, y = labelled_rows(3000)
    y = np.where(np.random.default_rng(5).random(3000) < 0.1, 1.0 - y, y)
    prior = BayesianPerceptron(4, outliers=0.05).learn(X[:300], y[:300])
    whole = copy.deepcopy(prior).learn(X[300:], y[300:])
    merged = merge(prior, learned_apart(prior, X[300:], y[300:], 3))
    # Each shard has rescaled what the prior knew as well, so the two differ; both are as near to the truth.
    ours, theirs = (np.linalg.norm(model.mean[1:] - [1.0, 2.0, 3.0, 4.0]) for model in (merged, whole))
    assert ours < 1.2 * theirs
    assert merged._state.progress.trust.shares[0] == pytest.approx(whole._state.progress.trust.shares[0], abs=0.03)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_networks_merge_their_trust(covariance: str) -> None:
    X, y = spiked_rows(900)
    prior = BayesianNetwork(4, (5,), covariance=covariance, outliers=0.05).learn(X[:500], y[:500] / 5.0)
    parts = learned_apart(prior, X[500:], y[500:] / 5.0, 2)
    merged = merge(prior, parts)
    assert Trust(merged.export_state()[1]["trust"]).rows == 900.0
    again = copy.deepcopy(merged).learn(X, y / 5.0)
    assert again.n_seen == 1800
    clean = linear_rows(900)[1] / 5.0
    assert np.sqrt(np.mean((merged.predict(X).mean - clean) ** 2)) < 0.3


def jumped(start: Any, X: np.ndarray, y: np.ndarray) -> Any:
    return copy.deepcopy(start).learn(X, np.where(np.arange(len(y)) < len(y) // 2, y, y + 300.0))


def test_a_shard_with_an_alarm_is_refused() -> None:
    X, y = linear_rows(400)
    prior = BayesianPerceptron(4, "linear", noise=0.25, cov=[1e4, 4.0, 4.0, 4.0, 4.0], outliers=0.05)
    rows_since_alarm = copy.deepcopy(prior).learn(X, y)
    with pytest.raises(ValueError, match=r"model 1 distrusted so many rows .* or use outliers=0"):
        merge(prior, [rows_since_alarm, jumped(prior, X, y)])
    # One that is still to be answered, with the next row.
    waiting = copy.deepcopy(prior).learn(X, y)
    for _ in range(20):
        waiting.learn(X[0], 300.0)
        if waiting._state.progress.trust.is_alarmed():
            break
    else:
        raise AssertionError("no alarm")
    with pytest.raises(ValueError, match="model 0 distrusted so many rows"):
        merge(prior, [waiting])
    # A prior that had one, long ago, is a prior like any other.
    late = jumped(prior, X, y)
    assert merge(late, [copy.deepcopy(late).learn(X[:50], y[:50] + 300.0)]).n_seen == 450
    network = BayesianNetwork(4, (5,), outliers=0.05)
    with pytest.raises(ValueError, match="model 0 distrusted so many rows"):
        merge(network, [jumped(network, X, y / 5.0)])


def test_other_shares_and_drift_are_refused() -> None:
    X, y = linear_rows(10)
    prior = BayesianPerceptron(4, "linear", noise=0.25, outliers=0.05)
    other = BayesianPerceptron(4, "linear", noise=0.25, outliers=0.1).learn(X, y)
    with pytest.raises(ValueError, match=r"model 0 has outliers=0\.1 where the prior has 0\.05"):
        merge(prior, [other])
    with pytest.raises(ValueError, match=r"the prior can't be merged: drift=0\.01 lets the weights move"):
        Merging(BayesianPerceptron(4, drift=0.01))
    with pytest.raises(ValueError, match=r"the prior can't be merged: drift=0\.01 lets the weights move"):
        Merging(BayesianNetwork(4, drift=0.01))
    for model in (Mixture.over_drift(BayesianPerceptron, 4), Mixture.over_drift(BayesianNetwork, 4)):
        with pytest.raises(ValueError, match="weighs its members row after row"):
            merge(model, [copy.deepcopy(model)])
