"""The full covariance, as a matrix or as its root, against the formulas written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.full import FullGaussian, _squared, covariance_root


def random_belief(seed: int, size: int) -> tuple[FullGaussian, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size, size))
    mean, cov = rng.normal(size=size), root @ root.T
    return FullGaussian(mean, cov), mean, cov


@given(seed=st.integers(0, 10**6), size=st.integers(1, 6), share=st.floats(-3, 1))
def test_step_is_the_rank_one_formula(seed: int, size: int, share: float) -> None:
    belief, mean, cov = random_belief(seed, size)
    slope = np.random.default_rng(seed + 1).normal(size=size)
    seen = belief.project(slope)
    gain, var = cov @ slope, slope @ cov @ slope
    np.testing.assert_allclose(seen.gain, gain, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(seen.var, var, rtol=1e-10)
    kappa = share / var  # a share above 0 shrinks, below 0 widens
    belief.rank_one_step(seen, 0.7, kappa, 1.0 - share)
    np.testing.assert_allclose(belief.mean, mean + 0.7 * gain, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(belief.cov, cov - kappa * np.outer(gain, gain), atol=1e-10 * np.trace(cov))


def test_a_noise_free_reading_leaves_no_variance_and_never_less() -> None:
    belief = FullGaussian(np.zeros(3), np.diag([1.0, 1e6, 1e-6]))
    slope = np.array([1.0, 1.0, 1.0])
    for _ in range(3):
        seen = belief.project(slope)
        if seen.var > 0:
            belief.rank_one_step(seen, 0.0, 1.0 / seen.var, 0.0)
        assert np.linalg.eigvalsh(belief.cov)[0] >= -1e-10  # eigvalsh's own rounding beside 1e6
    assert 0 <= belief.variances(slope[None])[0] < 1e-9


def test_semidefinite_covariance_keeps_what_is_known() -> None:
    belief = FullGaussian(np.array([2.0, 0.0]), np.diag([0.0, 1.0]))
    seen = belief.project(np.array([5.0, 1.0]))
    belief.rank_one_step(seen, 1.0, 0.5, 0.5)
    np.testing.assert_allclose(belief.mean, [2.0, 1.0])
    np.testing.assert_allclose(belief.cov, np.diag([0.0, 0.5]), atol=1e-15)


def test_a_copy_is_independent() -> None:
    belief, mean, cov = random_belief(0, 3)
    twin = belief.copy()
    twin.rank_one_step(twin.project(np.ones(3)), 1.0, 0.1, 0.5)
    np.testing.assert_array_equal(belief.mean, mean)
    np.testing.assert_allclose(belief.cov, cov)
    assert not np.allclose(twin.mean, mean)


def test_variances_are_those_of_project() -> None:
    belief, _, _ = random_belief(3, 4)
    rows = np.random.default_rng(0).normal(size=(5, 4))
    np.testing.assert_allclose(belief.variances(rows), [belief.project(row).var for row in rows], rtol=1e-12)


def test_large_roots_are_squared_in_bands(monkeypatch: pytest.MonkeyPatch) -> None:
    root = np.tril(np.random.default_rng(0).normal(size=(11, 11)))
    monkeypatch.setattr("onepass.beliefs.full._BAND", 4)
    np.testing.assert_allclose(_squared(root), root.T @ root)


def test_both_forms_are_one_covariance() -> None:
    belief, _, cov = random_belief(5, 4)
    rows = np.random.default_rng(1).normal(size=(3, 3))
    whole = np.hstack([np.ones((3, 1)), rows])
    for use in (belief.use_covariance, belief.use_square_root, belief.use_covariance):
        use()
        assert belief.is_dense == (use == belief.use_covariance)
        np.testing.assert_allclose(belief.cov, cov, atol=1e-10)
        np.testing.assert_allclose(belief.to_root().T @ belief.to_root(), cov, atol=1e-10)
        np.testing.assert_allclose(belief.marginal_variances(), np.diag(cov))
        np.testing.assert_allclose(belief.variances(rows, bias=1), np.einsum("ni,ij,nj->n", whole, cov, whole))
        np.testing.assert_allclose(belief.gains(rows, bias=1), whole @ cov)


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("independent", [True, False])
def test_forgetting_adds_precisions_and_drift_covariances(dense: bool, independent: bool) -> None:
    keep = 0.8
    prior: FullGaussian | DiagonalGaussian = random_belief(8, 4)[0]
    if independent:
        prior = DiagonalGaussian(np.ones(4), np.array([1.0, 2.0, 3.0, 4.0]))
    prior_cov = np.diag(prior.cov) if independent else prior.cov
    for seed in range(3):
        belief, mean, cov = random_belief(seed, 4)
        moved = belief.copy()
        for each in (belief, moved):
            each.use_covariance() if dense else each.use_square_root()
        belief.forget(keep, prior)
        precision, own = np.linalg.inv(cov), np.linalg.inv(prior_cov)
        after = np.linalg.inv(keep * precision + (1.0 - keep) * own)
        np.testing.assert_allclose(belief.cov, after, rtol=1e-5, atol=1e-7)
        expected = after @ (keep * precision @ mean + (1.0 - keep) * own @ prior.mean)
        np.testing.assert_allclose(belief.mean, expected, rtol=1e-5, atol=1e-7)
        moved.drift(0.3, prior)
        np.testing.assert_allclose(moved.cov, 0.7 * cov + 0.3 * prior_cov, atol=1e-10)
        moved.diffuse(np.arange(4.0))
        np.testing.assert_allclose(moved.cov, 0.7 * cov + 0.3 * prior_cov + np.diag(np.arange(4.0)), atol=1e-10)


def test_natural_parameters_make_the_belief_again() -> None:
    belief, mean, cov = random_belief(2, 4)
    centre = np.arange(4.0)
    natural = belief.natural(centre)
    np.testing.assert_allclose(natural.precision, np.linalg.inv(cov), rtol=1e-6)
    np.testing.assert_allclose(natural.precision_mean, np.linalg.solve(cov, mean - centre), rtol=1e-6)
    expected = 0.5 * ((mean - centre) @ np.linalg.solve(cov, mean - centre) + np.linalg.slogdet(cov)[1])
    assert natural.log_volume == pytest.approx(expected, rel=1e-6)
    again = FullGaussian.from_natural(natural.precision, natural.precision_mean, centre)
    np.testing.assert_allclose(again.mean, mean, rtol=1e-6)
    np.testing.assert_allclose(again.cov, cov, rtol=1e-6)


@pytest.mark.parametrize("dense", [True, False])
def test_what_is_exported_is_decoded_bit_for_bit(dense: bool) -> None:
    belief, _, _ = random_belief(4, 3)
    belief.use_covariance() if dense else belief.use_square_root()
    again = FullGaussian.decode(*belief.export(), 3, "float64")
    assert again.is_dense == dense
    np.testing.assert_array_equal(again.cov, belief.cov)
    np.testing.assert_array_equal(again.mean, belief.mean)


def test_draws_have_the_moments() -> None:
    belief, mean, cov = random_belief(6, 3)
    draws = belief.sample(200_000, np.random.default_rng(1))
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.02 * np.sqrt(np.trace(cov)))
    np.testing.assert_allclose(np.cov(draws.T), cov, atol=0.02 * np.trace(cov))


def test_the_root_of_a_covariance_without_full_rank() -> None:
    direction = np.array([[1.0, 2.0, -1.0]])
    belief = FullGaussian(np.zeros(3), direction.T @ direction)
    np.testing.assert_allclose(belief.cov, direction.T @ direction, atol=1e-7)
    precision = np.diag([4.0, 0.25])
    root = covariance_root(precision)
    np.testing.assert_allclose(root.T @ root, np.diag([0.25, 4.0]))
    with pytest.raises(ValueError, match="positive definite"):
        covariance_root(np.diag([1.0, -1.0]))
