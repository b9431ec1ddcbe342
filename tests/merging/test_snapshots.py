"""Changes of beliefs in parameters that add up, against products of Gaussians written out."""

from dataclasses import replace

import numpy as np
import pytest

from onepass._typing import FloatArray
from onepass.beliefs.full import FullGaussian
from onepass.engine.outliers import Trust
from onepass.merging.snapshots import (
    Snapshot,
    apply_change,
    change_between,
    diverged_without_rows,
    jumped_between,
    pool_means,
)
from tests.helpers.matrix_normal import random_covariance

SIZE = 3
CENTRES = [np.full(SIZE, 0.5)]


def snapshot(seed: int, rows: float, noise: float = 1.0, weight: float = 0.0) -> Snapshot:
    rng = np.random.default_rng(seed)
    belief = FullGaussian(rng.normal(size=SIZE), random_covariance(rng, SIZE))
    counts = Trust.after(np.zeros(1))
    return Snapshot((belief,), 0.0, rows, np.array([noise]), np.array([weight]), counts)


def cov(one: Snapshot) -> FloatArray:
    (belief,) = one.blocks
    assert isinstance(belief, FullGaussian)
    return belief.cov


def test_what_was_subtracted_is_added_again() -> None:
    before, after = snapshot(0, 10.0, 1.0, 5.0), replace(snapshot(1, 14.0, 2.0, 9.0), evidence=-3.0)
    change = change_between(before, after, CENTRES)
    assert float(change.rows) == 4.0
    again = apply_change(before, change, CENTRES)
    np.testing.assert_allclose(again.blocks[0].mean, after.blocks[0].mean, rtol=1e-9)
    np.testing.assert_allclose(cov(again), cov(after), rtol=1e-9)
    assert again.rows == 14.0
    assert again.evidence == pytest.approx(-3.0)
    np.testing.assert_allclose(again.means, 2.0)  # of the rows since
    np.testing.assert_allclose(again.weights, 9.0)


def test_changes_add_up_as_gaussians_multiply() -> None:
    prior = snapshot(0, 0.0)
    wholes = []
    for seed in (1, 2):
        jacobian = np.random.default_rng(seed).normal(size=SIZE)
        belief = FullGaussian(prior.blocks[0].mean, cov(prior))
        seen = belief.project(jacobian)
        belief.rank_one_step(seen, 0.4, 1.0 / (seen.var + 1.0), 1.0 / (seen.var + 1.0))
        wholes.append(replace(prior, blocks=(belief,), rows=1.0))
    one, other = (change_between(prior, whole, CENTRES) for whole in wholes)
    both = one.with_numbers([a + b for a, b in zip(one.numbers(), other.numbers(), strict=True)])
    merged = apply_change(prior, both, CENTRES)
    precisions = [np.linalg.inv(cov(each)) for each in (*wholes, prior)]
    precision = precisions[0] + precisions[1] - precisions[2]
    np.testing.assert_allclose(np.linalg.inv(cov(merged)), precision, rtol=1e-6)
    vectors = [p @ each.blocks[0].mean for p, each in zip(precisions, (*wholes, prior), strict=True)]
    expected = np.linalg.solve(precision, vectors[0] + vectors[1] - vectors[2])
    np.testing.assert_allclose(merged.blocks[0].mean, expected, rtol=1e-6)
    assert merged.rows == 2.0


def test_a_running_mean_without_rows_stays_that_of_the_prior() -> None:
    before = snapshot(0, 10.0, 1.5, 5.0)
    pooled = pool_means(before, change_between(before, before, CENTRES))
    np.testing.assert_allclose(pooled.means, 1.5)
    assert pooled.rows == 10.0


def test_a_belief_that_differs_without_rows_is_no_copy() -> None:
    one = snapshot(0, 10.0)
    assert not diverged_without_rows(one, snapshot(0, 10.0))
    assert diverged_without_rows(one, snapshot(1, 10.0))
    assert not diverged_without_rows(one, snapshot(1, 11.0))
    assert not jumped_between(one, snapshot(0, 10.0))
