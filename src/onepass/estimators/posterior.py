"""What ensembles have learned, in the units of the data: coefficients with their covariance, and random functions."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from onepass._typing import FloatArray
from onepass._validation import as_count
from onepass.estimators.scaling import Scaling
from onepass.likelihoods.mixtures import mixture_moments
from onepass.models.ensemble import Ensemble

__all__ = ["Coefficients", "contrast_belief", "draw_functions", "joint_belief", "linear_coefficients"]


class Coefficients(NamedTuple):
    """A belief about a linear function of the inputs."""

    mean: FloatArray  # (d,)
    intercept: Any
    cov: FloatArray  # (d, d), or the variances (d,) of a diagonal covariance


def linear_coefficients(
    ensemble: Ensemble, inputs: Scaling, target_scale: float = 1.0, target_centre: float = 0.0
) -> Coefficients:
    """Mean, intercept and covariance of an ensemble of perceptrons, whose inputs and target were standardised."""
    bias = ensemble.members[0].bias
    mean, cov = joint_belief(ensemble)
    factor = target_scale / inputs.scale
    coef = mean[bias:] * factor
    intercept = target_scale * mean[:bias].sum() + target_centre - coef @ inputs.centre
    if cov.ndim == 1:
        return Coefficients(coef, intercept, cov[bias:] * factor**2)
    return Coefficients(coef, intercept, cov[bias:, bias:] * np.outer(factor, factor))


def joint_belief(ensemble: Ensemble) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance, or variances, of the weights of an ensemble of perceptrons, the bias first."""
    weights = ensemble.weights
    means, covs = (np.array(own) for own in zip(*map(_bias_first, ensemble.members), strict=True))
    mean = weights @ means
    gaps = means - mean
    if covs.ndim == 2:
        return mean, weights @ (covs + gaps**2)
    return mean, np.tensordot(weights, covs + gaps[:, :, None] * gaps[:, None, :], 1)


def _bias_first(member: Any) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance of a perceptron, or of a network without hidden layers, which has its bias last."""
    if isinstance(member.cov, list):
        return np.roll(member.mean, 1), np.roll(member.cov[0], (1, 1), axis=(0, 1))
    return member.mean, member.cov


def contrast_belief(ensemble: Ensemble) -> tuple[FloatArray, FloatArray]:
    """Mean and variance ``(K, d + 1)`` of the weights of softmaxes, the bias last, less their mean over the classes.

    What all classes have in common changes no probability, so that rows say nothing of it: it keeps the prior's
    variance, which would hide how well the rest is known.
    """
    parts = [part for _, part in ensemble.components]
    means = np.array([part.weights[0] - part.weights[0].mean(axis=0) for part in parts])
    variances = np.array([_contrast_variances(part) for part in parts])
    return mixture_moments(ensemble.component_weights, means, variances, ensemble.likely_weights)


def _contrast_variances(model: Any) -> FloatArray:
    """Variances ``(K, d + 1)`` of the weights of a softmax, less their mean over the classes."""
    variances = model.weight_variances[0]
    n_classes, width = variances.shape
    if model.covariance in ("neuron", "diagonal"):  # classes are independent
        return np.asarray(variances * (1.0 - 2.0 / n_classes) + variances.sum(axis=0) / n_classes**2)
    (joint,) = model.cov
    # The covariances of the weights of one input between classes.
    by_input = np.einsum("kiji->ikj", joint.reshape(n_classes, width, n_classes, width))
    with_mean = by_input.mean(axis=2).T
    return np.asarray(np.maximum(variances - 2.0 * with_mean + with_mean.mean(axis=0), 0.0))


def draw_functions(ensembles: list[Ensemble], chunks: list[Any], n_samples: int, random_state: Any) -> list[FloatArray]:
    """Outputs of functions drawn from the posterior for rows in chunks, ``(n_samples, n, ...)`` for each ensemble."""
    as_count(n_samples, "n_samples")
    random = check_random_state(random_state)
    drawn = []
    for ensemble in ensembles:
        counts = random.multinomial(n_samples, ensemble.weights)
        seeds = random.randint(2**31 - 1, size=len(counts))
        parts = [
            np.concatenate([member.sample_output(rows.X, int(count), int(seed)) for rows in chunks], axis=1)
            for member, count, seed in zip(ensemble.members, counts, seeds, strict=True)
            if count
        ]
        drawn.append(random.permutation(np.concatenate(parts)))
    return drawn
