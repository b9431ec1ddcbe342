"""The probit and the step, whose moments have a closed form."""

import pytest
from scipy.stats import norm

from onepass.activations import Probit, Step
from tests.helpers.quadrature import worst_errors, worst_tail_errors


def test_step_moments_equal_quadrature() -> None:
    assert (worst_errors(Step(), breaks=(0.0,), absolute=True)[:2] < 1e-12).all()
    # The slope is that of the mean, E[f'] = dE[f]/dmean.
    h = 1e-6
    rise = (Step().moments(0.3 + h, 2.0).mean - Step().moments(0.3 - h, 2.0).mean) / (2 * h)
    assert Step().moments(0.3, 2.0).slope == pytest.approx(rise, rel=1e-8)


def test_probit_moments_equal_quadrature() -> None:
    assert (worst_errors(Probit()) < (1e-13, 1e-13, 1e-12)).all()


def test_probit_moments_are_right_relative_to_themselves_in_the_tail() -> None:
    assert (worst_tail_errors(Probit(), norm.pdf) <= 1e-12).all()
