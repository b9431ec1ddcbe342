"""`BayesianForecaster` as one of River's time series models."""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from river import time_series

from onepass._typing import FloatArray
from onepass._validation import as_count
from onepass.forecasting import BayesianForecaster

__all__ = ["Forecaster", "input_names", "input_row"]


class Forecaster(time_series.base.Forecaster):
    """Forecasts in closed form, updated by every value: `onepass.BayesianForecaster` with the interface of River.

    Parameters
    ----------
    season_length : number, or sequence of numbers
        Seasons in steps; 1 is none.
    horizon : int, optional
        For how many steps ahead the members are weighed.
    outliers : bool
        Whether a value very far from what was expected is held back at first.
    counts : bool
        Whether values are counts 0, 1, 2, ...; `predict` then has their distributions over whole numbers.

    Examples
    --------
    >>> from river import datasets
    >>> from onepass.river import Forecaster
    >>> model = Forecaster(season_length=12, horizon=12)
    >>> for x, y in datasets.AirlinePassengers():
    ...     model.learn_one(y)
    >>> all(400 < y < 500 for y in model.forecast(horizon=3))
    True
    """

    def __init__(
        self, season_length: Any = 1, horizon: int | None = None, outliers: bool = False, counts: bool = False
    ) -> None:
        self.season_length = season_length
        self.horizon = horizon
        self.outliers = outliers
        self.counts = counts
        self._model = BayesianForecaster(season_length, horizon, outliers=outliers, counts=counts)
        self._names: list[Any] | None = None

    def learn_one(self, y: float, x: Mapping[Any, Any] | None = None) -> None:
        """Learn a value, with the inputs of its step; NaN is a value that is missing.

        Inputs that aren't numbers, such as the date in River's data sets, are ignored.
        """
        names = self._names if self._names is not None else input_names(x or {})
        row = input_row(x or {}, names)
        self._model.learn(float(y), row)
        self._names = names

    def forecast(self, horizon: int, xs: Sequence[Mapping[Any, Any]] | None = None) -> list[float]:
        """Expected values of the next steps; without their inputs, these are taken to stay as they are."""
        return [float(value) for value in self.predict(horizon, xs).mean]

    def predict(self, horizon: int, xs: Sequence[Mapping[Any, Any]] | None = None) -> Any:
        """Joint distribution of the next steps, a `onepass.forecasting.Forecast`."""
        steps = as_count(horizon, "horizon")
        if xs is not None and len(xs) != steps:
            raise ValueError(f"xs must have the inputs of each of the {steps} steps, got {len(xs)}")
        if xs is None or not self._names:
            return self._model.forecast(steps)
        return self._model.forecast(steps, np.array([input_row(x, self._names) for x in xs]))


def input_names(x: Mapping[Any, Any]) -> list[Any]:
    """The inputs that are numbers or missing."""
    return [name for name, value in x.items() if value is None or isinstance(value, Real)]


def input_row(x: Mapping[Any, Any], names: Sequence[Any]) -> FloatArray | None:
    """Inputs in the order of the first value's, NaN for those that are left out; None if that had none."""
    unknown = [name for name in input_names(x) if name not in names]
    if unknown:
        raise ValueError(f"x has the input {unknown[0]!r}, which the first value did not have")
    given = (x.get(name) for name in names)
    return np.array([np.nan if value is None else float(value) for value in given]) if names else None
