"""What mixtures have learned: coefficients with their covariance, and random functions and targets."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from onepass._typing import FloatArray
from onepass._validation import as_count
from onepass.beliefs.choice import BELIEFS
from onepass.estimators.rows import Rows
from onepass.estimators.scaling import Scaling
from onepass.likelihoods.counts import LARGEST
from onepass.likelihoods.mixtures import mixture_moments
from onepass.models.mixture import Mixture

__all__ = [
    "Coefficients",
    "Draws",
    "add_noise",
    "contrast_belief",
    "draw_counts",
    "draw_functions",
    "draw_labels",
    "joint_belief",
    "linear_coefficients",
]


class Coefficients(NamedTuple):
    """A belief about a linear function of the inputs."""

    mean: FloatArray  # (d,)
    intercept: Any
    cov: FloatArray  # (d, d), or the variances (d,) of a diagonal covariance


def linear_coefficients(
    mixture: Mixture, inputs: Scaling, target_scale: float = 1.0, target_centre: float = 0.0
) -> Coefficients:
    """Mean, intercept and covariance of a mixture of perceptrons, whose inputs and target were standardised.

    They are the posterior's: averaged over what is known of a learned noise.
    """
    bias = mixture.members[0].bias
    mean, cov = _mixed(mixture, [member.posterior() for member in mixture.members])
    factor = target_scale / inputs.scale
    coef = mean[bias:] * factor
    intercept = target_scale * mean[:bias].sum() + target_centre - coef @ inputs.centre
    if cov.ndim == 1:
        return Coefficients(coef, intercept, cov[bias:] * factor**2)
    return Coefficients(coef, intercept, cov[bias:, bias:] * np.outer(factor, factor))


def joint_belief(mixture: Mixture) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance, or variances, of the weights that predict a mixture's next row, the bias first."""
    return _mixed(mixture, [_belief_of(member.ahead(1)) for member in mixture.members])


def _mixed(mixture: Mixture, beliefs: Sequence[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance, or variances, of the mixture of a mixture's members."""
    weights = mixture.weights
    means, covs = (np.array(own) for own in zip(*beliefs, strict=True))
    mean = weights @ means
    gaps = means - mean
    if covs.ndim == 2:
        return mean, weights @ (covs + gaps**2)
    return mean, np.tensordot(weights, covs + gaps[:, :, None] * gaps[:, None, :], 1)


def _belief_of(member: Any) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance of a perceptron, or of a network without hidden layers, which has one block."""
    return member.mean, member.cov[0] if isinstance(member.cov, list) else member.cov


def contrast_belief(mixture: Mixture) -> tuple[FloatArray, FloatArray]:
    """Mean and variance ``(K, d + 1)`` of the weights of softmaxes, the bias first, less their mean over the classes.

    What all classes have in common changes no probability, so that rows say nothing of it: it keeps the prior's
    variance, which would hide how well the rest is known.
    """
    parts = [part for _, part in mixture.components]
    means = np.array([part.weights[0] - part.weights[0].mean(axis=0) for part in parts])
    variances = np.array([_contrast_variances(part) for part in parts])
    return mixture_moments(mixture.component_weights, means, variances)


def _contrast_variances(model: Any) -> FloatArray:
    """Variances ``(K, d + 1)`` of the weights of a softmax, less their mean over the classes."""
    variances = model.weight_variances[0]
    n_classes, width = variances.shape
    if BELIEFS[model.covariance].separate_units:  # classes are independent
        return np.asarray(variances * (1.0 - 2.0 / n_classes) + variances.sum(axis=0) / n_classes**2)
    (joint,) = model.cov
    # The covariances of the weights of one input between classes.
    by_input = np.einsum("kiji->ikj", joint.reshape(n_classes, width, n_classes, width))
    with_mean = by_input.mean(axis=2).T
    return np.asarray(np.maximum(variances - 2.0 * with_mean + with_mean.mean(axis=0), 0.0))


class Draws(NamedTuple):
    """Functions drawn from the posterior."""

    outputs: FloatArray
    """Their outputs for all rows, ``(n_samples, n, ...)``."""
    components: NDArray[np.intp]
    """From which of a mixture's components each was drawn, ``(n_samples,)``."""


def draw_functions(mixture: Mixture, chunks: list[Rows], n_samples: int, random: RandomState) -> Draws:
    """Draw functions from the posterior, for rows in chunks: a component by its weight each time, then its weights."""
    shares = mixture.component_weights
    counts = random.multinomial(as_count(n_samples, "n_samples"), shares / shares.sum())
    seeds = random.randint(2**31 - 1, size=len(counts))
    parts = [
        np.concatenate([mixture.sample_part(part, rows.X, int(count), int(seed)) for rows in chunks], axis=1)
        for (_, part), count, seed in zip(mixture.components, counts, seeds, strict=True)
        if count
    ]
    order = random.permutation(n_samples)
    return Draws(np.concatenate(parts)[order], np.repeat(np.arange(len(counts)), counts)[order])


def add_noise(draws: Draws, noise_var: FloatArray, log_noise_var: FloatArray, random: RandomState) -> FloatArray:
    """Numbers around drawn functions, ``(n_samples, n)``.

    The variance of the noise is that of the component a function was drawn from, ``(components, n)``. Where its log is
    uncertain, with a variance ``(components,)``, each draw has a noise of its own for all rows.
    """
    stds = np.sqrt(noise_var[draws.components])
    factors = np.exp(0.5 * np.sqrt(log_noise_var[draws.components]) * random.normal(size=len(stds)))
    return np.asarray(draws.outputs + stds * factors[:, None] * random.normal(size=stds.shape))


def draw_counts(draws: Draws, dispersion: FloatArray, random: RandomState) -> FloatArray:
    """Counts whose rates are drawn functions, ``(n_samples, n)``, with the components' dispersion ``(components, n)``.

    A gamma factor of that squared deviation makes a Poisson count negative binomial.
    """
    shape = 1.0 / np.maximum(dispersion[draws.components], 1e-9)
    return np.asarray(random.poisson(np.minimum(draws.outputs * random.gamma(shape) / shape, LARGEST)), np.float64)


def draw_labels(probabilities: FloatArray, random: RandomState) -> NDArray[np.intp]:
    """Numbers of classes with these probabilities, ``(n_samples, n)``; of two classes that of the second is given."""
    if probabilities.ndim == 2:
        return (random.uniform(size=probabilities.shape) < probabilities).astype(np.intp)
    edges = np.cumsum(probabilities, axis=-1)
    chosen = random.uniform(size=(*edges.shape[:-1], 1)) * edges[..., -1:] >= edges
    return np.asarray(np.minimum(chosen.sum(axis=-1), edges.shape[-1] - 1))
