"""Activations made of the normal distribution function: probit and step, with exact closed forms.

``erf`` is a rescaled probit, see ``onepass.activations.as_activation``.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from onepass._typing import FloatArray
from onepass.activations.base import ClosedForm
from onepass.engine.matches import CompiledLikelihood, ProbitLabel, StepLabel
from onepass.engine.moments import ProbitMoments, StepMoments

__all__ = ["Probit", "Step"]


@dataclass(frozen=True)
class Probit(ClosedForm):
    """The normal distribution function ``Φ(a)``; moments right to 1e-12, relative in all tails.

    Examples
    --------
    >>> from onepass.activations import Probit
    >>> float(Probit().moments(0.0, 1e9).mean)
    0.5
    """

    compiled = ProbitMoments()
    exact: ClassVar[dict[str, type[CompiledLikelihood]]] = {"bernoulli": ProbitLabel}

    def __call__(self, a: ArrayLike, /) -> FloatArray:
        """Value ``Φ(a)``."""
        return np.asarray(ndtr(np.asarray(a, dtype=np.float64)))


@dataclass(frozen=True)
class Step(ClosedForm):
    """The Heaviside step of Rosenblatt's perceptron: 1 above zero, 0 below, 1/2 at zero."""

    compiled = StepMoments()
    exact: ClassVar[dict[str, type[CompiledLikelihood]]] = {"bernoulli": StepLabel}

    def __call__(self, a: ArrayLike, /) -> FloatArray:
        """Value at ``a``."""
        return np.heaviside(np.asarray(a, dtype=np.float64), 0.5)
