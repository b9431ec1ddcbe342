"""What the series of a fleet have in common: the mean and covariance of members' weights over series are their prior.

Each series' weights are its posterior under the present prior, in standardised units. As in the EM algorithm, the
covariance is that of the posterior means plus the mean of the posterior covariances: means alone vary less than the
weights do. A prior is learned for every number of lags that a member may use, so that a short series takes what others
would have with the same lags.
"""

import numpy as np
from numpy.typing import NDArray

from onepass._typing import FloatArray
from onepass.engine.forecasting import ForecastWorkspace, posterior_weights
from onepass.engine.lag_sums import Plan

__all__ = ["learn_priors", "sampled"]

_FEWEST = 8  # series that a prior needs
_MOST = 400  # series that are asked
_OWN_VARIANCE = 0.1  # share of the covariance that counts as independent
_LEAST_VARIANCE = 1e-6


def sampled(n: int) -> NDArray[np.int64]:
    """Series that are asked, evenly spaced among all ``n``."""
    return np.unique(np.linspace(0, n - 1, min(n, _MOST)).astype(np.int64))


def learn_priors(
    plan: Plan, records: FloatArray, shrinkage: list[float], priors: FloatArray, work: ForecastWorkspace
) -> FloatArray:
    """Priors of all members and numbers of lags, from records ``(n, size)`` and the present priors."""
    found = plan.empty_priors()
    for member, times in enumerate(shrinkage):
        for tier, (_, p, at) in enumerate(plan.tier_places(member)):
            if times == 0.0:
                continue
            every = (posterior_weights(plan, record, member, tier, priors, work) for record in records)
            beliefs = [own for own in every if own is not None]
            if len(beliefs) >= _FEWEST:
                weights = np.array([mean for mean, _ in beliefs])
                cov = np.atleast_2d(np.cov(weights.T)) + sum(cov for _, cov in beliefs) / len(beliefs)
                found[at] = 1.0
                found[at + 1 : at + 1 + p] = weights.mean(axis=0)
                found[at + 1 + p : at + 1 + p + p * p] = _precision(times * cov).ravel()
    return found


def _precision(cov: FloatArray) -> FloatArray:
    cov = (1.0 - _OWN_VARIANCE) * cov + _OWN_VARIANCE * np.diag(np.diag(cov))
    return np.asarray(np.linalg.inv(cov + _LEAST_VARIANCE * np.eye(len(cov))))
