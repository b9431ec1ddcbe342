"""The example on the page about adding a likelihood, taken from there and tried out."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

import onepass
from onepass.likelihoods import Likelihood, MomentMatch
from onepass.likelihoods.base import _REGISTERED
from tests.helpers.extending import run_page
from tests.helpers.quadrature import tilted

RNG = np.random.default_rng(0)
NOISE, LIMIT = 0.3, 1.0


@pytest.fixture(scope="module")
def saturating() -> Likelihood:
    """The likelihood that the page defines."""
    likelihood = run_page("likelihood")["Saturating"](NOISE, LIMIT)
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
    np.testing.assert_allclose(seen.epistemic, np.einsum("ni,ij,nj->n", Z, cov, Z), atol=1e-12)
    np.testing.assert_array_equal(seen.aleatoric, NOISE)
    low, high = model.interval(X, 0.9)
    half = norm.ppf(0.95) * np.sqrt(seen.epistemic + NOISE)
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
    assert before.aleatoric.tolist() == [NOISE] * 30
    assert type(single.predict(X[0]).aleatoric) is float


def test_a_model_with_it_is_copied_but_a_file_cannot_store_code(saturating: Likelihood, tmp_path: Path) -> None:
    X, y = np.eye(2), np.array([0.5, LIMIT])
    model = perceptron(saturating).learn(X, y)
    twin = copy.deepcopy(model)
    np.testing.assert_array_equal(twin.learn(X, y).mean, model.learn(X, y).mean)
    with pytest.raises(TypeError, match=r"likelihood .* can't be saved"):
        onepass.save(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_registered_likelihood_is_not_saved_without_its_arguments(
    saturating: Likelihood, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Named(type(saturating)):  # type: ignore[misc]
        name = "named"

        def __init__(self, variance: float = NOISE, limit: float = LIMIT) -> None:
            super().__init__(variance, limit)

    monkeypatch.setitem(_REGISTERED, "named", Named)
    onepass.save(perceptron(Named()), tmp_path / "model")
    assert isinstance(onepass.load(tmp_path / "model").observation, Named)
    with pytest.raises(TypeError, match=r"likelihood .* can't be saved"):
        onepass.save(perceptron(Named(limit=2.0)), tmp_path / "other")


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


# The same object in networks, nothing else changed.


def network(likelihood: Likelihood, hidden: tuple[int, ...] = (), n_outputs: int = 1, **settings: Any) -> Any:
    return onepass.BayesianNetwork(2, hidden, n_outputs, observation=likelihood, **settings)


def log_reading(y: float, a: np.ndarray) -> np.ndarray:
    std = np.sqrt(NOISE)
    return np.asarray(norm.logpdf(y, a, std) if y < LIMIT else norm.logsf(LIMIT, a, std))


@pytest.mark.parametrize("kernel", ["auto", "reference"])
@pytest.mark.parametrize("y", [0.4, LIMIT])
def test_the_outputs_of_a_network_are_matched_as_by_quadrature(saturating: Likelihood, y: float, kernel: str) -> None:
    X = RNG.normal(size=(40, 2))
    readings = np.minimum(np.tanh(X[:, 0]) + 0.3 * RNG.normal(size=40), LIMIT)
    model = network(saturating, (6,), covariance="full", kernel=kernel).learn(X, readings)
    row = np.array([0.5, -1.0])
    outputs = model.output_moments(row)
    truth = tilted(lambda a: log_reading(y, a), outputs.mean[0], outputs.cov[0, 0])
    assert model.log_predictive(row, y) == pytest.approx(truth.log_z, abs=1e-7)
    jacobian_cov = outputs.cov[0, 0]
    prior = model.mean
    model.learn(row, y)
    after = saturating.moment_match(None, outputs.mean[0], jacobian_cov, y)  # type: ignore[arg-type]
    assert outputs.mean[0] + after.score * jacobian_cov == pytest.approx(truth.mean, rel=1e-6)
    # Linearised, the output moves as its own belief says: the weights move by c score, and the output by J c score.
    gradient = (model.mean - prior) / after.score  # c, the covariance of the weights and the output
    assert gradient @ np.linalg.solve(np.asarray(before_cov(model, gradient, after)), gradient) == pytest.approx(
        jacobian_cov, rel=1e-6
    )


def before_cov(model: Any, gradient: np.ndarray, after: Any) -> np.ndarray:
    """The covariance before the last row, from that after it: ``C + information c c'``."""
    return np.asarray(model.cov[0] + after.information * np.outer(gradient, gradient))


