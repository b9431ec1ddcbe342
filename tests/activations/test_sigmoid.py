"""The sigmoid: near-exact moments against quadrature, and the paper's approximations."""

import numpy as np
import pytest

from onepass.activations import Activation, PaperSigmoid, Sigmoid
from tests.helpers.quadrature import worst_errors, worst_tail_errors


def test_paper_sigmoid_errors_are_those_of_its_docstring() -> None:
    mean, var, slope = worst_errors(PaperSigmoid(), absolute=True)
    assert 0.017 < mean < 0.018
    assert 0.015 < var < 0.016
    assert 0.008 < slope < 0.009


@pytest.mark.parametrize("sigmoid", [Sigmoid(), PaperSigmoid()], ids=str)
def test_sigmoid_bounds_and_limits_of_the_paper(sigmoid: Activation) -> None:
    means, variances = np.meshgrid(np.linspace(-50, 50, 41), np.logspace(-8, 12, 41))
    mean, var, _ = sigmoid.moments(means, variances)
    assert ((mean >= 0) & (mean <= 1)).all()
    assert ((var >= 0) & (var <= 0.25)).all()
    certain = sigmoid.moments([-3.0, 0.0, 5.0], 0.0)
    np.testing.assert_allclose(certain.mean, sigmoid([-3.0, 0.0, 5.0]), rtol=1e-15)
    np.testing.assert_array_equal(certain.var, 0.0)
    vague = sigmoid.moments([-3.0, 0.0, 5.0], 1e14)
    np.testing.assert_allclose(vague.mean, 0.5, atol=1e-6)
    np.testing.assert_allclose(vague.var, 0.25, atol=1e-6)


def test_moments_equal_quadrature() -> None:
    assert (worst_errors(Sigmoid()) < (1e-8, 2e-8, 5e-8)).all()


def test_moments_are_right_relative_to_themselves_in_the_tail() -> None:
    errors = worst_tail_errors(Sigmoid(), lambda a: Sigmoid()(a) * Sigmoid()(-a))
    assert (errors <= (1e-8, 1e-7, 2e-8)).all()
