"""Noise that depends on the input: the tilted pair against brute force, and what it is worth in a network."""

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_friedman1

from onepass import BayesianCommittee, BayesianMLPRegressor, BayesianNetwork
from onepass.engine.vector_matches import NetworkProgress, OutputMatch
from onepass.likelihoods import Heteroscedastic
from onepass.likelihoods.base import LogNoise

EDGE = 1.7


def problem(n: int, seed: int, least: float = 0.05, growth: float = 10.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A sine whose noise has the deviation ``least`` on the left and ``growth`` times that on the right."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-EDGE, EDGE, size=(n, 1))
    std = least * growth ** ((X[:, 0] + EDGE) / (2 * EDGE))
    return X, np.sin(2 * X[:, 0]) + rng.normal(0, std), std


def coverage_by_quarter(model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    low, high = model.interval(X)
    inside = (low < y) & (y < high)
    edges = np.linspace(-EDGE, EDGE, 5)
    return np.array([inside[(X[:, 0] > a) & (X[:, 0] <= b)].mean() for a, b in pairwise(edges)])


def match_pair(error: float, cov: np.ndarray, log_noise: float) -> OutputMatch:
    """Match a pair with the means 0 and ``log_noise`` by a target ``error`` away."""
    state = NetworkProgress.start(1, None, False)
    return Heteroscedastic().outputs(1).moment_match(np.array([0.0, log_noise]), cov, np.array([error]), state)


def slowly_matched(error: float, cov: np.ndarray, log_noise: float) -> tuple[float, np.ndarray, np.ndarray]:
    """Log density, score and information by the same sums in NumPy."""
    nodes = np.linspace(-7.0, 7.0, 43)
    log_weights = -0.5 * nodes**2 - np.log(np.exp(-0.5 * nodes**2).sum())
    var = max(float(cov[1, 1]), 1e-8)
    std, b = np.sqrt(var), cov[0, 1] / var
    s = max(float(cov[0, 0] - b * cov[0, 1]), 0.0)
    total = s + np.exp(np.clip(log_noise + std * nodes, np.log(1e-6), 30.0))
    limit = 10.0 * np.sqrt(total[-1])
    near = min(max(error, -limit), limit)
    errors = near - b * std * nodes
    log_share = log_weights - 0.5 * (np.log(2.0 * np.pi * total) + errors**2 / total)
    top = log_share.max()
    share = np.exp(log_share - top)
    mass = share.sum()
    share /= mass
    away = share @ nodes
    score = share @ (errors / total)
    scatter = errors / total - score
    information = share @ (1.0 / total - scatter**2)
    cross = -(share @ (scatter * (nodes - away))) / std
    mixed = cross - b * information
    ratio = max(share @ (nodes - away) ** 2, 0.1)
    log_z = float(top + np.log(mass) - 0.5 * (error - near) * (error + near) / total[-1])
    whole = np.array([[information, mixed], [mixed, (1.0 - ratio) / var - b * (cross + mixed)]])
    return log_z, np.array([score, away / std - b * score]), whole


@pytest.mark.parametrize("error", [0.0, -0.3, 2.0, -4.0])
@pytest.mark.parametrize("cov", [((0.5, 0.3), (0.3, 1.2)), ((1e-3, 0.0), (0.0, 0.4)), ((2.0, -0.6), (-0.6, 0.2))])
def test_the_tilted_moments_are_those_of_a_fine_grid(error: float, cov: Any) -> None:
    S, log_noise = np.array(cov), np.log(0.1)
    deviations = np.sqrt(np.diag(S))
    f, a = (np.linspace(-9, 9, 801)[:, None] * s for s in deviations)
    pair = np.stack(np.broadcast_arrays(f, a.T), axis=-1)
    log_prior = -0.5 * np.einsum("...i,ij,...j", pair, np.linalg.inv(S), pair)
    noise = np.exp(log_noise + pair[..., 1])
    log_prior -= np.log(2 * np.pi * np.sqrt(np.linalg.det(S)))
    density = np.exp(log_prior - 0.5 * (np.log(2 * np.pi * noise) + (error - pair[..., 0]) ** 2 / noise))
    cell = (f[1] - f[0]) * (a[1] - a[0])
    mass = density.sum()
    mean = (density[..., None] * pair).sum(axis=(0, 1)) / mass
    away = pair - mean
    after = np.einsum("ab,abi,abj->ij", density, away, away) / mass
    ours = match_pair(error, S, float(log_noise))
    assert ours.log_density == pytest.approx(float(np.log(mass * cell[0])), abs=1e-5)
    np.testing.assert_allclose(S @ ours.score / deviations, mean / deviations, atol=1e-5)
    np.testing.assert_allclose(S - S @ ours.information @ S, after, atol=1e-5 * S.max())


@settings(deadline=None, max_examples=300)
@given(
    error=st.floats(-1e12, 1e12),
    spreads=st.tuples(st.floats(0, 1e3), st.floats(0, 30.0)),
    correlation=st.floats(-0.999, 0.999),  # nearer to 1 a pair is one number, and digits go with the difference
    log_noise=st.floats(-60, 60),
)
def test_no_target_spoils_a_pair(
    error: float, spreads: tuple[float, float], correlation: float, log_noise: float
) -> None:
    both = correlation * spreads[0] * spreads[1]
    S = np.array([[spreads[0] ** 2, both], [both, spreads[1] ** 2]])
    match = match_pair(error, S, log_noise)
    log_z, score, information = slowly_matched(error, S, log_noise)
    assert match.log_density == pytest.approx(log_z, rel=1e-9, abs=1e-9)
    assert np.isfinite(match.score).all()
    assert np.isfinite(match.information).all()
    deviations = np.array(spreads) + 1e-100
    units = np.outer(deviations, deviations)
    move, shrink = S @ match.score / deviations, S @ match.information @ S / units
    np.testing.assert_allclose(S @ score / deviations, move, atol=1e-6 * max(1.0, np.abs(move).max()))
    np.testing.assert_allclose(S @ information @ S / units, shrink, atol=1e-6 * max(1.0, np.abs(shrink).max()))
    assert abs((S @ match.score)[1]) <= 7.001 * max(spreads[1], 1e-4)  # below that it counts as known
    after = S - S @ match.information @ S
    assert after[1, 1] + 1e-6 * S[1, 1] >= 0.0
    assert after[0, 0] + 1e-6 * (S[0, 0] + (S @ np.abs(match.information) @ S)[0, 0]) >= 0.0


def test_it_knows_where_the_noise_is() -> None:
    X, y, _ = problem(1000, 0)
    test, target, std = problem(4000, 1)
    one, varying = (BayesianNetwork(1, (20,), observation=kind).learn(X, y) for kind in ("gaussian", "heteroscedastic"))
    gain = varying.log_predictive(test, target).mean() - one.log_predictive(test, target).mean()
    assert gain > 0.25
    assert np.abs(coverage_by_quarter(one, test, target) - 0.95).max() > 0.1
    assert np.abs(coverage_by_quarter(varying, test, target) - 0.95).max() < 0.05
    ratio = np.sqrt(varying.predict(test).aleatoric) / std
    assert np.quantile(ratio, 0.05) > 0.7
    assert np.quantile(ratio, 0.95) < 1.4


def test_it_costs_little_where_all_noise_is_alike() -> None:
    X, y, _ = problem(1000, 2, 0.2, growth=1.0)
    test, target, _ = problem(4000, 3, 0.2, growth=1.0)
    one, varying = (BayesianNetwork(1, (20,), observation=kind).learn(X, y) for kind in ("gaussian", "heteroscedastic"))
    assert varying.log_predictive(test, target).mean() > one.log_predictive(test, target).mean() - 0.05
    assert varying.noise_var[0] == pytest.approx(0.2**2, rel=0.2)


def test_committees_and_estimators_take_it() -> None:
    X, y, _ = problem(600, 4)
    test, target, _ = problem(2000, 5)
    committee = BayesianCommittee(1, (15,), members=2, observation="heteroscedastic").learn(X, y)
    assert np.abs(coverage_by_quarter(committee, test, target) - 0.95).max() < 0.08
    model = BayesianMLPRegressor(hidden_layer_sizes=(15,), observation="heteroscedastic").fit(100 * X, 100 * y)
    _, std = model.predict([[-160.0], [160.0]], return_std=True)
    assert 4.0 < std[1] / std[0] < 20.0
    assert np.isfinite(model.noise_)


def test_densities_are_those_of_drawn_noises() -> None:
    X, y, _ = problem(200, 8)
    network = BayesianNetwork(1, (8,), observation="heteroscedastic").learn(X, y)
    scale = float(network._state.noise.widened().scale[0])
    assert scale != 1.0
    means, covs = network._output_moments(X[:5])
    for x, target, mean, cov in zip(X, y, means, covs, strict=False):
        f, a = np.random.default_rng(0).multivariate_normal(mean, cov, 400_000).T
        root = np.sqrt(network.output_moments(x).cov[0, 0] / cov[0, 0])
        f, noise = mean[0] + root * (f - mean[0]), scale * np.exp(a)
        density = np.mean(np.exp(-0.5 * (target - f) ** 2 / noise) / np.sqrt(2 * np.pi * noise))
        assert network.log_predictive(x, target) == pytest.approx(np.log(density), abs=0.02)


def test_draws_are_of_the_numbers_alone() -> None:
    X, y, _ = problem(100, 6)
    for n_outputs, shape in ((1, (7, 100)), (2, (7, 100, 2))):
        targets = y if n_outputs == 1 else np.column_stack([y, -y])
        network = BayesianNetwork(1, (5,), n_outputs, observation="heteroscedastic").learn(X, targets)
        assert network.sample_output(X, 7, 0).shape == shape
        assert network.predict(X).aleatoric.shape == shape[1:]


def test_expectation_propagation_takes_its_sites_back() -> None:
    """Without hidden layers slopes don't move, so refining only improves the sites: near what one pass gave."""
    X, y, _ = problem(300, 7, growth=3.0)
    once, often = (
        BayesianNetwork(1, (), observation="heteroscedastic").learn(X, y, passes=passes, refine="ep")
        for passes in (1, 4)
    )
    spread = np.sqrt(np.diag(once.cov[0]))
    assert np.abs((often.mean - once.mean) / spread).max() < 1.0
    np.testing.assert_allclose(np.sqrt(np.diag(often.cov[0])), spread, rtol=0.3)


@settings(deadline=None, max_examples=25)
@given(
    scale=st.sampled_from([1e-12, 1e-3, 1.0, 1e4, 1e8]),
    constant=st.booleans(),
    outlier=st.floats(-1e10, 1e10),
    structure=st.sampled_from(["full", "neuron", "diagonal"]),
)
def test_odd_targets_leave_it_finite_and_positive(scale: float, constant: bool, outlier: float, structure: str) -> None:
    rng = np.random.default_rng(0)
    X = np.ones((40, 2)) if constant else rng.normal(size=(40, 2))
    y = scale * rng.normal(size=40)
    y[20] = outlier
    network = BayesianNetwork(2, (4,), observation="heteroscedastic", covariance=structure).learn(X, y)
    prediction = network.predict(X)
    assert np.isfinite(prediction.mean).all()
    assert (prediction.aleatoric > 0.0).all()
    assert np.isfinite(network.log_predictive(X, y)).all()
    assert all((variances >= 0.0).all() for variances in network.weight_variances)


def test_it_takes_no_other_noise() -> None:
    with pytest.raises(ValueError, match=r"noise can be given only with observation='gaussian'.* got noise=0.1 with"):
        BayesianNetwork(2, observation="heteroscedastic", noise=0.1)
    network = BayesianNetwork(2, observation="heteroscedastic")
    with pytest.raises(ValueError, match="y must be finite"):
        network.learn([[1.0, 2.0]], [np.nan])


def test_noise_is_told_from_what_is_not_known_of_it() -> None:
    likelihood = Heteroscedastic().outputs(1, LogNoise(-3.0, 2.0))
    state = NetworkProgress.start(1, None, False)

    def parts(mean: float, var: float) -> Any:
        cov = np.diag([0.4, var])
        record = likelihood.records(np.array([[0.0, mean]]), cov[None], state)
        return record[0, 1:5, 0]

    var, noise, _, unknown = parts(-1.0, 0.5)
    assert (var, noise) == pytest.approx((0.4, np.exp(-1.0)))
    assert noise + unknown == pytest.approx(np.exp(-1.0 + 0.25))  # E[e^a], a log-normal's mean
    # Where less is known than before any data, the prior's own variance bounds both.
    _, noise, _, unknown = parts(17.0, 20.0)
    assert noise == pytest.approx(np.exp(-3.0 + 20.0 * 0.1))
    assert noise + unknown == pytest.approx(noise * np.e)
    _, at_limit, _, _ = parts(-1.0, 2.0)
    _, beyond, _, _ = parts(-1.0, 2.0 + 1e-9)
    assert beyond == pytest.approx(at_limit)


def test_far_from_the_data_the_noise_is_that_of_the_prior() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.7, 1.7, (500, 1))
    y = np.sin(2 * X[:, 0]) + rng.normal(0, 0.05 * 10 ** ((X[:, 0] + 1.7) / 3.4))
    network = BayesianNetwork(1, (20,), observation="heteroscedastic").learn(X, y)
    far = network.predict(np.array([[-100.0], [20.0], [1e3]]))
    assert (far.aleatoric < 1.0).all()
    assert (far.epistemic > 1.0).all()
    near = network.predict(X)
    assert np.mean((y - near.mean) ** 2 / (near.epistemic + near.aleatoric)) == pytest.approx(1.0, abs=0.25)
    copy = pickle.loads(pickle.dumps(network))
    np.testing.assert_array_equal(copy.predict(X).aleatoric, near.aleatoric)


def noisy_surface(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Half of `make_friedman1` for training and half for testing, standardised: few rows for as many weights."""
    X, y = make_friedman1(400, noise=1.0, random_state=seed)
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    return X[::2], y[::2], X[1::2], y[1::2]


@pytest.mark.parametrize("seed", range(3))
def test_more_passes_do_not_diverge(seed: int) -> None:
    X, y, X_test, y_test = noisy_surface(seed)
    scores = []
    for passes in (1, 5, 12):
        network = BayesianNetwork(10, (20,), observation="heteroscedastic", seed=seed)
        network.learn(X, y, passes=passes, refine="ep")
        r2 = 1.0 - np.mean((network.predict(X_test).mean - y_test) ** 2) / y_test.var()
        scores.append((r2, np.mean(network.log_predictive(X_test, y_test))))
    (once, once_density), *more = scores
    for r2, density in more:
        assert r2 > once - 0.05
        assert density > once_density - 0.2


@pytest.mark.parametrize("outliers", [0.0, 0.05])
def test_refinement_never_makes_the_belief_wider_than_the_prior(outliers: float) -> None:
    X, y, *_ = noisy_surface(0)
    network = BayesianNetwork(10, (8,), observation="heteroscedastic", outliers=outliers)
    prior = network.cov[0]
    root = 1.0 / np.sqrt(np.diag(prior))
    for _ in network.learning(X[:80], y[:80], passes=6, refine="ep"):
        shares = np.linalg.eigvalsh(root[:, None] * network.cov[0] * root)
        assert shares.max() < 1.0 + 1e-9
        assert shares.min() > 0.0


def test_the_pass_that_predicts_rows_best_without_them_is_kept() -> None:
    X, y, *_ = noisy_surface(1)
    network = BayesianNetwork(10, (8, 8), observation="heteroscedastic", seed=1)
    means, densities = [], []
    works = network._passes(X[:60], y[:60], passes=12, refine="ep", records=False)
    for work in works:
        densities.append(work.densities[40:].copy())
        means.append(network.mean)
    best = 0
    for number in range(1, 11):  # the last yield has the kept pass already
        gain = densities[number] - densities[best]
        if gain.mean() > 3.0 * gain.std() / np.sqrt(20):
            best = number
    assert best < 10
    np.testing.assert_array_equal(network.mean, means[best])
    np.testing.assert_array_equal(densities[-1], densities[best])
