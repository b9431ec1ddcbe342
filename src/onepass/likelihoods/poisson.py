"""The likelihood of counts."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from onepass._typing import FloatArray
from onepass.activations import Activation, Moments
from onepass.engine.matches import KalmanCount
from onepass.likelihoods.base import Likelihood

__all__ = ["Poisson"]

_TINY = 1e-200


@dataclass(frozen=True)
class Poisson(Likelihood):
    """A count with the rate ``f(a)``, usually ``e^a``, for which the moment match is exact."""

    name: ClassVar[str] = "poisson"
    kalman: ClassVar[type[KalmanCount]] = KalmanCount

    def check(self, y: FloatArray) -> None:
        """Take whole numbers from 0 on."""
        bad = (y < 0.0) | (y != np.floor(y))
        if bad.any():
            where = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"y must hold counts 0, 1, 2, ... for observation='poisson', got {y[where]:g} at index {where}"
            )

    def check_activation(self, activation: Activation) -> None:
        """Take activations that are never negative."""
        if (activation([-1e3, 0.0, 1e3]) < 0.0).any():
            raise ValueError(
                "observation='poisson' needs an activation that is never negative, such as 'exp' or 'softplus', "
                f"got {activation!r}"
            )

    def noise_var(self, output: Moments) -> FloatArray:
        """Return the rate itself: a Poisson count varies as much as its mean."""
        return output.mean

    def quantile(self, activation: Activation, mean: FloatArray, var: FloatArray, level: float) -> FloatArray:
        """Of the negative binomial with the same mean and variance: a gamma stands in for the rate's density."""
        from scipy.stats import nbinom  # half a second that nobody else needs

        output = activation.moments(mean, var)
        # A variance of next to nothing counts as little.
        shape = 1.0 / np.clip(output.var / np.maximum(output.mean, _TINY) ** 2, 1e-8, 1e12)
        return np.asarray(nbinom.ppf(level, shape, shape / (shape + output.mean)))
