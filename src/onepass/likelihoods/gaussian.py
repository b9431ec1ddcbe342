"""The likelihoods of numbers with Gaussian noise around the output: one noise for all rows, or one for each input."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from onepass._typing import FloatArray
from onepass.activations import Moments
from onepass.engine.matches import KalmanNoise
from onepass.engine.step import NOISE_START, NOISE_START_WEIGHT
from onepass.engine.vector_matches import (
    OUTPUT_NOISE_START,
    OUTPUT_NOISE_START_WEIGHT,
    GaussianOutputs,
    HeteroscedasticOutputs,
    OutputRecord,
    VectorLikelihood,
)
from onepass.likelihoods.base import LOG_NOISE, Likelihood, LogNoise, Predictive, register
from onepass.likelihoods.calibration import excess_var

__all__ = ["Gaussian", "Heteroscedastic"]


class _Noisy(Likelihood):
    """What both have in common: what a network predicts of them."""

    can_calibrate: ClassVar[bool] = True
    output_noise_start: ClassVar[tuple[float, float]] = (OUTPUT_NOISE_START, OUTPUT_NOISE_START_WEIGHT)

    def predictive(self, given: OutputRecord, alone: bool) -> Predictive:
        """The outputs' own moments, with calibrated variances."""
        excess = excess_var(given.var, given.scale, given.usual_var, alone)
        var = given.scale * (given.var + given.unknown_noise) + excess
        return Predictive(given.mean, var, given.scale * given.noise)

    def response(self, outputs: FloatArray) -> FloatArray:
        """The outputs themselves."""
        return outputs


@register
@dataclass(frozen=True)
class Gaussian(_Noisy):
    """``y = f(a) + N(0, noise)``; ``noise`` is the paper's epsilon.

    The moment match is exact around piecewise linear outputs: there ``p(y|a) N(a)`` is a sum of truncated Gaussians.
    Quantiles take the predictive distribution as Gaussian, as the paper does, for each noise that it may be.
    """

    noise: float | FloatArray | None = None
    name: ClassVar[str] = "gaussian"
    is_gaussian: ClassVar[bool] = True
    takes_noise: ClassVar[bool] = True
    kalman: ClassVar[type[KalmanNoise]] = KalmanNoise
    usual_noise: ClassVar[float | str] = 0.01
    noise_start: ClassVar[tuple[float, float]] = (NOISE_START, NOISE_START_WEIGHT)

    def with_noise(self, noise: float | FloatArray | None) -> Self:
        """The same with another noise variance."""
        return type(self)(noise)

    def noise_var(self, output: Moments) -> FloatArray:
        """``noise``, the same everywhere."""
        # In the shape of the output, whose variance may be infinite: 0 * inf would be NaN.
        noise: Any = self.noise + 0.0 * (output.var > 0.0)  # type: ignore[operator]
        return noise  # type: ignore[no-any-return]

    def outputs(self, n_outputs: int, log_noise: LogNoise = LOG_NOISE) -> VectorLikelihood:
        """All outputs together, around the linear ones of a network."""
        return GaussianOutputs(n_outputs)


@register
@dataclass(frozen=True)
class Heteroscedastic(_Noisy):
    """Numbers whose noise depends on the input: every output has a second one, the log of its noise's variance."""

    name: ClassVar[str] = "heteroscedastic"
    has_noise_outputs: ClassVar[bool] = True
    needs_network: ClassVar[bool] = True

    def outputs(self, n_outputs: int, log_noise: LogNoise = LOG_NOISE) -> VectorLikelihood:
        """With the prior of the log noise, which bounds what is predicted of it."""
        return HeteroscedasticOutputs(n_outputs, *log_noise)
