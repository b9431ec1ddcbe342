"""Independent weights: what is kept is the diagonal of the full covariance's step."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from onepass.beliefs.diagonal import DiagonalGaussian, IndependentWeights
from onepass.beliefs.full import FullGaussian
from onepass.layers.layout import Layout

RNG = np.random.default_rng(0)
MEAN, VARIANCE = RNG.normal(size=4), np.exp(RNG.normal(size=4))


def belief() -> DiagonalGaussian:
    return DiagonalGaussian(MEAN, VARIANCE)


@pytest.mark.parametrize("share", [0.0, 0.6, 1.0, -2.0])
def test_a_step_is_the_diagonal_of_that_of_the_full_covariance(share: float) -> None:
    ours, full, jacobian = belief(), FullGaussian(MEAN, VARIANCE), np.array([1.0, -2.0, 0.0, 0.5])
    seen = ours.project(jacobian)
    assert seen.var == pytest.approx(full.project(jacobian).var)
    information = share / seen.var
    for each in (ours, full):
        each.rank_one_step(each.project(jacobian), 0.7, information, 1.0 - share)
    np.testing.assert_allclose(ours.mean, full.mean, rtol=1e-12)
    np.testing.assert_allclose(ours.variance, full.marginal_variances(), rtol=1e-12, atol=1e-14)


def test_a_step_of_several_outputs_is_the_diagonal_of_the_rank_k_step() -> None:
    ours, jacobian = belief(), RNG.normal(size=(2, 4))
    information, score = np.array([[0.1, 0.02], [0.02, 0.05]]), np.array([0.3, -1.0])
    gain, cov = ours.project_outputs(jacobian)
    np.testing.assert_allclose(cov, jacobian @ np.diag(VARIANCE) @ jacobian.T)
    ours.step(gain, jacobian, score, information)
    np.testing.assert_allclose(ours.mean, MEAN + score @ gain)
    np.testing.assert_allclose(ours.variance, VARIANCE - np.diag(gain.T @ information @ gain), rtol=1e-12)


def test_variances_of_sparse_rows_and_with_a_bias_are_those_of_dense_ones() -> None:
    rows = RNG.normal(size=(5, 3)) * (RNG.random((5, 3)) < 0.5)
    whole = np.hstack([np.ones((5, 1)), rows])
    expected = (whole**2) @ VARIANCE
    np.testing.assert_allclose(belief().variances(whole), expected)
    np.testing.assert_allclose(belief().variances(rows, bias=1), expected)
    np.testing.assert_allclose(belief().variances(csr_array(rows), bias=1), expected)


def test_forgetting_adds_precisions_and_drift_adds_variances() -> None:
    prior, keep = DiagonalGaussian(np.ones(4), np.full(4, 2.0)), 0.8
    faded = belief()
    faded.forget(keep, prior)
    precision = keep / VARIANCE + (1.0 - keep) / 2.0
    np.testing.assert_allclose(faded.variance, 1.0 / precision)
    np.testing.assert_allclose(faded.mean, (keep / VARIANCE * MEAN + (1.0 - keep) / 2.0) / precision)
    moved = belief()
    moved.drift(0.25, prior)
    np.testing.assert_allclose(moved.variance, 0.75 * VARIANCE + 0.5)
    moved.diffuse(np.arange(4.0))
    np.testing.assert_allclose(moved.variance, 0.75 * VARIANCE + 0.5 + np.arange(4.0))
    np.testing.assert_array_equal(moved.mean, MEAN)


def test_natural_parameters_make_the_belief_again() -> None:
    centre = RNG.normal(size=4)
    natural = belief().natural(centre)
    np.testing.assert_allclose(natural.precision, 1.0 / VARIANCE)
    again = DiagonalGaussian.from_natural(natural.precision, natural.precision_mean, centre)
    np.testing.assert_allclose(again.mean, MEAN, rtol=1e-12)
    np.testing.assert_allclose(again.variance, VARIANCE, rtol=1e-12)
    full = FullGaussian(MEAN, VARIANCE).natural(centre)
    assert natural.log_volume == pytest.approx(full.log_volume)
    with pytest.raises(ValueError, match="not positive definite"):
        DiagonalGaussian.from_natural(np.array([1.0, 0.0]), np.zeros(2), np.zeros(2))
    with pytest.raises(ValueError, match="a variance is zero"):
        DiagonalGaussian(np.zeros(2), np.array([1.0, 0.0])).natural(np.zeros(2))


def test_what_is_exported_is_decoded_and_nonsense_is_refused() -> None:
    data, arrays = belief().export()
    again = DiagonalGaussian.decode(data, arrays, 4, "float64")
    np.testing.assert_array_equal(again.mean, MEAN)
    np.testing.assert_array_equal(again.cov, VARIANCE)
    with pytest.raises(ValueError, match="variance"):
        DiagonalGaussian.decode(data, {**arrays, "variance": -VARIANCE}, 4, "float64")
    with pytest.raises(ValueError, match="mean"):
        DiagonalGaussian.decode(data, {**arrays, "mean": MEAN[:3]}, 4, "float64")
    assert belief().is_finite()
    assert not DiagonalGaussian(MEAN, np.full(4, np.inf)).is_finite()


def test_draws_have_the_moments() -> None:
    draws = belief().sample(200_000, np.random.default_rng(1))
    np.testing.assert_allclose(draws.mean(axis=0), MEAN, atol=0.02)
    np.testing.assert_allclose(np.cov(draws.T), np.diag(VARIANCE), atol=0.02 * VARIANCE.max())


def test_a_network_of_independent_weights_shares_its_numbers_and_its_copies_do_not() -> None:
    layout = Layout((2, 3, 1), input_major=True)
    network = IndependentWeights(layout, np.zeros(layout.size), np.ones(layout.size))
    assert (network.n_numbers(layout), network.widest) == (layout.size, 1)
    twin = network.copy()
    network.variance[:] = 0.5
    np.testing.assert_array_equal(network.arrays()["covariance"], 0.5)
    np.testing.assert_array_equal(twin.variance, 1.0)
    z = np.array([[1.0, 0.5, 2.0]])
    np.testing.assert_allclose(network.own_variances()[0](z), np.full((1, 3), 0.5 * (z**2).sum()))
    joined = network.join(network.parts())
    np.testing.assert_array_equal(joined.variance, 0.5)
