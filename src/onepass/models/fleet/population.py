"""The population that the keys of a fleet are drawn from, by empirical Bayes.

Each key's rows changed its belief over its own prior; in natural parameters that change is the Gaussian likelihood of
the key's weights. Expectation maximisation then finds the mean and covariance of the Gaussian that the weights of all
keys are most probably drawn from.
"""

import numpy as np

from onepass._typing import FloatArray
from onepass.models.fleet.records import natural_of

__all__ = ["fit_population"]

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
    return _maximise(precisions[sound], precision_means[sound], mean, cov)


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
