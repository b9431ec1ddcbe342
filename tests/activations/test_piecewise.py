import math

import numpy as np
import pytest

from onepass.activations import PiecewiseLinear, as_activation, max_linear
from tests.helpers.quadrature import worst_errors

PIECEWISE = {
    "relu": as_activation("relu"),
    "leaky_relu": as_activation("leaky_relu"),
    "linear": as_activation("linear"),
    "steep": max_linear(0.3, 2.5),
    "hard_tanh": as_activation("hard_tanh"),
    "hard_sigmoid": as_activation("hard_sigmoid"),
    "relu6": as_activation("relu6"),
    "zigzag": PiecewiseLinear([-1.0, 0.5, -2.0, 0.0, 3.0], [-4.0, -1.0, 0.5, 7.0], value_at_zero=1.0),
    "shifted": PiecewiseLinear([0.5, 2.0], [1.5], value_at_zero=-1.0),
}


@pytest.mark.parametrize("name", PIECEWISE)
def test_piecewise_linear_moments_equal_quadrature(name: str) -> None:
    activation = PIECEWISE[name]
    assert isinstance(activation, PiecewiseLinear)
    mean, var, slope = worst_errors(activation, breaks=tuple(activation.knots))
    assert mean < 3e-13
    assert var < 1e-12
    assert slope < 1e-12


@pytest.mark.parametrize(("alpha", "beta"), [(0.0, 1.0), (0.01, 1.0), (1.0, 1.0), (0.2, 3.0)])
def test_two_pieces_equal_the_formulas_of_the_paper(alpha: float, beta: float) -> None:
    for mu in np.linspace(-4, 4, 17):
        for var in (0.01, 0.5, 1.0, 9.0):
            std = math.sqrt(var)
            phi = 0.5 * (1 + math.erf(mu / std / math.sqrt(2)))
            e1, e2 = mu, mu**2 + var
            p_a = var * math.exp(-0.5 * mu**2 / var) / (std * math.sqrt(2 * math.pi))
            mu_y = alpha * e1 + (beta - alpha) * (e1 * phi + p_a)  # (my_pwl)
            var_y = alpha**2 * e2 + (beta**2 - alpha**2) * (e2 * phi + mu * p_a) - mu_y**2  # (sigmay_pwl)
            cov = alpha * e2 + (beta - alpha) * (e2 * phi + mu * p_a) - mu_y * mu  # (backward_sigmaya-pwl)
            ours = max_linear(alpha, beta).moments(mu, var)
            np.testing.assert_allclose([ours.mean, ours.var, ours.slope * var], [mu_y, var_y, cov], atol=1e-12)


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "linear"])
def test_piecewise_linear_without_variance_is_the_function(name: str) -> None:
    activation = as_activation(name)
    a = np.array([-1e6, -2.0, 0.5, 1e6])
    mean, var, slope = activation.moments(a, 0.0)
    np.testing.assert_array_equal(mean, activation(a))
    np.testing.assert_array_equal(var, 0.0)
    np.testing.assert_allclose(slope, (activation(a + 0.1) - activation(a - 0.1)) / 0.2, rtol=1e-6)


def test_value_at_zero_places_the_function() -> None:
    f = PiecewiseLinear([0.0, 1 / 6, 0.0], [-3.0, 3.0], value_at_zero=0.5)
    np.testing.assert_allclose(f([-9.0, -3.0, 0.0, 3.0, 9.0]), [0.0, 0.0, 0.5, 1.0, 1.0], atol=1e-15)
    right = PiecewiseLinear([0.0, 1.0], [2.0], value_at_zero=0.0)
    np.testing.assert_allclose(right([-1.0, 0.0, 2.0, 5.0]), [0.0, 0.0, 0.0, 3.0])


@pytest.mark.parametrize(
    ("alpha", "beta", "word"),
    [(-0.1, 1.0, "alpha"), (1.1, 2.0, "alpha"), (0.5, 0.4, "beta"), (0.0, -1.0, "beta")],
)
def test_limits_on_alpha_and_beta(alpha: float, beta: float, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        max_linear(alpha, beta)


@pytest.mark.parametrize(
    ("slopes", "knots", "word"),
    [
        ([1.0], [0.0], "one entry more"),
        ([0.0, 1.0, 2.0], [1.0, 1.0], "increase"),
        ([0.0, math.nan], [0.0], "slopes must be finite"),
        ([[0.0, 1.0]], [0.0], "flat"),
    ],
)
def test_piecewise_linear_rejects_nonsense(slopes: list[float], knots: list[float], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        PiecewiseLinear(slopes, knots)


def test_own_activations_are_taken_as_they_are() -> None:
    mine = PiecewiseLinear([0, 1], [0])
    assert as_activation(mine) is mine
    assert mine == max_linear(0, 1)
    assert hash(mine) == hash(max_linear(0, 1))
    assert mine != max_linear(0, 2)
    assert eval(repr(mine)) == mine


def test_named_pieces_are_what_they_say() -> None:
    a = np.linspace(-9, 9, 181)
    np.testing.assert_allclose(as_activation("hard_tanh")(a), np.clip(a, -1, 1), atol=1e-15)
    np.testing.assert_allclose(as_activation("hard_sigmoid")(a), np.clip(a / 6 + 0.5, 0, 1), atol=1e-15)
    np.testing.assert_allclose(as_activation("relu6")(a), np.clip(a, 0, 6), atol=1e-15)
    np.testing.assert_allclose(as_activation("leaky_relu")(a), np.maximum(0.01 * a, a), atol=1e-15)
