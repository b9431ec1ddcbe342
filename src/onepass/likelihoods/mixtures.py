"""Mixtures of Gaussians: what several models that learned the same rows predict together, and an unknown noise."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtri, ndtri_exp

from onepass._typing import FloatArray
from onepass.activations import Activation
from onepass.engine.mixtures import mixed_moments, mixed_predictions, mixture_quantiles, weights_above

__all__ = [
    "KNOWN",
    "Components",
    "Gaussians",
    "counted_weights",
    "mixture_mean",
    "mixture_moments",
    "mixture_prediction",
    "sum_in_order",
]

# Standard deviations of the log noise, evenly spaced, and their shares.
_NODES = np.linspace(-3.5, 3.5, 15)
KNOWN = 0.02
"""Variance of a log noise that counts as known: what a hundred rows tell."""
_FARTHEST = -37.0  # the smallest z whose probability is a normal float
_ROUNDING = 1e-12  # of weights that add up to 1
_SHARES = np.exp(-0.5 * _NODES**2) / np.exp(-0.5 * _NODES**2).sum()


def mixture_moments(weights: FloatArray, means: FloatArray, variances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of mixtures of ``k`` parts, ``(k, ...) -> (...)``; what the parts disagree about counts.

    The weights are ``(k,)``, or ``(k, n)`` if those of each row differ.
    """
    mean, var = mixed_moments(*(_flat(part) for part in (_counted(weights, means), means, variances)))
    return mean.reshape(means.shape[1:]), var.reshape(means.shape[1:])


def mixture_prediction(weights: FloatArray, parts: FloatArray) -> FloatArray:
    """What mixtures of ``k`` models predict, ``(5, ...)``, from the fields of their predictions, ``(5, k, ...)``.

    Of the outputs and the pre-activations these are the moments of `mixture_moments`, of the noise variance its mean.
    """
    _, k, *shape = parts.shape
    if weights.ndim > 1:
        weights = weights[:, 0] if not shape else weights.reshape(*weights.shape, *[1] * (len(shape) - 1))
        weights = np.ascontiguousarray(np.broadcast_to(weights, (k, *shape)))
    flat = np.ascontiguousarray(parts, dtype=np.float64).reshape(5, k, -1)
    return np.asarray(mixed_predictions(_ROUNDING, weights.reshape(k, -1), flat).reshape(5, *shape))


def mixture_mean(weights: FloatArray, parts: FloatArray) -> FloatArray:
    """Weighted mean of ``k`` parts, ``(k, ...) -> (...)``, with weights ``(k,)``, or ``(k, n)`` of each row."""
    weights = _counted(weights, parts)
    return np.asarray(sum_in_order(weights.reshape(*weights.shape, *[1] * (parts.ndim - weights.ndim)) * parts))


def _counted(weights: FloatArray, parts: FloatArray) -> FloatArray:
    """The counted weights ``(k,)``, or of each of the numbers that parts have if those of each row differ."""
    if parts.ndim < weights.ndim:  # of one row
        weights = weights[:, 0]
    counted = counted_weights(weights)
    if 1 < counted.ndim < parts.ndim:  # of rows with several outputs each
        return np.broadcast_to(counted.reshape(*counted.shape, *[1] * (parts.ndim - counted.ndim)), parts.shape)
    return counted


def _flat(parts: FloatArray) -> FloatArray:
    return np.ascontiguousarray(parts, dtype=np.float64).reshape(len(parts), -1)


def counted_weights(weights: FloatArray) -> FloatArray:
    """Weights ``(k, ...)`` of the parts that moments are made of: all but those within rounding of 0.

    Densities and quantiles are those of all parts, each of which counts by its weight and no more. Nothing bounds what
    a part contributes to a moment: a network that went astray, at 1e20 with the weight 1e-34, would have all of the
    variance, though its weight is nothing but rounding.
    """
    return weights_above(_ROUNDING, _flat(weights)).reshape(weights.shape)


def sum_in_order(terms: FloatArray) -> Any:
    """Sum along the first axis, one after the other, so that a row's result does not depend on the rows next to it."""
    return sum(terms[1:], start=terms[0])


