"""The kernel of block covariances: closed forms where there are any, and the readable steps elsewhere."""

from typing import Any

import numpy as np
import pytest

from onepass import BayesianNetwork
from tests.helpers.regression import linear_posterior, linear_rows


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("covariance", ["full", "layer"])
def test_without_hidden_layers_it_comes_to_linear_regression(covariance: str, n_outputs: int) -> None:
    X, y = linear_rows(80, 4, n_outputs)
    network = BayesianNetwork(4, (), n_outputs, noise=0.09, covariance=covariance, calibrate=False)
    prior = network._state.prior.variance.reshape(n_outputs, 5)
    network.learn(X, y)
    expected = linear_posterior(X, y, prior[0], 0.09)
    np.testing.assert_allclose(network.mean.reshape(n_outputs, 5), expected.mean, atol=1e-9)
    (cov,) = network.cov
    np.testing.assert_allclose(cov, np.kron(np.eye(n_outputs), expected.cov), atol=1e-10)


@pytest.mark.parametrize("options", [{}, {"drift": 0.02}, {"outliers": 0.05}, {"dtype": "float32"}], ids=str)
@pytest.mark.parametrize("covariance", ["full", "layer", "neuron"])
def test_rows_are_learned_as_the_reference_does(covariance: str, options: dict[str, Any]) -> None:
    X, y = linear_rows(40, 3, 2)
    given = {"hidden": (4, 3), "n_outputs": 2, "covariance": covariance, **options}
    ours, reference = (BayesianNetwork(3, kernel=kernel, **given).learn(X, y) for kernel in ("auto", "reference"))
    near = 1e-4 if "dtype" in options else 1e-9
    np.testing.assert_allclose(ours.mean, reference.mean, atol=near)
    for own, other in zip(ours.cov, reference.cov, strict=True):
        np.testing.assert_allclose(own, other, atol=near)
    assert ours.log_evidence == pytest.approx(reference.log_evidence, rel=10 * near)


@pytest.mark.parametrize("covariance", ["full", "layer", "neuron"])
def test_a_row_is_looked_at_as_it_is_predicted(covariance: str) -> None:
    """The kernel's mean and covariance of one row's outputs, before it is learned, against those of many rows."""
    X, y = linear_rows(40, 3, 2)
    network = BayesianNetwork(3, (4,), 2, covariance=covariance, calibrate=False).learn(X, y)
    many = network.output_moments(X[:5])
    for i in range(5):
        alone = network.output_moments(X[i : i + 1])
        np.testing.assert_allclose(alone.mean[0], many.mean[i], rtol=1e-9)
        np.testing.assert_allclose(alone.cov[0], many.cov[i], rtol=1e-9, atol=1e-12)


def test_a_row_that_is_not_finite_leaves_the_belief_as_it_was() -> None:
    X, y = linear_rows(20, 3)
    network = BayesianNetwork(3, (4,), covariance="full").learn(X, y)
    mean, evidence = network.mean.copy(), network.log_evidence
    X[7] = 1e300
    with pytest.raises(ValueError, match="Nothing was learned"):
        network.learn(X, y)
    np.testing.assert_array_equal(network.mean, mean)
    assert network.log_evidence == evidence
