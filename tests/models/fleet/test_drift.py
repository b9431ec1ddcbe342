"""Fleets whose weights move: the covariance of a key goes towards the prior's."""

import numpy as np
import pytest

from onepass import PerceptronFleet


def _fleet(rows: int = 30) -> PerceptronFleet:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 3))
    return PerceptronFleet(3, "linear", noise=0.1).learn(X, X.sum(axis=1), keys=rng.integers(4, size=rows))


def test_a_covariance_moves_towards_the_priors_and_a_mean_stays() -> None:
    fleet = _fleet()
    before = fleet.perceptron(1)
    fleet.drift([1, 2], [0.3, 0.0])
    after = fleet.perceptron(1)
    np.testing.assert_allclose(after.cov, 0.7 * before.cov + 0.3 * np.eye(4), atol=1e-12)
    np.testing.assert_array_equal(after.mean, before.mean)
    np.testing.assert_array_equal(fleet.perceptron(2).cov, _fleet().perceptron(2).cov)


def test_covariances_that_are_all_but_singular_can_drift() -> None:
    fleet = PerceptronFleet(3, "linear", noise=1e-12, cov=np.array([1.0, 1e-30, 1e-30, 1e-30]))
    fleet.learn(np.ones((20, 3)), np.ones(20), keys=[0] * 20).drift([0], 1e-9)
    assert np.isfinite(fleet.predict([[1.0, 1.0, 1.0]], keys=[0]).epistemic).all()


def test_shares_beyond_the_prior_are_refused() -> None:
    with pytest.raises(ValueError, match=r"share must be in \[0, 1\]"):
        _fleet().drift([1], 1.5)
