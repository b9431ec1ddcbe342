"""Activations: functions with the mean and variance of their output for a Gaussian input.

`base` defines what an activation is; the other modules have the built-in ones.
"""

from typing import Any

import numpy as np

from onepass._validation import one_of
from onepass.activations.base import Activation, Moments, Narrowed, Rescaled, compiled_activation
from onepass.activations.exponential import Exponential
from onepass.activations.piecewise import PiecewiseLinear, max_linear
from onepass.activations.probit import Probit, Step
from onepass.activations.quadrature import Quadrature
from onepass.activations.rectifiers import Gelu, Softplus
from onepass.activations.sigmoid import PaperSigmoid, Sigmoid

__all__ = [
    "NAMES",
    "Activation",
    "Exponential",
    "Gelu",
    "Moments",
    "Narrowed",
    "PaperSigmoid",
    "PiecewiseLinear",
    "Probit",
    "Quadrature",
    "Rescaled",
    "Sigmoid",
    "Softplus",
    "Step",
    "activation_text",
    "as_activation",
    "compiled_activation",
    "max_linear",
]

_EXACT: dict[str, Activation] = {
    "sigmoid": Sigmoid(),
    "tanh": Rescaled(Sigmoid(), inner=2.0, outer=2.0, offset=-1.0),
    "relu": max_linear(0.0, 1.0),
    "leaky_relu": max_linear(0.01, 1.0),
    "linear": max_linear(1.0, 1.0),
    "hard_tanh": PiecewiseLinear([0.0, 1.0, 0.0], [-1.0, 1.0]),
    "hard_sigmoid": PiecewiseLinear([0.0, 1.0 / 6.0, 0.0], [-3.0, 3.0], value_at_zero=0.5),
    "relu6": PiecewiseLinear([0.0, 1.0, 0.0], [0.0, 6.0]),
    "step": Step(),
    "probit": Probit(),
    "erf": Rescaled(Probit(), inner=np.sqrt(2.0), outer=2.0, offset=-1.0),
    "gelu": Gelu(),
    "softplus": Softplus(),
    "exp": Exponential(),
}
_PAPER: dict[str, Activation] = {
    "sigmoid": PaperSigmoid(),
    "tanh": Rescaled(PaperSigmoid(), inner=2.0, outer=2.0, offset=-1.0),
}
NAMES = tuple(_EXACT)


def as_activation(given: Any, moments: str = "exact") -> Activation:
    """Look an activation up by name, or take an object that follows the protocol.

    ``moments="paper"`` gives the sigmoid and tanh the paper's approximations; all others are exact either way.

    Examples
    --------
    >>> from onepass.activations import as_activation
    >>> as_activation("sigmoid")
    Sigmoid()
    >>> as_activation("relu")([-1.0, 2.0])
    array([0., 2.])
    """
    one_of(moments, ("exact", "paper"), "moments")
    if isinstance(given, type):
        raise TypeError(f"activation must be an object, got the class {given.__name__}; pass {given.__name__}(...)")
    if isinstance(given, Activation):
        _check_moments(given)
        return given
    if callable(given):
        raise TypeError(
            f"activation {given!r} is a function without moments; pass Quadrature(function), an object with the "
            f"methods __call__ and moments, or one of {', '.join(map(repr, NAMES))}"
        )
    name = one_of(given, NAMES, "activation")
    return _PAPER.get(name, _EXACT[name]) if moments == "paper" else _EXACT[name]


def activation_text(activation: Activation) -> str:
    """What a message calls an activation: its name, if it has one.

    Examples
    --------
    >>> from onepass.activations import activation_text, as_activation
    >>> activation_text(as_activation("linear"))
    "'linear'"
    """
    return next((repr(name) for name, known in _EXACT.items() if activation == known), repr(activation))


def _check_moments(activation: Activation) -> None:
    """Try the moments of a user's own activation once: compiled loops would fail at them less clearly."""
    if getattr(activation, "compiled", None) is not None:
        return
    needed = "mean and variance of f(a) and the expected slope E[f'(a)], as numbers"
    given = activation.moments(0.0, 1.0)
    try:
        mean, var, slope = (float(part) for part in given)
    except (TypeError, ValueError):
        raise TypeError(f"activation {activation!r}: moments(0.0, 1.0) must return {needed}, got {given!r}") from None
    if not np.isfinite([mean, var, slope]).all() or var < 0.0:
        raise ValueError(
            f"activation {activation!r}: moments(0.0, 1.0) must return {needed} that are finite, the variance not "
            f"negative; got {mean:g}, {var:g} and {slope:g}"
        )
