import math
from typing import Any

import numpy as np
import pytest
from scipy.special import erf, ndtr

from onepass.activations import PaperSigmoid, as_activation


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
