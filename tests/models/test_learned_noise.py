"""A learned noise re-weighs the rows of the past: one pass gives the posterior of weights and noise given all rows."""

import copy
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

import onepass
from onepass import BayesianPerceptron, PerceptronFleet
from onepass._typing import FloatArray
from onepass.beliefs.full import FullGaussian

START = 0.1  # of the noise, whose log starts with a standard deviation of 3


class Posterior(NamedTuple):
    """Of all weights, and of the log noise."""

    mean: FloatArray
    std: FloatArray
    log_noise: float
    log_evidence: float


def by_quadrature(X: FloatArray, y: FloatArray, prior_var: float, weights: FloatArray) -> Posterior:
    """The posterior of the textbook, for each of many noises, and their mixture; nothing here is learned row by row."""
    d = X.shape[1]
    logs = np.linspace(-32.0, 14.0, 1841)
    scores, means, variances = np.empty(len(logs)), np.empty((len(logs), d)), np.empty((len(logs), d))
    root = np.sqrt(weights)[:, None]
    left, values, axes = np.linalg.svd(root * X * np.sqrt(prior_var), full_matrices=False)
    target = left.T @ (root[:, 0] * y)
    rest = weights @ y**2 - target @ target
    for i, noise in enumerate(np.exp(logs)):
        # Along the singular vectors everything is independent.
        total = values**2 + noise
        scores[i] = -0.5 * (weights.sum() * np.log(2.0 * np.pi * noise) + np.log(total / noise).sum())
        scores[i] += -0.5 * (max(rest, 0.0) / noise + (target**2 / total).sum())
        means[i] = np.sqrt(prior_var) * (values * target / total) @ axes
        variances[i] = prior_var * (1.0 - (values**2 / total) @ axes**2)
    scores += norm.logpdf(logs, np.log(START), 3.0)
    log_evidence = logsumexp(scores) + np.log(logs[1] - logs[0])
    shares = np.exp(scores - logsumexp(scores))
    mean = shares @ means
    return Posterior(
        mean, np.sqrt(shares @ (variances + (means - mean) ** 2)), float(shares @ logs), float(log_evidence)
    )


