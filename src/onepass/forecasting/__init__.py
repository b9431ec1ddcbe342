"""Forecasts of time series, learned one value at a time, with intervals that hold; and which values are anomalies."""

from onepass.forecasting.anomalies import AnomalyScorer, AnomalyScores
from onepass.forecasting.components import Components
from onepass.forecasting.fleet import ForecastingFleet
from onepass.forecasting.forecast import CountForecast, Forecast
from onepass.forecasting.forecaster import BayesianForecaster
from onepass.forecasting.members import Member, count_members, default_members
from onepass.forecasting.population import Contribution, next_sharing, sampled
from onepass.forecasting.reconciliation import reconcile
from onepass.forecasting.revisions import TooLateError

__all__ = [
    "AnomalyScorer",
    "AnomalyScores",
    "BayesianForecaster",
    "Components",
    "Contribution",
    "CountForecast",
    "Forecast",
    "ForecastingFleet",
    "Member",
    "TooLateError",
    "count_members",
    "default_members",
    "next_sharing",
    "reconcile",
    "sampled",
]


def __dir__() -> list[str]:
    return sorted(__all__)
