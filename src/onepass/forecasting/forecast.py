"""`Forecast`: the predictive distribution of the next steps, each for itself and all together."""

from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermevander
from numpy.typing import ArrayLike
from scipy.special import factorial

from onepass._typing import FloatArray
from onepass._validation import as_count, as_generator
from onepass.activations import as_activation
from onepass.forecasting.components import Components, Origin, decompose
from onepass.likelihoods.gaussian import Gaussian
from onepass.likelihoods.whole_numbers import WholeNumbers, least_variance
from onepass.models.distribution import Family, Prediction
from onepass.models.prediction import PredictedMoments

__all__ = ["AtLeast", "CountForecast", "Forecast", "MemberForecast"]

_LINEAR = as_activation("linear", "exact")
_FAMILY = Family(Gaussian(1.0), _LINEAR)
_COUNTED = WholeNumbers()
_COUNTS = Family(_COUNTED, _LINEAR)
_LEAST_MEAN = 1e-9  # of a count
_SCORES = np.linspace(-5.0, 5.0, 401)  # normal numbers over which moments of counts are taken
_SHARES = np.exp(-0.5 * _SCORES**2) / np.exp(-0.5 * _SCORES**2).sum()
_ORDERS = np.arange(1, 13)
_HERMITE = hermevander(_SCORES, _ORDERS[-1]) / np.sqrt(factorial(np.arange(_ORDERS[-1] + 1)))  # orthonormal
_MOST_CORRELATED = 0.99


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
        moments = _of_values(mean, var)

        def density(y: ArrayLike) -> Any:
            return -0.5 * (np.square(np.asarray(y) - mean) / var + np.log(2.0 * np.pi * var))

        units = None if limit is None else AtLeast(limit)
        super().__init__(_FAMILY, moments, np.zeros_like(mean), density, units=units)
        self._keep(cov, limit, members, origin, components)

    def _keep(
        self,
        cov: FloatArray,
        limit: float | None,
        members: list[MemberForecast] | None,
        origin: Origin | None,
        components: Components | None,
    ) -> None:
        self.cov = cov
        self.members = [] if members is None else members
        self.limit = limit
        self._origin = origin
        self._components = components

    def with_moments(self, mean: FloatArray, cov: FloatArray) -> "Forecast":
        """A forecast of the same kind of values with other moments; all of its mean is its level."""
        return Forecast(mean, cov, limit=self.limit)

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
        paths = self.moments.mean + _draw_normal(self.cov, n, rng)
        return np.asarray(paths if self.limit is None else np.maximum(paths, self.limit))

    def total(self, start: int = 0, stop: int | None = None) -> Prediction:
        """Distribution of the sum of the steps from ``start`` up to ``stop``, by default of all."""
        mean, var = self._moments_of_sum(start, stop)

        def density(y: ArrayLike) -> Any:
            return -0.5 * (np.square(np.asarray(y) - mean) / var + np.log(2.0 * np.pi * var))

        units = None if self.limit is None else AtLeast(self.limit * len(range(*slice(start, stop).indices(len(self)))))
        return Prediction(_FAMILY, PredictedMoments(mean, 0.0, mean, 0.0, var), 0.0, density, units=units)

    def _moments_of_sum(self, start: int, stop: int | None) -> tuple[float, float]:
        steps = slice(start, stop)
        if not np.size(self.moments.mean[steps]):
            raise ValueError(f"the forecast has {len(self)} steps, none of them from {start} up to {stop}")
        return float(self.moments.mean[steps].sum()), float(self.cov[steps, steps].sum())

    def __reduce__(self) -> Any:
        return _unpickled, (self.moments.mean, self.cov, self.limit, self.members, self.decomposition)


def _unpickled(
    mean: FloatArray, cov: FloatArray, limit: float | None, members: list[MemberForecast], components: Components
) -> Forecast:
    return Forecast(mean, cov, limit=limit, members=members, components=components)


