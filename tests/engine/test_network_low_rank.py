"""The kernel of low-rank covariances: while there is room for every row it is the full covariance."""

from typing import Any

import numpy as np
import pytest

from onepass import BayesianNetwork
from tests.helpers.regression import linear_posterior, linear_rows


def test_a_few_rows_come_to_linear_regression() -> None:
    X, y = linear_rows(6, 20)
    network = BayesianNetwork(20, (), noise=0.09, covariance="low_rank", calibrate=False)
    prior = network._state.prior.variance.copy()
    network.learn(X, y)
    expected = linear_posterior(X, y, prior, 0.09)
    np.testing.assert_allclose(network.mean, expected.mean[0], atol=1e-9)
    np.testing.assert_allclose(network._state.belief.marginal_variances(), np.diag(expected.cov), rtol=1e-8)


@pytest.mark.parametrize("options", [{}, {"drift": 0.02}, {"outliers": 0.05}, {"observation": "bernoulli"}], ids=str)
@pytest.mark.parametrize("hidden", [(5,), (5, 4)], ids=str)
def test_rows_are_learned_as_the_reference_does(hidden: tuple[int, ...], options: dict[str, Any]) -> None:
    X, y = linear_rows(40, 3)
    target = (y > 0).astype(float) if "observation" in options else y
    ours, reference = (
        BayesianNetwork(3, hidden, covariance="low_rank", kernel=kernel, **options).learn(X, target)
        for kernel in ("auto", "reference")
    )
    np.testing.assert_allclose(ours.mean, reference.mean, atol=1e-7)
    found, expected = (each._state.belief.marginal_variances() for each in (ours, reference))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert ours.log_evidence == pytest.approx(reference.log_evidence, rel=1e-7)
