"""What the series of a fleet have in common: the mean and covariance of members' weights over series are their prior.

Each series' weights are its posterior under the present prior, in standardised units. As in the EM algorithm, the
covariance is that of the posterior means plus the mean of the posterior covariances: means alone vary less than the
weights do. A prior is learned for every number of lags that a member may use, so that a short series takes what others
would have with the same lags.

The series may be in parts of a fleet, in different processes. Then each part gives the weights of its sampled series
and how it has sized intervals since parts last shared, its `Contribution`, and every part makes the same prior of all.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onepass._typing import FloatArray
from onepass.engine.forecasting import ForecastWorkspace, posterior_weights
from onepass.engine.lag_sums import Plan

__all__ = ["Contribution", "SampledWeights", "learn_priors", "next_sharing", "sampled", "sharing_steps", "weights_of"]

_FIRST_SHARING = 256  # values after which series share for the first time
_GROWTH = 1.3  # times as many values until they share again
_FEWEST = 8  # series that a prior needs
_MOST = 400  # series that are asked
_OWN_VARIANCE = 0.1  # share of the covariance that counts as independent
_LEAST_VARIANCE = 1e-6


class SampledWeights(NamedTuple):
    """What a prior is learned from, for one member and number of lags.

    Attributes
    ----------
    means : (n, p) array
        Posterior means of the weights of the series that were asked.
    cov : (p, p) array
        Sum of their posterior covariances.
    """

    means: FloatArray
    cov: FloatArray


class Contribution(NamedTuple):
    """What the series of one part of a fleet add to what the series of all parts share.

    Attributes
    ----------
    weights : list of SampledWeights
        Weights of the series that were asked, for each member and number of lags; an empty list if the prior stays as
        it is.
    sizing, shared_sizing : arrays
        What intervals are sized with: now, and when parts shared last.
    """

    weights: list[SampledWeights]
    sizing: FloatArray
    shared_sizing: FloatArray


def next_sharing(n: int) -> int:
    """The number of values after which series share next, once ``n`` have been learned.

    Examples
    --------
    >>> next_sharing(0), next_sharing(256), next_sharing(332)
    (256, 333, 333)
    """
    due = _FIRST_SHARING
    while due <= n:
        due = int(_GROWTH * due) + 1
    return due


def sharing_steps(n_seen: int, counts: Sequence[int] | NDArray[np.int64]) -> list[int]:
    """After which of the steps to come, of so many values each, series share; ``n_seen`` were learned before them.

    Examples
    --------
    >>> sharing_steps(0, [100] * 6)
    [2, 3, 4, 5]
    """
    found, due = [], next_sharing(n_seen)
    for step, n in enumerate((n_seen + np.cumsum(counts)).tolist()):
        if n >= due:
            found.append(step)
            due = next_sharing(n)
    return found


def sampled(lengths: Sequence[int]) -> list[NDArray[np.int64]]:
    """Series that are asked in each part of so many series: at most 400, evenly spaced among all.

    Examples
    --------
    >>> sampled([2, 1])
    [array([0, 1]), array([0])]
    """
    ends = np.cumsum([0, *lengths])
    n = int(ends[-1])
    asked = np.unique(np.linspace(0, n - 1, min(n, _MOST)).astype(np.int64))
    return [asked[(first <= asked) & (asked < stop)] - first for first, stop in pairwise(ends.tolist())]


def weights_of(
    plan: Plan, records: FloatArray, shrinkage: Sequence[float], priors: FloatArray, work: ForecastWorkspace
) -> list[SampledWeights]:
    """Weights of the series that have them, for each place of a prior, under the present priors."""
    found = []
    for member, tier, p, _ in _places(plan, shrinkage):
        every = (posterior_weights(plan, record, member, tier, priors, work) for record in records)
        beliefs = [own for own in every if own is not None]
        means = np.array([mean for mean, _ in beliefs]).reshape(-1, p)
        found.append(SampledWeights(means, sum((cov for _, cov in beliefs), np.zeros((p, p)))))
    return found


def learn_priors(plan: Plan, shrinkage: Sequence[float], parts: Sequence[Sequence[SampledWeights]]) -> FloatArray:
    """Priors of all members and numbers of lags, from the weights of the series of all parts: see `weights_of`."""
    found = plan.empty_priors()
    for (member, _, p, at), *own in zip(_places(plan, shrinkage), *parts, strict=True):
        means = np.concatenate([part.means for part in own])
        if len(means) >= _FEWEST:
            cov = np.atleast_2d(np.cov(means.T)) + np.sum([part.cov for part in own], axis=0) / len(means)
            found[at] = 1.0
            found[at + 1 : at + 1 + p] = means.mean(axis=0)
            found[at + 1 + p : at + 1 + p + p * p] = _precision(shrinkage[member] * cov).ravel()
    return found


def _places(plan: Plan, shrinkage: Sequence[float]) -> list[tuple[int, int, int, int]]:
    """Member, tier, number of weights and place of each prior that is learned."""
    return [
        (member, tier, p, at)
        for member, times in enumerate(shrinkage)
        for tier, (_, p, at) in enumerate(plan.tier_places(member))
        if times > 0.0
    ]


def _precision(cov: FloatArray) -> FloatArray:
    cov = (1.0 - _OWN_VARIANCE) * cov + _OWN_VARIANCE * np.diag(np.diag(cov))
    return np.asarray(np.linalg.inv(cov + _LEAST_VARIANCE * np.eye(len(cov))))
