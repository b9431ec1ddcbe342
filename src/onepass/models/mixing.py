"""What all mixtures of models need: predictions side by side, and copies to go back to."""

import copy
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy.special import logsumexp

from onepass._typing import FloatArray
from onepass.likelihoods.mixtures import likely_weights, weights_for_means, weights_for_variances
from onepass.models.perceptron import Prediction

__all__ = [
    "WORTH_THREADS",
    "joined",
    "log_mixture",
    "mixed_prediction",
    "mixed_scores",
    "snapshot",
    "stacked",
    "sum_in_order",
]

WORTH_THREADS = 10_000_000
"""Numbers of all members' covariances times rows from which on learning (some milliseconds) is worth threads."""


def stacked(predictions: Sequence[Prediction]) -> Prediction:
    """Put what several models predict along a first axis."""
    return Prediction(*(np.array(parts) for parts in zip(*predictions, strict=True)))


def joined(chunks: Iterable[Prediction]) -> Prediction:
    """Put what several models predict for chunks of rows, ``(K, n, ...)``, together."""
    return Prediction(*(np.concatenate(parts, axis=1) for parts in zip(*chunks, strict=True)))


def log_mixture(weights: FloatArray, log_densities: FloatArray) -> FloatArray:
    """Log density of a mixture from those of its parts, ``(K, ...)``, with weights ``(K,)`` or ``(K, n)``."""
    weights = weights.reshape(*weights.shape, *[1] * (log_densities.ndim - weights.ndim))
    with np.errstate(divide="ignore"):  # a part may have lost all weight
        return np.asarray(logsumexp(log_densities + np.log(weights), axis=0))


def mixed_scores(weights: FloatArray, scores: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Log density of a mixture, and how far it distrusts a target, from those of its parts."""
    logs, distrust = (np.array(column) for column in zip(*scores, strict=True))
    with np.errstate(divide="ignore"):  # a part may have lost all weight
        joint = logs + np.log(weights).reshape(-1, *[1] * (logs.ndim - 1))
    mixture = logsumexp(joint, axis=0)
    return mixture[()], np.minimum((np.exp(joint - mixture) * distrust).sum(axis=0), 1.0)[()]


def snapshot(member: Any) -> Any:
    """Copy what learning changes; a copy shares everything else with its original."""
    twin = copy.copy(member)
    twin._state = member._state.copy()
    return twin


def mixed_prediction(weights: FloatArray, parts: Prediction) -> Prediction:
    """Moments of the mixture of predictions ``(K, ...)``, with weights ``(K,)``, or ``(K, n)`` of each row."""
    weights = weights.reshape(*weights.shape, *[1] * (parts.mean.ndim - weights.ndim))
    likely, for_means, for_noise = likely_weights(weights), weights_for_means(weights), weights_for_variances(weights)
    # Summed one hypothesis after the other, so that a row's result does not depend on the rows beside it.
    mean, pre_mean = (sum_in_order(for_means * part) for part in (parts.mean, parts.pre_mean))
    noise_var = sum_in_order(for_noise * parts.noise_var)
    var = sum_in_order(likely * (parts.var + (parts.mean - mean) ** 2))
    pre_var = sum_in_order(likely * (parts.pre_var + (parts.pre_mean - pre_mean) ** 2))
    return Prediction(*(np.asarray(column)[()] for column in (mean, var, pre_mean, pre_var, noise_var)))


def sum_in_order(terms: FloatArray) -> Any:
    """Sum along the first axis, one after the other."""
    return sum(terms[1:], start=terms[0])
