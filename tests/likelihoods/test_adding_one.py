"""The recipe for a new likelihood in CONTRIBUTING.md, taken from the page and followed to the end."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

import onepass
from onepass.likelihoods import Likelihood, MomentMatch
from tests.helpers.markdown import code_block
from tests.helpers.quadrature import tilted

RNG = np.random.default_rng(0)
NOISE, LIMIT = 0.3, 1.0


@pytest.fixture(scope="module")
def saturating() -> Likelihood:
    """The likelihood that the page defines."""
    names: dict[str, Any] = {}
    exec(code_block("CONTRIBUTING.md", "Add a likelihood"), names)
    likelihood = names["Saturating"](NOISE, LIMIT)
    assert isinstance(likelihood, Likelihood)
    return likelihood


def perceptron(likelihood: Likelihood, **settings: Any) -> onepass.BayesianPerceptron:
    return onepass.BayesianPerceptron(2, "linear", observation=likelihood, **settings)


@pytest.mark.parametrize("y", [-0.7, 0.9, LIMIT])
@pytest.mark.parametrize("var", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("mean", [-4.0, 0.0, 2.5])
def test_its_moment_match_equals_quadrature(saturating: Likelihood, mean: float, var: float, y: float) -> None:
    def log_likelihood(a: np.ndarray) -> np.ndarray:
        std = np.sqrt(NOISE)
        return np.asarray(norm.logpdf(y, a, std) if y < LIMIT else norm.logsf(LIMIT, a, std))

    match: Any = saturating.moment_match(None, mean, var, y)  # type: ignore[arg-type]
    truth = tilted(log_likelihood, mean, var)
    after = (match.log_z, mean + match.score * var, var - match.information * var**2)
    np.testing.assert_allclose(after, truth, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(match.variance_ratio * var, truth.var, rtol=1e-6)


@pytest.mark.parametrize("kernel", ["rows", "blocks", "reference"])
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_without_saturated_rows_it_is_gaussian_noise(saturating: Likelihood, covariance: str, kernel: str) -> None:
    X = RNG.normal(size=(60, 2))
    y = np.minimum(X @ [0.4, -0.3] - 1.5, LIMIT - 0.01)
    ours = perceptron(saturating, covariance=covariance, kernel=kernel).learn(X, y)
    theirs = onepass.BayesianPerceptron(2, "linear", noise=NOISE, covariance=covariance).learn(X, y)
    np.testing.assert_allclose(ours.mean, theirs.mean, atol=1e-12)
    np.testing.assert_allclose(ours.cov, theirs.cov, atol=1e-12)


def test_a_perceptron_with_it_has_the_posterior_of_linear_regression(saturating: Likelihood) -> None:
    X = RNG.normal(size=(60, 2))
    y = np.minimum(X @ [0.4, -0.3] - 1.5, LIMIT - 0.01)
    model = perceptron(saturating).learn(X, y)
    Z = np.column_stack([np.ones(60), X])
    cov = np.linalg.inv(np.eye(3) + Z.T @ Z / NOISE)
    np.testing.assert_allclose(model.cov, cov, atol=1e-12)
    np.testing.assert_allclose(model.mean, cov @ Z.T @ y / NOISE, atol=1e-12)
    evidence = multivariate_normal.logpdf(y, np.zeros(60), Z @ Z.T + NOISE * np.eye(60))
    assert model.log_evidence == pytest.approx(evidence, abs=1e-9)
    seen = model.predict(X)
    np.testing.assert_allclose(seen.var, np.einsum("ni,ij,nj->n", Z, cov, Z), atol=1e-12)
    np.testing.assert_array_equal(seen.noise_var, NOISE)
    low, high = model.interval(X, 0.9)
    half = norm.ppf(0.95) * np.sqrt(seen.var + NOISE)
    np.testing.assert_allclose(low, np.minimum(seen.mean - half, LIMIT))
    np.testing.assert_allclose(high, np.minimum(seen.mean + half, LIMIT))


def test_it_finds_weights_from_readings_that_are_cut_off(saturating: Likelihood) -> None:
    X = RNG.normal(size=(2000, 2))
    y = np.minimum(0.5 + X @ [1.5, -1.0] + RNG.normal(0.0, np.sqrt(NOISE), 2000), LIMIT)
    assert 0.3 < np.mean(y == LIMIT) < 0.6
    model = perceptron(saturating).learn(X, y)
    std = np.sqrt(np.diag(model.cov))
    assert (np.abs(model.mean - [0.5, 1.5, -1.0]) < 4 * std).all()
    ignorant = onepass.BayesianPerceptron(2, "linear", noise=NOISE).learn(X, y)
    assert np.abs(ignorant.mean - [0.5, 1.5, -1.0]).max() > 10 * std.max()


def test_one_row_at_a_time_is_the_same(saturating: Likelihood) -> None:
    X, y = RNG.normal(size=(30, 2)), np.minimum(RNG.normal(1.0, 1.0, 30), LIMIT)
    whole, single = perceptron(saturating).learn(X, y), perceptron(saturating)
    logs = []
    for x, target in zip(X, y, strict=True):
        logs.append(single.log_predictive(x, target))
        single.learn(x, target)
    np.testing.assert_allclose(single.mean, whole.mean, atol=1e-12)
    assert whole.log_evidence == pytest.approx(sum(logs))
    before = perceptron(saturating).predict_then_learn(X, y)
    assert before.noise_var.tolist() == [NOISE] * 30
    assert type(single.predict(X[0]).noise_var) is float


def test_a_model_with_it_is_copied_but_a_file_cannot_store_code(saturating: Likelihood, tmp_path: Path) -> None:
    X, y = np.eye(2), np.array([0.5, LIMIT])
    model = perceptron(saturating).learn(X, y)
    twin = copy.deepcopy(model)
    np.testing.assert_array_equal(twin.learn(X, y).mean, model.learn(X, y).mean)
    with pytest.raises(TypeError, match=r"likelihood .* can't .*observation='gaussian'"):
        onepass.save(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_fit_is_refused(saturating: Likelihood) -> None:
    for x in ([1.0, 2.0], np.array([1.0, 2.0])):  # an array has a fast path
        with pytest.raises(ValueError, match="limit 1, got 3"):
            perceptron(saturating).learn(x, 3.0)
    with pytest.raises(ValueError, match="activation='linear'"):
        onepass.BayesianPerceptron(2, "relu", observation=saturating)
    with pytest.raises(ValueError, match="update='auto'"):
        perceptron(saturating, update="kalman")
    with pytest.raises(ValueError, match="noise can be given only with observation='gaussian'"):
        perceptron(saturating, noise=0.1)


class Failing(Likelihood):
    """Raises for a target of 13."""

    name = "gaussian"  # of a likelihood that has compiled code, which must not be taken for this one's

    def moment_match(self, activation: Any, mean: Any, var: Any, y: Any, update: str = "auto") -> MomentMatch:
        """Fail, or learn as with noise 1."""
        if y == 13.0:
            raise ZeroDivisionError("thirteen")
        return MomentMatch(0.0, (y - mean) / (var + 1.0), 1.0 / (var + 1.0), 1.0 / (var + 1.0))


@pytest.mark.parametrize("which", [4, slice(None)])
@pytest.mark.parametrize("kernel", ["auto", "blocks", "reference"])
def test_an_error_in_it_reaches_the_caller_and_nothing_is_learned(kernel: str, which: Any) -> None:
    X, y = RNG.normal(size=(5, 2)), np.array([0.0, 1.0, 0.5, 2.0, 13.0])
    model = perceptron(Failing(), kernel=kernel).learn(X, y - 1.0)
    mean = model.mean
    with pytest.raises(ZeroDivisionError, match="thirteen"):
        model.learn(X[which], y[which])
    np.testing.assert_array_equal(model.mean, mean)
    assert model.n_seen == 5


def test_a_missing_method_is_named() -> None:
    with pytest.raises(TypeError, match=r"Likelihood needs a method moment_match\(activation, mean, var, y\)"):
        perceptron(Likelihood())
    with pytest.raises(NotImplementedError, match=r"Failing needs a method noise_var\(output\)"):
        perceptron(Failing()).predict([0.0, 0.0])
