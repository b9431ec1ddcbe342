"""Smooth rectifiers: GELU and softplus."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from onepass._typing import FloatArray
from onepass.activations.base import ClosedForm
from onepass.engine.moments import GeluMoments, SoftplusMoments

__all__ = ["Gelu", "Softplus"]


@dataclass(frozen=True)
class Gelu(ClosedForm):
    """``a Φ(a)``: moments right to 1e-10 of ``|f(mean)| + std`` and its square.

    Examples
    --------
    >>> from onepass.activations import Gelu
    >>> print(f"{Gelu().moments(0.0, 1.0).mean:.4f}")
    0.2821
    """

    compiled = GeluMoments()

    def __call__(self, a: ArrayLike, /) -> FloatArray:
        """Value ``a Φ(a)``."""
        a = np.asarray(a, dtype=np.float64)
        return np.asarray(a * ndtr(a))


@dataclass(frozen=True)
class Softplus(ClosedForm):
    """``log(1 + e^a)``, the integral of the sigmoid: moments right to 2e-7 of ``|f(mean)| + std`` and its square.

    Examples
    --------
    >>> from onepass.activations import Softplus
    >>> print(f"{Softplus().moments(0.0, 1.0).mean:.4f}")
    0.8061
    """

    compiled = SoftplusMoments()

    def __call__(self, a: ArrayLike, /) -> FloatArray:
        """Value ``log(1 + e^a)``."""
        return np.asarray(np.logaddexp(0.0, np.asarray(a, dtype=np.float64)))
