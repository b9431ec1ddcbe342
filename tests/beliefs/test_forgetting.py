"""What is left of a covariance when rows fade: every form of it against dense precisions, and when steps come."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from onepass.beliefs.forgetting import Forgetting, fade_blocks, fade_root, fade_triangle, prior_gap, reciprocals
from tests.helpers.matrix_normal import random_covariance

Faded = tuple[np.ndarray, np.ndarray]


def faded_by_precisions(cov: np.ndarray, towards: np.ndarray, gap: np.ndarray, keep: float) -> Faded:
    """Covariance and way of the mean, by adding precisions: ``P <- k P + (1 - k) P0``, and ``P m`` the same way."""
    precision, prior = np.linalg.inv(cov), np.linalg.inv(towards)
    after = np.linalg.inv(keep * precision + (1.0 - keep) * prior)
    return after, after @ ((1.0 - keep) * prior @ gap)


def by_triangle(cov: np.ndarray, towards: np.ndarray, gap: np.ndarray, keep: float) -> Faded:
    triangle = np.asfortranarray(np.tril(cov))
    way = fade_triangle(triangle, np.diag(towards), gap, keep, lower=1)
    return np.tril(triangle) + np.tril(triangle, -1).T, way


def by_blocks(cov: np.ndarray, towards: np.ndarray, gap: np.ndarray, keep: float) -> Faded:
    blocks = np.tril(cov)[None].copy()
    way = fade_blocks(blocks, np.diag(towards)[None], gap[None], keep)
    return np.tril(blocks[0]) + np.tril(blocks[0], -1).T, way[0]


def by_root(cov: np.ndarray, towards: np.ndarray, gap: np.ndarray, keep: float) -> Faded:
    # A root R with C = R'R, as beliefs keep it.
    root = np.linalg.cholesky(cov[::-1, ::-1])[::-1, ::-1].T
    faded, way = fade_root(root, np.sqrt(np.diag(towards)), gap, keep)
    return faded.T @ faded, way


def by_root_of_a_matrix(cov: np.ndarray, towards: np.ndarray, gap: np.ndarray, keep: float) -> Faded:
    root, prior = (np.linalg.cholesky(each[::-1, ::-1])[::-1, ::-1].T for each in (cov, towards))
    faded, way = fade_root(root, prior, gap, keep)
    return faded.T @ faded, way


@pytest.mark.parametrize("size", [1, 5, 70])  # small blocks are inverted together, large ones one by one
@pytest.mark.parametrize("keep", [0.76, 0.99])
@pytest.mark.parametrize("fade", [by_triangle, by_blocks, by_root, by_root_of_a_matrix])
def test_fading_adds_up_precisions(fade: Callable[..., Faded], keep: float, size: int) -> None:
    rng = np.random.default_rng(size)
    towards = np.diag(np.exp(rng.normal(size=size)))
    cov = random_covariance(rng, size)
    gap = rng.normal(size=size)
    if fade is by_root_of_a_matrix:
        towards = random_covariance(rng, size)
    found, expected = fade(cov, towards, gap, keep), faded_by_precisions(cov, towards, gap, keep)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-6, atol=1e-8 * np.abs(expected[0]).max())
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-6, atol=1e-8 * np.abs(expected[1]).max())


def test_numbers_that_are_not_finite_stay_so() -> None:
    cov, gap = np.full((2, 2), np.nan), np.zeros(2)
    for way in (
        fade_triangle(np.asfortranarray(cov), np.ones(2), gap, 0.9, lower=1),
        fade_blocks(cov[None].copy(), np.ones((1, 2)), gap[None], 0.9),
        fade_root(cov, np.ones(2), gap, 0.9)[1],
    ):
        assert np.isnan(way).any()


def test_a_weight_that_the_prior_knows_is_neither_pulled_nor_widened() -> None:
    towards, gap = prior_gap(np.array([1.0, 1.0]), np.array([0.3, 0.3]), np.zeros(2), np.array([0.0, 2.0]))
    np.testing.assert_array_equal(towards, [0.3, 2.0])
    np.testing.assert_array_equal(gap, [0.0, -1.0])
    np.testing.assert_array_equal(reciprocals(np.array([0.0, 4.0])), [0.0, 0.25])


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize(("share", "size"), [(0.9, 1), (0.999, 5), (0.99, 300)])
def test_steps_come_once_a_period_however_the_rows_are_divided(share: float, size: int, batch: int) -> None:
    forgetting = Forgetting(share, size)
    assert forgetting.keep == pytest.approx(share**forgetting.period)
    n_rows = 5 * forgetting.period + 3
    due = sum(forgetting.is_due(seen) for seen in range(n_rows))
    assert forgetting.steps(0, n_rows) == due == 5
    cut = [0, 1, forgetting.period, 2 * forgetting.period + 1, n_rows]
    parts = [list(forgetting.segments(start, stop - start, batch)) for start, stop in pairwise(cut)]
    assert sum(segment.steps for part in parts for segment in part) == due
    for part, (start, stop) in zip(parts, pairwise(cut), strict=True):
        assert [segment.start for segment in part[1:]] == [segment.stop for segment in part[:-1]]
        assert (part[0].start, part[-1].stop) == (0, stop - start)
        assert all(segment.start % batch == 0 for segment in part)  # a batch is not divided


def test_without_forgetting_there_is_one_segment_and_no_step() -> None:
    forgetting = Forgetting(1.0, 10)
    assert forgetting.period == 0
    assert not forgetting.is_due(100)
    assert [tuple(segment) for segment in forgetting.segments(100, 5)] == [(0, 5, 0)]
