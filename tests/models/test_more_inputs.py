"""Networks that are given more inputs: as if these had been there from the start, and zero in all rows."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from onepass import BayesianNetwork
from onepass.activations import as_activation
from onepass.models.mixture import with_drift
from onepass.models.network.priors import CLASSIFICATION, REGRESSION, NetworkPrior

FORMS: list[Any] = ["full", "layer", "neuron", "diagonal", "low_rank", "kronecker", ("kronecker", "full")]
EXACT = ["full", "layer", "neuron", "diagonal"]  # the others compress what they know, to the size that they have
rng = np.random.default_rng(0)
X = rng.normal(size=(160, 5))
y = np.sin(X[:, 0]) + X[:, 1] - X[:, 3] * X[:, 4]


def _network(n_features: int, prior: NetworkPrior = REGRESSION, **options: Any) -> Any:
    return with_drift(BayesianNetwork, n_features, (8,), prior=replace(prior, most_inputs=3), **options)


@pytest.mark.parametrize("options", [{}, {"forgetting": 0.99}, {"drift": 0.001}, {"outliers": 0.05}], ids=str)
@pytest.mark.parametrize("covariance", EXACT, ids=str)
def test_it_is_as_if_the_inputs_had_been_zero(covariance: Any, options: dict[str, Any]) -> None:
    few = _network(3, covariance=covariance, **options)
    # The network that had all inputs from the start, with the same weights: grown before it has learned anything.
    whole = few.with_inputs(5)
    known = np.where(np.arange(5) < 3, X[:80], 0.0)
    few.learn(X[:80, :3], y[:80])
    whole.learn(known, y[:80])
    grown = few.with_inputs(5)
    assert grown.n_seen == whole.n_seen == 80
    for network in (grown, whole):
        network.learn(X[80:], y[80:])
    np.testing.assert_allclose(grown.predict(X).mean, whole.predict(X).mean, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(grown.predict(X).var, whole.predict(X).var, rtol=1e-6)
    assert grown.log_evidence == pytest.approx(whole.log_evidence, rel=1e-6)


@pytest.mark.parametrize("covariance", FORMS, ids=str)
def test_what_was_known_stays_and_new_weights_are_as_uncertain_as_before(covariance: Any) -> None:
    network = _network(3, covariance=covariance).learn(X[:, :3], y)
    more = network.with_inputs(5)
    before, after = network.output_moments(X[:, :3]), more.output_moments(np.where(np.arange(5) < 3, X, 0.0))
    np.testing.assert_allclose(after.mean, before.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(after.cov, before.cov, rtol=1e-7, atol=1e-12)
    ratio = more.weight_variances[0][:, 4:] / _network(5, covariance=covariance).weight_variances[0][:, 4:]
    assert ratio.mean() == pytest.approx(1.0, rel=1e-6)
    again = BayesianNetwork.from_state(*more.export_state())
    np.testing.assert_array_equal(again.predict(X).mean, more.predict(X).mean)


@pytest.mark.parametrize("covariance", FORMS, ids=str)
def test_another_form_starts_with_the_variances(covariance: Any) -> None:
    network = _network(3, covariance="full").learn(X[:, :3], y)
    more = network.with_inputs(5, covariance)
    assert more.covariance == covariance
    np.testing.assert_array_equal(more.weights[0][:, :4], network.weights[0])
    if covariance in EXACT:
        np.testing.assert_allclose(more.weight_variances[0][:, :4], network.weight_variances[0], rtol=1e-9)
    more.learn(X, y)
    assert np.abs(more.predict(X).mean - y).mean() < np.abs(network.predict(X[:, :3]).mean - y).mean()


def test_hypotheses_of_drift_get_more_inputs_together() -> None:
    network = _network(3, drift="auto").learn(X[:, :3], y)
    more = network.with_inputs(4)
    zero = np.where(np.arange(4) < 3, X[:, :4], 0.0)
    np.testing.assert_allclose(
        more.predict(zero, rows_ahead=0).mean, network.predict(X[:, :3], rows_ahead=0).mean, rtol=1e-9
    )
    assert more.drift_ == network.drift_


def test_an_activation_without_a_name_stays() -> None:
    network = _network(3, activation=as_activation("tanh")).learn(X[:, :3], y)
    assert network.with_inputs(4).activation == network.activation


def test_new_classes_start_at_the_prior_and_are_learned() -> None:
    labels = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
    network = _network(5, CLASSIFICATION, n_outputs=2, observation="categorical").learn(
        X[labels < 2], labels[labels < 2]
    )
    more = network.with_outputs(3)
    np.testing.assert_allclose(more.output_moments(X).mean[:, :2], network.output_moments(X).mean, rtol=1e-9)
    more.learn(X, labels)
    assert (more.predict(X).mean.argmax(axis=1) == labels).mean() > 0.8


def test_what_cannot_have_more_inputs() -> None:
    with pytest.raises(ValueError, match="at least 3, as many as the network has now, got 2"):
        _network(3).with_inputs(2)
    with pytest.raises(ValueError, match="rows of numbers"):
        BayesianNetwork((4, 4), (3,)).with_inputs(20)


def test_the_prior_knows_no_more_inputs_than_it_counts() -> None:
    prior = replace(REGRESSION, most_inputs=3)
    few, many = (BayesianNetwork(n, (300,), prior=prior, covariance="diagonal") for n in (3, 30))
    assert many.weights[0][:, 1:].std() == pytest.approx(few.weights[0][:, 1:].std(), rel=0.1)
    assert many.weights[0][:, 0].std() == pytest.approx(few.weights[0][:, 0].std(), rel=0.1)
