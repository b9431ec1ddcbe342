"""The matrix-normal belief of one layer, and the nearest product of two covariances."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from onepass.beliefs.kronecker import KroneckerGaussian, nearest_outer_product
from tests.helpers.matrix_normal import kron, random_covariance


def distance(variances: np.ndarray, product: np.ndarray) -> float:
    """Divergence of independent Gaussians."""
    ratio = variances / product
    return float(0.5 * (ratio - np.log(ratio) - 1.0).sum())


def test_the_nearest_outer_product_has_the_least_divergence() -> None:
    variances = np.exp(np.random.default_rng(0).uniform(-3.0, 3.0, (3, 4)))
    ours = np.outer(*nearest_outer_product(variances))

    def product(logs: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(logs[:3, None] + logs[3:]))

    found: Any = minimize(lambda logs: distance(variances, product(logs)), np.zeros(7))  # type: ignore[misc]
    np.testing.assert_allclose(ours, product(found.x), rtol=1e-4)


@given(arrays(np.float64, (3, 4), elements=st.floats(-3.0, 3.0)), arrays(np.float64, 7, elements=st.floats(-1.0, 1.0)))
def test_no_other_outer_product_is_nearer(logs: np.ndarray, way: np.ndarray) -> None:
    variances = np.exp(logs)
    ours = np.outer(*nearest_outer_product(variances))
    for length in (0.01, 1.0):
        other = ours * np.exp(length * (way[:3, None] + way[3:]))
        assert distance(variances, ours) <= distance(variances, other) + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_the_nearest_outer_product_within_a_bound_has_the_least_divergence_of_all_within(seed: int) -> None:
    values = np.exp(np.random.default_rng(seed).normal(-1.0, 1.5, size=(3, 4)))
    values[0, :] *= 1e-3
    values[:, 3] = 1.0  # an idle input

    def loss(logs: np.ndarray) -> float:
        product = np.exp(np.add.outer(logs[:3], logs[3:]))
        return float((values / product + np.log(product)).sum())

    bounded = minimize(loss, np.full(7, -1.0), bounds=[(None, 0.0)] * 7, options={"ftol": 1e-15, "maxiter": 10_000})
    product = np.outer(*nearest_outer_product(values, largest=1.0))
    assert product.max() <= 1.0 + 1e-12
    with np.errstate(divide="ignore"):
        assert float((values / product + np.log(product)).sum()) == pytest.approx(bounded.fun, abs=1e-5)


def test_weights_that_are_known_do_not_change_the_rest_of_a_product() -> None:
    variances = np.zeros((100, 5))
    variances[40:42, 1:4] = np.outer([2.0, 3.0], [1.0, 4.0, 5.0])
    outer, inner = nearest_outer_product(variances)
    np.testing.assert_allclose(np.outer(outer, inner), variances, rtol=1e-12)
    assert 0.1 < outer[40] < 10.0  # no factor runs away, which single precision could not hold
    np.testing.assert_array_equal(np.outer(*nearest_outer_product(np.zeros((2, 3)))), np.zeros((2, 3)))


def kronecker_layer(n_out: int, n_in: int, seed: int = 0) -> KroneckerGaussian:
    rng = np.random.default_rng(seed)
    roots = [np.linalg.cholesky(random_covariance(rng, size)) for size in (n_out, n_in)]
    return KroneckerGaussian(rng.normal(size=(n_out, n_in)), roots[0], roots[1])


def test_products_are_those_of_the_dense_covariance() -> None:
    layer, rng = kronecker_layer(3, 4), np.random.default_rng(1)
    cov = kron(*layer.cov)
    np.testing.assert_allclose(layer.marginal_variances(), np.diag(cov))
    jacobian = rng.normal(size=(5, 12))
    np.testing.assert_allclose(layer.project(jacobian), jacobian @ cov, atol=1e-10)
    z = rng.normal(size=(2, 4))
    own = [[z_row @ cov[4 * u : 4 * u + 4, 4 * u : 4 * u + 4] @ z_row for u in range(3)] for z_row in z]
    np.testing.assert_allclose(layer.own_variance(z), own)
    draws = layer.sample(200_000, rng)
    np.testing.assert_allclose(np.cov(draws.T), cov, atol=0.02 * np.diag(cov).max())


def test_inputs_that_were_never_seen_keep_the_variances_of_the_prior() -> None:
    layer = KroneckerGaussian(np.zeros((2, 3)), np.empty((2, 2)), np.empty((3, 3)))
    variance = np.outer([1.0, 2.0], [1.0, 3.0, 5.0]).ravel()
    layer.start(variance, is_first=True)
    np.testing.assert_array_equal(layer.is_seen, [True, False, False])  # the constant of the bias
    np.testing.assert_allclose(layer.marginal_variances(), variance)
    jacobian = np.array([[1.0, 0.5, 0.0, -1.0, -0.5, 0.0]])  # of a row whose last input is 0
    layer.step(jacobian, np.array([[0.2]]))
    np.testing.assert_array_equal(layer.is_seen, [True, True, False])
    after = layer.marginal_variances().reshape(2, 3)
    np.testing.assert_allclose(after[:, 2], variance.reshape(2, 3)[:, 2])
    assert after[:, :2].sum() < variance.reshape(2, 3)[:, :2].sum()


def test_natural_parameters_are_partial_traces_and_make_the_belief_again() -> None:
    layer, centre = kronecker_layer(3, 4), np.full((3, 4), 0.5)
    precision = np.linalg.inv(kron(*layer.cov)).reshape(3, 4, 3, 4)
    natural = layer.natural(centre)
    over_inputs, over_outputs = np.split(natural.precision, [16])
    np.testing.assert_allclose(over_inputs.reshape(4, 4), np.einsum("uiuj->ij", precision) / 3, rtol=1e-8)
    np.testing.assert_allclose(over_outputs.reshape(3, 3), np.einsum("uivi->uv", precision) / 4, rtol=1e-8)
    gap = layer.mean - centre
    np.testing.assert_allclose(natural.precision_mean, np.einsum("uivj,vj->ui", precision, gap), rtol=1e-8)
    again = KroneckerGaussian.from_natural(natural.precision, natural.precision_mean, centre)
    np.testing.assert_allclose(again.mean, layer.mean, rtol=1e-8)
    np.testing.assert_allclose(kron(*again.cov), kron(*layer.cov), rtol=1e-8, atol=1e-12)
