import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onepass.activations import Activation, PaperSigmoid, PiecewiseLinear, as_activation, max_linear
from tests import quadrature

MEANS = np.linspace(-20, 20, 41)
VARS = np.logspace(-6, 4, 21)
PIECEWISE = {
    "relu": as_activation("relu"),
    "leaky_relu": as_activation("leaky_relu"),
    "linear": as_activation("linear"),
    "steep": max_linear(0.3, 2.5),
    "shifted": PiecewiseLinear([0.5, 2.0], [1.5], value_at_zero=-1.0),
}


def worst_errors(activation: Activation, relative: bool, breaks: tuple[float, ...] = ()) -> np.ndarray:
    """Largest error of (mean, var, slope) against quadrature over the grid."""
    worst = np.zeros(3)
    for mean in MEANS:
        for var in VARS:
            truth = quadrature.moments(activation, mean, var, breaks)
            ours = activation.moments(mean, var)
            scale = abs(float(activation(mean))) + math.sqrt(var) if relative else 1.0
            errors = np.abs(np.subtract(ours, truth)) / (scale, scale**2, 1.0)
            worst = np.maximum(worst, errors)
    return worst


def test_paper_sigmoid_errors_are_those_of_its_docstring() -> None:
    mean, var, slope = worst_errors(PaperSigmoid(), relative=False)
    assert 0.017 < mean < 0.018
    assert 0.015 < var < 0.016
    assert 0.008 < slope < 0.009


@pytest.mark.parametrize("name", PIECEWISE)
def test_piecewise_linear_moments_equal_quadrature(name: str) -> None:
    activation = PIECEWISE[name]
    assert isinstance(activation, PiecewiseLinear)
    mean, var, slope = worst_errors(activation, relative=True, breaks=tuple(activation.knots))
    assert mean < 1e-13
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


def test_tanh_is_tanh_and_not_the_misprint() -> None:
    a = np.linspace(-5, 5, 101)
    np.testing.assert_allclose(as_activation("tanh")(a), np.tanh(a), atol=1e-14)


def test_tanh_moments_are_near_those_of_tanh() -> None:
    for mean in (-3.0, -0.4, 0.0, 2.0):
        for var in (0.01, 0.3, 2.0):
            truth = quadrature.moments(np.tanh, mean, var)
            ours = as_activation("tanh").moments(mean, var)
            # The sigmoid's errors, times 2 (mean), 2² (variance) and 2 * 2 (slope).
            assert (np.abs(np.subtract(ours, truth)) < (2 * 0.018, 4 * 0.016, 4 * 0.009)).all()


def test_sigmoid_bounds_and_limits_of_the_paper() -> None:
    means, variances = np.meshgrid(np.linspace(-50, 50, 41), np.logspace(-8, 12, 41))
    mean, var, _ = PaperSigmoid().moments(means, variances)
    assert ((mean >= 0) & (mean <= 1)).all()
    assert ((var >= 0) & (var <= 0.25)).all()
    certain = PaperSigmoid().moments([-3.0, 0.0, 5.0], 0.0)
    np.testing.assert_array_equal(certain.mean, PaperSigmoid()([-3.0, 0.0, 5.0]))
    np.testing.assert_array_equal(certain.var, 0.0)
    vague = PaperSigmoid().moments([-3.0, 0.0, 5.0], 1e14)
    np.testing.assert_allclose(vague.mean, 0.5, atol=1e-6)
    np.testing.assert_allclose(vague.var, 0.25, atol=1e-6)


@pytest.mark.parametrize("name", ["relu", "leaky_relu", "linear"])
def test_piecewise_linear_without_variance_is_the_function(name: str) -> None:
    activation = as_activation(name)
    a = np.array([-1e6, -2.0, 0.5, 1e6])
    mean, var, slope = activation.moments(a, 0.0)
    np.testing.assert_array_equal(mean, activation(a))
    np.testing.assert_array_equal(var, 0.0)
    np.testing.assert_allclose(slope, (activation(a + 0.1) - activation(a - 0.1)) / 0.2, rtol=1e-6)


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "relu", "leaky_relu", "linear"])
@given(mean=st.floats(-1e6, 1e6), var=st.floats(0, 1e12))
def test_moments_are_finite_and_variances_not_negative(name: str, mean: float, var: float) -> None:
    moments = as_activation(name).moments(mean, var)
    assert np.isfinite(moments).all()
    assert moments.var >= 0


def test_moments_broadcast() -> None:
    for name in ("sigmoid", "tanh", "relu"):
        grid = as_activation(name).moments(np.zeros((3, 1)), np.ones(4))
        assert all(part.shape == (3, 4) for part in grid)


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


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'sigmoid'.*'relu'.*got 'swish'"):
        as_activation("swish")
    with pytest.raises(TypeError, match="activation"):
        as_activation(3)
    with pytest.raises(TypeError, match="activation"):
        as_activation(PaperSigmoid)  # the class, not an object


def test_own_activations_are_taken_as_they_are() -> None:
    mine = PiecewiseLinear([0, 1], [0])
    assert as_activation(mine) is mine
    assert mine == max_linear(0, 1)
    assert hash(mine) == hash(max_linear(0, 1))
    assert mine != max_linear(0, 2)
    assert eval(repr(mine)) == mine
