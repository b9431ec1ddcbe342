"""The joint Gaussian of a network's outputs, and predictions of single rows, which compiled code makes."""

from typing import Any

import numpy as np
import pytest

from onepass import BayesianNetwork
from onepass.models.mixture import with_drift
from onepass.paper.kalman_network import KalmanNetwork

HEADS: list[dict[str, Any]] = [
    {"observation": "gaussian", "noise": 0.3, "n_outputs": 3},
    {"observation": "gaussian", "n_outputs": 3},
    {"n_outputs": 2, "observation": "heteroscedastic"},
    {"observation": "bernoulli", "n_outputs": 3},
    {"observation": "bernoulli"},
    {"observation": "categorical", "n_outputs": 7},
    {"observation": "negative_binomial"},
]
COVARIANCES = ["full", "low_rank", "layer", "neuron", "diagonal", "kronecker", ("kronecker", "full")]


def learned(n_features: int = 3, hidden: tuple[int, ...] = (6,), **options: Any) -> tuple[Any, np.ndarray]:
    network: Any = with_drift(BayesianNetwork, n_features, hidden, **options)
    rng = np.random.default_rng(4)
    X, k = rng.normal(size=(60, n_features)), network.n_outputs
    y: np.ndarray = rng.normal(size=(60, k)) + X[:, :1]
    if network.observation.name == "bernoulli":
        y = (y > 0.0).astype(np.float64)
    elif not network.observation.is_numeric:
        y = rng.integers(0, max(k, 2), (60, 1))
    return network.learn(X, y), X


def dense(network: BayesianNetwork) -> np.ndarray:
    """The covariance of all weights."""
    if network.covariance == "diagonal":
        return np.diag(network.cov)
    blocks = [np.kron(*part) if isinstance(part, tuple) else np.asarray(part) for part in network.cov]
    ends = np.cumsum([len(block) for block in blocks])
    whole = np.zeros((ends[-1], ends[-1]))
    for end, block in zip(ends, blocks, strict=True):
        whole[end - len(block) : end, end - len(block) : end] = block
    return whole


@pytest.mark.parametrize("covariance", ["full", "layer", "neuron", "kronecker", ("kronecker", "full")], ids=str)
def test_they_are_those_of_the_linearised_network(covariance: Any) -> None:
    """By the derivatives of the mean outputs in all weights, with linear units, which numbers give."""
    network, X = learned(activation="linear", covariance=covariance, n_outputs=3, noise=0.3)
    first, second = network.weights
    z = np.append(1.0, X[0])
    hidden = np.append(1.0, first @ z)
    jacobian = np.hstack(
        [(second[:, 1:][:, :, None] * z).reshape(3, -1), np.kron(np.eye(3), hidden)],
    )
    outputs = network.output_moments(X[0])
    np.testing.assert_allclose(outputs.cov, jacobian @ dense(network) @ jacobian.T, rtol=1e-9, atol=1e-12)
    if covariance != "full":  # there a unit and its outgoing weight vary together
        np.testing.assert_allclose(outputs.mean, second @ hidden, rtol=1e-10)


@pytest.mark.parametrize("head", HEADS, ids=str)
@pytest.mark.parametrize("covariance", ["full", "kronecker"])
def test_draws_have_these_moments(covariance: str, head: dict[str, Any]) -> None:
    network, X = learned(covariance=covariance, **head)
    draws = network._drawn(
        X[:2], network.sample_weights(4000, 0), None
    )  # before the response, the calibration included
    outputs = network.output_moments(X[:2])
    for row in range(2):
        mean, cov = draws[:, row].mean(axis=0), np.cov(draws[:, row], rowvar=False)
        spread = np.sqrt(np.diag(outputs.cov[row]))
        if covariance != "full":
            np.testing.assert_array_less(np.abs(mean - outputs.mean[row]), 4.5 * spread / np.sqrt(4000.0))
        np.testing.assert_allclose(cov, outputs.cov[row], atol=0.12 * spread.max() ** 2)


