"""Beliefs of independent layers, against dense covariances and numerical minimisation."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from scipy.linalg import block_diag

from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.kronecker import KroneckerGaussian
from onepass.beliefs.layered import FullLayer, LayeredGaussian
from onepass.layers.layout import Layout
from tests.helpers.matrix_normal import divergence, inverse, kron, nearest_product, one_step, partial_traces, posterior
from tests.helpers.matrix_normal import random_covariance as random_cov

# 4 outputs of 2 inputs and a bias, then 2 of 4 and a bias, which have one full covariance.
SHAPES = ((4, 3), (2, 5))


LAYOUT, FORMS = Layout((2, 4, 2)), ("kronecker", "full")


def random_belief(seed: int = 0, dtype: str = "float64") -> LayeredGaussian:
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=LAYOUT.size).astype(dtype)
    belief = LayeredGaussian(LAYOUT, mean, np.ones_like(mean), forms=FORMS)
    wide, small = belief.layers
    assert isinstance(wide, KroneckerGaussian)
    assert isinstance(small, FullLayer)
    wide.output_root[...], wide.input_root[...] = rng.normal(size=(4, 4)), rng.normal(size=(3, 3))
    wide.idle[...] = 0.0
    small.root[...] = rng.normal(size=(10, 10))
    return belief


def kronecker_layer(n_out: int, n_in: int, seed: int = 0) -> KroneckerGaussian:
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=(n_out, n_in))
    roots = [np.linalg.cholesky(random_cov(rng, size)) for size in (n_out, n_in)]
    return KroneckerGaussian(mean, roots[0], roots[1])


def dense(belief: LayeredGaussian) -> np.ndarray:
    (outer, inner), full = belief.cov
    return np.asarray(block_diag(kron(outer, inner), full))


def test_the_numbers_of_a_belief_are_those_of_its_dense_covariance() -> None:
    belief, rng = random_belief(), np.random.default_rng(1)
    cov = dense(belief)
    np.testing.assert_allclose(belief.marginal_variances(), np.diag(cov))
    jacobian = rng.normal(size=(6, 3, 22))
    gain, outputs = belief.project_outputs(jacobian)
    np.testing.assert_allclose(gain, jacobian @ cov, atol=1e-12)
    np.testing.assert_allclose(outputs, jacobian @ cov @ jacobian.swapaxes(1, 2), atol=1e-11)


def test_samples_have_the_covariance() -> None:
    belief, n = random_belief(), 40_000
    draws = belief.sample(n, np.random.default_rng(1)) - belief.mean
    cov = dense(belief)
    scale = np.sqrt((np.outer(np.diag(cov), np.diag(cov)) + cov**2) / n)  # the standard error of each entry
    assert (np.abs(draws.T @ draws / n - cov) < 5.0 * scale).all()
    assert (np.abs(draws.mean(axis=0)) < 5.0 * np.sqrt(np.diag(cov) / n)).all()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_outputs", [1, 2, 4])
def test_a_step_is_the_nearest_pair_of_factors_after_one_match_of_moments(n_outputs: int, seed: int) -> None:
    layer, rng = kronecker_layer(4, 3, seed), np.random.default_rng(seed + 100)
    outer, inner = layer.cov
    # Derivatives of no particular form, as of a batch of rows; a row's are products.
    jacobian = (
        rng.normal(size=(n_outputs, 12)) if seed % 2 else kron(rng.normal(size=(n_outputs, 4)), rng.normal(size=3))
    )
    spread = jacobian @ kron(outer, inner) @ jacobian.T
    information = inverse(spread + 0.2 * random_cov(rng, n_outputs))
    expected = one_step((outer, inner), jacobian, information)
    layer.step(jacobian, information)
    np.testing.assert_allclose(kron(*layer.cov), expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())


def test_a_step_of_a_single_output_is_exact() -> None:
    layer, rng = kronecker_layer(1, 6), np.random.default_rng(1)
    for _ in range(20):
        cov, jacobian = kron(*layer.cov), rng.normal(size=(1, 6))
        information = inverse(jacobian @ cov @ jacobian.T + 0.1)
        layer.step(jacobian, information)
        np.testing.assert_allclose(kron(*layer.cov), posterior(cov, jacobian, information), rtol=1e-9, atol=1e-12)


def test_a_step_is_exact_where_the_noise_is_proportional_to_the_factor_over_outputs() -> None:
    layer, rng = kronecker_layer(4, 6), np.random.default_rng(1)
    for _ in range(20):
        (outer, inner), z = layer.cov, rng.normal(size=6)
        jacobian = kron(np.eye(4), z)
        information = inverse(outer * (z @ inner @ z + 0.1))
        expected = posterior(kron(outer, inner), jacobian, information)
        layer.step(jacobian, information)
        np.testing.assert_allclose(kron(*layer.cov), expected, rtol=1e-9, atol=1e-12)


def test_a_full_layer_takes_the_joint_step() -> None:
    belief, rng = random_belief(), np.random.default_rng(1)
    small: Any = belief.layers[1]
    cov, jacobian = small.cov, rng.normal(size=(3, 10))
    information = inverse(jacobian @ cov @ jacobian.T + 0.1 * random_cov(rng, 3))
    small.step(jacobian, information)
    np.testing.assert_allclose(small.cov, posterior(cov, jacobian, information), atol=1e-10)


def test_a_row_may_make_less_certain() -> None:
    belief, rng = random_belief(), np.random.default_rng(1)
    units, full = belief.cov
    jacobian = rng.normal(size=(2, 22))
    gain, outputs = belief.project_outputs(jacobian)
    root = np.linalg.cholesky(inverse(outputs))
    information = root @ np.diag([-0.5, 0.4]) @ root.T
    belief.step(gain, jacobian, np.ones(2), information)
    np.testing.assert_allclose(belief.cov[1], posterior(full, jacobian[:, 12:], information), atol=1e-9)
    expected = one_step(units, jacobian[:, :12], information)
    np.testing.assert_allclose(kron(*belief.cov[0]), expected, rtol=1e-6, atol=1e-6)


def test_a_belief_starts_with_the_nearest_variances() -> None:
    rng = np.random.default_rng(0)
    variance = np.exp(rng.normal(size=22))
    belief = LayeredGaussian(LAYOUT, np.zeros(22), variance, forms=FORMS)
    (outer, inner), full = belief.cov
    np.testing.assert_allclose(full, np.diag(variance[12:]), rtol=1e-12)
    np.testing.assert_allclose(kron(outer, inner), nearest_product(np.diag(variance[:12]), 4), atol=1e-5)


def test_drift_is_the_nearest_belief_to_the_sum_of_covariances() -> None:
    layer, prior = kronecker_layer(2, 3), 20.0 * kron([0.7, 2.0], [1.0, 3.0, 0.5])
    target = 0.8 * kron(*layer.cov) + 0.2 * np.diag(prior)
    layer.drift(0.2, prior)
    np.testing.assert_allclose(kron(*layer.cov), nearest_product(target, 2), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("fade", ["drift", "forget"])
def test_what_fades_is_in_no_direction_vaguer_than_the_prior(fade: str) -> None:
    """One input was hardly seen, and two of three outputs are well known: without a bound the third one would grow."""
    layer, prior = kronecker_layer(3, 4), np.ones(12)
    layer.output_root[...] = np.diag([1e-2, 1e-1, 1.0])
    layer.input_root[...] = np.diag([1e-2, 1e-2, 1e-2, 1.0])
    for _ in range(50):
        if fade == "drift":
            layer.drift(0.02, prior)
        else:
            layer.forget(0.98, prior, np.zeros(12))
        assert np.linalg.eigvalsh(kron(*layer.cov)).max() <= 1.0 + 1e-9
        layer.step(kron([1.0, 0.3, 0.0], [1.0, 1.0, 1.0, 0.0])[None], np.array([[0.2]]))


def test_forgetting_is_the_nearest_belief_to_the_sum_of_precisions() -> None:
    layer, prior, rng = kronecker_layer(2, 3), 20.0 * kron([0.7, 2.0], [1.0, 3.0, 0.5]), np.random.default_rng(2)
    before, gap = layer.mean.flatten(), rng.normal(size=6)
    target = inverse(0.8 * inverse(kron(*layer.cov)) + 0.2 * np.diag(1.0 / prior))
    layer.forget(0.8, prior, gap)
    np.testing.assert_allclose(kron(*layer.cov), nearest_product(target, 2), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(layer.mean.ravel(), before + 0.2 * target @ (gap / prior), rtol=1e-9, atol=1e-12)


def test_forgetting_and_drift_of_a_single_output_are_exact() -> None:
    for number in range(2):
        layer, prior, rng = kronecker_layer(1, 5), 20.0 * np.array([1.0, 0.3, 2.0, 1.0, 4.0]), np.random.default_rng(2)
        cov, mean, gap = kron(*layer.cov), layer.mean.flatten(), rng.normal(size=5)
        if number:
            layer.drift(0.3, prior)
            expected = 0.7 * cov + 0.3 * np.diag(prior)
        else:
            layer.forget(0.7, prior, gap)
            precision = 0.7 * inverse(cov) + 0.3 * np.diag(1.0 / prior)
            expected = inverse(precision)
            moved = np.linalg.solve(precision, 0.7 * np.linalg.solve(cov, mean) + 0.3 * (mean + gap) / prior)
            np.testing.assert_allclose(layer.mean.ravel(), moved, rtol=1e-10)
        np.testing.assert_allclose(kron(*layer.cov), expected, rtol=1e-9, atol=1e-11)


def test_a_full_layer_forgets_and_drifts_as_the_dense_covariance_does() -> None:
    prior, gap = np.linspace(0.5, 2.0, 10), np.linspace(-1.0, 1.0, 10)
    small: Any = random_belief().layers[1]
    cov, mean = small.cov, np.array(small.mean)
    small.drift(0.3, prior)
    np.testing.assert_allclose(small.cov, 0.7 * cov + 0.3 * np.diag(prior), atol=1e-12)
    cov = small.cov
    small.forget(0.7, prior, gap)
    expected = inverse(0.7 * inverse(cov) + 0.3 * np.diag(1.0 / prior))
    np.testing.assert_allclose(small.cov, expected, atol=1e-9)
    np.testing.assert_allclose(small.mean, mean + 0.3 * expected @ (gap / prior), atol=1e-9)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_all_that_fades_ends_at_the_prior(dtype: str) -> None:
    rng = np.random.default_rng(0)
    variance = np.concatenate([kron([1.0, 2.0, 0.5, 1.0], [1.0, 3.0, 0.2]), rng.uniform(0.5, 2.0, 10)])
    prior = DiagonalGaussian(rng.normal(size=22).astype(dtype), variance.astype(dtype))
    tolerance = 1e-9 if dtype == "float64" else 1e-4
    begun_anew = random_belief(dtype=dtype)
    begun_anew.drift(1.0, prior)
    np.testing.assert_allclose(dense(begun_anew), np.diag(variance), atol=tolerance)
    forgotten = random_belief(dtype=dtype)
    for _ in range(150):
        forgotten.forget(0.8, prior)
    np.testing.assert_allclose(dense(forgotten), np.diag(variance), atol=tolerance)
    np.testing.assert_allclose(forgotten.mean, prior.mean, atol=tolerance)


def test_what_the_prior_knows_stays_known() -> None:
    variance = kron([0.0, 1.0, 2.0, 0.0], [0.0, 1.0, 1.0])
    prior = DiagonalGaussian(np.zeros(22), np.concatenate([variance, np.zeros(10)]))
    belief = LayeredGaussian(LAYOUT, np.ones(22), prior.variance, forms=FORMS)
    rng = np.random.default_rng(0)
    for _ in range(5):
        jacobian = rng.normal(size=(1, 22))
        gain, cov = belief.project_outputs(jacobian)
        belief.step(gain, jacobian, np.array([0.1]), inverse(cov + 0.1))
        belief.forget(0.9, prior)
        belief.drift(0.1, prior)
    known = prior.variance == 0.0
    assert np.isfinite(belief.values).all()
    assert (belief.mean[known] == 1.0).all()
    assert (belief.marginal_variances()[known] == 0.0).all()
    assert (belief.marginal_variances()[~known] > 0.1).all()


def test_the_rule_is_nearer_to_the_posterior_than_its_factors_without_the_scale() -> None:
    """The scale matters: without it both factors count what a row says."""
    layer, rng = kronecker_layer(4, 3), np.random.default_rng(7)
    units = layer.cov
    jacobian = kron(rng.normal(size=(1, 4)), rng.normal(size=3))
    cov = kron(*units)
    information = inverse(jacobian @ cov @ jacobian.T + 0.01)
    exact = posterior(cov, jacobian, information)
    layer.step(jacobian, information)
    ours = kron(*layer.cov)
    assert divergence(exact, ours) < divergence(exact, kron(*partial_traces(exact, units)))
    np.testing.assert_allclose(np.trace(np.linalg.solve(ours, exact)), 12.0, rtol=1e-9)  # the optimum of the scale


@pytest.mark.parametrize("copied", [LayeredGaussian.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_is_independent(copied: Any) -> None:
    belief = random_belief()
    before = belief.mean.copy(), dense(belief)
    twin = copied(belief)
    np.testing.assert_array_equal(twin.values, belief.values)
    twin.drift(0.5, DiagonalGaussian(np.zeros(22), np.ones(22)))
    twin.layers[0].mean += 1.0
    assert (twin.mean[:12] == belief.mean[:12] + 1.0).all()  # its layers are views of its own numbers
    assert not np.allclose(dense(twin), before[1])
    np.testing.assert_array_equal(belief.mean, before[0])
    np.testing.assert_array_equal(dense(belief), before[1])
