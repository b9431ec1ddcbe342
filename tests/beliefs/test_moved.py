"""Weights that may have moved before the next row, against a belief that drifts row by row."""

import numpy as np
import pytest

from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.forgetting import Forgetting
from onepass.beliefs.full import FullGaussian
from onepass.beliefs.moved import MovedGaussian
from onepass.beliefs.rows import RowPlan
from tests.helpers.matrix_normal import random_covariance

SIZE = 4
NOISE = np.array([0.0, 0.1, 0.2, 0.3])
Gaussian = FullGaussian | DiagonalGaussian


def plan(prior: Gaussian, drift: float, process_noise: np.ndarray) -> RowPlan:
    return RowPlan(None, Forgetting(1.0, SIZE), prior, drift, process_noise, "auto")  # type: ignore[arg-type]


def beliefs(diagonal: bool) -> tuple[Gaussian, Gaussian]:
    rng = np.random.default_rng(0)
    if diagonal:
        return DiagonalGaussian(rng.normal(size=SIZE), rng.random(SIZE)), DiagonalGaussian(
            np.zeros(SIZE), np.ones(SIZE)
        )
    return FullGaussian(rng.normal(size=SIZE), random_covariance(rng, SIZE)), FullGaussian(np.zeros(SIZE), np.eye(SIZE))


@pytest.mark.parametrize("rows", [0, 1, 7])
@pytest.mark.parametrize("process_noise", [np.empty(0), NOISE], ids=["still", "wandering"])
@pytest.mark.parametrize("drift", [0.0, 0.05])
@pytest.mark.parametrize("diagonal", [True, False])
def test_it_is_the_belief_moved_row_by_row(diagonal: bool, drift: float, process_noise: np.ndarray, rows: int) -> None:
    belief, prior = beliefs(diagonal)
    moved = MovedGaussian.after(belief, plan(prior, drift, process_noise), rows)
    expected = belief.copy()
    for _ in range(rows):
        if drift:
            expected.drift(drift, prior)  # type: ignore[arg-type]
        if len(process_noise):
            expected.diffuse(process_noise)
    X = np.random.default_rng(1).normal(size=(5, SIZE))
    np.testing.assert_allclose(moved.marginal_variances(), expected.marginal_variances(), rtol=1e-12)
    np.testing.assert_allclose(moved.variances(X), expected.variances(X), rtol=1e-10)
    np.testing.assert_allclose(moved.variances(X[:, 1:], bias=1), expected.variances(X[:, 1:], bias=1), rtol=1e-10)
    np.testing.assert_allclose(moved.to_belief().cov, expected.cov, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(moved.mean, belief.mean)


def test_draws_have_the_moments() -> None:
    belief, prior = beliefs(False)
    moved = MovedGaussian.after(belief, plan(prior, 0.05, NOISE), 3)
    draws = moved.sample(200_000, np.random.default_rng(2))
    np.testing.assert_allclose(draws.mean(axis=0), moved.mean, atol=0.05)
    np.testing.assert_allclose(np.cov(draws.T), moved.to_belief().cov, atol=0.1)
