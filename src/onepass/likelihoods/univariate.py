"""Observation models: what a target says about the pre-activation.

An observation model and an update rule turn the belief ``N(mean, var)`` about the pre-activation ``a`` and a target
``y`` into a `Tilt`: the two scalars of the posterior's step and the log predictive density of ``y``. Nothing here
knows about weights or inputs. Two rules:

- `kalman`, the paper's, treats ``y`` and ``a`` as jointly Gaussian and needs only the moments of the activation;
- `adf` (assumed density filtering) takes the exact first two moments of ``p(y|a) N(a)``, where they have a closed form.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, ndtri, xlogy

from onepass._typing import FloatArray
from onepass._validation import as_count, as_nonnegative, one_of
from onepass.activations import Activation, Moments, PaperSigmoid, Tilt, TiltsByCount, TiltsByLabel, TiltsByNoise
from onepass.activations.base import broadcast

__all__ = [
    "EVIDENCE",
    "LABEL_RESOLUTION",
    "NOISE",
    "NOISE_FLOOR",
    "NOISE_RATE",
    "NOISE_START_ROWS",
    "NOISE_WEIGHT",
    "NOISE_WINDOW",
    "SEEN",
    "Bernoulli",
    "Gaussian",
    "Observation",
    "Poisson",
    "as_observation",
    "as_update",
    "kalman",
    "learn_noise",
    "start_noise",
    "start_running",
]

# What runs along with learning besides the belief itself, in one array that compiled code can change: the noise
# variance as it is now, how many rows it rests on (0: it is fixed), how many it remembers, the log evidence, the rows
# seen.
NOISE, NOISE_WEIGHT, NOISE_WINDOW, EVIDENCE, SEEN = range(5)
_TINY = 1e-200  # what is smaller is nothing; quotients of what is larger stay within float64
NOISE_FLOOR = 1e-12
LABEL_RESOLUTION = 1e-14  # 1 - f is known to rounding, some 1e-16
_NOISE = 0.01
NOISE_START_ROWS = 10.0
NOISE_RATE = 3.0


class Observation(Protocol):
    """What a model asks of an observation."""

    resolution: ClassVar[float]
    """Variance of a target below which the moments can't tell it from a certain one."""

    def check(self, y: FloatArray) -> None:
        """Raise a ValueError for targets that can't be."""
        ...

    def noise_var(self, output: Moments) -> FloatArray:
        """Variance of ``y`` that knowing the weights would not take away."""
        ...

    def log_density(self, output: Moments, y: FloatArray) -> FloatArray:
        """Log density of ``y`` by the moments of the output alone."""
        ...

    def quantile(self, activation: Activation, mean: FloatArray, var: FloatArray, level: float) -> FloatArray:
        """What ``y`` stays below with probability ``level``; for labels their probability."""
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
    resolution: ClassVar[float] = _TINY

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

    def quantile(self, activation: Activation, mean: FloatArray, var: FloatArray, level: float) -> FloatArray:
        """Take the predictive distribution for Gaussian, as the paper does."""
        output = activation.moments(mean, var)
        return np.asarray(output.mean + ndtri(level) * np.sqrt(output.var + self.noise))

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

    resolution: ClassVar[float] = LABEL_RESOLUTION

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

    def quantile(self, activation: Activation, mean: FloatArray, var: FloatArray, level: float) -> FloatArray:
        """The exact quantile of ``f(a)``, since ``f`` rises."""
        return activation(mean + ndtri(level) * np.sqrt(var))

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

    resolution: ClassVar[float] = _TINY

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
        shape = _gamma_shape(mean, var)
        return np.asarray(
            gammaln(y + shape)
            - gammaln(shape)
            - gammaln(y + 1.0)
            - shape * np.log1p(rate / shape)
            + xlogy(y, rate / (rate + shape))
        )

    def quantile(self, activation: Activation, mean: FloatArray, var: FloatArray, level: float) -> FloatArray:
        """Of the negative binomial with the same mean and variance."""
        from scipy.stats import nbinom  # half a second that nobody else needs

        output = activation.moments(mean, var)
        shape = _gamma_shape(output.mean, output.var)
        return np.asarray(nbinom.ppf(level, shape, shape / (shape + output.mean)))

    def has_closed_form(self, activation: Activation) -> bool:
        """The exponential link has one."""
        return isinstance(activation, TiltsByCount)

    def adf(self, activation: Activation, mean: ArrayLike, var: ArrayLike, y: ArrayLike) -> Tilt:
        """Tilt by the probability of the count."""
        assert isinstance(activation, TiltsByCount)
        return activation.tilt_by_count(mean, var, y)


