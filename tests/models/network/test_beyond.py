"""What networks say where they know little: few rows, few inputs, beyond the data."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student

from onepass import BayesianCommittee, BayesianNetwork
from onepass.engine.vector_matches import NoiseState, widening
from onepass.models.network.priors import CLASSIFICATION, REGRESSION


def sine(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.7, 1.5, n) * rng.choice([-1.0, 1.0], n)
    return x[:, None], np.sin(3 * x) + 0.1 * rng.normal(size=n)


@given(st.floats(10.0, 1e6))
@settings(max_examples=50, deadline=None)
def test_a_scale_known_from_few_rows_is_that_of_a_student_t(weight: float) -> None:
    assert float(widening(np.array([weight]))[0]) == pytest.approx(student(weight / 3.0).var())


def test_a_fixed_scale_is_not_widened() -> None:
    state = NoiseState.start(2, 0.1, False)
    np.testing.assert_array_equal(state.widened().to_array(), state.to_array())
    network = BayesianNetwork(1, (10,), calibrate=False)
    X, y = sine(5)
    network.learn(X, y)
    assert network.predict(X).noise_var == pytest.approx(network.noise_var[0])


def test_predictions_widen_while_few_rows_are_known() -> None:
    X, y = sine(300)
    network = BayesianNetwork(1, (10,), seed=1)
    for n, most in ((5, 1.7), (300, 1.03)):
        network.learn(X[network.n_seen : n], y[network.n_seen : n])
        raw = network._state.noise.scale[0] * network.noise_var[0]
        ratio = network.predict(X[0]).noise_var / raw
        assert most - 0.05 < ratio < most
    before = BayesianNetwork(1, (10,), seed=1)
    one_by_one = []
    for x, target in zip(X[:20], y[:20], strict=True):
        one_by_one.append(before.predict(x))
        before.learn(x, target)
    together = BayesianNetwork(1, (10,), seed=1).predict_then_learn(X[:20], y[:20])
    np.testing.assert_allclose(np.array(one_by_one).T, np.array(together))


def test_samples_have_the_widened_variance() -> None:
    X, y = sine(6)
    network = BayesianNetwork(1, (10,)).learn(X, y)
    draws = network.sample_output(X, 20_000, 0)
    np.testing.assert_allclose(draws.var(axis=0), network.predict(X).var, rtol=0.05)


def test_networks_of_few_inputs_start_steeper() -> None:
    for d, factor in ((1, 8**0.75), (4, 2**0.75), (8, 1.0), (20, 1.0)):
        plain = BayesianNetwork(d, (20,), prior=replace(REGRESSION, few_inputs=1)).weights[0]
        ours = BayesianNetwork(d, (20,)).weights[0]
        np.testing.assert_allclose(ours[:, :-1], plain[:, :-1] * factor)
        np.testing.assert_allclose(ours[:, -1], plain[:, -1] * factor ** (1 / 3))
    assert CLASSIFICATION.few_inputs == 1


@pytest.mark.parametrize(("passes", "most"), [(1, 6.0), (5, 4.5)])
def test_errors_beyond_the_data_are_a_few_predicted_deviations(passes: int, most: float) -> None:
    far = np.concatenate([np.linspace(-3, -2, 11), np.linspace(2, 3, 11)])
    scores = []
    for seed in range(6):
        network = BayesianNetwork(1, (50,), seed=seed).learn(*sine(200, seed), passes=passes, refine="ep")
        predicted = network.predict(far[:, None])
        errors = (np.sin(3 * far) - predicted.mean) ** 2 / (predicted.var + predicted.noise_var)
        scores.append(np.sqrt(errors.mean()))
    assert np.median(scores) < most  # 9.7 and 6.6 without a prior for few inputs


def test_the_noise_of_a_mixture_is_less_than_that_of_its_members() -> None:
    X, y = sine(200)
    committee = BayesianCommittee(1, (20,), members=5).learn(X, y, passes=3, refine="ep")
    parts, test = committee.member_predictions(X), sine(2000, 1)
    assert (parts.noise_var[:, 0] < [member.predict(X[0]).noise_var for member in committee.members]).all()
    low, high = committee.interval(test[0])
    assert 0.9 < np.mean((low < test[1]) & (test[1] < high)) < 0.99


def test_a_committee_with_its_noise_is_saved_and_restored() -> None:
    X, y = sine(100)
    committee = BayesianCommittee(1, (8,), members=3).learn(X, y)
    parameters, arrays = committee.export_state()
    assert arrays["noise"][0, 0] != 1.0
    restored = BayesianCommittee.from_state(json.loads(json.dumps(parameters)), arrays)
    np.testing.assert_array_equal(restored.predict(X), committee.predict(X))
    np.testing.assert_array_equal(restored.learn(X, y).weights, committee.learn(X, y).weights)
    with pytest.raises(ValueError, match="noise of a committee must be above 0"):
        BayesianCommittee.from_state(parameters, arrays | {"noise": -arrays["noise"]})
