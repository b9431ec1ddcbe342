"""What is made of other activations, and what must hold of every one."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onepass.activations import NAMES, Moments, Narrowed, Probit, Quadrature, as_activation, compiled_activation
from tests.helpers import quadrature
from tests.helpers.quadrature import worst_errors


def test_paper_tanh_moments_are_near_those_of_tanh() -> None:
    for mean in (-3.0, -0.4, 0.0, 2.0):
        for var in (0.01, 0.3, 2.0):
            truth = quadrature.moments(np.tanh, mean, var)
            ours = as_activation("tanh", "paper").moments(mean, var)
            # The sigmoid's errors, times 2 (mean), 2² (variance) and 2 * 2 (slope).
            assert (np.abs(np.subtract(ours, truth)) < (2 * 0.018, 4 * 0.016, 4 * 0.009)).all()


@pytest.mark.parametrize("name", NAMES)
def test_without_variance_the_moments_are_the_function(name: str) -> None:
    activation = as_activation(name)
    a = np.array([-30.0, -2.0, 0.5, 30.0])
    mean, var, slope = activation.moments(a, 0.0)
    np.testing.assert_allclose(mean, activation(a), rtol=1e-14, atol=1e-15)
    np.testing.assert_array_equal(var, 0.0)
    h = 1e-5
    np.testing.assert_allclose(slope, (activation(a + h) - activation(a - h)) / (2 * h), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("moments", ["exact", "paper"])
@pytest.mark.parametrize("name", NAMES)
@given(mean=st.floats(-1e6, 1e6), var=st.floats(0, 1e12))
def test_moments_are_finite_and_obey_cauchy_schwarz(name: str, moments: str, mean: float, var: float) -> None:
    mu_y, var_y, slope = as_activation(name, moments).moments(mean, var)
    assert np.isfinite([mu_y, var_y, slope]).all()
    assert var_y >= 0
    if moments == "exact" and name != "exp":  # whose exponents are cut
        scale = 1.0 + abs(mean) + math.sqrt(var)  # rounding is relative to the numbers that went in
        assert slope**2 * var <= var_y * (1 + 1e-6) + 1e-13 * scale**2


def test_moments_broadcast() -> None:
    for name in NAMES:
        grid = as_activation(name).moments(np.zeros((3, 1)), np.ones(4))
        assert all(part.shape == (3, 4) for part in grid)


@pytest.mark.parametrize(("name", "tolerance"), [("tanh", (2e-8, 8e-8, 2e-7)), ("erf", (1e-13, 1e-13, 1e-12))])
def test_rescaled_moments_equal_quadrature(name: str, tolerance: tuple[float, ...]) -> None:
    assert (worst_errors(as_activation(name)) < tolerance).all()


@pytest.mark.parametrize("compiled", [True, False])
def test_narrowed_moments_are_those_of_a_share_of_the_variance(compiled: bool) -> None:
    base = as_activation("gelu") if compiled else Quadrature(as_activation("gelu"))
    mean, var = np.array([-1.0, 0.3, 2.0]), np.array([0.5, 2.0, 0.0])
    narrowed = Narrowed(base, 0.25)
    np.testing.assert_allclose(narrowed.moments(mean, var), base.moments(mean, 0.25 * var), rtol=1e-12, atol=1e-30)
    np.testing.assert_array_equal(narrowed(mean), base(mean))


def test_an_activation_in_python_is_called_by_compiled_loops() -> None:
    class Square:
        def __call__(self, a: Any, /) -> Any:
            return np.square(a)

        def moments(self, mean: Any, var: Any, /) -> Moments:
            return Moments(mean**2 + var, 2 * var**2 + 4 * mean**2 * var, 2 * mean)

    found = compiled_activation(Square()).moments(np.array([1.0, -2.0]), np.array([0.5, 0.25]))
    np.testing.assert_allclose(found, [[1.5, 4.25], [2.5, 4.125], [2.0, -4.0]])
    assert compiled_activation(Probit()) is Probit.compiled
