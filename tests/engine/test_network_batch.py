"""Several rows as one step: exact where the outputs are linear in the weights, and the readable steps elsewhere."""

from typing import Any

import numpy as np
import pytest

from onepass import BayesianNetwork
from tests.helpers.regression import linear_posterior, linear_rows


@pytest.mark.parametrize("batch", [2, 7, 200])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_batches_of_any_size_come_to_linear_regression(n_outputs: int, batch: int) -> None:
    X, y = linear_rows(80, 4, n_outputs)
    network = BayesianNetwork(4, (), n_outputs, noise=0.09, covariance="full", calibrate=False)
    prior = network._state.prior.variance.reshape(n_outputs, 5)
    network.learn(X, y, batch=batch)
    expected = linear_posterior(X, y, prior[0], 0.09)
    np.testing.assert_allclose(network.mean.reshape(n_outputs, 5), expected.mean, atol=1e-9)
    (cov,) = network.cov
    np.testing.assert_allclose(cov, np.kron(np.eye(n_outputs), expected.cov), atol=1e-10)
    assert network.n_seen == 80


@pytest.mark.parametrize("options", [{}, {"drift": 0.02}, {"forgetting": 0.97}, {"outliers": 0.05}], ids=str)
@pytest.mark.parametrize("covariance", ["full", "layer", "neuron"])
def test_batches_are_learned_as_the_reference_does(covariance: str, options: dict[str, Any]) -> None:
    X, y = linear_rows(40, 3, 2)
    given = {"hidden": (4,), "n_outputs": 2, "covariance": covariance, **options}
    ours, reference = (
        BayesianNetwork(3, kernel=kernel, **given).learn(X, y, batch=6) for kernel in ("auto", "reference")
    )
    np.testing.assert_allclose(ours.mean, reference.mean, atol=1e-9)
    for own, other in zip(ours.cov, reference.cov, strict=True):
        np.testing.assert_allclose(own, other, atol=1e-9)


def test_outputs_that_were_not_observed_teach_nothing() -> None:
    X, y = linear_rows(30, 3, 2)
    y[:, 1] = np.nan
    network = BayesianNetwork(3, (), 2, noise=0.09, covariance="full")
    before = network.mean.reshape(2, 4)[1].copy()
    network.learn(X, y, batch=5)
    np.testing.assert_array_equal(network.mean.reshape(2, 4)[1], before)
    np.testing.assert_allclose(
        network.mean.reshape(2, 4)[0],
        linear_posterior(X, y[:, :1], network._state.prior.variance[:4], 0.09).mean[0],
        atol=1e-9,
    )