class CountForecast(Forecast):
    """The distribution of the next ``h`` counts: whole numbers from 0 on.

    Each step is negative binomial with its mean and variance; binomial where it varies less than a Poisson count. The
    steps depend on each other by a Gaussian copula, with which `cov` is close to the covariance of the counts.

    Attributes
    ----------
    cov, limit, members, decomposition : see `Forecast`

    Examples
    --------
    >>> import numpy as np
    >>> from onepass import BayesianForecaster
    >>> sold = np.random.default_rng(1).poisson(0.5, size=300)
    >>> forecast = BayesianForecaster(season_length=1, counts=True).learn(sold).forecast(7)
    >>> low, high = forecast.interval(0.9)
    >>> print(low[0], high[0], forecast.pdf(0)[0].round(1), forecast.total().ppf(0.95))
    0.0 2.0 0.6 7.0
    """

    __slots__ = ()

    def __init__(
        self,
        mean: FloatArray,
        cov: FloatArray,
        *,
        members: list[MemberForecast] | None = None,
        origin: Origin | None = None,
        components: Components | None = None,
    ) -> None:
        mean = np.maximum(mean, _LEAST_MEAN)
        cov = cov.copy()
        np.fill_diagonal(cov, np.maximum(np.diag(cov), least_variance(mean)))
        Prediction.__init__(self, _COUNTS, _of_values(mean, np.diag(cov).copy()), np.zeros_like(mean))
        self._keep(cov, 0.0, members, origin, components)

    def with_moments(self, mean: FloatArray, cov: FloatArray) -> Forecast:
        """A forecast of counts with other moments, of means that are at least 0."""
        return CountForecast(mean, cov)

    def sample_paths(self, n: int, rng: np.random.Generator | int) -> FloatArray:
        """Draw ``n`` courses of the counts over all steps, ``(n, h)``."""
        return self._at_scores(_draw_normal(self._latent_correlation(), n, rng))

    def total(self, start: int = 0, stop: int | None = None) -> Prediction:
        """Distribution of the sum of the counts from ``start`` up to ``stop``, by default of all."""
        mean, var = self._moments_of_sum(start, stop)
        return Prediction(_COUNTS, PredictedMoments(mean, 0.0, mean, 0.0, var))

    def _at_scores(self, z: FloatArray) -> FloatArray:
        """The counts at normal numbers ``(n, h)``."""
        return _COUNTED.each_at_normal_scores(self._number_parts(), z)

    def _latent_correlation(self) -> FloatArray:
        """Correlation ``r`` of the normal numbers behind the counts, which correlate less than these numbers do.

        Counts are functions of normal numbers; with their Hermite coefficients ``a`` and ``b`` their covariance is the
        sum of ``a_k b_k r^k`` over ``k`` from 1 on. It increases with ``r``, which is found by bisection.
        """
        counts = self._at_scores(np.tile(_SCORES[:, None], len(self)))
        found = (_HERMITE * _SHARES[:, None]).T @ counts
        terms = found[1:, :, None] * found[1:, None, :]
        low, high = np.full(self.cov.shape, -_MOST_CORRELATED), np.full(self.cov.shape, _MOST_CORRELATED)
        for _ in range(30):
            middle = 0.5 * (low + high)
            below = (terms * middle ** _ORDERS[:, None, None]).sum(axis=0) < self.cov
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        np.fill_diagonal(low, 1.0)
        values, vectors = np.linalg.eigh(low)
        nearest = (vectors * np.maximum(values, 1e-9)) @ vectors.T
        size = np.sqrt(np.diag(nearest))
        return np.asarray(nearest / np.outer(size, size))

    def __reduce__(self) -> Any:
        return _unpickled_counts, (self.moments.mean, self.cov, self.members, self.decomposition)


def _unpickled_counts(
    mean: FloatArray, cov: FloatArray, members: list[MemberForecast], components: Components
) -> CountForecast:
    return CountForecast(mean, cov, members=members, components=components)


def _of_values(mean: FloatArray, var: FloatArray) -> PredictedMoments:
    """Moments of values of which all variance is noise."""
    return PredictedMoments(mean, np.zeros_like(mean), mean, np.zeros_like(mean), var)


def _draw_normal(cov: FloatArray, n: int, rng: np.random.Generator | int) -> FloatArray:
    """Draw ``n`` normal vectors around 0, ``(n, h)``."""
    values, vectors = np.linalg.eigh(cov)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(as_generator(rng).standard_normal((as_count(n, "n"), len(values))) @ root.T)
