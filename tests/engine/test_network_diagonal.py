"""The kernel of independent weights, against a step written out and against the readable steps."""

from typing import Any

import numpy as np
import pytest

from onepass import BayesianNetwork
from tests.helpers.regression import linear_rows


def test_one_row_without_hidden_layers_by_hand() -> None:
    """One output: the diagonal of ``C - C J J'C / (J'C J + noise)``."""
    network = BayesianNetwork(3, (), noise=0.09, covariance="diagonal", calibrate=False)
    variance, J = network.cov.copy(), np.array([1.0, 0.5, -2.0, 0.0])
    total = J**2 @ variance + 0.09
    network.learn([[0.5, -2.0, 0.0]], [0.7])
    np.testing.assert_allclose(network.mean, variance * J * 0.7 / total, rtol=1e-12)
    np.testing.assert_allclose(network.cov, variance - (variance * J) ** 2 / total, rtol=1e-12)


@pytest.mark.parametrize("options", [{}, {"drift": 0.02}, {"outliers": 0.05}, {"observation": "bernoulli"}], ids=str)
@pytest.mark.parametrize("hidden", [(), (4, 3)], ids=str)
def test_rows_are_learned_as_the_reference_does(hidden: tuple[int, ...], options: dict[str, Any]) -> None:
    X, y = linear_rows(60, 3)
    target = (y > 0).astype(float) if "observation" in options else y
    ours, reference = (
        BayesianNetwork(3, hidden, covariance="diagonal", kernel=kernel, **options).learn(X, target)
        for kernel in ("auto", "reference")
    )
    np.testing.assert_allclose(ours.mean, reference.mean, atol=1e-9)
    np.testing.assert_allclose(ours.cov, reference.cov, atol=1e-10)
    assert ours.log_evidence == pytest.approx(reference.log_evidence, rel=1e-8)


def test_inputs_that_are_zero_are_skipped_and_leave_their_weights_alone() -> None:
    X, y = linear_rows(50, 4)
    X[:, 2] = 0.0
    network = BayesianNetwork(4, (3,), covariance="diagonal")
    mean, variance = (np.array(network._layout.layers(each)[0][:, 3]) for each in (network.mean, network.cov))
    network.learn(X, y)
    np.testing.assert_array_equal(network._layout.layers(network.mean)[0][:, 3], mean)
    np.testing.assert_allclose(network._layout.layers(network.cov)[0][:, 3], variance, rtol=1e-12)
