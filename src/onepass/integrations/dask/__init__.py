"""Learning, predicting and evaluating on Dask: rows stay on their workers, and only beliefs are sent."""

from importlib import import_module

try:
    for _needed in ("dask.array", "dask.dataframe", "distributed"):
        import_module(_needed)
except ImportError as error:
    raise ImportError(f"onepass.distributed needs Dask: pip install 'onepass[dask]' ({error})") from None

from onepass.integrations.dask.evaluating import Evaluation, evaluate
from onepass.integrations.dask.fitting import fit
from onepass.integrations.dask.fleets import fit_fleet
from onepass.integrations.dask.predicting import predict

__all__ = ["Evaluation", "evaluate", "fit", "fit_fleet", "predict"]
