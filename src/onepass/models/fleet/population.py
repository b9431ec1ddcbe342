"""The population that the keys of a fleet are drawn from, by empirical Bayes.

Each key's rows changed its belief over its own prior; in natural parameters that change is the Gaussian likelihood of
the key's weights. Expectation maximisation then finds the mean and covariance of the Gaussian that the weights of all
keys are most probably drawn from. The same likelihoods, over another prior, are the beliefs that the keys would have if
they had started from it.
"""

import numpy as np

from onepass._typing import FloatArray
from onepass.engine.fleet import OF_LOG_START, OF_REFERENCE, OF_SQUARES, OF_START_WEIGHT
from onepass.models.fleet.records import (
    AT_NOISE,
    AT_NOISE_WEIGHT,
    AT_PRIOR,
    HEAD,
    means_of,
    natural_of,
    record_width,
    reweighed_of,
)

__all__ = ["fit_population", "rebased", "widened"]

_STEPS = 50


def fit_population(
    records: FloatArray, priors: FloatArray, mean: FloatArray, cov: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Learn the mean ``(p,)`` and covariance ``(p, p)`` of the population.

    Parameters
    ----------
    records : (n, width) array
        Records of the keys as they are now.
    priors : (n, width) array
        The record that each key started from.
    mean, cov : (p,) and (p, p) arrays
        Where expectation maximisation starts.
    """
    size = len(mean)
    natural = zip(natural_of(records, size), natural_of(priors, size), strict=True)
    precisions, precision_means = (after - before for after, before in natural)
    # A key whose likelihood has several modes can have negative precision, and then no Gaussian likelihood of its own.
    sound = np.linalg.eigvalsh(precisions)[:, 0] > -1e-9 * np.abs(precisions).max(axis=(1, 2))
    return _maximise(precisions[sound], precision_means[sound], mean, cov) if sound.any() else (mean, cov)


def _maximise(
    precisions: FloatArray, precision_means: FloatArray, mean: FloatArray, cov: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Run expectation maximisation over keys with these Gaussian likelihoods."""
    for _ in range(_STEPS):
        base = np.linalg.inv(cov)
        covs = np.linalg.inv(base + precisions)
        means = np.einsum("nij,nj->ni", covs, base @ mean + precision_means)
        mean = means.mean(axis=0)
        gaps = means - mean
        old, cov = cov, (covs.sum(axis=0) + gaps.T @ gaps) / len(means)
        cov = 0.5 * (cov + cov.T)
        if np.abs(cov - old).max() < 1e-4 * np.abs(cov).max():
            break
    return mean, cov


def widened(cov: FloatArray, start: FloatArray, n_keys: int) -> FloatArray:
    """The covariance of a population for a key to come, given that it was estimated from so many keys.

    The most probable covariance is too narrow where keys are few: of its mean they leave a share of ``1 / n`` in doubt,
    of itself as much again, and in ``p`` dimensions fewer than ``p`` of them say nothing of some directions, which keep
    a part of the covariance ``start`` from before the first key.
    """
    size = len(cov)
    return np.asarray((1.0 + 2.0 / n_keys) * cov + size / (n_keys * (n_keys + size)) * start)


def rebased(records: FloatArray, priors: FloatArray, prior: FloatArray, size: int) -> FloatArray:
    """Records as they would be if their keys had started from another prior; what the rows said of each stays.

    Exact for linear perceptrons with a known noise. That may become another: what the rows said then counts
    accordingly. A learned noise stays.

    Parameters
    ----------
    records, priors : (n, width) arrays
        The keys, and the record that each started from.
    prior : (width,) array
        The record that they are to have started from.
    """
    natural = zip(natural_of(records, size), natural_of(priors, size), strict=True)
    given = prior[AT_NOISE_WEIGHT] == 0.0 and prior[AT_NOISE] > 0.0  # labels have none
    share = records[:, AT_NOISE] / prior[AT_NOISE] if given else np.ones(len(records))
    precisions, precision_means = ((after - before).T * share for after, before in natural)
    precisions, precision_means = precisions.T, precision_means.T
    (base,), (base_mean,) = natural_of(prior[None], size)
    # What is below 0, by rounding or where a likelihood has several modes, tells nothing.
    values, vectors = np.linalg.eigh(precisions)
    values = np.maximum(values, 0.0)
    known = np.einsum("nij,ni->nj", vectors, precision_means) * (values > 0.0)
    factors = np.linalg.cholesky(np.einsum("nik,nk,njk->nij", vectors, values, vectors) + base)
    roots = np.linalg.inv(factors)
    means = np.einsum("nij,nj->ni", vectors, known) + base_mean
    means = np.einsum("nji,njk,nk->ni", roots, roots, means, optimize=True)
    found = records.copy()
    found[:, AT_PRIOR] = prior[AT_PRIOR]
    found[:, HEAD : HEAD + size] = means
    below, across = np.tril_indices(size)
    found[:, HEAD + size : record_width(size)] = roots[:, below, across]
    if given:
        found[:, AT_NOISE] = prior[AT_NOISE]
    numbers, start = reweighed_of(found, size), reweighed_of(prior[None], size)
    if start.size:
        numbers[:, OF_SQUARES] += _more_squares(records, priors, found, prior, size)
        numbers[:, [OF_LOG_START, OF_START_WEIGHT]] = start[:, [OF_LOG_START, OF_START_WEIGHT]]
    return found


def _more_squares(
    records: FloatArray, priors: FloatArray, found: FloatArray, prior: FloatArray, size: int
) -> FloatArray:
    """How many more squares are left, see `onepass.engine.noise`, where the mean and the prior have changed."""

    def distance(towards: FloatArray) -> FloatArray:
        gap = means_of(found, size) - means_of(towards, size)
        return np.asarray(np.einsum("ni,nij,nj->n", gap, natural_of(towards, size)[0], gap))

    more = distance(records) - distance(priors) + distance(np.broadcast_to(prior, found.shape))
    numbers = reweighed_of(records, size)
    return np.asarray(np.maximum(numbers[:, OF_REFERENCE] * more, -numbers[:, OF_SQUARES]))
