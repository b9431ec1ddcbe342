"""What every belief of a network has in common, whatever the form of its covariance."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from onepass.beliefs.block import NeuronBlocks
from onepass.beliefs.choice import BELIEFS, start_belief
from onepass.beliefs.names import COVARIANCES
from onepass.beliefs.network import NetworkBelief
from onepass.layers.layout import Layout

FORMS = pytest.mark.parametrize("name", COVARIANCES)


def learned(name: str) -> NetworkBelief:
    """A belief that has learned two rows of one output, as the reference does."""
    layout = Layout((2, 3, 1), input_major=BELIEFS[name].input_major)
    rng = np.random.default_rng(0)
    belief = start_belief(name, layout, rng.normal(size=layout.size), np.ones(layout.size))
    for jacobian in rng.normal(size=(2, 1, layout.size)):
        gain, cov = belief.project_outputs(jacobian)
        belief.step(gain, jacobian, np.array([0.3]), 1.0 / (cov + 0.5))  # of one output
    return belief


@FORMS
@pytest.mark.parametrize("way", [lambda one: one.copy(), copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_are_equal_and_independent(name: str, way: object) -> None:
    belief = learned(name)
    assert callable(way)
    twin = way(belief)
    for key, values in belief.arrays().items():
        np.testing.assert_array_equal(twin.arrays()[key], values)
    before = belief.marginal_variances()
    twin.drift(0.5, start_belief("diagonal", Layout(belief.layout.sizes, True), np.zeros(13), np.full(13, 9.0)))
    twin.mean[:] = 7.0
    np.testing.assert_array_equal(belief.marginal_variances(), before)
    assert not (belief.mean == 7.0).any()


@FORMS
def test_the_covariance_of_outputs_is_that_of_the_projection(name: str) -> None:
    belief = learned(name)
    jacobian = np.random.default_rng(1).normal(size=(4, 1, belief.layout.size))
    gain, cov = belief.project_outputs(jacobian)
    np.testing.assert_allclose(cov, gain @ jacobian.swapaxes(1, 2), rtol=1e-10)
    assert (cov > 0.0).all()


@FORMS
def test_what_is_no_number_is_found_in_any_array(name: str) -> None:
    belief = learned(name)
    belief.check()
    assert belief.is_finite()
    for values in belief.copy().arrays().values():
        broken = belief.copy()
        next(own for own in broken.arrays().values() if own.shape == values.shape).flat[0] = np.nan
        assert not broken.is_finite()


@FORMS
def test_draws_have_the_marginal_variances(name: str) -> None:
    belief = learned(name)
    draws = belief.sample(100_000, np.random.default_rng(2))
    np.testing.assert_allclose(draws.mean(axis=0), belief.mean, atol=0.03)
    np.testing.assert_allclose(draws.var(axis=0), belief.marginal_variances(), rtol=0.05)


def test_a_form_without_a_kernel_says_so() -> None:
    class Bare(NeuronBlocks):
        name = "bare"
        learn_pass = NetworkBelief.learn_pass

    layout = Layout((2, 3, 1))
    belief: Any = Bare(layout, np.zeros(layout.size), np.ones(layout.size))
    with pytest.raises(NotImplementedError, match="covariance='bare' has no compiled kernel; use kernel='reference'"):
        belief.learn_pass(None, None, None, 1, None)
