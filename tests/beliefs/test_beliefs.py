import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onepass.beliefs.block import LayerBlocks
from onepass.beliefs.full import FullGaussian, _squared
from onepass.layers.layout import Layout


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


def test_blocks_come_apart_and_together_again() -> None:
    rng = np.random.default_rng(0)
    belief = LayerBlocks(Layout((2, 1, 1)), rng.normal(size=5), np.ones(5))
    jacobian = rng.normal(size=(2, 5))
    belief.step(belief.project_outputs(jacobian)[0], jacobian, rng.normal(size=2), 0.05 * np.eye(2))
    joined = belief.join(belief.parts())
    np.testing.assert_allclose(joined.mean, belief.mean)
    for ours, theirs in zip(joined.cov, belief.cov, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    before = belief.marginal_variances()
    belief.diffuse(np.arange(5.0))
    np.testing.assert_allclose(belief.marginal_variances(), before + np.arange(5.0))