def problem(d: int, n: int, noise: float, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ rng.normal(size=d) + np.sqrt(noise) * rng.normal(size=n)


def perceptron(d: int, prior_var: float, **options: Any) -> BayesianPerceptron:
    return BayesianPerceptron(d, "linear", noise="learn", bias=False, cov=prior_var, noise_start=START, **options)


def check(model: BayesianPerceptron, exact: Posterior, close: float = 0.03, ratio: float = 0.03) -> None:
    found = model.posterior()
    assert np.max(np.abs(found.mean - exact.mean) / exact.std) < 0.001
    np.testing.assert_allclose(np.sqrt(np.diag(found.cov)), exact.std, rtol=0.005)
    assert model.log_evidence == pytest.approx(exact.log_evidence, abs=0.1)
    # What predictions are made with holds the weights at one noise.
    assert np.max(np.abs(model.mean - exact.mean) / exact.std) < close
    np.testing.assert_allclose(np.sqrt(np.diag(model.cov)), exact.std, rtol=ratio)
    assert np.log(model.noise) == pytest.approx(exact.log_noise, abs=2.0 * ratio)


@pytest.mark.parametrize("kernel", ["rows", "blocks", "reference"])
@pytest.mark.parametrize("prior_var", [1.0, 100.0])
@pytest.mark.parametrize("noise", [1.0, 1e-3, 1e-6])
@pytest.mark.parametrize(("d", "n"), [(1, 30), (5, 60), (20, 100)])
def test_one_pass_gives_the_posterior_of_all_rows(d: int, n: int, noise: float, prior_var: float, kernel: str) -> None:
    X, y = problem(d, n, noise)
    check(perceptron(d, prior_var, kernel=kernel).learn(X, y), by_quadrature(X, y, prior_var, np.ones(n)))


@pytest.mark.parametrize("weight", [0.3, 2.0, 10.0])
@pytest.mark.parametrize("noise", [1.0, 1e-3])
def test_weights_are_copies(weight: float, noise: float) -> None:
    X, y = problem(5, 80, noise)
    exact = by_quadrature(X, y, 1.0, np.full(80, weight))
    check(perceptron(5, 1.0).learn(X, y, sample_weight=np.full(80, weight)), exact, 0.05, 0.06)
    if weight > 1.0:  # a sensor that holds its value
        check(perceptron(5, 1.0).learn(np.repeat(X, int(weight), axis=0), np.repeat(y, int(weight))), exact, 0.05, 0.05)


def test_the_order_of_the_rows_does_not_matter() -> None:
    X, y = problem(5, 60, 0.1)
    exact = by_quadrature(X, y, 1.0, np.ones(60))
    for order in (np.arange(60), np.arange(60)[::-1], np.argsort(y), np.argsort(np.abs(y)), np.argsort(X[:, 0])):
        check(perceptron(5, 1.0).learn(X[order], y[order]), exact)


def test_as_many_weights_as_rows() -> None:
    X, y = problem(30, 30, 0.1)
    exact, model = by_quadrature(X, y, 1.0, np.ones(30)), perceptron(30, 1.0).learn(X, y)
    assert np.max(np.abs(model.mean - exact.mean) / exact.std) < 0.3
    assert np.max(np.abs(model.posterior().mean - exact.mean) / exact.std) < 0.001
    assert model.log_evidence == pytest.approx(exact.log_evidence, abs=0.1)


@pytest.mark.parametrize("noise", [1.0, 1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("d", [1, 5, 20])
def test_row_by_row_the_evidence_is_nearly_that_of_all_rows(d: int, noise: float) -> None:
    for seed in range(5):
        X, y = problem(d, 150, noise, seed)
        _, scores = perceptron(d, 1.0).predict_score_learn(X, y)
        exact = by_quadrature(X, y, 1.0, np.ones(150)).log_evidence
        assert scores.log_densities.sum() == pytest.approx(exact, abs=2.0 + d / 10)


CORRELATED = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, -1.0], [0.0, -1.0, 1.0]])


@pytest.mark.parametrize("kernel", ["rows", "reference"])
@pytest.mark.parametrize("cov", [1.0, CORRELATED], ids=["independent", "correlated"])
@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_a_rows_density_is_a_mixture_of_those_of_the_beliefs_at_every_noise(n: int, cov: Any, kernel: str) -> None:
    """Written out with a belief re-weighed to each noise. Up to four weights, responses are exact."""
    X, y = problem(3, n + 1, 0.01, seed=n)
    model = BayesianPerceptron(3, "linear", noise="learn", bias=False, cov=cov, kernel=kernel).learn(X[:n], y[:n])
    state = model._state
    grid = np.linspace(-7.0, 7.0, 1401)
    logs = np.log(model.noise) + np.sqrt(model.log_noise_var) * grid
    densities = []
    for noise in np.exp(logs):
        belief = state.belief.copy()
        assert isinstance(belief, FullGaussian)
        belief.forget(state.progress.reference / noise, state.prior)
        std = np.sqrt(belief.variances(X[-1:])[0] + noise)
        densities.append(norm.logpdf(y[-1], X[-1] @ belief.mean, std))
    expected = logsumexp(np.array(densities) + norm.logpdf(grid)) + np.log(grid[1] - grid[0])
    assert model.log_predictive(X[-1], y[-1]) == pytest.approx(expected, abs=2e-3)
    _, scores = model.predict_score_learn(X[-1:], y[-1:])
    assert scores.log_densities[0] == pytest.approx(expected, abs=2e-3)


