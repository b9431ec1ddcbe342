"""The likelihoods of counts: Poisson, and negative binomial for counts that vary more than that.

The rate of a count is usually ``e^a``, so what is predicted is a count mixed over a log-normal rate. Its distribution
function and quantiles are here too: a mean and a variance say little about numbers that are whole, not negative and
skewed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import betainc, digamma, gammaincc, logsumexp, ndtr, ndtri, zeta

from onepass._typing import FloatArray
from onepass.activations import Activation, Exponential, Moments, activation_text, as_activation
from onepass.engine.count_matches import DISPERSION_START, DISPERSION_START_WEIGHT
from onepass.engine.matches import CompiledLikelihood, KalmanCount
from onepass.engine.vector_matches import VectorLikelihood
from onepass.likelihoods.base import LOG_NOISE, Likelihood, LogNoise, refuse_first, register
from onepass.likelihoods.mixtures import Components

__all__ = [
    "FARTHEST",
    "LARGEST",
    "WIDEST",
    "Counts",
    "NegativeBinomial",
    "Poisson",
    "count_cdf",
    "count_log_probabilities",
    "count_quantile",
    "dispersion_of",
    "log_normal",
    "log_rates",
    "smallest_reaching",
]

WIDEST = 4.0
"""Variance of a log rate beyond which its mean no longer grows with it.