class Components(NamedTuple):
    """The parts of predictive distributions of ``n`` numbers: what ``k`` models predict, each by its weight."""

    activation: Activation
    """By which the models' outputs become what is predicted."""
    weights: FloatArray
    """``(k, 1)``, or ``(k, n)`` if those of each number differ."""
    mean: FloatArray
    """Means and variances of outputs, pre-activations and noise, ``(k, n)`` each: see `PredictedMoments`."""
    var: FloatArray
    pre_mean: FloatArray
    pre_var: FloatArray
    noise_var: FloatArray
    log_noise_vars: FloatArray
    """How uncertain the log of each noise is, ``(k, 1)`` or ``(k, n)``."""

    def gaussians(self) -> "Gaussians":
        """Targets as mixtures of Gaussians; of a noise that is not quite known, one for each value it may have."""
        if (self.log_noise_vars < KNOWN).all():
            return Gaussians(self.weights, self.mean, np.sqrt(self.var + self.noise_var))
        # Row by row, so that a row's distribution does not depend on the rows next to it.
        unknown = np.where(self.log_noise_vars < KNOWN, 0.0, self.log_noise_vars)
        factors = np.exp(np.multiply.outer(_NODES, np.sqrt(unknown)))
        totals = self.var + self.noise_var * factors
        flat = (-1, self.mean.shape[1])
        return Gaussians(
            np.multiply.outer(_SHARES, self.weights).reshape(-1, self.weights.shape[1]),
            np.broadcast_to(self.mean, totals.shape).reshape(flat),
            np.sqrt(totals).reshape(flat),
        )

    def pre_activations(self) -> "Gaussians":
        """The pre-activations as mixtures of Gaussians."""
        return Gaussians(self.weights, self.pre_mean, np.sqrt(self.pre_var))


class Gaussians(NamedTuple):
    """``n`` mixtures of ``k`` Gaussians: weights ``(k, 1)`` or ``(k, n)``, means and standard deviations ``(k, n)``."""

    weights: FloatArray
    means: FloatArray
    stds: FloatArray

    def normal_score(self, y: FloatArray) -> FloatArray:
        """Where numbers ``(n,)`` lie in their mixtures, as standard normal numbers: ``Phi^-1(F(y))``."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            z = (y - self.means) / self.stds
            if len(z) == 1:
                return np.asarray(z[0])
            below, above = (self._log_share(log_ndtr(side * z)) for side in (1.0, -1.0))
            return np.where(below < above, ndtri_exp(below), -ndtri_exp(above))

    def log_density(self, y: FloatArray) -> FloatArray:
        """Log density of numbers ``(n,)``."""
        with np.errstate(divide="ignore", over="ignore"):
            logs = -0.5 * np.square((y - self.means) / self.stds) - np.log(self.stds) - 0.5 * np.log(2.0 * np.pi)
        return np.asarray(logsumexp(logs, axis=0, b=np.broadcast_to(self.weights, logs.shape)))

    def _log_share(self, logs: FloatArray) -> FloatArray:
        return np.minimum(logsumexp(logs, axis=0, b=np.broadcast_to(self.weights, logs.shape)), 0.0)

    def at_normal_score(self, z: FloatArray) -> FloatArray:
        """The numbers that lie where standard normal numbers ``z``, ``(n,)`` or ``(1,)``, do."""
        if len(self.means) == 1:
            return np.asarray(self.means[0] + z * self.stds[0])
        # Above the median the quantile is minus that of the mirrored mixture, where small probabilities have all their
        # digits. Beyond the smallest of them, it continues as that of the widest part.
        sides = np.where(z > 0.0, -1.0, 1.0)
        within = np.maximum(-np.abs(z), _FARTHEST)
        weights, means, stds = map(np.ascontiguousarray, (self.weights, sides * self.means, self.stds))
        beyond = np.minimum(-np.abs(z) - _FARTHEST, 0.0) * stds.max(axis=0)
        return np.asarray(sides * (mixture_quantiles(weights, means, stds, within) + beyond))

    def interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Limits of the central interval of each mixture."""
        z = ndtri(np.array([0.5 + level / 2]))
        return self.at_normal_score(-z), self.at_normal_score(z)
