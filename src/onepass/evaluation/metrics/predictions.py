"""What a metric is updated with: targets, and what was predicted for them.

What several metrics need of the same rows, such as their errors, is computed once, when the first of them asks.
"""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
from scipy.special import ndtri

from onepass._typing import FloatArray
from onepass.likelihoods.counts import count_cdf, count_log_probabilities, dispersion_of, log_normal
from onepass.models.tracking import TrackedPlaces

__all__ = [
    "SURE",
    "ClassPredictions",
    "CountPredictions",
    "DistributionPredictions",
    "LogNormalPredictions",
    "NumberPredictions",
    "Reliability",
]

SURE = 1e-15
"""A probability of 0 or 1 is taken for this much less sure, so that one row can't make a score infinite."""


class _Predictions:
    """Rows of predictions: what they are for all kinds of targets."""

    def at(self, index: Any) -> Self:
        """Those of some of the rows."""
        parts = ((field.name, getattr(self, field.name)) for field in fields(cast(Any, self)))
        changed = {
            name: part.at(index) if isinstance(part, TrackedPlaces) else part[index]
            for name, part in parts
            if isinstance(part, TrackedPlaces | np.ndarray)
        }
        return replace(cast(Any, self), **changed)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class NumberPredictions(_Predictions):
    """Targets and their predictive distributions, each ``(n,)``; without ``std`` their means alone.

    Without ``log_densities`` the distributions are Gaussian.
    """

    y: FloatArray
    mean: FloatArray
    std: FloatArray | None = None
    log_densities: FloatArray | None = None
    places: TrackedPlaces | None = None
    """Where targets fell among limits that were tracked; None: intervals are those of the distributions."""

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def error(self) -> FloatArray:
        """Target minus predicted mean."""
        return np.asarray(self.y - self.mean)

    @cached_property
    def z(self) -> FloatArray:
        """Errors in units of the predicted standard deviation."""
        return np.asarray(self.error / self._known_std)

    @cached_property
    def log_density(self) -> FloatArray:
        """Log predictive density of each target."""
        if self.log_densities is not None:
            return self.log_densities
        return np.asarray(-0.5 * (np.log(2.0 * np.pi) + self.z**2) - np.log(self._known_std))

    def inside(self, level: float) -> Any:
        """Whether each target lies in its central interval of this level."""
        return self._own_inside(level) if self.places is None else self.places.inside(level)

    def _own_inside(self, level: float) -> Any:
        """Whether each target lies in the interval of its distribution."""
        return np.abs(self.z) <= ndtri(0.5 + level / 2)

    @property
    def _known_std(self) -> FloatArray:
        if self.std is None:
            raise ValueError("these predictions have no standard deviations, which the metric needs")
        return self.std


@dataclass(frozen=True, kw_only=True)
class DistributionPredictions(NumberPredictions):
    """Targets and predictive distributions with intervals of one ``level``."""

    low: FloatArray
    high: FloatArray
    level: float = 0.95

    def inside(self, level: float) -> Any:
        """Whether each target lies in its interval, whose level must be the one asked for."""
        if level != self.level:
            raise ValueError(f"these predictions have intervals of level {self.level}, not {level}")
        return (self.low < self.y) & (self.y < self.high)


@dataclass(frozen=True, kw_only=True)
class LogNormalPredictions(NumberPredictions):
    """Positive targets whose logarithms have Gaussian predictive distributions of these means and deviations."""

    log_mean: FloatArray
    log_std: FloatArray

    @cached_property
    def z(self) -> FloatArray:
        """Where each target lies in its distribution, as a standard normal variable."""
        return np.asarray((np.log(self.y) - self.log_mean) / self.log_std)

    @cached_property
    def log_density(self) -> FloatArray:
        """Log predictive density of each target."""
        if self.log_densities is not None:
            return self.log_densities
        return np.asarray(-0.5 * (np.log(2.0 * np.pi) + self.z**2) - np.log(self.log_std * self.y))


@dataclass(frozen=True, kw_only=True)
class CountPredictions(NumberPredictions):
    """Counts, and the moments of their predicted rates: a count is mixed over the log-normal rate that has these.

    ``noise_var`` is the variance of a count around its rate, which has the mean ``mean`` and the variance ``var``.
    """

    var: FloatArray
    noise_var: FloatArray

    @cached_property
    def log_density(self) -> FloatArray:
        """Log probability of each count."""
        if self.log_densities is not None:
            return self.log_densities
        return count_log_probabilities(*self._log_rate, self._dispersion, self.y)

    @cached_property
    def z(self) -> FloatArray:
        """Where each count lies in its distribution, as a standard normal variable: in the middle of its own step."""
        below, up_to = self._cdf
        return np.asarray(ndtri(np.clip(0.5 * (below + up_to), 1e-12, 1.0 - 1e-12)))

    def _own_inside(self, level: float) -> Any:
        """Whether each count lies in its central interval, between the quantiles that leave out half of the rest."""
        (below, up_to), tail = self._cdf, 0.5 - level / 2
        return (up_to >= tail) & (below < 1.0 - tail)

    @cached_property
    def _cdf(self) -> tuple[FloatArray, FloatArray]:
        """Probability of fewer than each count, and of at most as many."""
        below, up_to = (count_cdf(y, *self._log_rate, self._dispersion) for y in (self.y - 1.0, self.y))
        return below, up_to

    @cached_property
    def _dispersion(self) -> FloatArray:
        return dispersion_of(self.mean, self.var, self.noise_var)

    @cached_property
    def _log_rate(self) -> tuple[FloatArray, FloatArray]:
        return log_normal(self.mean, self.var)


@dataclass(frozen=True)
class ClassPredictions(_Predictions):
    """Indices ``(n,)`` of the true classes, predicted probabilities ``(n, K)``, and the std ``(n,)`` of the largest.

    Where labels may be wrong, ``log_densities`` ``(n,)`` are the log probabilities of the labels as they come.
    """

    y: Any
    probabilities: FloatArray
    std: FloatArray | None = None
    log_densities: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.y)

    @property
    def n_classes(self) -> int:
        """K."""
        return int(self.probabilities.shape[1])

    @cached_property
    def index(self) -> Any:
        """True classes as integers."""
        return np.asarray(self.y, dtype=np.int64)

    @cached_property
    def of_truth(self) -> FloatArray:
        """Probability of the true class."""
        return np.asarray(self.probabilities[np.arange(len(self)), self.index])

    @cached_property
    def surprise(self) -> FloatArray:
        """Negative log probability of the true class, or of the label as it comes."""
        if self.log_densities is not None:
            return np.asarray(-np.maximum(self.log_densities, np.log(SURE)))
        return np.asarray(-np.log(np.maximum(self.of_truth, SURE)))

    @cached_property
    def squared_error(self) -> FloatArray:
        """Squared differences of the probabilities from 1 for the true class and 0 for the others, summed."""
        return np.asarray(np.square(self.probabilities).sum(axis=1) - 2.0 * self.of_truth + 1.0)

    @cached_property
    def best(self) -> Any:
        """Index of the most probable class."""
        return self.probabilities.argmax(axis=1)

    @cached_property
    def of_best(self) -> FloatArray:
        """Probability of the most probable class."""
        return np.asarray(self.probabilities[np.arange(len(self)), self.best])

    @cached_property
    def is_right(self) -> Any:
        """Whether the most probable class is the true one."""
        return self.best == self.index


@dataclass(frozen=True)
class Reliability:
    """Predicted against observed frequency, by bin: its number of rows, the mean prediction, what was observed."""

    rows: FloatArray
    predicted: FloatArray
    observed: FloatArray