@pytest.mark.parametrize("covariance", ["full", "layer", "neuron", "kronecker", "low_rank", "diagonal"])
def test_all_kernels_of_networks_take_it(saturating: Likelihood, covariance: str) -> None:
    X = RNG.normal(size=(60, 2))
    y = np.minimum(np.column_stack([X[:, 0], X[:, 1] + 0.5]) + 0.3 * RNG.normal(size=(60, 2)), LIMIT)
    y[5, 1] = np.nan
    weights = np.resize([1.0, 2.0, 0.5], 60)
    seen = []
    for kernel in ("auto", "reference"):
        model = network(saturating, (5,), 2, covariance=covariance, kernel=kernel)
        model.learn(X[:30], y[:30]).learn(X[30:], y[30:], sample_weight=weights[30:])
        low, high = model.interval(X[:4], 0.9)
        assert (low <= high).all()
        assert high.max() <= LIMIT
        seen.append((model.mean, *model.predict(X[:4]).moments, model.log_evidence))
        assert (seen[-1][5] == NOISE).all()
    for ours, reference in zip(*seen, strict=True):
        np.testing.assert_allclose(ours, reference, rtol=1e-5, atol=1e-6)


def test_a_network_without_hidden_layers_is_a_perceptron(saturating: Likelihood) -> None:
    X, y = RNG.normal(size=(50, 2)), np.minimum(RNG.normal(0.5, 1.0, 50), LIMIT)
    ours = network(saturating, covariance="full")
    theirs = perceptron(saturating, mean=ours.mean, cov=ours.cov[0])
    ours.learn(X, y)
    theirs.learn(X, y)
    np.testing.assert_allclose(ours.mean, theirs.mean, atol=1e-9)
    assert ours.log_evidence == pytest.approx(theirs.log_evidence, abs=1e-9)
    for network_side, own in zip(ours.interval(X, 0.8), theirs.interval(X, 0.8), strict=True):
        np.testing.assert_allclose(network_side, own, atol=1e-9)


def test_committees_take_it_and_refinement_and_drift(saturating: Likelihood) -> None:
    X = RNG.normal(size=(60, 2))
    y = np.minimum(X[:, 0] + 0.3 * RNG.normal(size=60), LIMIT)
    committee = onepass.BayesianCommittee(2, (5,), members=2, observation=saturating).learn(X, y)
    refined = network(saturating, (5,), covariance="full").learn(X, y, passes=3, refine="ep")
    drifting = onepass.Mixture.over_drift(onepass.BayesianNetwork, 2, (5,), observation=saturating).learn(X, y)
    for model in (committee, refined, drifting):
        assert np.corrcoef(model.predict(X).mean, X[:, 0])[0, 1] > 0.8
        assert np.isfinite(model.interval(X)).all()


@pytest.mark.parametrize("which", [4, slice(None)])
@pytest.mark.parametrize("covariance", ["full", "kronecker", "low_rank", "diagonal"])
@pytest.mark.parametrize("kernel", ["auto", "reference"])
def test_an_error_in_it_reaches_the_caller_of_a_network(kernel: str, covariance: str, which: Any) -> None:
    X, y = RNG.normal(size=(5, 2)), np.array([0.0, 1.0, 0.5, 2.0, 13.0])
    model = network(Failing(), (3,), kernel=kernel, covariance=covariance).learn(X, y - 1.0)
    mean = model.mean
    with pytest.raises(ZeroDivisionError, match="thirteen"):
        model.learn(X[which], y[which])
    np.testing.assert_array_equal(model.mean, mean)
    assert model.n_seen == 5
    with pytest.raises(ZeroDivisionError, match="thirteen"):
        model.log_predictive(X, y)


def test_a_network_with_it_refuses_what_a_perceptron_does(saturating: Likelihood, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="limit 1, got 3"):
        network(saturating).learn([1.0, 2.0], 3.0)
    with pytest.raises(ValueError, match="noise can be given only with observation='gaussian'"):
        network(saturating, noise=0.1)
    with pytest.raises(ValueError, match=r"needs a method log_outlier_density\(y\)"):
        network(saturating, outliers=0.1)
    with pytest.raises(TypeError, match=r"likelihood .* can't be saved"):
        onepass.save(network(saturating), tmp_path / "model")


def test_a_missing_method_is_named() -> None:
    with pytest.raises(TypeError, match=r"Likelihood needs a method moment_match\(activation, mean, var, y\)"):
        perceptron(Likelihood())
    with pytest.raises(NotImplementedError, match=r"Failing needs a method noise_var\(output\)"):
        perceptron(Failing()).predict([0.0, 0.0])
