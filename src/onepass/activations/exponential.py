"""The exponential, the link of counts."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from onepass._typing import FloatArray
from onepass.activations.base import ClosedForm
from onepass.engine.count_matches import NegativeBinomialCount, PoissonCount
from onepass.engine.matches import CompiledLikelihood
from onepass.engine.moments import ExponentialMoments

__all__ = ["Exponential"]

_MAX_EXPONENT = 300.0


@dataclass(frozen=True)
class Exponential(ClosedForm):
    """``e^a``, whose moments are those of the log-normal distribution.

    Exponents are cut at 300, so that a hopeless belief gives huge numbers and not infinite ones. The mean and variance
    after a count are right to 1e-6 of the posterior standard deviation.

    Examples
    --------
    >>> from onepass.activations import Exponential
    >>> print(f"{Exponential().moments(0.0, 2.0).mean:.4f}")
    2.7183
    """

    compiled = ExponentialMoments()
    exact: ClassVar[dict[str, type[CompiledLikelihood]]] = {
        "poisson": PoissonCount,
        "negative_binomial": NegativeBinomialCount,
    }

    def __call__(self, a: ArrayLike, /) -> FloatArray:
        """Value ``e^a``."""
        return np.asarray(np.exp(np.minimum(np.asarray(a, dtype=np.float64), _MAX_EXPONENT)))
