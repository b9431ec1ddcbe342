"""The likelihood of numbers with Gaussian noise around the output."""

from dataclasses import dataclass
from typing import Any, ClassVar

from onepass._typing import FloatArray
from onepass.activations import Moments
from onepass.engine.matches import KalmanNoise
from onepass.likelihoods.base import Likelihood

__all__ = ["Gaussian"]


@dataclass(frozen=True)
class Gaussian(Likelihood):
    """``y = f(a) + N(0, noise)``; ``noise`` is the paper's epsilon.

    The moment match is exact around piecewise linear outputs: there ``p(y|a) N(a)`` is a sum of truncated Gaussians.
    Quantiles take the predictive distribution as Gaussian, as the paper does.
    """

    noise: float | FloatArray
    name: ClassVar[str] = "gaussian"
    kalman: ClassVar[type[KalmanNoise]] = KalmanNoise

    def with_noise(self, noise: float | FloatArray) -> "Gaussian":
        """The same with another noise variance."""
        return Gaussian(noise)

    def noise_var(self, output: Moments) -> FloatArray:
        """``noise``, the same everywhere."""
        # In the shape of the output, whose variance may be infinite: 0 * inf would be NaN.
        noise: Any = self.noise + 0.0 * (output.var > 0.0)
        return noise  # type: ignore[no-any-return]
