"""Learning, predicting, evaluating and forecasting on a Dask cluster; needs ``pip install 'onepass-learn[dask]'``."""

from onepass.integrations.dask import (
    DistributedForecastingFleet,
    Evaluation,
    evaluate,
    fit,
    fit_fleet,
    fit_forecasts,
    load_forecasts,
    predict,
)

__all__ = [
    "DistributedForecastingFleet",
    "Evaluation",
    "evaluate",
    "fit",
    "fit_fleet",
    "fit_forecasts",
    "load_forecasts",
    "predict",
]
