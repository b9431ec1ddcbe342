"""Moment matches of targets that may not be trusted against brute force, and what must hold of them for any belief."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, log_expit, log_ndtr, log_softmax, logsumexp, softmax
from scipy.stats import norm

from onepass import BayesianNetwork, BayesianPerceptron
from onepass._typing import FloatArray
from onepass.activations import as_activation
from onepass.engine.outliers import TRUST_SINCE_ALARM, Trust
from onepass.engine.step import SITE_SIZE, PerceptronProgress, learn_scalar, learn_with_site, score_rows
from onepass.engine.vector_matches import NetworkProgress, OutputMatch, VectorLikelihood
from onepass.likelihoods import (
    Bernoulli,
    Categorical,
    Gaussian,
    Heteroscedastic,
    Likelihood,
    MomentMatch,
    NegativeBinomial,
    Poisson,
)
from onepass.likelihoods.base import LogNoise
from tests.helpers import quadrature

# How many rows were trusted, and how many had 10, 100, 10⁴, 10⁶ and 10⁸ times the variance.
COUNTS = (np.array([19.0, 0.4, 0.2, 0.2, 0.1, 0.1]), np.array([60.0, 20.0, 5.0, 9.0, 4.0, 2.0]))


def scales_of(y: float, noise: float) -> FloatArray:
    return np.array([1.0, 10.0, 1e2, 1e4, 1e6, max(1e8, y * y / noise)])


def log_shares(counts: FloatArray, scales: FloatArray) -> FloatArray:
    """Logs of the shares; a noise beyond the largest of the scales is rarer, so that all densities have an integral."""
    return np.asarray(np.log(counts / counts.sum()) - 2.0 * np.log1p(np.log(np.maximum(scales / 1e8, 1.0))))


def log_mixture(y: float, at: FloatArray, noise: float, counts: FloatArray) -> FloatArray:
    """Log density of a number around ``at``, written out."""
    scales = scales_of(y, noise)
    pairs = zip(log_shares(counts, scales), np.sqrt(noise * scales), strict=True)
    parts = [share + norm.logpdf(y, at, std) for share, std in pairs]
    return np.asarray(logsumexp(parts, axis=0))


def log_flipped(log_p: FloatArray, share: float) -> FloatArray:
    return np.asarray(np.log(share + (1.0 - 2.0 * share) * np.exp(log_p)))


def log_any_count(y: float, log_p: FloatArray, share: float) -> FloatArray:
    """Log probability of a count that may be any, ``1/((y + 1)(y + 2))`` each."""
    return np.asarray(np.logaddexp(math.log1p(-share) + log_p, math.log(share / ((y + 1.0) * (y + 2.0)))))


def log_count(y: float, a: FloatArray, dispersion: float) -> FloatArray:
    """Log probability of a count with the rate ``e^a``: Poisson's, or a negative binomial's."""
    if dispersion == 0.0:
        return np.asarray(y * a - np.exp(np.minimum(a, 700.0)) - gammaln(y + 1.0))
    shape = 1.0 / dispersion
    log_odds = a - np.logaddexp(a, math.log(shape))
    rest = -shape * (np.logaddexp(a, math.log(shape)) - math.log(shape))
    return np.asarray(gammaln(y + shape) - gammaln(shape) - gammaln(y + 1.0) + y * log_odds + rest)


def learned(
    likelihood: Likelihood, name: str, belief: tuple[float, float], y: float, noise: float, counts: FloatArray
) -> tuple[float, float, float, PerceptronProgress]:
    """Log density, mean and variance after a row, and the state then."""
    activation = as_activation(name)
    compiled = likelihood.compiled(activation, likelihood.choose_update("auto", activation))
    state = PerceptronProgress(noise=noise, trust=Trust.after(counts))
    mean, var = belief
    score, _, ratio = learn_scalar(compiled, state, mean, var, 0.0, y)
    return state.log_density, mean + score * var, ratio * var, state


def agree(found: tuple[float, float, float], truth: quadrature.Tilted, tolerance: float) -> None:
    std = math.sqrt(truth.var)
    assert found[0] == pytest.approx(truth.log_z, abs=tolerance, rel=tolerance)
    assert found[1] == pytest.approx(truth.mean, abs=tolerance * std, rel=tolerance)
    assert found[2] == pytest.approx(truth.var, rel=tolerance)


@pytest.mark.parametrize("name", ["linear", "relu", "leaky_relu", "hard_tanh"])
@pytest.mark.parametrize("counts", COUNTS, ids=["few", "many"])
@pytest.mark.parametrize("mean", [-1.5, 0.2, 3.0])
@pytest.mark.parametrize("var", [0.01, 4.0])
def test_numbers_around_pieces(name: str, counts: FloatArray, mean: float, var: float) -> None:
    activation = as_activation(name)

    def around(y: float, a: FloatArray) -> FloatArray:
        return log_mixture(y, activation(a), 0.3, counts)

    for y in (mean, -2.0, 0.7, 9.0, 150.0, -1e5):
        found = learned(Gaussian(0.3), name, (mean, var), y, 0.3, counts)
        truth = quadrature.tilted(partial(around, y), mean, var, (-1.0, 0.0, 1.0))
        agree(found[:3], truth, 1e-8)


@pytest.mark.parametrize("counts", COUNTS, ids=["few", "many"])
def test_numbers_around_a_tanh_are_a_mixture_of_kalman_steps(counts: FloatArray) -> None:
    mean, var, noise = 0.4, 0.8, 0.05
    mu, var_y, slope = quadrature.moments(np.tanh, mean, var)
    for y in (-0.9, 0.3, 2.0, 40.0, 1e4):
        totals = var_y + noise * scales_of(y, noise)
        log_parts = log_shares(counts, scales_of(y, noise)) + norm.logpdf(y, mu, np.sqrt(totals))
        weights = softmax(log_parts)
        means = mean + slope * var * (y - mu) / totals
        centre = weights @ means
        after = weights @ (var - (slope * var) ** 2 / totals + (means - centre) ** 2)
        found = learned(Gaussian(noise), "tanh", (mean, var), y, noise, counts)
        agree(found[:3], quadrature.Tilted(float(logsumexp(log_parts)), float(centre), float(after)), 1e-6)


@pytest.mark.parametrize("name", ["sigmoid", "probit", "step"])
@pytest.mark.parametrize("share", [0.01, 0.1, 0.4])
def test_labels_that_may_be_flipped(name: str, share: float) -> None:
    links: dict[str, Callable[[FloatArray], FloatArray]] = {"sigmoid": log_expit, "probit": log_ndtr}
    links["step"] = lambda a: np.where(a > 0.0, 0.0, -np.inf)
    counts = 100.0 * np.array([1.0 - share, share, 0.0, 0.0, 0.0, 0.0])

    def trusted(sign: float, a: FloatArray) -> FloatArray:
        return np.asarray(links[name](sign * a))

    def flipped(sign: float, a: FloatArray) -> FloatArray:
        return log_flipped(trusted(sign, a), share)

    for mean, var in ((0.0, 1.0), (2.0, 0.1), (-6.0, 4.0), (3.0, 25.0)):
        for y in (0.0, 1.0):
            truth = quadrature.tilted(partial(flipped, 2.0 * y - 1.0), mean, var, (0.0,))
            found = learned(Bernoulli(), name, (mean, var), y, 0.0, counts)
            agree(found[:3], truth, 1e-6 if name == "sigmoid" else 1e-8)
            # The probability of a flip, given the label: the share over the density, as far as the truth is the other.
            other = quadrature.tilted(partial(trusted, 1.0 - 2.0 * y), mean, var, (0.0,))
            wrong = share * math.exp(other.log_z - truth.log_z)
            assert found[3].trust.distrust == pytest.approx(wrong, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("dispersion", [0.0, 0.5])
@pytest.mark.parametrize("share", [0.02, 0.3])
def test_counts_that_may_be_any(dispersion: float, share: float) -> None:
    likelihood = Poisson() if dispersion == 0.0 else NegativeBinomial(dispersion)
    counts = 50.0 * np.array([1.0 - share, share, 0.0, 0.0, 0.0, 0.0])

    def any_count(y: float, a: FloatArray) -> FloatArray:
        return log_any_count(y, log_count(y, a, dispersion), share)

    for mean, var in ((0.5, 0.3), (2.0, 1.0), (-1.0, 0.1)):
        for y in (0.0, 3.0, 40.0, 5000.0):
            truth = quadrature.tilted(partial(any_count, y), mean, var)
            trusted = quadrature.tilted(partial(log_count, y, dispersion=dispersion), mean, var)
            plain = likelihood.moment_match(as_activation("exp"), mean, var, y)
            # As good as the match without outliers.
            gap = abs(plain.score * var - trusted.mean + mean) / math.sqrt(trusted.var)
            off = abs(plain.log_z - trusted.log_z) + gap
            found = learned(likelihood, "exp", (mean, var), y, dispersion, counts)
            agree(found[:3], truth, 1e-6 + 3.0 * off + abs(plain.variance_ratio * var / trusted.var - 1.0))


def check_step(step: tuple[float, float, float], state: PerceptronProgress, var: float) -> None:
    score, information, ratio = step
    assert all(map(math.isfinite, (score, information, score * var)))
    assert ratio >= 0.0
    assert ratio > 0.0 or information * var >= 1.0 - 1e-9  # as good as known, to rounding
    assert math.isfinite(state.log_density)
    assert 0.0 <= state.trust.distrust <= 1.0
    numbers = state.trust.to_array()
    assert (numbers[:6] >= 0.0).all()
    assert np.isfinite(np.delete(numbers, TRUST_SINCE_ALARM)).all()


EXTREME = st.one_of(
    st.floats(-1e6, 1e6), st.sampled_from([0.0, 1e15, -1e100, 1e150, -1e160, 1e200, 1e300, -1e300, 1e-300])
)


@settings(deadline=None, max_examples=300)
@given(
    name=st.sampled_from(["linear", "relu", "hard_tanh", "tanh", "gelu"]),
    mean=st.floats(-1e4, 1e4),
    log_var=st.floats(-200.0, 100.0),
    log_noise=st.floats(-25.0, 50.0),
    weight=st.sampled_from([0.0, 2.0 / 9.0, 5.0, 1e6]),
    y=EXTREME,
    counts=st.sampled_from(range(2)),
)
@example("linear", 0.0, 0.0, 0.0, 0.0, 1e300, 0)
@example("tanh", 0.0, 0.0, 0.0, 0.0, 1e300, 0)
@example("relu", 0.0, 0.0, 0.0, 5.0, -1e300, 1)
def test_any_number_leaves_a_belief(
    name: str, mean: float, log_var: float, log_noise: float, weight: float, y: float, counts: int
) -> None:
    activation, likelihood = as_activation(name), Gaussian(1.0)
    compiled = likelihood.compiled(activation, likelihood.choose_update("auto", activation))
    state = PerceptronProgress(math.exp(log_noise), weight, trust=Trust.after(COUNTS[counts]))
    var = math.exp(log_var)
    none = np.empty((1, 3, 0))  # rows are not re-weighed
    scores = score_rows(compiled, state, np.array([mean]), np.array([var]), np.zeros(1), none, np.array([y]))[:, 0]
    step = learn_scalar(compiled, state, mean, var, 0.0, y)
    check_step(step, state, var)
    assert scores[0] == state.log_density
    if weight == 0.0:
        assert scores[1] == pytest.approx(state.trust.distrust, abs=1e-12)
    # However far off, it moves the belief by no more than the belief's own width and the noise allow.
    if name == "linear" and 1e150 >= abs(y) > 1e10 * (abs(mean) + math.sqrt(var) + math.exp(0.5 * log_noise)):
        assert abs(step[0]) * math.sqrt(var) < 1e-3
        assert state.trust.distrust > 0.99


@settings(deadline=None, max_examples=200)
@given(
    name=st.sampled_from(["sigmoid", "probit", "step", "exp"]),
    mean=st.floats(-300.0, 300.0),
    log_var=st.floats(-100.0, 8.0),
    label=st.booleans(),
    share=st.floats(1e-9, 0.7),
)
def test_any_label_or_count_leaves_a_belief(name: str, mean: float, log_var: float, label: bool, share: float) -> None:
    likelihood: Likelihood = Poisson() if name == "exp" else Bernoulli()
    y = float(label) * (1e6 if name == "exp" else 1.0)
    activation = as_activation(name)
    compiled = likelihood.compiled(activation, likelihood.choose_update("auto", activation))
    state = PerceptronProgress(trust=Trust.after(np.array([1.0 - share, share, 0.0, 0.0, 0.0, 0.0])))
    var = math.exp(log_var)
    if name == "exp":
        mean /= 10.0
    check_step(learn_scalar(compiled, state, mean, var, 0.0, y), state, var)


# Networks: all outputs of a row at once.


def by_grid(
    log_likelihood: Callable[[list[FloatArray]], FloatArray], mean: FloatArray, cov: FloatArray, n: int = 601
) -> tuple[float, FloatArray, FloatArray]:
    """Log mass, mean and covariance of a likelihood times a Gaussian, on an even grid over eleven deviations."""
    root = np.linalg.cholesky(cov)
    axis = np.linspace(-11.0, 11.0, n)
    nodes = np.meshgrid(*[axis] * len(mean), indexing="ij")
    at = [m + sum(row[j] * nodes[j] for j in range(i + 1)) for i, (m, row) in enumerate(zip(mean, root, strict=True))]
    log_p = log_likelihood(at) + sum(norm.logpdf(node) for node in nodes)
    top = log_p.max()
    p = np.exp(log_p - top)
    mass = p.sum() * (axis[1] - axis[0]) ** len(mean)
    p /= p.sum()
    centre = np.array([(p * value).sum() for value in at])
    gaps = [value - c for value, c in zip(at, centre, strict=True)]
    return float(top + np.log(mass)), centre, np.array([[(p * one * two).sum() for two in gaps] for one in gaps])


def moved(match: OutputMatch, mean: FloatArray, cov: FloatArray) -> tuple[FloatArray, FloatArray]:
    return mean + cov @ match.score, cov - cov @ match.information @ cov


def matched(
    likelihood: VectorLikelihood, mean: FloatArray, cov: FloatArray, y: Any, noise: float, counts: FloatArray
) -> tuple[OutputMatch, NetworkProgress]:
    k = likelihood.n_outputs
    state = NetworkProgress.start(k, noise, False)
    state.trust = Trust.after(counts)
    return likelihood.moment_match(mean, cov, np.atleast_1d(np.asarray(y, dtype=float)), state), state


def check_site(match: OutputMatch, mean: FloatArray, cov: FloatArray) -> None:
    """The site that expectation propagation takes back makes the same step."""
    after = np.linalg.inv(np.linalg.inv(cov) + match.precision)
    np.testing.assert_allclose(after, moved(match, mean, cov)[1], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(after @ match.shift, cov @ match.score, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("counts", COUNTS, ids=["few", "many"])
@pytest.mark.parametrize("y", [0.3, 4.0, 60.0, -1e6])
def test_a_network_with_one_output(counts: FloatArray, y: float) -> None:
    mean, cov = np.array([0.5]), np.array([[2.0]])
    match, _ = matched(Gaussian().outputs(1), mean, cov, y, 0.2, counts)
    truth = quadrature.tilted(lambda a: log_mixture(y, a, 0.2, counts), 0.5, 2.0)
    after_mean, after_cov = moved(match, mean, cov)
    agree((match.log_density, after_mean[0], after_cov[0, 0]), truth, 1e-8)
    check_site(match, mean, cov)


@pytest.mark.parametrize("counts", COUNTS, ids=["few", "many"])
@pytest.mark.parametrize("y", [(0.3, -0.5), (4.0, -1.0), (0.0, 80.0)])
def test_a_network_with_two_outputs_trusts_both_or_none(counts: FloatArray, y: tuple[float, float]) -> None:
    mean, cov = np.array([0.5, -1.0]), np.array([[2.0, 0.6], [0.6, 1.0]])
    match, _ = matched(Gaussian().outputs(2), mean, cov, y, 0.2, counts)
    widest = max(scales_of(value, 0.2)[-1] for value in y)

    def log_likelihood(at: list[FloatArray]) -> FloatArray:
        stds = np.sqrt(0.2 * np.array([1.0, 10.0, 1e2, 1e4, 1e6, widest]))
        parts = [
            share + sum(norm.logpdf(value, a, std) for value, a in zip(y, at, strict=True))
            for share, std in zip(log_shares(counts, stds**2 / 0.2), stds, strict=True)
        ]
        return np.asarray(logsumexp(parts, axis=0))

    log_z, centre, after = by_grid(log_likelihood, mean, cov, 301)
    found_mean, found_cov = moved(match, mean, cov)
    assert match.log_density == pytest.approx(log_z, abs=1e-7)
    np.testing.assert_allclose(found_mean, centre, atol=1e-7)
    np.testing.assert_allclose(found_cov, after, atol=1e-7)
    check_site(match, mean, cov)


@pytest.mark.parametrize("y", [0.4, 3.0, 50.0])
def test_a_noise_that_depends_on_the_input(y: float) -> None:
    counts = COUNTS[1]
    mean, cov = np.array([0.5, -1.5]), np.array([[1.0, 0.2], [0.2, 0.3]])
    match, _ = matched(Heteroscedastic().outputs(1, LogNoise(0.0, 1.0)), mean, cov, y, 0.2, counts)
    expected = math.exp(-1.5 + 0.15)
    factors = np.array([1.0, 10.0, 1e2, 1e4, 1e6, max(1e8, y * y / expected)])

    def log_likelihood(at: list[FloatArray]) -> FloatArray:
        f, log_noise = at
        parts = [
            share - 0.5 * ((y - f) ** 2 * np.exp(-log_noise) / k + log_noise + math.log(2.0 * math.pi * k))
            for share, k in zip(log_shares(counts, factors), factors, strict=True)
        ]
        return np.asarray(logsumexp(parts, axis=0))

    log_z, centre, after = by_grid(log_likelihood, mean, cov, 401)
    found_mean, found_cov = moved(match, mean, cov)
    assert match.log_density == pytest.approx(log_z, abs=1e-5)
    np.testing.assert_allclose(found_mean, centre, atol=1e-5)
    np.testing.assert_allclose(found_cov, after, atol=1e-5)


@pytest.mark.parametrize("n", [2, 3, 10])
@pytest.mark.parametrize("agrees", [True, False])
def test_classes_that_may_be_any(n: int, agrees: bool) -> None:
    rng = np.random.default_rng(n)
    share = 0.1
    counts = 100.0 * np.array([1.0 - share, share, 0.0, 0.0, 0.0, 0.0])
    mean, var = 2.0 * rng.normal(size=n), rng.uniform(0.5, 1.5, n)
    label = int(mean.argmax() if agrees else mean.argmin())
    blank = share / (1.0 - 1.0 / n)
    if n < 4:
        axes, weights = np.polynomial.hermite_e.hermegauss(60)
        at = np.stack(np.meshgrid(*[axes] * n, indexing="ij"), axis=-1).reshape(-1, n)
        mass = np.prod(np.stack(np.meshgrid(*[weights] * n, indexing="ij"), axis=-1).reshape(-1, n), axis=1)
    else:
        at, mass = rng.normal(size=(400_000, n)), np.ones(400_000)
    logits = mean + np.sqrt(var) * at
    p = mass / mass.sum() * ((1.0 - blank) * np.exp(log_softmax(logits, axis=1)[:, label]) + blank / n)
    z = p.sum()
    centre = p @ logits / z
    after = p @ (logits - centre) ** 2 / z
    match, _ = matched(Categorical().outputs(n), mean, np.diag(var), label, 0.0, counts)
    found_mean, found_cov = moved(match, mean, np.diag(var))
    tolerance = 1e-3 if n < 4 else 8e-3
    assert match.log_density == pytest.approx(math.log(z), abs=tolerance)
    np.testing.assert_allclose(found_mean, centre, atol=tolerance)
    np.testing.assert_allclose(np.diag(found_cov), after, atol=2 * tolerance)
    assert np.linalg.eigvalsh(found_cov).min() > 0.0


def test_labels_and_counts_of_networks_are_those_of_perceptrons() -> None:
    share = 0.1
    counts = 100.0 * np.array([1.0 - share, share, 0.0, 0.0, 0.0, 0.0])
    cases: list[tuple[Likelihood, str, float, float]] = [
        (Bernoulli(), "sigmoid", 0.0, 0.0),
        (Bernoulli(), "sigmoid", 1.0, 0.0),
        (Poisson(), "exp", 30.0, 0.0),
        (NegativeBinomial(0.5), "exp", 30.0, 0.5),
    ]
    for likelihood, name, y, noise in cases:
        mean, cov = np.array([1.0]), np.array([[0.7]])
        match, state = matched(likelihood.outputs(1), mean, cov, y, noise, counts)
        log_z, after_mean, after_var, scalar = learned(likelihood, name, (1.0, 0.7), y, noise, counts)
        found_mean, found_cov = moved(match, mean, cov)
        assert (match.log_density, found_mean[0], found_cov[0, 0]) == pytest.approx((log_z, after_mean, after_var))
        assert state.trust.distrust == pytest.approx(scalar.trust.distrust)


@settings(deadline=None, max_examples=200)
@given(
    kind=st.sampled_from(["one", "two", "heteroscedastic"]),
    mean=st.floats(-1e3, 1e3),
    log_var=st.floats(-30.0, 12.0),
    log_noise=st.floats(-25.0, 12.0),
    y=EXTREME,
)
@example("one", 0.0, 0.0, 0.0, 1e300)
@example("two", 0.0, 0.0, 0.0, 1e300)
@example("heteroscedastic", 0.0, 0.0, 0.0, -1e200)
def test_any_number_leaves_a_network_its_belief(
    kind: str, mean: float, log_var: float, log_noise: float, y: float
) -> None:
    var = math.exp(log_var)
    outputs: VectorLikelihood = Gaussian().outputs(1)
    means, cov, target = np.array([mean]), np.array([[var]]), [y]
    if kind == "two":
        outputs = Gaussian().outputs(2)
        means, cov, target = np.array([mean, 0.0]), var * np.array([[1.0, 0.5], [0.5, 1.0]]), [y, 0.3]
    elif kind == "heteroscedastic":
        outputs = Heteroscedastic().outputs(1, LogNoise(0.0, 1.0))
        means, cov = np.array([mean, log_noise]), np.array([[var, 0.0], [0.0, min(var, 1.0)]])
    match, state = matched(outputs, means, cov, target, math.exp(log_noise), COUNTS[0])
    assert math.isfinite(match.log_density)
    assert np.isfinite(match.score).all()
    assert np.isfinite(match.information).all()
    after = moved(match, means, cov)[1]
    deviations = np.sqrt(np.diag(cov))
    assert np.linalg.eigvalsh(after / np.outer(deviations, deviations)).min() > -1e-8
    assert 0.0 <= state.trust.distrust <= 1.0


# The trust.


def matched_counts(counts: FloatArray, shares: FloatArray) -> FloatArray:
    """The Dirichlet counts with the mean of the mixture after a row, and its variance of the first share."""
    a, n, r = counts[0], counts.sum(), shares[0]
    mean = (counts + shares) / (n + 1.0)
    second = (r * (a + 1.0) * (a + 2.0) + (1.0 - r) * a * (a + 1.0)) / ((n + 1.0) * (n + 2.0))
    return np.asarray(mean * (mean[0] * (1.0 - mean[0]) / (second - mean[0] ** 2) - 1.0))


def test_shares_are_matched_to_their_mixture_after_each_row() -> None:
    """A filter written out in NumPy over a stream with spikes: shares, beliefs and evidence."""
    rng = np.random.default_rng(0)
    noise, n = 0.25, 400
    X = np.column_stack([np.ones(n), rng.normal(size=n)])
    y = X @ [1.0, -2.0] + 0.5 * rng.normal(size=n)
    y += np.where(rng.random(n) < 0.1, 30.0 * rng.normal(size=n), 0.0)
    mean, cov, counts, evidence = (
        np.zeros(2),
        4.0 * np.eye(2),
        100.0 * np.array([0.95, 0.02, 0.01, 0.01, 0.005, 0.005]),
        0.0,
    )
    perceptron = BayesianPerceptron(1, "linear", noise=noise, cov=4.0, outliers=0.05)
    _, distrust = perceptron.predict_then_learn(X[:, 1:], y, return_outlier_probability=True)
    expected = []
    for x, target in zip(X, y, strict=True):
        error, gain = target - x @ mean, cov @ x
        totals = x @ gain + noise * scales_of(target, noise)
        log_parts = log_shares(counts, scales_of(target, noise)) + norm.logpdf(error, 0.0, np.sqrt(totals))
        share = softmax(log_parts)
        evidence += logsumexp(log_parts)
        slopes = error / totals
        centre = share @ slopes
        mean = mean + gain * centre
        cov = cov - np.outer(gain, gain) * (share @ (1.0 / totals) - share @ (slopes - centre) ** 2)
        counts = matched_counts(counts, share)
        expected.append(1.0 - share[0])
    np.testing.assert_allclose(perceptron.mean, mean, rtol=1e-8)
    np.testing.assert_allclose(perceptron.cov, cov, rtol=1e-8)
    np.testing.assert_allclose(distrust, expected, atol=1e-9)
    trust = perceptron._state.progress.trust
    np.testing.assert_allclose(trust.to_array()[:6], counts, rtol=1e-8)
    np.testing.assert_allclose(trust.shares, counts / counts.sum(), rtol=1e-8)
    assert trust.rows_since_alarm == math.inf  # no alarm
    assert perceptron.log_evidence == pytest.approx(evidence, rel=1e-10)
    network = BayesianNetwork(1, (), noise=noise, outliers=0.05, calibrate=False)
    _, distrust = network.predict_then_learn(X[:, 1:], y, return_outlier_probability=True)
    assert 300.0 < network._state.noise.trust.to_array()[:6].sum() <= 420.0
    np.testing.assert_allclose(distrust[50:], expected[50:], atol=0.05)  # from another prior


def test_a_site_with_outliers_is_what_a_row_contributed() -> None:
    compiled = Gaussian(0.3).compiled(as_activation("linear"), "adf")
    for y in (0.5, 4.0, 100.0):
        state, site = PerceptronProgress(0.3, trust=Trust.start(0.05)), np.full(SITE_SIZE, np.nan)
        score, information, _ = learn_with_site(compiled, state, 1.0, 2.0, 0.0, y, site)
        var = 1.0 / (1.0 / 2.0 + site[0])
        assert var == pytest.approx(2.0 - information * 4.0)
        assert var * (1.0 / 2.0 + site[1]) == pytest.approx(1.0 + 2.0 * score)
        # Learned again, without having changed since, it says the same, and is not counted twice.
        before = state.trust.to_array()
        again = learn_with_site(compiled, state, 1.0 + 2.0 * score, var, 0.0, y, site)
        np.testing.assert_allclose(state.trust.to_array(), before)
        assert abs(again[0]) < 0.1


class Plain(Likelihood):
    """Numbers with a noise of 1 around a linear output, in Python."""

    def noise_var(self, output: Any) -> FloatArray:
        return np.ones_like(output.var)

    def moment_match(self, activation: Any, mean: Any, var: Any, y: Any, update: str = "auto") -> MomentMatch:
        total = var + 1.0
        log_z = -0.5 * (math.log(2.0 * math.pi * total) + (y - mean) ** 2 / total)
        return MomentMatch(log_z, (y - mean) / total, 1.0 / total, 1.0 / total)


class Doubtful(Plain):
    """The same; a number that is not trusted may be any in a thousand."""

    def log_outlier_density(self, y: float) -> float:
        return -math.log(1000.0)


def test_a_likelihood_of_the_users_own() -> None:
    with pytest.raises(ValueError, match=r"outliers=0\.05 needs a method log_outlier_density\(y\) of Plain"):
        BayesianPerceptron(1, "linear", observation=Plain(), outliers=0.05)
    BayesianPerceptron(1, "linear", observation=Plain())

    def log_density(target: float, a: FloatArray) -> FloatArray:
        return np.asarray(np.logaddexp(math.log(0.95) + norm.logpdf(target, a), math.log(0.05 / 1000)))

    for target in (0.4, 6.0, 300.0):
        truth = quadrature.tilted(partial(log_density, target), 0.5, 2.0)
        agree(learned(Doubtful(), "linear", (0.5, 2.0), target, 0.0, COUNTS[0])[:3], truth, 1e-8)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1))
    y = 2.0 * X[:, 0] + rng.normal(size=300)
    y[::15] = 400.0
    model = BayesianPerceptron(1, "linear", observation=Doubtful(), outliers=0.05)
    _, distrust = model.predict_then_learn(X, y, return_outlier_probability=True)
    assert distrust[15::15].min() > 0.99
    assert np.delete(distrust, np.arange(0, 300, 15))[50:].mean() < 0.02
    np.testing.assert_allclose(model.mean, [0.0, 2.0], atol=0.25)

    class Broken(Plain):
        def log_outlier_density(self, y: float) -> float:
            raise RuntimeError("no density")

    broken = BayesianPerceptron(1, "linear", observation=Broken(), outliers=0.05)
    with pytest.raises(RuntimeError, match="no density"):
        broken.learn(X, y)
    assert broken.n_seen == 0
