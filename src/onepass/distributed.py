"""Learning, predicting and evaluating on Dask; needs ``pip install 'onepass[dask]'``."""

from onepass.integrations.dask import Evaluation, evaluate, fit, fit_fleet, predict

__all__ = ["Evaluation", "evaluate", "fit", "fit_fleet", "predict"]
