"""GELU and softplus, whose moments have a closed form, against quadrature."""

from onepass.activations import Gelu, Softplus
from tests.helpers.quadrature import worst_errors


def test_gelu_moments_equal_quadrature() -> None:
    assert (worst_errors(Gelu()) < (1e-12, 1e-11, 1e-11)).all()


def test_softplus_moments_equal_quadrature() -> None:
    assert (worst_errors(Softplus()) < (1e-9, 1e-8, 5e-8)).all()
