"""The state of a network: what it hands to files, to larger networks, and what an alarm makes of it."""

import pickle
from typing import Any

import numpy as np
import pytest

from onepass import BayesianNetwork
from onepass.models.network.state import output_variances


def learned(**options: Any) -> BayesianNetwork:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    return BayesianNetwork(2, (4,), **options).learn(X, X[:, 0] - X[:, 1] ** 2)


@pytest.mark.parametrize("covariance", ["full", "low_rank", "kronecker", "diagonal"])
def test_what_is_exported_restores_the_same_state(covariance: Any) -> None:
    state, fresh = (
        learned(covariance=covariance, drift=0.01)._state,
        BayesianNetwork(2, (4,), covariance=covariance)._state,
    )
    arrays = state.export(with_prior=True)
    fresh.restore(arrays, 0.0)
    for name, values in fresh.export(with_prior=True).items():
        np.testing.assert_array_equal(values, arrays[name])
    assert set(state.export(with_prior=False)) == set(arrays) - {"prior_mean", "prior_variances"}


def test_a_covariance_that_is_none_is_not_restored() -> None:
    state = learned(covariance="diagonal")._state
    arrays = state.export(with_prior=False)
    arrays["covariance"] = -arrays["covariance"]
    with pytest.raises(ValueError, match="varianc"):
        state.restore(arrays, 0.0)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_a_larger_network_takes_over_weights_noise_and_counts(covariance: Any) -> None:
    known = learned(covariance="full")
    larger = BayesianNetwork(3, (4,), 2, covariance=covariance)
    start = np.array(larger._state.prior.variance)
    larger._state.take_over(known._state)
    positions = larger._layout.positions_of(known._layout)
    new = np.setdiff1d(np.arange(larger._layout.size), positions)
    np.testing.assert_array_equal(larger.mean[positions], known.mean)
    variances = larger._state.belief.marginal_variances()
    np.testing.assert_allclose(variances[positions], known._state.belief.marginal_variances(), rtol=1e-12)
    np.testing.assert_allclose(variances[new], start[new], rtol=1e-12)
    assert larger.noise_var[0] == known.noise_var[0]
    assert (larger.n_seen, larger.log_evidence) == (known.n_seen, known.log_evidence)


def test_after_a_jump_the_covariance_is_the_priors_and_the_mean_stays() -> None:
    state = learned(outliers=0.05)._state
    mean = state.belief.mean.copy()
    state.answer_alarm(1)  # none was raised
    assert (state.belief.marginal_variances() < state.prior.variance).any()
    numbers = state.trust.to_array()
    for place in range(len(numbers)):  # the log odds of a jump are one of them
        raised = type(state.trust)([*numbers[:place], 1e3, *numbers[place + 1 :]])
        if raised.is_alarmed() and raised.has_jumped() and not raised.starts_over():
            state.noise.trust = raised
            break
    assert state.trust.is_alarmed()
    state.answer_alarm(1)
    np.testing.assert_allclose(state.belief.marginal_variances(), state.prior.variance, rtol=1e-12)
    np.testing.assert_array_equal(state.belief.mean, mean)
    assert not state.trust.is_alarmed()


def test_copies_are_independent_and_pickled_ones_equal() -> None:
    network = learned()
    state = network._state
    twin, thawed = state.copy(), pickle.loads(pickle.dumps(state))
    network.learn([[1.0, 2.0]], [3.0])
    assert (twin.seen, thawed.seen, state.seen) == (60, 60, 61)
    np.testing.assert_array_equal(twin.belief.mean, thawed.belief.mean)
    assert (twin.belief.mean != network.mean).any()


def test_variances_of_the_outputs_weights_are_a_view() -> None:
    network = BayesianNetwork(2, (4,), 3)
    prior = network._state.prior.copy()
    output_variances(network._layout, prior)[1] = 7.0
    assert (prior.variance == 7.0).sum() == 5
    assert output_variances(network._layout, prior).shape == (3, 5)
