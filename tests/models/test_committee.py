"""Committees: what their members are; how they predict together is tested with mixtures."""

import numpy as np
import pytest

from onepass import BayesianCommittee, BayesianMLPRegressor, BayesianNetwork
from onepass.models.network.priors import NetworkPrior


def problem(n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + rng.normal(0, 0.1, n)


def test_a_committee_of_one_is_its_member() -> None:
    X, y = problem()
    alone = BayesianNetwork(2, (8,), seed=5).learn(X, y)
    committee = BayesianCommittee(2, (8,), members=1, seed=5).learn(X, y)
    np.testing.assert_array_equal(committee.predict(X).moments, alone.predict(X).moments)
    np.testing.assert_allclose(committee.interval(X), alone.interval(X), atol=1e-12)
    np.testing.assert_allclose(committee.log_predictive(X, y), alone.log_predictive(X, y), atol=1e-12)


def test_one_hidden_layer_may_be_given_as_a_number() -> None:
    X, y = problem()
    np.testing.assert_array_equal(BayesianNetwork(2, 8).mean, BayesianNetwork(2, (8,)).mean)
    assert BayesianMLPRegressor(hidden_layer_sizes=8).fit(X, y)._learner.state.mixtures[0].members[0].hidden == (8,)
    assert repr(BayesianNetwork(2, 8)).startswith("BayesianNetwork(2, (8,), 1, ")
    assert repr(BayesianCommittee(2, 8, members=3)).endswith("members=3, weighting='stacked')")


def test_members_count_up_from_the_seed_and_each_has_a_prior_of_its_own() -> None:
    prior = NetworkPrior(weight_std=0.7, output_std=0.2, output_means=0.5)
    first, *others = BayesianCommittee(2, (8,), members=6, seed=3, prior=prior).members
    assert [member.seed for member in (first, *others)] == [3, 4, 5, 6, 7, 8]
    assert first.prior == others[4].prior == prior  # there are five kinds, which repeat
    assert len({member.prior for member in others}) == 5
    wider, stronger = others[1].prior, others[3].prior
    assert (wider.weight_std, wider.output_std) == (pytest.approx(1.05), 0.2)
    assert (stronger.output_means, stronger.output_std) == (pytest.approx(0.75), pytest.approx(0.4))
    assert others[0].prior.paired


def test_with_drift_each_member_is_a_mixture_of_rates() -> None:
    committee = BayesianCommittee(2, (4,), members=2, drift="auto")
    assert [len(member.members) for member in committee.members] == [6, 6]
    assert sum(committee.drift_.values()) == pytest.approx(1.0)
