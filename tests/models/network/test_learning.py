"""Rows of several outputs of which some were not observed: the others are learned, and nothing else changes."""

import copy
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from onepass import BayesianCommittee, BayesianNetwork, load, merging, save
from onepass.engine.vector_matches import NetworkProgress
from onepass.likelihoods import Gaussian
from onepass.paper.kalman_network import KalmanNetwork

NAN = np.nan
KINDS = (
    {"noise": 0.3},
    {"noise": "learn"},
    {"noise": "learn", "outliers": 0.1},
    {"observation": "heteroscedastic"},
    {"observation": "heteroscedastic", "outliers": 0.1},
)


def rows(n: int = 60, n_outputs: int = 3, seen: float = 0.6) -> tuple[np.ndarray, np.ndarray]:
    """Inputs, and targets of which about a share was seen; the first row has none of them."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 2))
    Y = np.tanh(X @ rng.normal(size=(2, n_outputs))) + 0.3 * rng.normal(size=(n, n_outputs))
    Y[rng.uniform(size=Y.shape) > seen] = NAN
    Y[0] = NAN
    return X, Y


def linear(n_outputs: int, **options: Any) -> BayesianNetwork:
    return BayesianNetwork(2, (), n_outputs, covariance="full", **options)


def numbers(network: BayesianNetwork) -> list[np.ndarray]:
    """All that a network has learned."""
    return [np.asarray(values) for values in network.export_state()[1].values()]


def test_the_match_is_that_of_the_joint_gaussian_of_what_was_observed() -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    mean, cov, noise = rng.normal(size=4), root @ root.T, 0.7
    state = NetworkProgress.start(4, noise, False)
    target = np.array([NAN, 1.2, NAN, -0.4])
    match = Gaussian().outputs(4).moment_match(mean, cov, target, state)
    seen = [1, 3]
    total = cov[np.ix_(seen, seen)] + noise * np.eye(2)
    assert match.log_density == pytest.approx(multivariate_normal.logpdf(target[seen], mean[seen], total), rel=1e-12)
    after_mean, after_cov = mean + cov @ match.score, cov - cov @ match.information @ cov
    gain = cov[:, seen] @ np.linalg.inv(total)
    np.testing.assert_allclose(after_mean, mean + gain @ (target[seen] - mean[seen]), rtol=1e-12)
    np.testing.assert_allclose(after_cov, cov - gain @ cov[seen], rtol=1e-11)
    # The site of the same step has the noise of what was observed, and nothing else.
    np.testing.assert_allclose(match.precision, np.diag([0.0, 1 / noise, 0.0, 1 / noise]))


def test_a_linear_network_has_the_posterior_of_the_observed_entries() -> None:
    X, Y = rows()
    network = linear(3, noise=0.3)
    prior_mean, prior_cov = network.mean, np.diag(network.cov[0].diagonal())
    network.learn(X, Y)
    # One equation per observed entry, all at once: weights stand output after output, the bias first.
    where = np.argwhere(~np.isnan(Y))
    design = np.zeros((len(where), 9))
    for row, (i, k) in enumerate(where):
        design[row, 3 * k : 3 * k + 3] = [1.0, *X[i]]
    targets = Y[~np.isnan(Y)]
    cov = np.linalg.inv(np.linalg.inv(prior_cov) + design.T @ design / 0.3)
    np.testing.assert_allclose(network.mean, cov @ (np.linalg.solve(prior_cov, prior_mean) + design.T @ targets / 0.3))
    np.testing.assert_allclose(network.cov[0], cov, atol=1e-12)
    evidence = multivariate_normal.logpdf(
        targets, design @ prior_mean, design @ prior_cov @ design.T + 0.3 * np.eye(len(targets))
    )
    assert network.log_evidence == pytest.approx(evidence)
    assert network.n_seen == len(X)


@pytest.mark.parametrize("options", [kind for kind in KINDS if "outliers" not in kind])
@pytest.mark.parametrize("covariance", ["full", "layer", "neuron", "diagonal"])
def test_independent_outputs_learn_as_networks_of_their_own(options: dict[str, Any], covariance: str) -> None:
    X, Y = rows()
    network = BayesianNetwork(2, (), 3, covariance=covariance, prior_scale=0.5, calibrate=True, **options)
    joint = copy.deepcopy(network).learn(X, Y)
    fresh = rows(20)[0] + 0.1
    predicted = joint.predict(fresh)
    for k in range(3):
        # The others' targets are never seen, so that only output k learns; its noise and scale are its own.
        alone = np.full_like(Y, NAN)
        alone[:, k] = Y[:, k]
        single = copy.deepcopy(network).learn(X, alone)
        for part, own in zip(predicted.moments, single.predict(fresh).moments, strict=True):
            np.testing.assert_allclose(part[:, k], own[:, k], rtol=1e-8)
        seen = ~np.isnan(Y[:, k])
        fewer = copy.deepcopy(network).learn(X[seen], alone[seen])
        for with_blanks, without in zip(numbers(single), numbers(fewer), strict=True):
            np.testing.assert_array_equal(with_blanks, without)
        others = [m for m in range(3) if m != k]
        np.testing.assert_array_equal(
            single._state.noise.to_array()[:, others], network._state.noise.to_array()[:, others]
        )


@pytest.mark.parametrize("options", KINDS)
def test_an_output_that_is_never_observed_is_as_if_it_were_not_there(options: dict[str, Any]) -> None:
    X, Y = rows(80, 2, seen=1.0)
    Y[0], Y[40] = 0.5, 30.0  # a wild row
    network = linear(3, **options)
    one = linear(2, **options)
    weights = np.arange(len(one.mean))
    if options.get("observation") == "heteroscedastic":  # the logs of the noise come after all outputs
        weights[6:] += 3
    one._state.belief.mean[:] = network.mean[weights]
    network.learn(X, np.column_stack([Y, np.full(80, NAN)]))
    one.learn(X, Y)
    np.testing.assert_allclose(network.mean[weights], one.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(network.noise_var[:2], one.noise_var, rtol=1e-9)
    assert network.noise_var[2] == linear(3, **options).noise_var[2]
    assert network.log_evidence == pytest.approx(one.log_evidence)
    assert network.outliers_ == pytest.approx(one.outliers_)


@pytest.mark.parametrize("options", KINDS)
@pytest.mark.parametrize(
    "learning", [{}, {"batch": 7}, {"passes": 3, "refine": "ep"}, {"passes": 2, "refine": "reuse"}]
)
def test_the_reference_learns_the_same(options: dict[str, Any], learning: dict[str, Any]) -> None:
    X, Y = rows(40)
    made = [
        BayesianNetwork(2, (4,), 3, covariance="full", kernel=kernel, **options).learn(X, Y, **learning)
        for kernel in ("auto", "reference")
    ]
    compiled, reference = ((one.mean, one.cov[0], one._state.noise.to_array()) for one in made)
    for fast, readable in zip(compiled, reference, strict=True):
        np.testing.assert_allclose(fast, readable, rtol=1e-6, atol=1e-9)
    assert made[0].log_evidence == pytest.approx(made[1].log_evidence)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("options", KINDS)
def test_a_row_without_targets_is_counted_and_changes_nothing(options: dict[str, Any], covariance: str) -> None:
    X, Y = rows()
    network = BayesianNetwork(2, (4,), 3, covariance=covariance, **options).learn(X, Y)
    before, evidence = numbers(network), network.log_evidence
    prediction, outliers = network.predict_then_learn(X[:2], np.full((2, 3), NAN), return_outlier_probability=True)
    for old, new in zip(before, numbers(network), strict=True):
        np.testing.assert_array_equal(old, new)
    assert np.isfinite(prediction.mean).all()
    np.testing.assert_array_equal(outliers, 0.0)
    assert (network.log_evidence, network.n_seen) == (evidence, 62)
    assert network.log_predictive(X[0], [NAN] * 3) == 0.0
    np.testing.assert_array_equal(network.log_predictive(X[:2], np.full((2, 3), NAN)), 0.0)


def test_ep_on_a_linear_network_is_the_same_as_one_pass() -> None:
    X, Y = rows()
    once, thrice = linear(3, noise=0.3).learn(X, Y), linear(3, noise=0.3).learn(X, Y, passes=3, refine="ep")
    np.testing.assert_allclose(thrice.mean, once.mean, rtol=1e-8)
    np.testing.assert_allclose(thrice.cov[0], once.cov[0], atol=1e-10)


@pytest.mark.parametrize("options", KINDS)
def test_the_log_density_is_that_of_what_was_observed(options: dict[str, Any]) -> None:
    X, Y = rows(seen=1.0)
    Y[0] = 0.0
    network = BayesianNetwork(2, (), 2, covariance="diagonal", **options).learn(X, Y[:, :2])
    both = network.log_predictive(X[:5], Y[:5, :2])
    first = network.log_predictive(X[:5], np.column_stack([Y[:5, 0], np.full(5, NAN)]))
    second = network.log_predictive(X[:5], np.column_stack([np.full(5, NAN), Y[:5, 1]]))
    if "outliers" not in options:  # which a row has in all its outputs at once
        np.testing.assert_allclose(first + second, both, rtol=1e-10)
    assert np.isfinite([first, second]).all()


@pytest.mark.parametrize("options", [*KINDS, {"noise": "learn", "drift": "auto"}])
def test_committees_and_rates_of_drift_stay_finite(options: dict[str, Any]) -> None:
    X, Y = rows(120)
    committee = BayesianCommittee(2, (4,), 3, members=2, **options)
    prediction, scores = committee.predict_score_learn(X, Y)
    again = BayesianCommittee(2, (4,), 3, members=2, **options).learn(X, Y)
    for part in (
        *prediction.moments,
        *scores[:3],
        *again.predict(X).moments,
        again.weights,
        again.log_predictive(X, Y),
    ):
        assert np.isfinite(part).all()
    assert scores.log_densities[0] == pytest.approx(0.0, abs=1e-12)
    unseen = Y.copy()
    unseen[:, 2] = NAN  # the mixture's noise of an output that is never observed stays where it was
    blind = BayesianCommittee(2, (4,), 3, members=2, **options).learn(X, unseen)
    assert blind.noise_scale is not None
    assert blind.noise_scale[2] == 1.0


def test_scores_of_rows_have_neutral_errors_where_nothing_was_observed() -> None:
    X, Y = rows()
    (learned,) = BayesianNetwork(2, (4,), 3).learning(X, Y)
    scores = learned.scores(alone=False)
    assert scores.ratios is not None
    assert scores.noise_shares is not None
    np.testing.assert_array_equal(scores.ratios[np.isnan(Y)], 1.0)
    assert np.isfinite(scores.noise_shares).all()
    assert np.isfinite(scores.log_densities).all()


def test_drift_goes_on_where_nothing_is_observed() -> None:
    network = linear(2, noise=0.1, drift=0.1).learn(*[part[:, :2] for part in rows(seen=1.0)])
    before = network.predict([1.0, 1.0]).epistemic
    network.learn([1.0, 1.0], [NAN, NAN])
    assert (network.predict([1.0, 1.0]).epistemic > before).all()


def test_files_and_merging_know_nothing_of_it(tmp_path: Any) -> None:
    X, Y = rows()
    prior = linear(3, noise=0.3)
    whole = copy.deepcopy(prior).learn(X, Y)
    parts = [copy.deepcopy(prior).learn(X[half], Y[half]) for half in (slice(0, 30), slice(30, None))]
    merged = merging.merge(prior, parts)
    np.testing.assert_allclose(merged.mean, whole.mean)
    save(whole, f"{tmp_path}/model.onepass")
    np.testing.assert_array_equal(load(f"{tmp_path}/model.onepass").learn(X, Y).mean, whole.learn(X, Y).mean)


def test_the_classic_kalman_network_learns_what_was_observed() -> None:
    X, Y = rows()
    network = KalmanNetwork(2, (4,), 3, noise=0.1)
    before = numbers(network)
    network.learn(X[:1], Y[:1])
    for old, new in zip(before, numbers(network), strict=True):
        np.testing.assert_array_equal(old, new)
    never = network.weights[-1][2].copy()
    Y[:, 2] = NAN
    network.learn(X, Y)
    np.testing.assert_array_equal(network.weights[-1][2], never)
    assert not np.array_equal(network.weights[-1][1], before[0].reshape(-1)[:5])
    assert np.isfinite(network.log_evidence)


@pytest.mark.parametrize(
    ("network", "y", "message"),
    [
        (BayesianNetwork(2), [NAN], "y must be finite, got nan at index 0: leave out rows without a target"),
        (BayesianNetwork(2, (), 3, observation="categorical"), [NAN], "leave out rows without a target"),
        (BayesianNetwork(2, observation="poisson"), [NAN], "leave out rows without a target"),
        (BayesianNetwork(2, (), 2), [[NAN, np.inf]], r"finite, or NaN where it was not observed, got inf at index \(0"),
    ],
)
def test_one_output_needs_its_target_and_nothing_is_infinite(network: BayesianNetwork, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        network.learn([[1.0, 2.0]], y)


def test_targets_too_large_are_refused_without_a_trace() -> None:
    network = linear(2)
    with pytest.raises(ValueError, match=r"overflow float64: their largest magnitudes are 1 and 1e\+300"):
        network.learn([[1.0, 1.0], [1.0, 1.0]], [[NAN, NAN], [NAN, 1e300]])
    assert network.n_seen == 0
