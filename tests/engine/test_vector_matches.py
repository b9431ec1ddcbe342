"""Several labels 0/1 with correlated outputs: the match of a network that has a Bernoulli output for each."""

from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from onepass import BayesianCommittee, BayesianNetwork, load, save
from onepass.engine.vector_matches import NetworkProgress, OutputMatch
from onepass.likelihoods import Bernoulli

NAN = np.nan
MEAN, COV = np.array([0.4, -0.7, 0.2]), np.array([[2.0, 0.8, -0.5], [0.8, 1.5, 0.3], [-0.5, 0.3, 1.0]])


def match(mean: np.ndarray, cov: np.ndarray, target: list[float], outliers: float = 0.0) -> OutputMatch:
    state = Bernoulli().start_noise(len(mean), None, False, outliers)
    return Bernoulli().outputs(len(mean)).moment_match(mean, cov, np.array(target), state)


def brute_force(mean: np.ndarray, cov: np.ndarray, target: list[float]) -> tuple[float, np.ndarray, np.ndarray]:
    """Log density, mean and covariance of the outputs given the labels, by sums over a fine grid."""
    axes = [np.linspace(-7.5, 7.5, 61)] * len(mean)
    z = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(mean))
    outputs = mean + z @ np.linalg.cholesky(cov).T
    weights = np.exp(-0.5 * (z**2).sum(axis=1))
    weights /= weights.sum()
    for k, label in enumerate(target):
        if not np.isnan(label):
            weights = weights * expit((2.0 * label - 1.0) * outputs[:, k])
    total = weights.sum()
    after = weights @ outputs / total
    return float(np.log(total)), after, (outputs - after).T @ (weights[:, None] * (outputs - after)) / total


@pytest.mark.parametrize(
    ("target", "tolerance"),
    [
        ([1.0, NAN, NAN], 1e-6),
        ([NAN, NAN, 0.0], 1e-6),
        ([1.0, 0.0, NAN], 0.02),
        ([0.0, 1.0, 1.0], 0.03),
    ],
)
def test_the_match_has_the_moments_of_brute_force_exactly_where_one_label_was_observed(
    target: list[float], tolerance: float
) -> None:
    found = match(MEAN, COV, target)
    log_z, mean, cov = brute_force(MEAN, COV, target)
    assert found.log_density == pytest.approx(log_z, abs=tolerance)
    np.testing.assert_allclose(MEAN + COV @ found.score, mean, atol=tolerance)
    np.testing.assert_allclose(COV - COV @ found.information @ COV, cov, atol=tolerance)
    # The site makes the same step.
    precision = np.linalg.inv(COV) + found.precision
    after = np.linalg.solve(precision, np.linalg.solve(COV, MEAN) + found.precision @ MEAN + found.shift)
    np.testing.assert_allclose(after, MEAN + COV @ found.score, atol=1e-9)
    np.testing.assert_allclose(np.linalg.inv(precision), COV - COV @ found.information @ COV, atol=1e-9)


def test_independent_outputs_are_matched_as_one_label_each() -> None:
    cov = np.diag(COV.diagonal())
    found, log_density = match(MEAN, cov, [1.0, 0.0, 1.0]), 0.0
    for k, label in enumerate([1.0, 0.0, 1.0]):
        own = match(MEAN[[k]], cov[[k]][:, [k]], [label])
        log_density += own.log_density
        assert found.score[k] == pytest.approx(own.score[0], rel=1e-12)
        assert found.information[k, k] == pytest.approx(own.information[0, 0], rel=1e-12)
    assert found.log_density == pytest.approx(log_density)


def test_labels_that_may_be_wrong_are_doubted_by_what_was_observed() -> None:
    with_unseen = match(MEAN, COV, [1.0, 0.0, NAN], outliers=0.1)
    alone = match(MEAN[:2], COV[:2, :2], [1.0, 0.0], outliers=0.1)
    assert with_unseen.log_density == pytest.approx(alone.log_density)
    np.testing.assert_allclose(with_unseen.score[:2], alone.score)
    np.testing.assert_array_equal(with_unseen.score[2], 0.0)
    # All pairs of labels together have the probability 1, also where some are wrong.
    every = [match(MEAN[:2], np.diag([2.0, 1.5]), [a, b], 0.1).log_density for a in (0.0, 1.0) for b in (0.0, 1.0)]
    assert np.exp(every).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("outliers", [0.0, 0.05])
def test_a_network_learns_arms_of_which_one_is_seen_per_row(covariance: str, outliers: float) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1500, 2))
    truth = expit(2.0 * X @ np.array([[1.0, -1.0, 0.5], [0.5, 1.0, -1.0]]))
    Y = np.full((1500, 3), NAN)
    arms = rng.integers(0, 3, 1500)
    Y[np.arange(1500), arms] = rng.uniform(size=1500) < truth[np.arange(1500), arms]
    network = BayesianNetwork(2, (4,), 3, observation="bernoulli", covariance=covariance, outliers=outliers)
    network.learn(X, Y)
    prediction = network.predict(X)
    assert prediction.mean.shape == (1500, 3)
    assert np.abs(prediction.mean - truth).mean() < 0.12
    low, high = network.interval(X[:5])
    middle = expit(prediction.pre_mean[:5])
    assert ((low < middle) & (middle < high)).all()
    assert network.log_predictive(X[0], [NAN, NAN, NAN]) == 0.0


@pytest.mark.parametrize("learning", [{}, {"batch": 5}, {"passes": 3, "refine": "ep"}])
@pytest.mark.parametrize("outliers", [0.0, 0.1])
def test_the_reference_learns_the_same(learning: dict[str, object], outliers: float) -> None:
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(30, 2)), (rng.uniform(size=(30, 3)) < 0.5).astype(float)
    Y[rng.uniform(size=Y.shape) < 0.4] = NAN
    made = [
        BayesianNetwork(2, (3,), 3, observation="bernoulli", covariance="full", kernel=kernel, outliers=outliers)
        for kernel in ("auto", "reference")
    ]
    for network in made:
        network.learn(X, Y, **learning)  # type: ignore[arg-type]
    np.testing.assert_allclose(made[0].mean, made[1].mean, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(made[0].cov[0], made[1].cov[0], rtol=1e-6, atol=1e-9)


def test_committees_files_and_errors_know_several_labels(tmp_path: Path) -> None:
    X, Y = np.eye(2), np.array([[1.0, NAN], [0.0, 1.0]])
    committee = BayesianCommittee(2, (3,), 2, members=2, observation="bernoulli").learn(X, Y)
    save(committee, f"{tmp_path}/model.onepass")
    np.testing.assert_array_equal(load(f"{tmp_path}/model.onepass").predict(X).mean, committee.predict(X).mean)
    with pytest.raises(
        ValueError, match=r"y must hold labels 0 and 1 for observation='bernoulli', got 2 at index \(1, 0\)"
    ):
        committee.learn(X, [[1.0, NAN], [2.0, 0.0]])
    with pytest.raises(ValueError, match="leave out rows without a target"):
        BayesianNetwork(2, observation="bernoulli").learn([1.0, 1.0], NAN)


def test_a_row_without_labels_has_no_match() -> None:
    likelihood, nothing = Bernoulli().outputs(2), np.array([NAN, NAN])
    empty = likelihood.moment_match(MEAN[:2], COV[:2, :2].copy(), nothing, NetworkProgress.start(2, 1.0, False))
    assert not any(np.any(part) for part in empty)
