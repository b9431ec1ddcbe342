"""Metrics, one class each: updated with rows as they come, in constant memory, and merged across processes.

A metric has three methods: `update` takes predictions with their targets, `get` returns the value so far, and `merge`
adds the rows of another metric of its class, scored elsewhere. The same objects score the command ``evaluate``,
evaluation on Dask, and the benchmarks.

To add a metric, write a subclass of `Metric`, or of `RowMean` if it is a mean over rows, and register it. The commands,
the reports, the service, its page and ``/metrics`` then show it: all of them read one report, `Scores`.

Examples
--------
>>> import numpy as np
>>> from onepass.evaluation.metrics import REGISTRY, NumberPredictions, RowMean, Scores, register
>>> @register("numbers")
... class Bias(RowMean[NumberPredictions]):
...     name, title = "bias", "bias"
...
...     @classmethod
...     def per_row(cls, rows):
...         return rows.mean - rows.y
>>> rows = NumberPredictions(y=np.array([1.0, 2.0]), mean=np.array([2.0, 3.0]))
>>> Scores.of("numbers", with_std=False).update(rows).total()
{'rmse': 1.0, 'mae': 1.0, 'bias': 1.0}
>>> del REGISTRY["numbers"]["bias"]
"""

from onepass._plugins import loaded
from onepass.evaluation.metrics.base import (
    REGISTRY,
    Expected,
    Metric,
    RowMean,
    Task,
    Unit,
    UnknownMetricError,
    register,
    registered,
    row_means,
)
from onepass.evaluation.metrics.classes import (
    Accuracy,
    BrierScore,
    ClassCalibrationError,
    Confidence,
    LogLoss,
    RocAuc,
    TopClassCalibrationError,
)
from onepass.evaluation.metrics.curve import Curve
from onepass.evaluation.metrics.numbers import (
    LEVELS,
    Coverage50,
    Coverage80,
    Coverage95,
    LogLikelihood,
    MeanAbsoluteError,
    NumberCalibrationError,
    PoissonDeviance,
    PredictedStd,
    RootMeanSquaredError,
    ensemble_crps,
    gaussian_crps,
)
from onepass.evaluation.metrics.predictions import (
    ClassPredictions,
    CountPredictions,
    DistributionPredictions,
    LogNormalPredictions,
    NumberPredictions,
    Reliability,
)
from onepass.evaluation.metrics.scores import Scores

__all__ = [
    "LEVELS",
    "REGISTRY",
    "Accuracy",
    "BrierScore",
    "ClassCalibrationError",
    "ClassPredictions",
    "Confidence",
    "CountPredictions",
    "Coverage50",
    "Coverage80",
    "Coverage95",
    "Curve",
    "DistributionPredictions",
    "Expected",
    "LogLikelihood",
    "LogLoss",
    "LogNormalPredictions",
    "MeanAbsoluteError",
    "Metric",
    "NumberCalibrationError",
    "NumberPredictions",
    "PoissonDeviance",
    "PredictedStd",
    "Reliability",
    "RocAuc",
    "RootMeanSquaredError",
    "RowMean",
    "Scores",
    "Task",
    "TopClassCalibrationError",
    "Unit",
    "UnknownMetricError",
    "ensemble_crps",
    "gaussian_crps",
    "register",
    "registered",
    "row_means",
]

loaded("metrics")  # those of other packages register themselves when they are imported
