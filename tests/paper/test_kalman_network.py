"""The classic setting against its equations, written out neuron by neuron without the library."""

from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

from onepass.models.network.priors import REGRESSION
from onepass.paper.kalman_network import KalmanNetwork

Neurons = list[list[Any]]


def relu_moments(mean: float, var: float) -> tuple[float, float, float]:
    std = np.sqrt(var)
    cdf, pdf = ndtr(mean / std), np.exp(-0.5 * mean**2 / var) / np.sqrt(2 * np.pi)
    first = mean * cdf + std * pdf
    second = (mean**2 + var) * cdf + mean * std * pdf
    return first, second - first**2, var * cdf


def learn_by_hand(means: Neurons, covs: Neurons, x: np.ndarray, y: float, noise: float) -> tuple[float, float]:
    """One row through lists of neurons, each a mean (i,) and a covariance (i, i), in place."""
    z, v = np.append(1.0, x), np.zeros(len(x) + 1)
    trace = []
    for layer, (layer_means, layer_covs) in enumerate(zip(means, covs, strict=True)):
        linear = layer == len(means) - 1
        signals = []
        for m, C in zip(layer_means, layer_covs, strict=True):
            mu_a = m @ z
            var_a = z @ C @ z + np.sum((m**2 + np.diag(C)) * v)
            mu_z, var_z, cross = (mu_a, var_a, var_a) if linear else relu_moments(mu_a, var_a)
            signals.append((mu_a, var_a, mu_z, var_z + noise, cross))
        trace.append((z, v, signals))
        z, v = np.array([1.0] + [s[2] for s in signals]), np.array([0.0] + [s[3] for s in signals])
    post_mean, post_var = [y], [0.0]
    for layer in reversed(range(len(means))):
        z, v, signals = trace[layer]
        z_post, v_post = z.copy(), v.copy()
        for n, (_, var_a, mu_z, var_z, cross) in enumerate(signals):
            k = cross / var_z
            d_mu, d_v = k * (post_mean[n] - mu_z), k**2 * (post_var[n] - var_z)
            h = v * means[layer][n] / var_a
            z_post, v_post = z_post + h * d_mu, v_post + h**2 * d_v
            g = covs[layer][n] @ z / var_a
            means[layer][n] = means[layer][n] + g * d_mu
            covs[layer][n] = covs[layer][n] + d_v * np.outer(g, g)
        post_mean, post_var = list(z_post[1:]), list(v_post[1:])
    return trace[-1][2][0][0], trace[-1][2][0][1]


@pytest.mark.parametrize("hidden", [(4,), (5, 3)], ids=str)
def test_the_classic_setting_follows_its_equations(hidden: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = np.sin(X[:, 0])
    network = KalmanNetwork(3, hidden, seed=4)
    means = [[row.copy() for row in layer] for layer in network.weights]
    covs = [[np.eye(len(row)) for row in layer] for layer in network.weights]
    seen = [learn_by_hand(means, covs, x, target, 0.01) for x, target in zip(X, y, strict=True)]
    prediction = network.predict_then_learn(X, y)
    np.testing.assert_allclose(prediction.mean, [mean for mean, _ in seen], atol=1e-9)
    np.testing.assert_allclose(prediction.epistemic, [var for _, var in seen], atol=1e-9)
    for weights, neurons in zip(network.weights, means, strict=True):
        np.testing.assert_allclose(weights, neurons, atol=1e-9)
    for ours, block in zip(network.cov, [block for layer in covs for block in layer], strict=True):
        np.testing.assert_allclose(ours, block, atol=1e-9)
    assert network.n_seen == 30


def test_saved_and_loaded_it_goes_on_bit_for_bit() -> None:
    X = np.random.default_rng(1).normal(size=(20, 3))
    first = KalmanNetwork(3, (4,)).learn(X[:10], X[:10, 0])
    second = KalmanNetwork.from_state(*first.export_state())
    for network in (first, second):
        network.learn(X[10:], X[10:, 0])
    np.testing.assert_array_equal(first.predict(X).moments, second.predict(X).moments)


def test_the_published_prior_is_standard_normal() -> None:
    network = KalmanNetwork(20, (30,))
    assert np.std(network.weights[0]) == pytest.approx(1.0, abs=0.1)
    np.testing.assert_array_equal(network.cov[0], np.eye(21))
    scaled = KalmanNetwork(20, (30,), prior=REGRESSION)
    assert np.std(scaled.weights[0][:, 1:]) == pytest.approx(1.2 / np.sqrt(20), rel=0.1)
