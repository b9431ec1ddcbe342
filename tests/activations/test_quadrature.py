"""Activations from any function, against quadrature on many more nodes."""

from typing import Any

import numpy as np
import pytest

from onepass.activations import Quadrature, Sigmoid
from onepass.activations.quadrature import gauss_hermite
from tests.helpers import quadrature


def test_quadrature_makes_an_activation_from_any_function() -> None:
    def swish(a: Any) -> Any:
        return a * Sigmoid()(a)

    activation = Quadrature(swish)
    for mean in (-3.0, 0.2, 4.0):
        for var in (1e-3, 0.5, 3.0):
            np.testing.assert_allclose(
                activation.moments(mean, var), quadrature.moments(swish, mean, var), atol=1e-6, rtol=1e-6
            )
    assert activation.moments(1.0, 0.0).slope == pytest.approx((swish(1.001) - swish(0.999)) / 0.002, rel=1e-5)
    with pytest.raises(TypeError, match="callable"):
        Quadrature(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="odd"):
        Quadrature(swish, n_nodes=10)


def test_gauss_hermite_is_exact_for_polynomials() -> None:
    nodes, weights = gauss_hermite(11)
    assert nodes[5] == 0.0
    moments = [weights @ nodes**power for power in range(0, 22, 2)]
    double_factorials = np.cumprod([1, *range(1, 21, 2)])  # moments of a standard normal
    np.testing.assert_allclose(moments, double_factorials, rtol=1e-11)


def test_the_slope_of_a_narrow_input_keeps_its_digits() -> None:
    found = Quadrature(np.sin).moments(0.4, 1e-20)
    assert found.slope == pytest.approx(np.cos(0.4), rel=1e-6)
    assert found.var == pytest.approx(1e-20 * np.cos(0.4) ** 2, rel=1e-3)
