"""Learning on Dask: rows stay with their workers, beliefs travel."""

from onepass.integrations.dask.distributed import Evaluation, evaluate, fit, fit_fleet, predict

__all__ = ["Evaluation", "evaluate", "fit", "fit_fleet", "predict"]