def _gamma_shape(mean: FloatArray, var: FloatArray) -> FloatArray:
    """Shape of the gamma distribution with this mean and variance; a variance of next to nothing counts as little."""
    return np.asarray(1.0 / np.clip(var / np.maximum(mean, _TINY) ** 2, 1e-8, 1e12))


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
    # Nothing is left to learn (less than the rounding of the mean is nothing), or nothing that y could tell.
    mute = (var < np.maximum(1e-30 * mean**2, _TINY)) | (total < observation.resolution)
    total = np.where(mute, 1.0, total)
    # The guard: the paper's three approximations together may break Cauchy-Schwarz, A² v <= S, and with it the
    # covariance; the slope is cut to what it allows. Never so for noise >= 0.0073, nor for exact moments.
    bound = np.where(mute, 0.0, np.sqrt(total / np.maximum(var, _TINY)))
    slope = np.clip(output.slope, -bound, bound)
    # The noise kept apart from what the slope explains: the same as 1 - kappa var, without its cancellation. What is
    # unexplained by rounding alone may still be more than the noise.
    unexplained = output.var - slope**2 * var
    unexplained = np.where(np.abs(unexplained) < 1e-15 * output.var, 0.0, unexplained)
    left = np.where(mute, 1.0, np.maximum(unexplained + noise, 0.0) / total)
    return Tilt(observation.log_density(output, y), slope * (y - output.mean) / total, slope**2 / total, left)


def start_noise(running: FloatArray, residual: float) -> None:
    """Let the first rows' residuals say how large the noise may be, before they are learned.

    A start too high is soon forgotten; one too low pins the weights to the first rows for good.
    """
    if running[NOISE_WEIGHT] > 0.0 and running[SEEN] < NOISE_START_ROWS:
        running[NOISE] = max(running[NOISE], residual**2)


def learn_noise(running: FloatArray, sample: float, left: float) -> None:
    """Let a row's expected squared residual move the learned noise variance, by online expectation maximisation.

    A row whose residual the weights took up says nothing of the noise, so a row counts as much as the share of variance
    it left, squared: the information that a residual has about a part of its variance. A step of three times the
    running mean's lets the first rows, learned with weights that knew nothing, fade.
    """
    running[NOISE_WEIGHT] += min(left, 1.0) ** 2
    step = max(min(NOISE_RATE / running[NOISE_WEIGHT], 1.0), 1.0 / running[NOISE_WINDOW])
    running[NOISE] = max(running[NOISE] + step * (sample - running[NOISE]), NOISE_FLOOR)


def as_observation(
    observation: str, noise: Any, noise_window: int | None, activation: Activation
) -> tuple[Observation, FloatArray]:
    """Check and resolve a user's choice: the observation model, and the running numbers to start with."""
    one_of(observation, ("auto", "gaussian", "bernoulli", "poisson"), "observation")
    if observation == "auto":
        observation = _default_observation(activation) if noise is None else "gaussian"
    if noise_window is not None and noise != "learn":
        raise ValueError(f"noise_window is for noise='learn', got noise={noise!r}")
    if observation == "gaussian":
        return _as_gaussian(noise, noise_window)
    if noise is not None:
        raise ValueError(f"noise is for observation='gaussian', got noise={noise!r} with observation={observation!r}")
    values = activation([-1e3, 0.0, 1e3])
    if observation == "poisson":
        if (values < 0.0).any():
            raise ValueError(
                "observation='poisson' needs an activation that is never negative, such as 'exp' or 'softplus', "
                f"got {activation!r}"
            )
        return Poisson(), start_running(0.0)
    if ((values < 0.0) | (values > 1.0)).any():
        raise ValueError(
            "observation='bernoulli' needs an activation between 0 and 1, such as 'sigmoid', 'probit' or 'step', "
            f"got {activation!r}"
        )
    return Bernoulli(), start_running(0.0)


def as_update(update: str, activation: Activation, observation: Observation) -> str:
    """Check and resolve a user's choice of update rule."""
    one_of(update, ("auto", "adf", "kalman"), "update")
    closed = observation.has_closed_form(activation)
    if update == "auto":
        return "adf" if closed else "kalman"
    if update == "adf" and not closed:
        raise ValueError(
            f"update='adf' has no closed form for {type(observation).__name__} targets around {activation!r}. "
            "Ways out: update='kalman' or 'auto'; observation='bernoulli' with 'sigmoid' (moments='exact'), 'probit' "
            "or 'step'; observation='gaussian' with a piecewise linear activation; observation='poisson' with 'exp'"
        )
    return update


def start_running(noise: float, weight: float = 0.0, window: float = np.inf) -> FloatArray:
    """The numbers that run along with learning, before the first row."""
    running = np.zeros(5)
    running[NOISE], running[NOISE_WEIGHT], running[NOISE_WINDOW] = noise, weight, window
    return running


def _as_gaussian(noise: Any, noise_window: int | None) -> tuple[Observation, FloatArray]:
    if noise == "learn":
        window = np.inf if noise_window is None else float(as_count(noise_window, "noise_window"))
        return Gaussian(NOISE_FLOOR), start_running(NOISE_FLOOR, 1.0, window)
    if isinstance(noise, str):
        raise ValueError(f"noise must be a number that is not negative, or 'learn', got {noise!r}")
    fixed = _NOISE if noise is None else as_nonnegative(noise, "noise")
    return Gaussian(fixed), start_running(fixed)


def _default_observation(activation: Activation) -> str:
    if isinstance(activation, (TiltsByLabel, PaperSigmoid)):
        return "bernoulli"
    return "poisson" if isinstance(activation, TiltsByCount) else "gaussian"
