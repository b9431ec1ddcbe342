"""`BayesianForecaster` as a forecaster of sktime, which learns new values by `update` without a refit."""

from typing import Any, Self

import numpy as np
import pandas as pd
from sktime.forecasting.base import BaseForecaster, ForecastingHorizon

from onepass._typing import FloatArray
from onepass.forecasting import BayesianForecaster, Forecast
from onepass.forecasting.times import Clock

__all__ = ["OnePassForecaster"]


class OnePassForecaster(BaseForecaster):  # type: ignore[misc]
    """Forecasts one series in closed form: `onepass.BayesianForecaster` with the interface of sktime.

    Quantiles, intervals and variances are those of the joint forecast. `update` learns the new values and nothing
    else; values that were learned before are skipped, and steps that are left out are missing values. Since all that
    is known about a series changes with its values, ``update_params=False`` learns them as well.

    Parameters
    ----------
    season_length : "auto", number, or sequence of numbers
        Seasons in steps; 1 is none. ``"auto"`` takes those that belong to the frequency of the index.
    horizon : int, optional
        For how many steps ahead members are weighed.
    members : sequence of Member, optional
        Other members than `onepass.forecasting.default_members`.
    outliers : bool
        Whether a value that is very far from what was expected is held back at first.
    counts : bool
        Whether values are counts 0, 1, 2, ..., whose quantiles and intervals are whole numbers.

    Attributes
    ----------
    forecaster_ : BayesianForecaster
        What has been learned.

    Examples
    --------
    >>> from sktime.datasets import load_airline
    >>> from onepass.integrations.sktime import OnePassForecaster
    >>> y = load_airline()
    >>> model = OnePassForecaster().fit(y[:120], fh=[1, 2, 3]).update(y[120:132])
    >>> model.predict().index[0], model.forecaster_.n_seen
    (Period('1960-01', 'M'), 132)
    >>> model.predict_interval(coverage=0.9).shape
    (3, 2)
    """

    _tags = {  # noqa: RUF012 # the name and form that sktime reads
        "authors": ["the onepass developers"],
        "y_inner_mtype": "pd.Series",
        "X_inner_mtype": "pd.DataFrame",
        "capability:multivariate": False,
        "capability:exogenous": True,
        "capability:categorical_in_X": False,
        "capability:insample": False,
        "capability:missing_values": True,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "capability:update": True,
        "requires-fh-in-fit": False,
    }
    _config = {"remember_data": False}  # noqa: RUF012 # no value is learned twice

    def __init__(
        self,
        season_length: Any = "auto",
        horizon: int | None = None,
        members: Any = None,
        outliers: bool = False,
        counts: bool = False,
    ) -> None:
        self.season_length = season_length
        self.horizon = horizon
        self.members = members
        self.outliers = outliers
        self.counts = counts
        self._y = self._X = None  # which sktime keeps only with ``remember_data``
        super().__init__()

    def _fit(self, y: pd.Series, X: pd.DataFrame | None, fh: Any) -> Self:
        seasons = self.season_length
        if isinstance(seasons, str) and seasons == "auto":
            seasons = _seasons_of(y.index) or seasons
        self.forecaster_ = BayesianForecaster(
            seasons, self.horizon, members=self.members, outliers=self.outliers, counts=self.counts
        )
        self._columns, self._name = None if X is None else X.columns, y.name
        steps = self._steps(y.index)
        self._learn(y, X, steps - steps[0])
        return self

    def _update(self, y: pd.Series, X: pd.DataFrame | None = None, update_params: bool = True) -> Self:
        steps = self._steps(y.index) - self._steps(self._end)[0] - 1
        new = steps >= 0
        if new.any():
            self._learn(y[new], None if X is None else X.reindex(y.index[new]), steps[new])
        return self

    def _learn(self, y: pd.Series, X: pd.DataFrame | None, steps: Any) -> None:
        """Learn values at steps after the last one, from 0 on."""
        values = np.full(steps[-1] + 1, np.nan)
        values[steps] = y.to_numpy(dtype=np.float64, na_value=np.nan)
        self.forecaster_.learn(values, self._inputs(X, steps, len(values)))
        self._end = y.index[-1:]

    def _inputs(self, X: pd.DataFrame | None, steps: Any, n: int) -> FloatArray | None:
        """Inputs of n steps, NaN where they are not known."""
        if self._columns is None:
            return None
        inputs = np.full((n, len(self._columns)), np.nan)
        if X is not None:
            inputs[steps] = X[self._columns].to_numpy(dtype=np.float64, na_value=np.nan)
        return inputs

    def _steps(self, index: pd.Index) -> Any:
        """Steps of an index after the cutoff, which is at 0."""
        horizon = ForecastingHorizon(index, is_relative=False).to_relative(self.cutoff)
        return horizon.to_numpy().astype(np.int64)

    def _forecast(self, fh: ForecastingHorizon, X: pd.DataFrame | None) -> tuple[Forecast, Any]:
        """The forecast up to the last step of a horizon, and the places of its steps."""
        behind = self._steps(self._end)[0]  # of the cutoff, where the last update had no values
        places = fh.to_relative(self.cutoff).to_numpy().astype(np.int64) - behind - 1
        if places.min() < 0:
            raise NotImplementedError("what was learned can't be forecast: the horizon begins after the last value")
        n = int(places.max()) + 1
        inputs = None
        if X is not None and self._columns is not None:
            steps = self._steps(X.index) - behind - 1
            ahead = (steps >= 0) & (steps < n)
            inputs = self._inputs(X[ahead], steps[ahead], n)
        return self.forecaster_.forecast(n, inputs), places

    def _predict(self, fh: ForecastingHorizon, X: pd.DataFrame | None) -> pd.Series:
        found, places = self._forecast(fh, X)
        return pd.Series(found.mean[places], index=fh.to_absolute_index(self.cutoff), name=self._name)

    def _predict_quantiles(self, fh: ForecastingHorizon, X: pd.DataFrame | None, alpha: list[float]) -> pd.DataFrame:
        found, places = self._forecast(fh, X)
        limits = np.column_stack([found.ppf(share)[places] for share in alpha])
        columns = self._get_columns(method="predict_quantiles", alpha=alpha)
        return pd.DataFrame(limits, index=fh.to_absolute_index(self.cutoff), columns=columns)

    def _predict_var(self, fh: ForecastingHorizon, X: pd.DataFrame | None, cov: bool = False) -> pd.DataFrame:
        found, places = self._forecast(fh, X)
        index = fh.to_absolute_index(self.cutoff)
        if cov:
            return pd.DataFrame(found.cov[np.ix_(places, places)], index=index, columns=index)
        return pd.DataFrame(found.var[places], index=index, columns=self._get_varnames())

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return what sktime's own checks make forecasters of."""
        return [{"season_length": 4}, {"horizon": 3, "outliers": True}]  # not counts: sktime checks with any numbers


def _seasons_of(index: pd.Index) -> tuple[float, ...]:
    """Seasons that belong to the frequency of an index of dates; none for numbers."""
    if isinstance(index, pd.PeriodIndex):
        index = index.to_timestamp()
    if not isinstance(index, pd.DatetimeIndex) or len(index) < 2:
        return ()
    if index.freqstr == "B":
        return (5.0,)
    first, second = index[:2].to_numpy(dtype="datetime64[ns]").astype(np.int64).tolist()
    clock = Clock(are_dates=True, start=first)
    clock.learn_step(second)
    return clock.seasons
