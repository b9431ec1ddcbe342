"""River's series, forecast three steps ahead at every value, next to River's own forecasters.

Settings of River's forecasters are those of its documentation. At first no model knows anything; the second column of
scores begins when two years of months are known.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from river import datasets, linear_model, optim, preprocessing, time_series

from onepass.forecasting import BayesianForecaster

__all__ = ["measure"]

HORIZON, LATER = 3, 24


class _Own:
    """Our forecaster, called as River's are."""

    def __init__(self, season: int) -> None:
        self._model = BayesianForecaster(season, HORIZON)
        self._n = 0

    def learn_one(self, y: float) -> None:
        self._model.learn(y)
        self._n += 1

    def forecast(self, horizon: int) -> list[float]:
        return [0.0] * horizon if self._n < 2 else self._model.forecast(horizon).mean.tolist()


def _regression() -> Any:
    return preprocessing.StandardScaler() | linear_model.LinearRegression(
        intercept_init=110, optimizer=optim.SGD(0.01), intercept_lr=0.3
    )


def _models(season: int) -> dict[str, Callable[[], Any]]:
    if season == 12:
        return {
            "onepass": lambda: _Own(12),
            "River SNARIMAX": lambda: time_series.SNARIMAX(p=12, d=1, q=12, m=12, sd=1, regressor=_regression()),
            "River HoltWinters": partial(
                time_series.HoltWinters, alpha=0.3, beta=0.1, gamma=0.6, seasonality=12, multiplicative=True
            ),
        }
    return {
        "onepass": lambda: _Own(1),
        "River SNARIMAX": lambda: time_series.SNARIMAX(p=1, d=1, q=0),
        "River HoltWinters": partial(time_series.HoltWinters, alpha=0.9, beta=0.1),
    }


def measure() -> dict[str, dict[str, dict[str, float]]]:
    """Mean absolute errors of every model on every series."""
    bundled: Any = datasets
    found = {}
    for name, dataset, season in (
        ("airline passengers", bundled.AirlinePassengers(), 12),
        ("TrumpApproval", bundled.TrumpApproval(), 1),
    ):
        y = np.array([target for _, target in dataset])
        found[name] = {model: _errors(make(), y) for model, make in _models(season).items()}
    return found


def _errors(model: Any, y: Any) -> dict[str, float]:
    """From the third value on, and from the 24th; no score where there is no forecast yet."""
    errors = []
    for t in range(len(y) - HORIZON):
        model.learn_one(float(y[t]))
        try:
            error = float(np.abs(np.array(model.forecast(horizon=HORIZON)) - y[t + 1 : t + 1 + HORIZON]).mean())
        except (AttributeError, IndexError, ValueError):  # HoltWinters before two seasons
            error = float("nan")
        errors.append(error)
    scores = {"from 3": float(np.mean(errors[2:])), f"from {LATER}": float(np.mean(errors[LATER - 1 :]))}
    return {key: value for key, value in scores.items() if np.isfinite(value)}
