"""Intervals of a label's probability: what they contain, and how often they contain the truth."""

from typing import Any

import numpy as np
import pytest
from scipy.special import expit, ndtri

from onepass import BayesianNetwork
from onepass.models.network.priors import NetworkPrior
from onepass.models.network.propagation import curvature_covariance, evaluate, output_moments


def known_outgoing_weights(hidden: int, n_outputs: int) -> BayesianNetwork:
    """A network before its first row, whose weights into the outputs are known."""
    prior = NetworkPrior(output_std=0.0, output_bias_std=0.0)
    return BayesianNetwork(3, (hidden,), n_outputs, observation="bernoulli", prior=prior, covariance="full")


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_with_curvature_the_covariance_of_the_outputs_is_that_of_sampled_weights(n_outputs: int) -> None:
    """Exact where the units are independent and all that is unknown is what enters them."""
    network, rng = known_outgoing_weights(4, n_outputs), np.random.default_rng(0)
    X, belief = rng.normal(size=(5, 3)), network._state.belief
    _, linear = output_moments(belief, network._units, X)
    curvature = curvature_covariance(belief, network._units, X)
    draws = belief.sample(60_000, rng)
    outputs = np.array([evaluate(network._layout.layers(draw), network.activation, X) for draw in draws])
    sampled = np.array([np.cov(outputs[:, i].T).reshape(n_outputs, n_outputs) for i in range(5)])
    np.testing.assert_allclose(linear + curvature, sampled, rtol=0.04, atol=0.04 * np.abs(sampled).max())
    assert (np.diagonal(curvature, axis1=1, axis2=2) > 0.05 * np.diagonal(linear, axis1=1, axis2=2)).any()


def test_an_interval_has_the_width_of_the_linear_variance_and_the_curvature() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 3))
    network = BayesianNetwork(3, (6,), observation="bernoulli").learn(X, X[:, 0] > 0.0)
    low, high = network.interval(X, level=0.9)
    curvature = curvature_covariance(network._state.belief, network._units, X)[:, 0, 0]
    predicted = network.predict(X)
    half_width = ndtri(0.95) * np.sqrt(predicted.pre_var + curvature)
    np.testing.assert_allclose(low, expit(predicted.pre_mean - half_width), rtol=1e-6)
    np.testing.assert_allclose(high, expit(predicted.pre_mean + half_width), rtol=1e-6)


def test_without_hidden_layers_an_interval_is_that_of_the_log_odds() -> None:
    X = np.random.default_rng(1).normal(size=(80, 3))
    network = BayesianNetwork(3, (), observation="bernoulli").learn(X, X[:, 0] > 0.0)
    predicted, (low, _) = network.predict(X), network.interval(X, level=0.9)
    np.testing.assert_allclose(low, expit(predicted.pre_mean - ndtri(0.95) * np.sqrt(predicted.pre_var)), rtol=1e-6)


def coverage(n: int, networks: int, **learning: Any) -> float:
    """Share of true probabilities in their 95 % intervals, of weights drawn from the network's own prior."""
    shares = []
    for seed in range(networks):
        rng = np.random.default_rng(300 + seed)
        network = BayesianNetwork(3, (10,), observation="bernoulli", seed=seed)
        weights = [m + np.sqrt(v) * rng.normal(size=m.shape) for m, v in zip(*_prior(network), strict=True)]
        X, new = rng.normal(size=(n, 3)), rng.normal(size=(200, 3))
        truth, expected = (expit(evaluate(weights, network.activation, rows)[:, 0]) for rows in (X, new))
        network.learn(X, rng.random(n) < truth, **learning)
        low, high = network.interval(new)
        shares.append(np.mean((expected >= low) & (expected <= high)))
    return float(np.mean(shares))


def _prior(network: BayesianNetwork) -> tuple[Any, Any]:
    return network.weights, network.weight_variances


def test_intervals_contain_the_true_probability() -> None:
    """Over many more networks: one pass 0.925, refined 0.976. The standard errors are 0.015 here."""
    assert 0.87 < coverage(100, 40) < 0.97
    assert 0.93 < coverage(100, 30, passes=5, refine="ep") < 0.995
