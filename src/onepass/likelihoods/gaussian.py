"""The likelihood of numbers with Gaussian noise around the output."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from onepass._typing import FloatArray
from onepass.activations import Activation, Moments
from onepass.engine.matches import KalmanNoise
from onepass.likelihoods.base import Likelihood
from onepass.likelihoods.mixtures import mixture_quantile, noise_mixture

__all__ = ["Gaussian"]


@dataclass(frozen=True)
class Gaussian(Likelihood):
    """``y = f(a) + N(0, noise)``; ``noise`` is the paper's epsilon.

    The moment match is exact around piecewise linear outputs: there ``p(y|a) N(a)`` is a sum of truncated Gaussians.
    Quantiles take the predictive distribution as Gaussian, as the paper does, for each noise that it may be: its log
    has the variance ``log_noise_var``.
    """

    noise: float | FloatArray
    log_noise_var: float = field(default=0.0, repr=False)
    name: ClassVar[str] = "gaussian"
    kalman: ClassVar[type[KalmanNoise]] = KalmanNoise

    def with_noise(self, noise: float | FloatArray, log_noise_var: float = 0.0) -> "Gaussian":
        """The same with another noise variance."""
        return Gaussian(noise, log_noise_var)

    def noise_var(self, output: Moments) -> FloatArray:
        """``noise``, the same everywhere."""
        # In the shape of the output, whose variance may be infinite: 0 * inf would be NaN.
        noise: Any = self.noise + 0.0 * (output.var > 0.0)
        return noise  # type: ignore[no-any-return]

    def quantile(self, activation: Activation, mean: FloatArray, var: FloatArray, level: float) -> FloatArray:
        """Quantile of a new target."""
        output = activation.moments(mean, var)
        mean, var, noise = (part.reshape(1, -1) for part in (output.mean, output.var, self.noise_var(output)))
        mixture = noise_mixture(np.ones(1), mean, var, noise, np.array([self.log_noise_var]))
        return mixture_quantile(*mixture, level).reshape(output.mean.shape)
