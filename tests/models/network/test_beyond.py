"""What networks say where they know little: few rows, few inputs, beyond the data."""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from scipy.stats import t as student

from onepass import BayesianCommittee, BayesianNetwork, Mixture
from onepass.engine.vector_matches import NetworkProgress, widening
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
    state = NetworkProgress.start(2, 0.1, False)
    np.testing.assert_array_equal(state.widened().to_array(), state.to_array())
    network = BayesianNetwork(1, (10,), calibrate=False)
    X, y = sine(5)
    network.learn(X, y)
    assert network.predict(X).aleatoric == pytest.approx(network.noise_var[0])


def test_predictions_widen_while_few_rows_are_known() -> None:
    X, y = sine(300)
    network = BayesianNetwork(1, (10,), seed=1)
    for n, most in ((5, 1.7), (300, 1.03)):
        network.learn(X[network.n_seen : n], y[network.n_seen : n])
        raw = network._state.noise.scale[0] * network.noise_var[0]
        ratio = network.predict(X[0]).aleatoric / raw
        assert most - 0.05 < ratio < most
    before = BayesianNetwork(1, (10,), seed=1)
    one_by_one = []
    for x, target in zip(X[:20], y[:20], strict=True):
        one_by_one.append(before.predict(x))
        before.learn(x, target)
    together = BayesianNetwork(1, (10,), seed=1).predict_then_learn(X[:20], y[:20])
    np.testing.assert_allclose(np.array([one.moments for one in one_by_one]).T, np.array(together.moments))


def test_samples_have_the_widened_variance() -> None:
    X, y = sine(6)
    network = BayesianNetwork(1, (10,)).learn(X, y)
    draws = network.sample_output(X, 20_000, 0)
    np.testing.assert_allclose(draws.var(axis=0), network.predict(X).epistemic, rtol=0.05)


def far_rows(network: BayesianNetwork) -> np.ndarray:
    """Rows of which the first vary less than those that the network has learned, and the last far more."""
    rows = np.array([[1.0], [-1.0], [2.5], [4.0]])
    usual = network._state.noise.usual_var[0]
    variances = network.predict(rows).pre_var
    assert variances[:2].max() < usual < variances[2:].min() / 2.0
    return rows


@pytest.mark.parametrize("observation", ["gaussian", "heteroscedastic"])
def test_calibration_does_not_shrink_what_varies_more_than_the_rows_learned(observation: str) -> None:
    X, y = sine(200)
    network = BayesianNetwork(1, (20,), observation=observation).learn(X, np.round(y, 1) / 10.0)
    state = network._state.noise.widened()
    scale, usual = state.scale[0], state.usual_var[0]
    assert scale < 0.8
    rows = far_rows(network)
    seen = network.predict(rows)
    expected = scale * np.minimum(seen.pre_var, usual) + 2.0 * np.maximum(seen.pre_var - usual, 0.0)
    moments = network.output_moments(rows)
    np.testing.assert_allclose(moments.cov[:, 0, 0], expected)
    np.testing.assert_allclose(network.sample_output(rows, 20_000, 0).var(axis=0), expected, rtol=0.05)
    if observation == "gaussian":
        np.testing.assert_allclose(seen.epistemic, expected)
        np.testing.assert_allclose(seen.aleatoric, scale * network.noise_var[0])
        densities = norm(seen.mean, seen.std).logpdf(0.3)
        np.testing.assert_allclose(network.log_predictive(rows, np.full(4, 0.3)), densities)


def test_rows_far_from_those_learned_are_predicted_alike_before_they_are_learned_and_as_they_are() -> None:
    X, y = sine(200)
    y = np.round(y, 1) / 10.0
    networks = [BayesianNetwork(1, (20,)).learn(X, y) for _ in range(2)]
    rows, one_by_one = far_rows(networks[0]), []
    for row in rows:
        one_by_one.append(networks[0].predict(row))
        networks[0].learn(row, 0.1)
    together, scores = networks[1].predict_score_learn(rows, np.full(4, 0.1))
    np.testing.assert_allclose(np.array([one.moments for one in one_by_one]).T, np.array(together.moments))
    densities = norm(together.mean, np.sqrt(together.epistemic + together.aleatoric)).logpdf(0.1)
    np.testing.assert_allclose(scores.log_densities, densities)


