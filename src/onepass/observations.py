"""Observation models: what a target says about the pre-activation.

An observation model and an update rule turn the belief ``N(mean, var)`` about the pre-activation ``a`` and a target
``y`` into a `Tilt`: the two scalars of the posterior's step and the log predictive density of ``y``. Nothing here
knows about weights or inputs. Two rules:

- `kalman`, the paper's, treats ``y`` and ``a`` as jointly Gaussian and needs only the moments of the activation;
- `adf` (assumed density filtering) takes the exact first two moments of ``p(y|a) N(a)``, where they have a closed form.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, xlogy

from onepass.activations import Activation, Moments, PaperSigmoid, Tilt, TiltsByCount, TiltsByLabel, TiltsByNoise
from onepass.activations.base import broadcast
from onepass.gaussian import FloatArray

__all__ = [
    "Bernoulli",
    "Gaussian",
    "NoiseEstimate",
    "Observation",
    "Poisson",
    "default_observation",
    "gamma_shape",
    "kalman",
]

_TINY = 1e-200  # what is smaller is nothing; quotients of what is larger stay within float64


class Observation(Protocol):
    """What a model asks of an observation."""

    def check(self, y: FloatArray) -> None:
        """Raise a ValueError for targets that can't be."""
        ...

    def noise_var(self, output: Moments) -> FloatArray:
        """Variance of ``y`` that knowing the weights would not take away."""
        ...

    def log_density(self, output: Moments, y: FloatArray) -> FloatArray:
        """Log density of ``y`` by the moments of the output alone."""
        ...

    def has_closed_form(self, activation: Activation) -> bool:
        """Whether `adf` can be asked for this activation."""
        ...

    def adf(self, activation: Activation, mean: ArrayLike, var: ArrayLike, y: ArrayLike) -> Tilt:
        """Tilt exactly by the likelihood of ``y``."""
        ...


@dataclass(frozen=True)
class Gaussian:
    """``y = f(a) + N(0, noise)``, equation (backward_noisy-activation); ``noise`` is the paper's epsilon."""

    noise: float

    def check(self, y: FloatArray) -> None:
        """Take any finite number."""

    def noise_var(self, output: Moments) -> FloatArray:
        """``noise``, the same everywhere."""
        return np.full_like(output.var, self.noise)

    def log_density(self, output: Moments, y: FloatArray) -> FloatArray:
        """Log of ``N(y; mean, var + noise)``."""
        total = np.maximum(output.var + self.noise, _TINY)
        with np.errstate(over="ignore"):
            return np.asarray(-0.5 * (np.log(2.0 * np.pi * total) + (y - output.mean) ** 2 / total))

    def has_closed_form(self, activation: Activation) -> bool:
        """Only piecewise linear outputs: there the tilted density is a sum of cut Gaussians."""
        return isinstance(activation, TiltsByNoise)

    def adf(self, activation: Activation, mean: ArrayLike, var: ArrayLike, y: ArrayLike) -> Tilt:
        """Tilt by ``N(y; f(a), noise)``."""
        assert isinstance(activation, TiltsByNoise)
        return activation.tilt_by_noise(mean, var, y, self.noise)

    def expected_square(self, activation: Activation, mean: ArrayLike, var: ArrayLike, y: ArrayLike) -> FloatArray:
        """``E[(y - f(a))²]`` under that tilted density: what one row says about the noise."""
        assert isinstance(activation, TiltsByNoise)
        return activation.expected_square(mean, var, y, self.noise)


@dataclass(frozen=True)
class Bernoulli:
    """A label, 1 with probability ``f(a)`` and 0 otherwise."""

    def check(self, y: FloatArray) -> None:
        """Take 0 and 1 only."""
        bad = (y != 0.0) & (y != 1.0)
        if bad.any():
            where = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"y must hold labels 0 and 1 for observation='bernoulli', got {y[where]:g} at index {where}"
            )

    def noise_var(self, output: Moments) -> FloatArray:
        """``E[f (1 - f)]``, so that with the output's variance it is ``mu_y (1 - mu_y)``, the variance of a label."""
        return np.maximum(output.mean * (1.0 - output.mean) - output.var, 0.0)

    def log_density(self, output: Moments, y: FloatArray) -> FloatArray:
        """Log probability of the label."""
        return np.log(np.maximum(np.where(y > 0.5, output.mean, 1.0 - output.mean), _TINY))

    def has_closed_form(self, activation: Activation) -> bool:
        """Sigmoid, probit and step have one."""
        return isinstance(activation, TiltsByLabel)

    def adf(self, activation: Activation, mean: ArrayLike, var: ArrayLike, y: ArrayLike) -> Tilt:
        """Tilt by the probability of the label."""
        assert isinstance(activation, TiltsByLabel)
        return activation.tilt_by_label(mean, var, y)