The mean of a log-normal rate is e^(v/2) times its median: at a standard deviation of 2 it is 7 times the median, and
beyond that it says nothing but how far the tail of the belief was followed. Intervals keep the whole variance.
"""
LARGEST = 1e15
"""Quantiles stop there: above it not every whole number is a float."""
FARTHEST = 6.0
"""Standard normal number up to which where a count lies is found by its distribution function."""
_POISSON = 1e-9  # a dispersion below which counts are Poisson to rounding
_NODES = np.linspace(-5.0, 5.0, 41)  # in standard deviations of the log rate
_WEIGHTS = np.exp(-0.5 * _NODES**2) / np.exp(-0.5 * _NODES**2).sum()
_NARROW = 0.15  # a count's own deviation over that of the log rate, below which the nodes would be too far apart
_EXPONENTIAL = as_activation("exp")


class Counts(Likelihood):
    """What Poisson and negative binomial counts share."""

    words: ClassVar[str] = "counts"
    is_numeric: ClassVar[bool] = False
    is_count: ClassVar[bool] = True
    link: Activation = _EXPONENTIAL
    kalman: ClassVar[type[CompiledLikelihood] | None] = KalmanCount

    def check(self, y: FloatArray) -> None:
        """Take whole numbers from 0 on."""
        refuse_first(y, self.impossible(y), f"counts 0, 1, 2, ... for observation={self.name!r}")

    def impossible(self, y: FloatArray) -> Any:
        """All but whole numbers from 0 on."""
        return ((y < 0.0) | (y != np.floor(y))) & ~np.isnan(y)

    def check_activation(self, activation: Activation) -> None:
        """Take activations that are never negative."""
        if (activation([-1e3, 0.0, 1e3]) < 0.0).any():
            raise ValueError(
                f"observation={self.name!r} needs an activation that is never negative, such as 'exp' or 'softplus', "
                f"got {activation_text(activation)}"
            )

    def output_moments(self, activation: Activation, mean: FloatArray, var: FloatArray) -> Moments:
        """Moments of the rate; those of ``e^a`` from a variance that is at most `WIDEST`."""
        if isinstance(activation, Exponential):
            # Of one row without NumPy, which would take longer than all the rest of the prediction.
            var = np.minimum(var, WIDEST) if isinstance(var, np.ndarray) else min(var, WIDEST)
        return activation.moments(mean, var)

    def noise_var(self, output: Moments) -> FloatArray:
        """``E[rate + noise rate²]``: how much a count varies around its rate."""
        noise: FloatArray = output.mean + self._dispersion * (output.mean * output.mean + output.var)
        return noise

    def normal_score(self, parts: Components, y: FloatArray) -> FloatArray:
        """Of a count mixed over its rate: that of the counts up to it."""
        return np.asarray(ndtri(_cdf(parts, y)))

    def log_density(self, parts: Components, y: FloatArray) -> FloatArray:
        """Log probability of counts."""
        possible = ~self.impossible(y)
        logs = count_log_probabilities(*log_rates(parts), np.where(possible, y, 0.0))
        found = logsumexp(logs, axis=0, b=np.broadcast_to(parts.weights, logs.shape))
        return np.where(possible, found, -np.inf)

    def tracking_score(self, parts: Components, y: FloatArray) -> FloatArray:
        """That of the middle of the count's own step."""
        z = ndtri(np.clip(0.5 * (_cdf(parts, y) + _cdf(parts, y - 1.0)), ndtr(-FARTHEST), ndtr(FARTHEST)))
        edge = count_quantile(parts, ndtr(np.where(y < _mean(parts), -FARTHEST, FARTHEST)))
        beyond = np.where(np.abs(z) < 0.999 * FARTHEST, 0.0, (y - edge) / _std(parts))
        return np.asarray(z + np.where(z < 0.0, np.minimum(beyond, 0.0), np.maximum(beyond, 0.0)))

    def at_normal_score(self, parts: Components, z: FloatArray) -> FloatArray:
        """The smallest count that the distribution function reaches there; far out, the count so many deviations on."""
        within = np.clip(z, -FARTHEST, FARTHEST)
        found = count_quantile(parts, ndtr(within))
        return np.where(z == within, found, np.maximum(np.round(found + (z - within) * _std(parts)), 0.0))

    def draw(self, parts: Components, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw rates, then a factor on each that is a gamma variable, then counts."""
        means, variances, dispersions = log_rates(parts)
        size = (n, means.shape[1])
        weights = np.broadcast_to(parts.weights, means.shape)
        chosen = (rng.random(size)[:, None] > np.cumsum(weights, axis=0)[:-1]).sum(axis=1)
        mean, var, dispersion = (part[chosen, np.arange(size[1])] for part in (means, variances, dispersions))
        rates = np.exp(mean + np.sqrt(var) * rng.normal(size=size))
        shapes = 1.0 / np.maximum(dispersion, _POISSON)
        rates = np.where(dispersion > _POISSON, rates * rng.gamma(shapes) / shapes, rates)
        return np.asarray(rng.poisson(np.minimum(rates, LARGEST)), dtype=np.float64)

    @property
    def _dispersion(self) -> float | FloatArray:
        return 0.0 if self.noise is None else self.noise

    def outputs(self, n_outputs: int, log_noise: LogNoise = LOG_NOISE) -> VectorLikelihood:
        """The log rate of one count."""
        if n_outputs != 1:
            raise ValueError(f"n_outputs must be 1 for observation={self.name!r}, got {n_outputs}")
        return super().outputs(n_outputs, log_noise)


@register
@dataclass(frozen=True)
class Poisson(Counts):
    """A count with the rate ``f(a)``, usually ``e^a``, for which the moment match is exact."""

    name: ClassVar[str] = "poisson"


@register
@dataclass(frozen=True)
class NegativeBinomial(Counts):
    """A count with the mean ``m = f(a)``, usually ``e^a``, and the variance ``m + noise m²``.

    ``noise`` is its dispersion: the squared deviation of a gamma factor of mean 1 on the rate of a Poisson count.
    """

    noise: float | FloatArray | None = None
    name: ClassVar[str] = "negative_binomial"
    words: ClassVar[str] = "counts that vary more than a Poisson distribution allows"
    takes_noise: ClassVar[bool] = True
    usual_noise: ClassVar[float | str] = "learn"
    noise_start: ClassVar[tuple[float, float]] = (DISPERSION_START, DISPERSION_START_WEIGHT)
    output_noise_start: ClassVar[tuple[float, float]] = noise_start

    def with_noise(self, noise: float | FloatArray | None) -> Self:
        """The same with another dispersion."""
        return type(self)(noise)


def log_normal(mean: FloatArray, var: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the log of a log-normal variable with this mean and variance."""
    mean = np.maximum(mean, 1e-100)
    log_var = np.log1p(var / mean**2)
    return np.log(mean) - 0.5 * log_var, log_var


def dispersion_of(mean: FloatArray, var: FloatArray, noise_var: FloatArray) -> FloatArray:
    """The dispersion of counts whose rate has this mean and variance, from what `Counts.noise_var` said of them."""
    return np.asarray(np.maximum(noise_var - mean, 0.0) / np.maximum(mean**2 + var, 1e-300))


def count_log_probabilities(mean: FloatArray, var: FloatArray, dispersion: FloatArray, y: FloatArray) -> FloatArray:
    """Log probability of each count whose log rate is ``N(mean, var)``."""
    return np.asarray(NegativeBinomial(dispersion).moment_match(_EXPONENTIAL, mean, var, y).log_z)


def count_cdf(y: FloatArray, mean: FloatArray, var: FloatArray, dispersion: FloatArray) -> FloatArray:
    """Probability that a count whose log rate is ``N(mean, var)`` is at most ``y``.

    A count is at most ``y`` if its log rate is below a random threshold, the log of a gamma variable of ``y + 1`` over
    that of the count's dispersion. If the threshold is narrow compared to the log rate, it counts as Gaussian; else the
    count is mixed over nodes of the log rate.
    """
    y, mean, var, dispersion = np.broadcast_arrays(y, mean, var, dispersion)
    centre, own_var = _threshold(y, dispersion)
    below = ndtr((centre - mean) / np.sqrt(var + own_var))
    mixed = own_var > _NARROW**2 * var
    if mixed.any():
        below = np.where(mixed, 0.0, below)
        below[mixed] = _mixed_cdf(y[mixed], mean[mixed], np.sqrt(var[mixed]), dispersion[mixed])
    return np.where(y < 0.0, 0.0, below)


def _threshold(y: FloatArray, dispersion: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the log rate up to which a count is at most ``y``."""
    shape = 1.0 / np.maximum(dispersion, _POISSON)
    order = np.maximum(y, 0.0) + 1.0
    centre = digamma(order) - np.where(dispersion > _POISSON, digamma(shape) - np.log(shape), 0.0)
    return centre, zeta(2.0, order) + np.where(dispersion > _POISSON, zeta(2.0, shape), 0.0)  # trigammas


def _mixed_cdf(y: FloatArray, mean: FloatArray, std: FloatArray, dispersion: FloatArray) -> FloatArray:
    order = np.maximum(y, 0.0) + 1.0
    shape = 1.0 / np.maximum(dispersion, _POISSON)
    poisson = dispersion <= _POISSON
    total = np.zeros(len(y))
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        rate = np.exp(np.minimum(mean + node * std, 300.0))
        with np.errstate(under="ignore"):
            tail = betainc(shape, order, 1.0 / (1.0 + rate / shape))
            total += weight * np.where(poisson, gammaincc(order, rate), tail)
    return total


def log_rates(parts: Components) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Means and variances of log rates, and dispersions, ``(k, n)``.

    Of a rate that is not ``e^a``, those of the log-normal with its moments.
    """
    found = (parts.pre_mean, parts.pre_var)
    if not isinstance(parts.activation, Exponential):
        found = log_normal(parts.mean, parts.var)
    return *found, dispersion_of(parts.mean, parts.var, parts.noise_var)


def _cdf(parts: Components, y: FloatArray) -> FloatArray:
    """Probability that counts are at most ``y``, ``(n,)``."""
    return np.asarray((parts.weights * count_cdf(np.floor(y), *log_rates(parts))).sum(axis=0))


def _mean(parts: Components) -> FloatArray:
    """Expected counts, ``(n,)``."""
    return np.asarray((parts.weights * parts.mean).sum(axis=0))


def _std(parts: Components) -> FloatArray:
    """Standard deviations of counts, ``(n,)``."""
    squares = (parts.weights * (parts.var + parts.noise_var + parts.mean**2)).sum(axis=0)
    return np.asarray(np.sqrt(np.maximum(squares - _mean(parts) ** 2, 1e-12)))


def count_quantile(parts: Components, level: FloatArray) -> FloatArray:
    """Smallest counts that mixtures of ``k`` parts stay at or below with these probabilities, ``(n,)`` or ``(1,)``."""
    given = log_rates(parts)

    def reached(y: FloatArray) -> Any:
        return (parts.weights * count_cdf(y, *given)).sum(axis=0) >= level

    guess = _rough_quantile(*given, level)
    low, high = np.floor(0.8 * guess.min(axis=0)) - 3.0, np.ceil(1.25 * guess.max(axis=0)) + 3.0
    return smallest_reaching(reached, np.maximum(low, -1.0), high)


def smallest_reaching(reached: Callable[[FloatArray], Any], low: FloatArray, high: FloatArray) -> FloatArray:
    """Smallest whole numbers from 0 on that have reached a level; they are sought first above ``low``, up to ``high``.

    ``low`` is -1 or more, and what is sought lies above it if the level is not reached there.
    """
    low, high = np.minimum(low, LARGEST - 1.0), np.minimum(high, LARGEST)
    for _ in range(60):
        above = (low >= 0.0) & reached(low)
        if not above.any():
            break
        low = np.where(above, np.maximum(np.floor(0.5 * low) - 1.0, -1.0), low)
    for _ in range(60):
        short = (high < LARGEST) & ~reached(high)
        if not short.any():
            break
        high = np.where(short, 2.0 * high, high)
    while (high - low > 1.0).any():
        middle = np.floor(0.5 * (low + high))
        there = reached(middle)
        low, high = np.where(there, low, middle), np.where(there, middle, high)
    return np.asarray(np.minimum(high, LARGEST))


def _rough_quantile(mean: FloatArray, var: FloatArray, dispersion: FloatArray, level: FloatArray) -> FloatArray:
    """Of the log-normal that has the deviation of the log rate and that of a count around its median rate."""
    rate = np.exp(np.clip(mean, -30.0, 34.0))
    own = np.log1p(1.0 / np.maximum(rate, 0.1) + dispersion)
    return np.asarray(np.exp(np.clip(mean + ndtri(level) * np.sqrt(var + own), -30.0, 34.0)))
