"""Learning, predicting and evaluating on Dask: rows stay on their workers, and only beliefs are sent."""

from onepass._extras import require

require("dask", "onepass.distributed")

from onepass.integrations.dask.evaluating import Evaluation, evaluate
from onepass.integrations.dask.fitting import fit
from onepass.integrations.dask.fleets import fit_fleet
from onepass.integrations.dask.forecasts import DistributedForecastingFleet, fit_forecasts, load_forecasts
from onepass.integrations.dask.predicting import predict

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
