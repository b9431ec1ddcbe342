"""Beliefs made of independent blocks, against the dense covariance."""

import numpy as np
import pytest
from scipy.linalg import block_diag

from onepass.beliefs.block import BlockGaussian, FullCovariance, LayerBlocks, NeuronBlocks
from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.layers.layout import Layout


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


SHAPE = Layout((2, 3, 2))


def learned(kind: type[BlockGaussian], dtype: str = "float64") -> BlockGaussian:
    """A belief with correlations in every block."""
    rng = np.random.default_rng(1)
    belief = kind(SHAPE, rng.normal(size=SHAPE.size).astype(dtype), np.exp(rng.normal(size=SHAPE.size)))
    jacobian = rng.normal(size=(2, SHAPE.size))
    gain, cov = belief.project_outputs(jacobian)
    belief.step(gain, jacobian, np.ones(2), np.asarray(np.linalg.inv(cov + np.eye(2)), dtype=np.float64))
    return belief


KINDS = pytest.mark.parametrize("kind", [FullCovariance, LayerBlocks, NeuronBlocks])


def test_blocks_are_of_all_weights_of_layers_and_of_neurons() -> None:
    assert FullCovariance.cut(SHAPE).tolist() == [0, 17]
    assert LayerBlocks.cut(SHAPE).tolist() == [0, 9, 17]
    assert NeuronBlocks.cut(SHAPE).tolist() == [0, 3, 6, 9, 13, 17]
    assert [kind.n_numbers(SHAPE) for kind in (FullCovariance, LayerBlocks, NeuronBlocks)] == [289, 145, 59]
    assert [learned(kind).widest for kind in (FullCovariance, LayerBlocks, NeuronBlocks)] == [17, 9, 4]


@KINDS
def test_products_are_those_of_the_dense_covariance(kind: type[BlockGaussian]) -> None:
    belief, rng = learned(kind), np.random.default_rng(2)
    cov = block_diag(*belief.cov)
    np.testing.assert_allclose(belief.marginal_variances(), np.diag(cov))
    jacobian = rng.normal(size=(4, 2, SHAPE.size))
    gain, outputs = belief.project_outputs(jacobian)
    np.testing.assert_allclose(gain, jacobian @ cov, atol=1e-12)
    np.testing.assert_allclose(outputs, jacobian @ cov @ jacobian.swapaxes(1, 2), atol=1e-12)
    for begin, end in ((0, 3), (13, 17)):
        rows = rng.normal(size=(3, end - begin))
        expected = np.einsum("ni,ij,nj->n", rows, cov[begin:end, begin:end], rows)
        np.testing.assert_allclose(belief.quadratic_form(slice(begin, end), rows), expected)
    units = np.concatenate(
        [own(np.ones((1, width)))[0] for own, width in zip(belief.own_variances(), (3, 4), strict=True)]
    )
    np.testing.assert_allclose(units, [block.sum() for layer in belief.unit_blocks() for block in layer])


@KINDS
def test_a_step_is_that_of_the_dense_covariance_within_blocks(kind: type[BlockGaussian]) -> None:
    belief, rng = learned(kind), np.random.default_rng(3)
    cov, mean = block_diag(*belief.cov), belief.mean.copy()
    jacobian, score, information = rng.normal(size=(2, SHAPE.size)), rng.normal(size=2), 0.02 * np.eye(2)
    gain, _ = belief.project_outputs(jacobian)
    belief.step(gain, jacobian, score, information)
    within = block_diag(*[np.ones_like(block) for block in belief.cov])
    full = cov @ jacobian.T
    np.testing.assert_allclose(belief.mean, mean + full @ score)
    np.testing.assert_allclose(block_diag(*belief.cov), within * (cov - full @ information @ full.T), atol=1e-12)


@KINDS
def test_forgetting_adds_up_precisions_and_drift_covariances(kind: type[BlockGaussian]) -> None:
    belief, prior = learned(kind), DiagonalGaussian(np.zeros(SHAPE.size), np.full(SHAPE.size, 2.0))
    cov, mean, keep = block_diag(*belief.cov), belief.mean.copy(), 0.8
    moved = belief.copy()
    moved.drift(0.25, prior)
    np.testing.assert_allclose(block_diag(*moved.cov), 0.75 * cov + 0.5 * np.eye(SHAPE.size), atol=1e-12)
    belief.forget(keep, prior)
    after = np.linalg.inv(keep * np.linalg.inv(cov) + (1.0 - keep) / 2.0 * np.eye(SHAPE.size))
    np.testing.assert_allclose(block_diag(*belief.cov), after, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(belief.mean, after @ (keep * np.linalg.solve(cov, mean)), rtol=1e-8, atol=1e-10)


@KINDS
def test_draws_have_the_moments(kind: type[BlockGaussian]) -> None:
    belief = learned(kind)
    draws = belief.sample(100_000, np.random.default_rng(0))
    np.testing.assert_allclose(draws.mean(axis=0), belief.mean, atol=0.05)
    np.testing.assert_allclose(np.cov(draws.T), block_diag(*belief.cov), atol=0.15)


def test_covariances_with_outgoing_weights_are_entries_of_the_full_one() -> None:
    belief = learned(FullCovariance)
    (cov,) = belief.cov
    found = belief.covariance_with_outgoing()
    assert found is not None
    assert found.shape == (2, 3, 3)  # outputs, hidden units, weights into a unit
    for output in range(2):
        for unit in range(3):
            outgoing = 9 + 4 * output + 1 + unit
            np.testing.assert_array_equal(found[output, unit], cov[outgoing, 3 * unit : 3 * unit + 3])
    assert learned(LayerBlocks).covariance_with_outgoing() is None


@KINDS
def test_a_network_with_more_inputs_takes_over_what_was_learned(kind: type[BlockGaussian]) -> None:
    fewer, wider = learned(kind), Layout((3, 3, 2))
    belief = kind(wider, np.full(wider.size, 7.0), np.full(wider.size, 5.0))
    positions = wider.positions_of(SHAPE)
    belief.take_over(fewer, positions)
    np.testing.assert_array_equal(belief.mean[positions], fewer.mean)
    cov = block_diag(*belief.cov)
    np.testing.assert_array_equal(cov[np.ix_(positions, positions)], block_diag(*fewer.cov))
    others = np.setdiff1d(np.arange(wider.size), positions)
    np.testing.assert_array_equal(belief.mean[others], 7.0)
    np.testing.assert_array_equal(cov[others], 5.0 * np.eye(wider.size)[others])


def test_a_block_that_is_no_covariance_is_refused() -> None:
    belief = learned(LayerBlocks)
    belief.check()
    belief.values[0] = -1.0
    with pytest.raises(ValueError, match="must not be negative"):
        belief.check()
