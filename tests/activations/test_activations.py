import math
from collections.abc import Callable
from pathlib import Path
from runpy import run_path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import erf, ndtr
from scipy.stats import norm

from onepass._typing import FloatArray
from onepass.activations import NAMES, Activation, PaperSigmoid, Probit, Quadrature, Sigmoid, Step, as_activation
from onepass.engine.moments import SCALES, WEIGHTS
from tests.helpers import quadrature
from tests.helpers.quadrature import VARS, worst_errors


def test_paper_sigmoid_errors_are_those_of_its_docstring() -> None:
    mean, var, slope = worst_errors(PaperSigmoid(), absolute=True)
    assert 0.017 < mean < 0.018
    assert 0.015 < var < 0.016
    assert 0.008 < slope < 0.009


@pytest.mark.parametrize(
    ("activation", "derivative", "tolerance"),
    [
        (Sigmoid(), lambda a: Sigmoid()(a) * Sigmoid()(-a), (1e-8, 1e-7, 2e-8)),
        (Probit(), norm.pdf, (1e-12, 1e-12, 1e-12)),
    ],
    ids=["sigmoid", "probit"],
)
def test_sigmoid_and_probit_are_right_relative_to_themselves_in_the_tail(
    activation: Activation, derivative: Callable[[FloatArray], FloatArray], tolerance: tuple[float, ...]
) -> None:
    for mean in np.linspace(-20, 0, 11):
        for var in VARS:
            a, w = quadrature.gaussian_panels(mean, var)
            y = activation(a)
            truth = np.array([w @ y, w @ (y - w @ y) ** 2, w @ derivative(a)])
            errors = np.abs(np.array(activation.moments(mean, var)) - truth)
            assert (errors <= np.array(tolerance) * truth).all(), (mean, var)


@pytest.mark.parametrize(
    ("name", "tolerance"),
    [
        ("sigmoid", (1e-8, 2e-8, 5e-8)),
        ("tanh", (2e-8, 8e-8, 2e-7)),
        ("probit", (1e-13, 1e-13, 1e-12)),
        ("erf", (1e-13, 1e-13, 1e-12)),
        ("gelu", (1e-12, 1e-11, 1e-11)),
        ("softplus", (1e-9, 1e-8, 5e-8)),
    ],
)
def test_smooth_moments_equal_quadrature(name: str, tolerance: tuple[float, ...]) -> None:
    assert (worst_errors(as_activation(name)) < tolerance).all()


def test_step_moments_equal_quadrature() -> None:
    assert (worst_errors(Step(), breaks=(0.0,), absolute=True)[:2] < 1e-12).all()
    # The slope is that of the mean, E[f'] = dE[f]/dmean.
    h = 1e-6
    rise = (Step().moments(0.3 + h, 2.0).mean - Step().moments(0.3 - h, 2.0).mean) / (2 * h)
    assert Step().moments(0.3, 2.0).slope == pytest.approx(rise, rel=1e-8)


def test_exp_moments_are_log_normal() -> None:
    for mean, var in [(-3.0, 0.1), (0.0, 1.0), (2.0, 2.0)]:
        np.testing.assert_allclose(
            as_activation("exp").moments(mean, var), quadrature.moments(np.exp, mean, var), rtol=1e-9
        )


def test_names_are_the_functions_they_say() -> None:
    a = np.linspace(-5, 5, 101)
    for name, function in {
        "tanh": np.tanh(a),  # and not the paper's misprint
        "erf": erf(a),
        "probit": ndtr(a),
        "gelu": a * ndtr(a),
        "softplus": np.log1p(np.exp(a)),
        "step": (a > 0) + 0.5 * (a == 0),
        "exp": np.exp(a),
    }.items():
        np.testing.assert_allclose(as_activation(name)(a), function, atol=1e-14, rtol=1e-14)


def test_paper_tanh_moments_are_near_those_of_tanh() -> None:
    for mean in (-3.0, -0.4, 0.0, 2.0):
        for var in (0.01, 0.3, 2.0):
            truth = quadrature.moments(np.tanh, mean, var)
            ours = as_activation("tanh", "paper").moments(mean, var)
            # The sigmoid's errors, times 2 (mean), 2² (variance) and 2 * 2 (slope).
            assert (np.abs(np.subtract(ours, truth)) < (2 * 0.018, 4 * 0.016, 4 * 0.009)).all()


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


def test_mixture_is_what_its_script_fits() -> None:
    script = run_path(str(Path(__file__).parents[2] / "scripts" / "fit_sigmoid.py"))
    weights, scales = script["fit"](len(WEIGHTS))
    np.testing.assert_allclose(weights, WEIGHTS, rtol=1e-4)  # the minimax valley is flat
    np.testing.assert_allclose(scales, SCALES, rtol=1e-4)
    a = np.linspace(0, 60, 20_001)
    error = np.abs(ndtr(np.outer(a, SCALES)) @ WEIGHTS - Sigmoid()(a))
    assert error.max() < 9.8e-8
    assert WEIGHTS.sum() == pytest.approx(1.0, abs=1e-15)


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


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'sigmoid'.*'relu'.*'softplus'.*got 'swish'"):
        as_activation("swish")
    with pytest.raises(TypeError, match="activation"):
        as_activation(3)
    with pytest.raises(TypeError, match="activation"):
        as_activation(PaperSigmoid)  # the class, not an object


@pytest.mark.parametrize(
    ("moments", "error", "words"),
    [
        ((0.0, 1.0), TypeError, r"mean and variance of f\(a\) and the expected slope.*got \(0.0, 1.0\)"),
        (None, TypeError, "got None"),
        ((0.0, -1.0, 1.0), ValueError, "the variance not negative; got 0, -1 and 1"),
        ((0.0, math.nan, 1.0), ValueError, "finite.*got 0, nan and 1"),
    ],
)
def test_an_activation_with_unsound_moments_is_refused_by_name(
    moments: Any, error: type[Exception], words: str
) -> None:
    class Wrong:
        def __call__(self, a: Any, /) -> Any:
            return a

        def __repr__(self) -> str:
            return "Wrong()"

        def moments(self, mean: Any, var: Any, /) -> Any:
            return moments

    with pytest.raises(error, match=rf"activation Wrong\(\): .*{words}"):
        as_activation(Wrong())
