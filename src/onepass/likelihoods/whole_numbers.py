"""Counts of which the mean and the variance are known: negative binomial, Poisson or binomial.

A count with the mean ``m`` and the variance ``v`` is

- negative binomial with the size ``m² / (v - m)`` if ``v > m``,
- Poisson if ``v = m``,
- binomial with ``m² / (m - v)`` trials if ``v < m``, which need not be a whole number.

A variance below that of a binomial count with the fewest whole trials, ``m`` rounded up, counts as that variance.
"""

from typing import Any, ClassVar

import numpy as np
from scipy.special import betainc, gammaincc, gammaln, ndtr, ndtri, xlog1py, xlogy

from onepass._typing import FloatArray
from onepass.likelihoods.base import Likelihood
from onepass.likelihoods.counts import FARTHEST, smallest_reaching
from onepass.likelihoods.mixtures import Components

__all__ = ["WholeNumbers", "least_variance"]

_POISSON = 1e-6  # difference of variance and mean, relative to the mean, below which a count is Poisson to rounding
_MOST_LISTED = 100_000  # counts whose probabilities are listed to look many up


def least_variance(mean: FloatArray) -> FloatArray:
    """The variance of a binomial count with as few trials as its mean, above 0, allows."""
    return np.asarray(mean * (1.0 - mean / np.ceil(mean)))


class WholeNumbers(Likelihood):
    """Counts with the mean and the variance that are predicted; models that learn counts have `onepass.likelihoods`."""

    words: ClassVar[str] = "counts"
    is_numeric: ClassVar[bool] = False
    is_count: ClassVar[bool] = True

    def impossible(self, y: FloatArray) -> Any:
        """All but whole numbers from 0 on."""
        return ((y < 0.0) | (y != np.floor(y))) & ~np.isnan(y)

    def normal_score(self, parts: Components, y: FloatArray) -> FloatArray:
        """That of the counts up to it."""
        return np.asarray(ndtri(_cdf(*_moments(parts), np.floor(y))))

    def log_density(self, parts: Components, y: FloatArray) -> FloatArray:
        """Log probability of counts."""
        possible = ~self.impossible(y)
        return np.where(possible, _log_probability(*_moments(parts), np.where(possible, y, 0.0)), -np.inf)

    def at_normal_score(self, parts: Components, z: FloatArray) -> FloatArray:
        """The smallest count that the distribution function reaches there; far out, the count so many deviations on."""
        mean, var = _moments(parts)
        std = np.sqrt(var)
        within = np.clip(z, -FARTHEST, FARTHEST)
        level = ndtr(within)
        low = np.floor(np.maximum(mean + (within - 1.0) * std, 0.0)) - 1.0
        high = np.ceil(mean + np.maximum(within + 1.0, 0.0) * std)
        found = smallest_reaching(lambda y: _cdf(mean, var, y) >= level, low, high)
        return np.where(z == within, found, np.maximum(np.round(found + (z - within) * std), 0.0))

    def draw(self, parts: Components, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw ``n`` counts from each distribution, ``(n, ...)``."""
        return self.each_at_normal_scores(parts, rng.normal(size=(n, parts.mean.shape[1])))

    def each_at_normal_scores(self, parts: Components, z: FloatArray) -> FloatArray:
        """`at_normal_score` of many numbers of each distribution, ``(k, n)``, looked up among its counts."""
        (mean, var), within = _moments(parts), np.clip(z, -FARTHEST, FARTHEST)
        first, last = self.at_normal_score(parts, within.min(axis=0)), self.at_normal_score(parts, within.max(axis=0))
        if (last - first).max() > _MOST_LISTED:
            return self.at_normal_score(parts, z)
        found = np.empty_like(z)
        for i, own in enumerate(ndtr(within.T)):
            listed = np.arange(first[i], last[i] + 1.0)
            found[:, i] = first[i] + np.searchsorted(_cdf(mean[i], var[i], listed), own)
        return np.minimum(found, last)


def _moments(parts: Components) -> tuple[FloatArray, FloatArray]:
    """Means and variances ``(n,)`` of the counts, of which there is one part."""
    mean = parts.mean[0]
    return mean, np.maximum(parts.var[0] + parts.noise_var[0], least_variance(mean))


def _cdf(mean: FloatArray, var: FloatArray, y: FloatArray) -> FloatArray:
    """Probability that counts are at most the whole number ``y``."""
    mean, var, y = np.broadcast_arrays(mean, var, y)
    k = np.maximum(y, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.square(mean) / (var - mean)  # minus the number of trials, if they vary less than Poisson's
        more = betainc(size, k + 1.0, mean / var)
        less = betainc(np.maximum(-size - k, 1e-300), k + 1.0, var / mean)
    less = np.where(k >= -size, 1.0, less)
    own = np.where(var > mean, more, less)
    found = np.where(np.abs(var - mean) <= _POISSON * mean, gammaincc(k + 1.0, mean), own)
    return np.where(y < 0.0, 0.0, found)


def _log_probability(mean: FloatArray, var: FloatArray, y: FloatArray) -> FloatArray:
    """Log probabilities of the whole numbers ``y``."""
    mean, var, y = np.broadcast_arrays(mean, var, y)
    poisson = xlogy(y, mean) - mean - gammaln(y + 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.square(mean) / (var - mean)
        more = gammaln(y + size) - gammaln(size) - gammaln(y + 1.0) + xlogy(size, mean / var) + xlog1py(y, -mean / var)
        n = -size
        left = np.maximum(n - y, 0.0)
        share = mean / n
        less = gammaln(n + 1.0) - gammaln(left + 1.0) - gammaln(y + 1.0) + xlogy(y, share) + xlog1py(left, -share)
        last = np.log(1.0 - _cdf(mean, var, y - 1.0))  # what the highest count has, if trials are not whole
    less = np.where(y < n + 1.0, np.where(y <= n, less, last), -np.inf)
    found = np.where(var > mean, more, less)
    return np.where(np.abs(var - mean) <= _POISSON * mean, poisson, found)
