"""Networks that are given more outputs: what is known stays, and the new outputs start at the prior."""

from typing import Any

import numpy as np
import pytest

from onepass import BayesianNetwork
from onepass.models.mixture import with_drift

FORMS: list[Any] = [
    "full",
    "layer",
    "neuron",
    "diagonal",
    "low_rank",
    "kronecker",
    ("kronecker", "full"),
]


def _learned(covariance: Any, **options: Any) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = np.column_stack([np.sin(X[:, 0]), X[:, 1]])
    return with_drift(BayesianNetwork, 3, (8,), 2, covariance=covariance, **options).learn(X, y), X


@pytest.mark.parametrize("covariance", FORMS, ids=str)
def test_first_outputs_stay_and_new_ones_are_as_uncertain_as_before(covariance: Any) -> None:
    network, X = _learned(covariance)
    more = network.with_outputs(4)
    before, after = network.output_moments(X), more.output_moments(X)
    np.testing.assert_allclose(after.mean[:, :2], before.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(after.cov[:, :2, :2], before.cov, rtol=1e-7, atol=1e-12)
    assert more.n_outputs == 4
    assert more.n_seen == 80
    fresh = BayesianNetwork(3, (8,), 4, covariance=covariance)
    shrunk = network.weight_variances[1].mean() / BayesianNetwork(3, (8,), 2).weight_variances[1].mean()
    assert shrunk < 0.7
    ratio = more.weight_variances[1][2:] / fresh.weight_variances[1][2:]
    assert ratio.mean() == pytest.approx(1.0, rel=1e-6)  # one by one, unless correlations between inputs are shared
    assert covariance == "kronecker" or ratio == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("covariance", FORMS, ids=str)
@pytest.mark.parametrize("options", [{}, {"dtype": "float32"}, {"outliers": 0.05}, {"forgetting": 0.99}], ids=str)
def test_a_network_with_more_outputs_goes_on_learning(covariance: Any, options: dict[str, Any]) -> None:
    network, X = _learned(covariance, **options)
    more = network.with_outputs(3)
    y = np.column_stack([np.full((len(X), 2), np.nan), 2.0 * X[:, 2]])
    error = np.abs(more.predict(X).mean[:, 2] - y[:, 2]).mean()
    more.learn(X, y)
    assert np.abs(more.predict(X).mean[:, 2] - y[:, 2]).mean() < 0.5 * error
    again = BayesianNetwork.from_state(*more.export_state())
    np.testing.assert_array_equal(again.predict(X).mean, more.predict(X).mean)


def test_hypotheses_of_drift_get_more_outputs_together() -> None:
    network, X = _learned("full", drift="auto")
    more = network.with_outputs(3)
    np.testing.assert_allclose(
        more.predict(X, rows_ahead=0).mean[:, :2], network.predict(X, rows_ahead=0).mean, rtol=1e-9
    )
    assert more.drift_ == network.drift_


@pytest.mark.parametrize(
    ("options", "n_outputs", "message"),
    [
        ({}, 1, "at least 2"),
        (
            {"observation": "heteroscedastic"},
            3,
            "outputs can't be added to a network with observation='heteroscedastic'",
        ),
    ],
    ids=str,
)
def test_what_cannot_have_more_outputs(options: dict[str, Any], n_outputs: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BayesianNetwork(3, (8,), 2, **options).with_outputs(n_outputs)


@pytest.mark.parametrize("covariance", FORMS, ids=str)
def test_the_output_for_two_classes_becomes_the_difference_of_two(covariance: Any) -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    options: dict[str, Any] = {"covariance": covariance, "intercept_scale": 4.0}
    two = BayesianNetwork(3, (8,), observation="bernoulli", **options).learn(X, X[:, 0] > 0.0)
    more = BayesianNetwork(3, (8,), 3, observation="categorical", **options)
    more.continue_from_two_classes(two)
    before, after = two.output_moments(X), more.output_moments(X)
    contrast = np.array([-1.0, 1.0, 0.0])
    np.testing.assert_allclose(after.mean @ contrast, before.mean[:, 0], rtol=1e-6)
    np.testing.assert_allclose(contrast @ after.cov @ contrast, before.cov[:, 0, 0], rtol=1e-4)
    assert (more.n_seen, more.log_evidence) == (60, two.log_evidence)
    assert np.all(after.cov[:, 2, 2] > 0.0)
    again = BayesianNetwork.from_state(*more.export_state())
    labels = np.arange(60) % 3
    np.testing.assert_array_equal(again.learn(X, labels).predict(X).mean, more.learn(X, labels).predict(X).mean)
