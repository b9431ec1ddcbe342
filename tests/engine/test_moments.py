"""Compiled moments: the mixture of probits behind the sigmoid, and row by row what activations tell."""

from pathlib import Path
from runpy import run_path
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

from onepass.activations import NAMES, Sigmoid, as_activation, compiled_activation
from onepass.engine.moments import SCALES, WEIGHTS, PythonMoments
from tests.helpers import quadrature


def test_mixture_is_what_its_script_fits() -> None:
    script = run_path(str(Path(__file__).parents[2] / "scripts" / "fit_sigmoid.py"))
    weights, scales = script["fit"](len(WEIGHTS))
    np.testing.assert_allclose(weights, WEIGHTS, rtol=1e-4)  # the minimax valley is flat
    np.testing.assert_allclose(scales, SCALES, rtol=1e-4)
    a = np.linspace(0, 60, 20_001)
    error = np.abs(ndtr(np.outer(a, SCALES)) @ WEIGHTS - Sigmoid()(a))
    assert error.max() < 9.8e-8
    assert WEIGHTS.sum() == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_compiled_moments_are_those_of_quadrature_in_python(name: str) -> None:
    """Through `PythonMoments`, by which compiled loops call any activation."""
    activation = as_activation(name)
    mean, var = np.array([-1.2, 0.1, 0.9]), np.array([0.02, 0.3, 1.1])
    found = compiled_activation(activation).moments(mean, var)
    np.testing.assert_allclose(found, np.array(activation.moments(mean, var)), rtol=1e-15)
    np.testing.assert_allclose(PythonMoments(activation).moments(mean, var), found, rtol=1e-15)
    for i in range(3):
        expected = quadrature.moments(activation, mean[i], var[i], breaks=(-3.0, -1.0, 0.0, 1.0, 3.0, 6.0))
        np.testing.assert_allclose(found[:, i], expected, rtol=1e-6, atol=1e-8)


def test_an_exception_of_an_activation_in_python_is_raised_after_the_loop() -> None:
    class Moody:
        def __call__(self, a: Any, /) -> Any:
            return a

        def moments(self, mean: Any, var: Any, /) -> Any:
            raise RuntimeError("not today")

    with pytest.raises(RuntimeError, match="not today"):
        PythonMoments(Moody()).moments(np.zeros(2), np.ones(2))
