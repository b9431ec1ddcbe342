"""Moments and matches of the graphs against quadrature and the engine, and the polynomial for ``erfc``."""

from typing import Any

import numpy as np
import pytest
from scipy.special import erfc, log_ndtr

from onepass.activations import NAMES, as_activation
from onepass.export.classes import fitted_erfc
from onepass.export.expressions import call, part, row
from onepass.export.formulas import activation_moments
from onepass.export.numpy_module import numpy_source
from onepass.export.programs import Input, Program
from onepass.export.updates import update_function
from tests.helpers import quadrature


def evaluated(results: Any, x: Any, rows: Any) -> Any:
    """What a graph gives for rows, by the NumPy module of it: two results at a time."""
    names: dict[str, Any] = {}
    inputs = tuple(Input(f"x{k}") for k in range(x.width))
    exec(numpy_source(Program("a formula", x, inputs, *results)), names)
    return names["predict"](rows)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "step"])
@pytest.mark.parametrize("mean", [-3.0, -0.4, 0.0, 1.7])
@pytest.mark.parametrize("var", [0.01, 0.7, 9.0])
def test_moments_are_those_of_quadrature(name: str, mean: float, var: float) -> None:
    activation = as_activation(name)
    x = row(2)
    found = activation_moments(activation, part(x, 0, 1), part(x, 1, 2))
    breaks = {"hard_tanh": (-1.0, 1.0), "hard_sigmoid": (-3.0, 3.0), "relu6": (0.0, 6.0)}.get(name, (0.0,))
    truth = quadrature.moments(activation, mean, var, breaks)
    first = evaluated(found[:2], x, [[mean, var]])
    second = evaluated((found[2], found[1]), x, [[mean, var]])
    scale = abs(float(activation(mean))) + np.sqrt(var)
    assert abs(first[0][0, 0] - truth[0]) < 3e-7 * scale
    assert abs(first[1][0, 0] - truth[1]) < 3e-7 * scale**2
    assert abs(second[0][0, 0] - truth[2]) < 3e-7


@pytest.mark.parametrize("name", NAMES)
def test_moments_are_those_of_the_engine_up_to_rounding(name: str) -> None:
    """Quadrature would not see that a formula has another series, branch or constant than the compiled one."""
    means = (-30.0, -8.0, -3.0, -1.0, -0.2, 0.0, 0.2, 1.0, 3.0, 8.0, 30.0)
    points = np.array([(mean, var) for mean in means for var in (0, 1e-4, 0.01, 0.3, 1, 1.01, 3, 9, 60, 1e3)])
    activation, x = as_activation(name), row(2)
    found = activation_moments(activation, part(x, 0, 1), part(x, 1, 2))
    first, second = evaluated(found[:2], x, points), evaluated((found[2], found[1]), x, points)
    scale = np.abs([float(activation(mean)) for mean in points[:, 0]]) + np.sqrt(points[:, 1])
    mean, var, slope = activation.moments(points[:, 0], points[:, 1])
    for exported, compiled, unit in ((first[0], mean, scale), (first[1], var, scale**2), (second[0], slope, 1.0)):
        assert (np.abs(np.ravel(exported) - compiled) <= 1e-13 * np.abs(compiled) + 1e-15 * unit).all()


@pytest.mark.parametrize(
    ("rule", "log_likelihood"), [("sigmoid", lambda a: -np.logaddexp(0.0, -a)), ("probit", lambda a: log_ndtr(a))]
)
@pytest.mark.parametrize("mean", [-6.0, -0.5, 0.0, 2.5])
@pytest.mark.parametrize("var", [0.01, 0.3, 2.0, 40.0])
def test_labels_are_matched_as_quadrature_does(rule: str, log_likelihood: Any, mean: float, var: float) -> None:
    x = row(3)
    score, information, _ = call(update_function(rule), *(part(x, k, k + 1) for k in range(3)))
    found = evaluated((score, information), x, [[mean, var, 1.0]])
    truth = quadrature.tilted(log_likelihood, mean, var)
    std = np.sqrt(truth.var)
    assert abs(mean + found[0][0, 0] * var - truth.mean) < 2e-7 * std
    assert abs(var - found[1][0, 0] * var**2 - truth.var) < 5e-7 * truth.var


def test_the_polynomial_for_erfc_keeps_its_digits_in_the_tail() -> None:
    x = row(1)
    points = np.linspace(-6.0, 20.0, 500)[:, None]
    for degree, error in ((9, 1e-6), (18, 1e-11)):
        found, _ = evaluated((fitted_erfc(x, degree), x), x, points)
        np.testing.assert_allclose(found[:, 0], erfc(points[:, 0]), rtol=error)
