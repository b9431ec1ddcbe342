"""Forecasts of time series, learned one value at a time: the mean of every step ahead, intervals that hold, and anomalies."""

from onepass.forecasting.anomalies import AnomalyScorer, AnomalyScores
from onepass.forecasting.fleet import ForecastingFleet
from onepass.forecasting.forecast import Forecast
from onepass.forecasting.forecaster import BayesianForecaster
from onepass.forecasting.members import Member, default_members

__all__ = [
    "AnomalyScorer",
    "AnomalyScores",
    "BayesianForecaster",
    "Forecast",
    "ForecastingFleet",
    "Member",
    "default_members",
]


def __dir__() -> list[str]:
    return sorted(__all__)