@pytest.mark.parametrize("head", HEADS, ids=str)
def test_they_are_what_predictions_are_made_from(head: dict[str, Any]) -> None:
    network, X = learned(covariance="kronecker", **head)
    outputs, prediction = network.output_moments(X), network.predict(X)
    assert outputs.cov.shape == (60, network.n_outputs, network.n_outputs)
    if network.observation.is_gaussian:
        np.testing.assert_allclose(outputs.mean, prediction.mean, rtol=1e-12)
        np.testing.assert_allclose(np.diagonal(outputs.cov, axis1=1, axis2=2), prediction.epistemic, rtol=1e-12)
    elif network.observation.name == "bernoulli":
        pre_mean = np.reshape(prediction.pre_mean, outputs.mean.shape)
        np.testing.assert_allclose(outputs.mean, pre_mean, rtol=1e-12)
    single = network.output_moments(X[0])
    assert single.mean.shape == (network.n_outputs,)
    assert single.cov.shape == (network.n_outputs, network.n_outputs)
    np.testing.assert_allclose(single.cov, outputs.cov[0], rtol=1e-9)


@pytest.mark.parametrize("head", HEADS, ids=str)
@pytest.mark.parametrize("hidden", [(), (6,), (5, 4)], ids=str)
@pytest.mark.parametrize("covariance", COVARIANCES[:6], ids=str)
def test_a_single_row_is_predicted_as_among_others(
    covariance: Any, hidden: tuple[int, ...], head: dict[str, Any]
) -> None:
    network, X = learned(hidden=hidden, covariance=covariance, **head)
    together, alone = network.predict(X), [network.predict(x) for x in X[:12]]
    for name in ("mean", "epistemic", "aleatoric", "pre_mean", "pre_var"):
        expected = getattr(together, name)[:12]
        found = [getattr(own, name) for own in alone]
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-10 * max(np.abs(expected).max(), 1.0))


@pytest.mark.parametrize("covariance", COVARIANCES, ids=str)
def test_single_precision_predicts_rows_that_it_has_no_numbers_for(covariance: Any) -> None:
    network, X = learned(covariance=covariance, dtype="float32", n_outputs=2)
    far = 1e25 * X[:20]
    np.testing.assert_allclose([network.predict(x).mean for x in far], network.predict(far).mean, rtol=1e-3)


def test_rates_of_drift_are_mixed() -> None:
    network, X = learned(drift="auto", covariance="kronecker", n_outputs=3)
    weights, parts = zip(*((weight, member.output_moments(X[0])) for weight, member in network.components), strict=True)
    mean = sum(weight * part.mean for weight, part in zip(weights, parts, strict=True))
    pairs = zip(weights, parts, strict=True)
    cov = sum(weight * (part.cov + np.outer(part.mean - mean, part.mean - mean)) for weight, part in pairs)
    outputs, prediction = network.output_moments(X[0]), network.predict(X[0])
    np.testing.assert_allclose(outputs.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(outputs.mean, prediction.mean, rtol=1e-12)
    np.testing.assert_allclose(outputs.cov, cov, rtol=1e-10)
    np.testing.assert_allclose(np.diag(outputs.cov), prediction.epistemic, rtol=1e-10)
    assert network.output_moments(X).cov.shape == (60, 3, 3)


def test_the_classic_network_has_independent_outputs() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    network = KalmanNetwork(2, (5,), 2).learn(X, X)
    outputs = network.output_moments(X[0])
    np.testing.assert_array_equal(outputs.mean, network.predict(X[0]).mean)
    assert outputs.cov[0, 1] == 0.0


def test_input_that_overflows_is_an_error() -> None:
    network, X = learned(covariance="kronecker", n_outputs=2)
    with pytest.raises(ValueError, match="X overflows float64"):
        network.output_moments(1e200 * X[0])
    with pytest.raises(ValueError, match=r"X must have shape \(3,\)"):
        network.output_moments(X[0, :2])