def test_the_shares_of_a_committee_follow_calibrated_variances() -> None:
    X, y = sine(200)
    y = np.round(y, 1) / 10.0
    network = BayesianNetwork(1, (20,)).learn(X, y)
    rows = far_rows(network)
    (learned,) = copy.deepcopy(network).learning(rows[3:], [0.2])
    scores = learned.scores(alone=False)
    state, seen = network._state.noise, network.predict(rows[3])
    total = state.scale[0] * (state.noise[0] + state.usual_var[0]) + seen.pre_var - state.usual_var[0]
    assert scores.ratios is not None
    assert scores.noise_shares is not None
    assert scores.ratios[0, 0] == pytest.approx((0.2 - seen.mean) ** 2 / total)
    assert scores.noise_shares[0, 0] == pytest.approx(state.scale[0] * state.noise[0] / total)
    assert scores.log_densities[0] == pytest.approx(norm(seen.mean, np.sqrt(total)).logpdf(0.2))


def test_variances_without_calibration_or_before_the_first_row_are_as_they_are() -> None:
    X, y = sine(200)
    fixed = BayesianNetwork(1, (20,), calibrate=False).learn(X, y)
    for network in (fixed, BayesianNetwork(1, (20,), noise=0.01).learn(X, y)):
        seen = network.predict([[1.0], [4.0]])
        np.testing.assert_allclose(seen.epistemic, seen.pre_var)
    new = BayesianNetwork(1, (20,))
    seen = new.predict([[1.0], [4.0]])
    np.testing.assert_allclose(seen.epistemic, seen.pre_var * widening(new._state.noise.scale_weight))


def test_networks_of_few_inputs_start_steeper() -> None:
    for d, factor in ((1, 8**0.75), (4, 2**0.75), (8, 1.0), (20, 1.0)):
        plain = BayesianNetwork(d, (20,), prior=replace(REGRESSION, few_inputs=1)).weights[0]
        ours = BayesianNetwork(d, (20,)).weights[0]
        np.testing.assert_allclose(ours[:, 1:], plain[:, 1:] * factor)
        np.testing.assert_allclose(ours[:, 0], plain[:, 0] * factor ** (1 / 3))
    assert CLASSIFICATION.few_inputs == 1


@pytest.mark.parametrize(("passes", "most"), [(1, 6.0), (5, 4.5)])
def test_errors_beyond_the_data_are_a_few_predicted_deviations(passes: int, most: float) -> None:
    far = np.concatenate([np.linspace(-3, -2, 11), np.linspace(2, 3, 11)])
    scores = []
    for seed in range(6):
        network = BayesianNetwork(1, (50,), seed=seed).learn(*sine(200, seed), passes=passes, refine="ep")
        predicted = network.predict(far[:, None])
        errors = (np.sin(3 * far) - predicted.mean) ** 2 / (predicted.epistemic + predicted.aleatoric)
        scores.append(np.sqrt(errors.mean()))
    assert np.median(scores) < most  # 9.7 and 6.6 without a prior for few inputs


def test_the_noise_of_a_mixture_is_less_than_that_of_its_members() -> None:
    X, y = sine(200)
    committee = BayesianCommittee(1, (20,), members=5).learn(X, y, passes=3, refine="ep")
    parts, test = committee.member_predictions(X), sine(2000, 1)
    assert (parts.noise_var[:, 0] < [member.predict(X[0]).aleatoric for member in committee.members]).all()
    low, high = committee.interval(test[0])
    assert 0.9 < np.mean((low < test[1]) & (test[1] < high)) < 0.99


def test_a_committee_with_its_noise_is_saved_and_restored() -> None:
    X, y = sine(100)
    committee = BayesianCommittee(1, (8,), members=3).learn(X, y)
    parameters, arrays = committee.export_state()
    assert arrays["noise"][0, 0] != 1.0
    restored = Mixture.from_state(json.loads(json.dumps(parameters)), arrays)
    np.testing.assert_array_equal(restored.predict(X).moments, committee.predict(X).moments)
    np.testing.assert_array_equal(restored.learn(X, y).weights, committee.learn(X, y).weights)
    with pytest.raises(ValueError, match=r"noise of a mixture.* must be above 0"):
        Mixture.from_state(parameters, arrays | {"noise": -arrays["noise"]})