@dataclass(frozen=True)
class Poisson:
    """A count with the rate ``f(a)``, usually ``e^a``."""

    def check(self, y: FloatArray) -> None:
        """Take whole numbers from 0 on."""
        bad = (y < 0.0) | (y != np.floor(y))
        if bad.any():
            where = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"y must hold counts 0, 1, 2, ... for observation='poisson', got {y[where]:g} at index {where}"
            )

    def noise_var(self, output: Moments) -> FloatArray:
        """Return the rate itself: a Poisson count varies as much as its mean."""
        return output.mean

    def log_density(self, output: Moments, y: FloatArray) -> FloatArray:
        """Log of the negative binomial with the same mean and variance: a gamma stands in for the log-normal rate."""
        y, mean, var = broadcast(y, output.mean, output.var)
        rate = np.maximum(mean, _TINY)
        shape = gamma_shape(mean, var)
        return np.asarray(
            gammaln(y + shape)
            - gammaln(shape)
            - gammaln(y + 1.0)
            - shape * np.log1p(rate / shape)
            + xlogy(y, rate / (rate + shape))
        )

    def has_closed_form(self, activation: Activation) -> bool:
        """The exponential link has one."""
        return isinstance(activation, TiltsByCount)

    def adf(self, activation: Activation, mean: ArrayLike, var: ArrayLike, y: ArrayLike) -> Tilt:
        """Tilt by the probability of the count."""
        assert isinstance(activation, TiltsByCount)
        return activation.tilt_by_count(mean, var, y)


def gamma_shape(mean: FloatArray, var: FloatArray) -> FloatArray:
    """Shape of the gamma distribution with this mean and variance; a variance of next to nothing counts as little."""
    return np.asarray(1.0 / np.clip(var / np.maximum(mean, _TINY) ** 2, 1e-8, 1e12))


def default_observation(activation: Activation) -> str:
    """Name the observation that goes with an activation when the user names none."""
    if isinstance(activation, (TiltsByLabel, PaperSigmoid)):
        return "bernoulli"
    return "poisson" if isinstance(activation, TiltsByCount) else "gaussian"


def kalman(activation: Activation, observation: Observation, mean: ArrayLike, var: ArrayLike, y: ArrayLike) -> Tilt:
    """Treat ``y`` and ``a`` as jointly Gaussian: equation (backward_updateda), the paper's rule.

    With ``A = E[f'(a)] = sigma_ya²/sigma_a²`` and ``S = Var y`` the gain ``k = sigma_ya²/S`` moves the mean of ``a`` by
    ``k (y - mu_y)`` and its variance by ``-k sigma_ya²``; divided by ``sigma_a²`` and ``sigma_a⁴`` these are
    ``alpha = A (y - mu_y)/S`` and ``kappa = A²/S``.
    """
    mean, var, y = broadcast(mean, var, y)
    output = activation.moments(mean, var)
    noise = observation.noise_var(output)
    total = output.var + noise
    # Nothing is left to learn, or nothing that y could tell.
    mute = (var < _TINY) | (total < _TINY)
    total = np.where(mute, 1.0, total)
    # The guard: the paper's three approximations together may break Cauchy-Schwarz, A² v <= S, and with it the
    # covariance; the slope is cut to what it allows. Never so for noise >= 0.0073, nor for exact moments.
    bound = np.where(mute, 0.0, np.sqrt(total / np.maximum(var, _TINY)))
    slope = np.clip(output.slope, -bound, bound)
    # The noise kept apart from what the slope explains: the same as 1 - kappa var, without its cancellation.
    left = np.where(mute, 1.0, np.maximum(output.var - slope**2 * var + noise, 0.0) / total)
    return Tilt(observation.log_density(output, y), slope * (y - output.mean) / total, slope**2 / total, left)


@dataclass
class NoiseEstimate:
    """A noise variance learned by online expectation maximisation.

    Each row adds one sample of it, the expected square of what the row's new belief leaves unexplained; the estimate is
    their running mean, in which the start value counts as some rows and, with a window, old rows fade.
    """

    value: float
    weight: float
    window: float
    floor: float = 1e-12

    def add(self, sample: float) -> None:
        """Take one row's sample in."""
        self.weight = min(self.weight + 1.0, self.window)
        self.value = max(self.value + (sample - self.value) / self.weight, self.floor)
