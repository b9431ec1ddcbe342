"""`Forecast`: the predictive distribution of the next steps, each for itself and all together."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from onepass._typing import FloatArray
from onepass._validation import as_count, as_generator
from onepass.activations import as_activation
from onepass.forecasting.components import Components, Origin, decompose
from onepass.likelihoods.gaussian import Gaussian
from onepass.models.distribution import Family, Prediction
from onepass.models.prediction import PredictedMoments

__all__ = ["AtLeast", "Forecast", "MemberForecast"]

_FAMILY = Family(Gaussian(1.0), as_activation("linear", "exact"))


class AtLeast(NamedTuple):
    """Values that can't be below a limit: what would be is at the limit."""

    limit: float
    scale: float = 1.0

    def to_model(self, y: Any) -> Any:
        """The value itself."""
        return y

    def from_model(self, y: Any) -> Any:
        """The value, or the limit if that is more."""
        return np.maximum(y, self.limit)

    def log_slope(self, y: Any) -> Any:
        """0 for all values."""
        return 0.0

    def moments(self, seen: PredictedMoments) -> None:
        """None: what lies below the limit is not taken into account."""


class MemberForecast(NamedTuple):
    """What one member says, and the share that it has in the forecast."""

    member: Any
    share: float
    mean: FloatArray


class Forecast(Prediction):
    """The distribution of the next ``h`` values: a `onepass.Prediction` of ``h`` rows that also knows how they depend.

    Attributes
    ----------
    cov : (h, h) array
        Covariance of the steps.
    limit : float or None
        What values can't be below.
    members : list of MemberForecast
        The members that had a forecast, those with the largest share first.
    decomposition : Components
        What made the mean: ``level``, ``seasons``, ``lags`` and ``inputs`` of each step, which add up to it.

    Examples
    --------
    >>> import numpy as np
    >>> from onepass import BayesianForecaster
    >>> y = np.cumsum(np.random.default_rng(0).normal(size=200)) + 50.0
    >>> forecast = BayesianForecaster(season_length=1).learn(y).forecast(4)
    >>> low, high = forecast.interval(0.95)
    >>> total = forecast.total()
    >>> bool((np.diff(high - low) > 0).all()), bool(total.std > np.sqrt(np.square(forecast.std).sum()))
    (True, True)

    Steps of a random walk depend on each other, so their sum is less certain than that of independent values.
    """

    __slots__ = ("_components", "_origin", "cov", "limit", "members")

    def __init__(
        self,
        mean: FloatArray,
        cov: FloatArray,
        *,
        limit: float | None = None,
        members: list[MemberForecast] | None = None,
        origin: Origin | None = None,
        components: Components | None = None,
    ) -> None:
        var = np.diag(cov).copy()
        moments = PredictedMoments(mean, np.zeros_like(mean), mean, np.zeros_like(mean), var)

        def density(y: ArrayLike) -> Any:
            return -0.5 * (np.square(np.asarray(y) - mean) / var + np.log(2.0 * np.pi * var))

        units = None if limit is None else AtLeast(limit)
        super().__init__(_FAMILY, moments, np.zeros_like(mean), density, units=units)
        self.cov = cov
        self.members = [] if members is None else members
        self.limit = limit
        self._origin = origin
        self._components = components

    @property
    def decomposition(self) -> Components:
        """What made the mean; without a model behind the forecast, all of it is its level."""
        if self._components is None:
            mean = np.asarray(self.moments.mean)
            if self._origin is None:
                self._components = Components.of_level(mean)
            else:
                self._components = decompose(self._origin, self.members, mean)
        return self._components

    def sample_paths(self, n: int, rng: np.random.Generator | int) -> FloatArray:
        """Draw ``n`` courses of the series over all steps, ``(n, h)``."""
        generator = as_generator(rng)
        values, vectors = np.linalg.eigh(self.cov)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        paths = self.moments.mean + generator.standard_normal((as_count(n, "n"), len(values))) @ root.T
        return np.asarray(paths if self.limit is None else np.maximum(paths, self.limit))

    def total(self, start: int = 0, stop: int | None = None) -> Prediction:
        """Distribution of the sum of the steps from ``start`` up to ``stop``, by default of all."""
        steps = slice(start, stop)
        mean, var = float(self.moments.mean[steps].sum()), float(self.cov[steps, steps].sum())
        if not np.size(self.moments.mean[steps]):
            raise ValueError(f"the forecast has {len(self)} steps, none of them from {start} up to {stop}")

        def density(y: ArrayLike) -> Any:
            return -0.5 * (np.square(np.asarray(y) - mean) / var + np.log(2.0 * np.pi * var))

        units = None if self.limit is None else AtLeast(self.limit * np.size(self.moments.mean[steps]))
        return Prediction(_FAMILY, PredictedMoments(mean, 0.0, mean, 0.0, var), 0.0, density, units=units)

    def __reduce__(self) -> Any:
        return _unpickled, (self.moments.mean, self.cov, self.limit, self.members, self.decomposition)


def _unpickled(
    mean: FloatArray, cov: FloatArray, limit: float | None, members: list[MemberForecast], components: Components
) -> Forecast:
    return Forecast(mean, cov, limit=limit, members=members, components=components)