def test_uncertain_inputs_are_scored_as_they_are_learned() -> None:
    X, y = problem(3, 6, 0.1)
    model = perceptron(3, 1.0).learn(X[:5], y[:5], X_var=0.2)
    expected = model.log_predictive(X[5], y[5], X_var=0.2)
    _, scores = model.predict_score_learn(X[5:], y[5:], X_var=0.2)
    assert scores.log_densities[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kernel", ["rows", "blocks", "reference"])
def test_a_weight_that_the_prior_knows_exactly_changes_nothing(kernel: str) -> None:
    X, y = problem(2, 40, 0.1)
    without = perceptron(2, 1.0, kernel=kernel).learn(X, y)
    wider = np.column_stack([X, np.random.default_rng(1).normal(size=40)])
    options: dict[str, Any] = {"cov": np.array([1.0, 1.0, 0.0]), "noise_start": START, "kernel": kernel}
    found = BayesianPerceptron(3, "linear", noise="learn", bias=False, **options).learn(wider, y)
    assert found.log_evidence == pytest.approx(without.log_evidence, rel=1e-9)
    np.testing.assert_allclose(found.posterior().mean, np.append(without.posterior().mean, 0.0), atol=1e-9)


def test_how_calls_divide_the_rows_makes_no_difference_to_the_last_bit() -> None:
    X, y = problem(4, 120, 0.1)
    whole, parts, rows = (perceptron(4, 1.0) for _ in range(3))
    whole.learn(X, y)
    for own in np.array_split(np.arange(120), 9):
        parts.learn(X[own], y[own])
    for x, target in zip(X, y, strict=True):
        rows.learn(x, target)
    for other in (parts, rows, pickled(whole)):
        np.testing.assert_array_equal(other.mean, whole.mean)
        np.testing.assert_array_equal(other.cov, whole.cov)
        assert (other.noise, other.log_evidence) == (whole.noise, whole.log_evidence)


def pickled(model: BayesianPerceptron) -> BayesianPerceptron:
    """A copy by way of its exported state."""
    return BayesianPerceptron.from_state(*copy.deepcopy(model.export_state()))


@pytest.mark.parametrize("kernel", ["auto", "rows", "blocks", "reference"])
@pytest.mark.parametrize(("dtype", "close"), [("float64", 1e-3), ("float32", 0.1)])
def test_correlated_priors_and_single_precision(kernel: str, dtype: str, close: float) -> None:
    X, y = problem(3, 60, 0.1)
    root = np.linalg.cholesky(CORRELATED)
    exact = by_quadrature(X @ root, y, 1.0, np.ones(60))
    options = {"noise": "learn", "noise_start": START, "bias": False, "cov": CORRELATED, "dtype": dtype}
    model = BayesianPerceptron(3, "linear", kernel=kernel, **options).learn(X, y)  # type: ignore[arg-type]
    np.testing.assert_allclose(np.linalg.solve(root, model.mean), exact.mean, atol=0.03 * exact.std.max())
    assert model.log_evidence == pytest.approx(exact.log_evidence, abs=close)


def test_keys_of_a_fleet_learn_their_noises_and_pool_them() -> None:
    X, y = problem(3, 80, 0.1)
    fleet = PerceptronFleet(3, "linear", noise="learn", bias=False)
    fleet.learn(X, y, keys=np.zeros(80, dtype=int))
    check(fleet.perceptron(0), by_quadrature(X, y, 1.0, np.ones(80)))


def test_a_merged_model_goes_on_as_one_that_learned_all_rows() -> None:
    X, y = problem(4, 200, 0.1)
    prior = perceptron(4, 1.0)
    merged = onepass.merge(prior, [copy.deepcopy(prior).learn(X[k:100:4], y[k:100:4]) for k in range(4)])
    check(merged.learn(X[100:], y[100:]), by_quadrature(X, y, 1.0, np.ones(200)))


@pytest.mark.parametrize("target", [1e9, 1e12, 1e30])
def test_a_huge_target_among_the_first_rows_leaves_a_model_of_numbers(target: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=60)
    for n in range(3, 28):
        model = BayesianPerceptron(3, "linear", noise="learn").learn(X[:n], y[:n]).learn(X[40], target)
        assert np.isfinite(model.predict(X).mean).all(), n
        model.learn(X[n:40], y[n:40])
        assert np.isfinite(model.mean).all()
