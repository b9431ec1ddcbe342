"""Learning, predicting and evaluating on a Dask cluster; needs ``pip install 'onepass-learn[dask]'``."""

from onepass.integrations.dask import Evaluation, evaluate, fit, fit_fleet, predict

__all__ = ["Evaluation", "evaluate", "fit", "fit_fleet", "predict"]
