"""Beliefs of low rank: against dense matrices, where these can be had."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.full import FullGaussian
from onepass.beliefs.low_rank import LowRankGaussian, capacity
from onepass.layers.layout import Layout


def precision(belief: LowRankGaussian) -> np.ndarray:
    """``D⁻¹ + V V'``, by its definition."""
    columns = belief.precision_root[: belief.n_columns]
    return np.diag(1.0 / belief.variance) + columns.T @ columns


def started(mean: np.ndarray, variance: np.ndarray, n_outputs: int, rank: int) -> LowRankGaussian:
    """A belief about so many weights of some network with these outputs."""
    size = len(mean)
    single = size % n_outputs == 0
    layout = Layout((size // n_outputs - 1, n_outputs) if single else (size - 2 * n_outputs - 1, 1, n_outputs))
    return LowRankGaussian(layout, mean, variance, rank=rank)


def learned(n_rows: int, size: int = 12, n_outputs: int = 1, rank: int = 4, seed: int = 0) -> LowRankGaussian:
    rng = np.random.default_rng(seed)
    belief = started(rng.normal(size=size), rng.uniform(0.5, 2.0, size), n_outputs, rank)
    for _ in range(n_rows):
        jacobian = rng.normal(size=(n_outputs, size))
        gain, cov = belief.project_outputs(jacobian)
        noise = rng.uniform(0.1, 2.0, n_outputs)
        belief.step(
            gain,
            jacobian,
            rng.normal(size=n_outputs),
            np.asarray(np.linalg.inv(cov + np.diag(noise)), dtype=np.float64),
        )
    return belief


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("n_rows", [1, 7, 40])
def test_both_sets_of_columns_are_of_one_covariance(n_rows: int, n_outputs: int) -> None:
    belief = learned(n_rows, n_outputs=n_outputs)
    cov = np.linalg.inv(precision(belief))
    np.testing.assert_allclose(belief.cov[0], cov, atol=1e-12)
    np.testing.assert_allclose(belief.marginal_variances(), np.diag(cov), rtol=1e-9)
    jacobian = np.random.default_rng(1).normal(size=(5, 2, 12))
    gain, outputs = belief.project_outputs(jacobian)
    np.testing.assert_allclose(gain, jacobian @ cov, atol=1e-12)
    np.testing.assert_allclose(outputs, jacobian @ cov @ jacobian.swapaxes(1, 2), atol=1e-12)
    assert not belief.is_full


def test_while_there_is_room_nothing_is_lost() -> None:
    rng = np.random.default_rng(0)
    belief = started(np.zeros(6), np.ones(6), n_outputs=2, rank=5)
    total = np.eye(6)
    for _ in range(4):
        jacobian, noise = rng.normal(size=(2, 6)), rng.uniform(0.1, 1.0, 2)
        gain, cov = belief.project_outputs(jacobian)
        belief.step(gain, jacobian, np.zeros(2), np.asarray(np.linalg.inv(cov + np.diag(noise)), dtype=np.float64))
        total += (jacobian.T / noise) @ jacobian
    assert belief.n_columns == 8
    np.testing.assert_allclose(precision(belief), total, rtol=1e-10)


def test_a_compression_is_moment_matching() -> None:
    """By brute force: first of the dropped directions and the diagonal alone, then of all weights' variances."""
    belief = learned(7)
    variance, columns = belief.variance.copy(), belief.precision_root[: belief.n_columns].copy()
    before = np.diag(np.linalg.inv(precision(belief)))
    belief.compress()
    assert belief.n_columns == 4
    root = np.sqrt(variance)
    left, told, _ = np.linalg.svd(root[:, None] * columns.T)
    kept, dropped = ((left[:, part] * told[part]) / root[:, None] for part in (slice(4), slice(4, 7)))
    matched = np.diag(np.linalg.inv(np.diag(1.0 / variance) + dropped @ dropped.T))
    after = np.diag(np.linalg.inv(np.diag(1.0 / matched) + kept @ kept.T))
    np.testing.assert_allclose(belief.variance, matched * before / after, rtol=1e-9)
    total = np.diag(1.0 / belief.variance) + kept @ kept.T
    np.testing.assert_allclose(precision(belief), total, rtol=1e-9, atol=1e-10)
    off, at_first = (np.abs(np.log(now / before)).max() for now in (belief.marginal_variances(), after))
    assert off < 0.7 * at_first


def test_no_direction_is_dropped_where_all_are_kept() -> None:
    belief = learned(30, size=4, rank=50)
    assert belief.rank == 4
    assert belief.n_columns <= capacity(4, 1, 50) == 8
    rng = np.random.default_rng(0)
    _, variance = rng.normal(size=4), rng.uniform(0.5, 2.0, 4)
    reference = np.diag(1.0 / variance)
    for _ in range(30):
        jacobian = rng.normal(size=(1, 4))
        reference += jacobian.T @ jacobian / rng.uniform(0.1, 2.0, 1)
        rng.normal(size=1)
    np.testing.assert_allclose(belief.cov[0], np.linalg.inv(reference), rtol=1e-9)


def test_fading_is_exact() -> None:
    belief = learned(7)
    rng = np.random.default_rng(5)
    prior = DiagonalGaussian(rng.normal(size=12), rng.uniform(1.0, 3.0, 12))
    before, mean = precision(belief), belief.mean.copy()
    belief.forget(0.7, prior)
    towards = np.diag(1.0 / prior.variance)
    after = 0.7 * before + 0.3 * towards
    np.testing.assert_allclose(precision(belief), after, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(belief.cov[0], np.linalg.inv(after), atol=1e-12)
    pulled = np.linalg.solve(after, 0.7 * before @ mean + 0.3 * towards @ prior.mean)
    np.testing.assert_allclose(belief.mean, pulled, rtol=1e-10)


@pytest.mark.parametrize("share", [0.0, 1e-6, 0.3, 1.0])
def test_drift_is_exact(share: float) -> None:
    belief = learned(7)
    prior = DiagonalGaussian(np.zeros(12), np.random.default_rng(5).uniform(1.0, 3.0, 12))
    moved = (1.0 - share) * belief.cov[0] + share * np.diag(prior.variance)
    belief.drift(share, prior)
    np.testing.assert_allclose(belief.cov[0], moved, atol=1e-12)
    np.testing.assert_allclose(np.linalg.inv(precision(belief)), moved, atol=1e-12)
    assert share < 1.0 or belief.n_columns == 0


def test_a_weight_that_is_known_stays_known() -> None:
    belief = started(np.zeros(3), np.array([0.0, 1.0, 2.0]), n_outputs=1, rank=2)
    prior = DiagonalGaussian(np.ones(3), np.array([0.0, 1.0, 2.0]))
    jacobian = np.ones((1, 3))
    for _ in range(6):
        gain, cov = belief.project_outputs(jacobian)
        belief.step(gain, jacobian, np.ones(1), 1.0 / (cov + 1.0))
    belief.forget(0.5, prior)
    belief.drift(0.5, prior)
    assert belief.mean[0] == 0.0
    assert belief.marginal_variances()[0] == 0.0
    assert np.isfinite(belief.values).all()
    belief.check()


def test_draws_have_the_moments() -> None:
    belief = learned(7)
    draws = belief.sample(200_000, np.random.default_rng(0))
    cov = belief.cov[0]
    spread = np.sqrt(np.outer(np.diag(cov), np.diag(cov)))
    np.testing.assert_allclose(draws.mean(axis=0), belief.mean, atol=0.02)
    np.testing.assert_allclose(np.cov(draws.T) / spread, cov / spread, atol=0.015)


@pytest.mark.parametrize(("rank", "agreed"), [(12, 1e-9), (4, 5e-3)])
def test_a_belief_comes_back_from_a_full_covariance(rank: int, agreed: float) -> None:
    belief = learned(7)
    belief.compress()  # to a rank of 4
    back = started(belief.mean, belief.variance, 1, rank).join(belief.parts())
    np.testing.assert_allclose(back.mean, belief.mean)
    spread = np.sqrt(np.diag(belief.cov[0]))
    off = (back.cov[0] - belief.cov[0]) / np.outer(spread, spread)
    assert np.abs(off).max() < agreed


def test_a_full_covariance_keeps_its_variances() -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(20, 60)) * np.exp(rng.normal(size=60))
    full = FullGaussian(rng.normal(size=20), np.asarray(np.linalg.inv(root @ root.T), dtype=np.float64))
    near = started(full.mean, np.ones(20), 1, 5).join([full])
    np.testing.assert_allclose(near.marginal_variances(), np.diag(full.cov), rtol=0.2)
    near.check()


def test_too_many_weights_are_not_merged() -> None:
    belief = started(np.zeros(3001), np.ones(3001), 1, 2)
    with pytest.raises(ValueError, match="at most 3000 weights, got 3001"):
        belief.parts()


def test_precisions_that_do_not_add_up_are_refused() -> None:
    (part,) = learned(7).parts()
    natural = part.natural(part.mean)
    with pytest.raises(ValueError, match="merged only if their common prior has learned no rows"):
        type(part).from_natural(natural.precision - 5.0 * np.eye(12), natural.precision_mean, part.mean)


def test_copies_are_independent_also_of_what_was_pickled() -> None:
    belief = learned(3)
    for twin in (belief.copy(), pickle.loads(pickle.dumps(belief))):
        twin.step(np.ones((1, 12)), np.ones((1, 12)), np.ones(1), np.full((1, 1), 1e-3))
        assert twin.n_columns == belief.n_columns + 1 == 4
        np.testing.assert_array_equal(twin.values[:12], belief.variance)
        assert twin.cov_root[:, 3].any()
        assert not belief.cov_root[:, 3].any()
    assert len(pickle.dumps(belief)) < 1.1 * belief.values.nbytes + 1000


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_outputs_known_beyond_rounding_leave_a_covariance(n_outputs: int) -> None:
    """In single precision, with noise far below the rounding of what the prior expects."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        belief = started(np.zeros(9, dtype=np.float32), rng.uniform(0.1, 10.0, 9), n_outputs, 6)
        for _ in range(60):
            jacobian = 100.0 * rng.normal(size=(n_outputs, 9)) * (rng.random(9) < 0.7)
            gain, cov = belief.project_outputs(jacobian)
            information = np.linalg.inv(cov + 1e-6 * np.eye(n_outputs))
            belief.step(gain, jacobian, np.zeros(n_outputs), 0.5 * (information + information.T))
            belief.check()


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    log_noise=st.floats(-6, 4),
    log_scale=st.floats(-3, 2),
    dtype=st.sampled_from(["float64", "float32"]),
    n_outputs=st.integers(1, 3),
)
def test_the_belief_stays_one(seed: int, log_noise: float, log_scale: float, dtype: str, n_outputs: int) -> None:
    rng = np.random.default_rng(seed)
    prior = DiagonalGaussian(np.zeros(9), rng.uniform(0.1, 10.0, 9))
    belief = started(np.zeros(9, dtype=dtype), prior.variance, n_outputs, int(rng.integers(1, 10)))
    for row in range(60):
        jacobian = 10.0**log_scale * rng.normal(size=(n_outputs, 9)) * (rng.random(9) < 0.7)
        gain, cov = belief.project_outputs(jacobian)
        information = np.linalg.inv(cov + 10.0**log_noise * np.eye(n_outputs))
        belief.step(gain, jacobian, np.zeros(n_outputs), 0.5 * (information + information.T))
        if row % 20 == 7:
            belief.forget(0.8, prior)
        if row % 20 == 13:
            belief.drift(0.1, prior)
    assert np.isfinite(belief.values).all()
    assert (belief.variance > 0.0).all()
    assert (belief.marginal_variances() <= prior.variance * (1.0 + 1e-4)).all()
    belief.check()
    assert np.isfinite(belief.sample(3, rng)).all()
