"""Lazy predictions: a Dask collection in, a Dask collection with the same partitions out."""

from collections.abc import Sequence
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np

from onepass.integrations.dask.models import is_estimator
from onepass.integrations.dask.shards import select_columns
from onepass.models.prediction import PredictedMoments

__all__ = ["predict"]

_MOMENTS = ("mean", "epistemic", "pre_mean", "pre_var", "aleatoric")  # of a `Prediction`, as `PredictedMoments`
_METHODS = ("predict", "predict_proba", "decision_function")


def predict(
    model: Any,
    data: Any,
    target: str | None = None,
    *,
    features: Sequence[str] | None = None,
    method: str = "predict",
) -> Any:
    """Predict lazily: returns a Dask collection, which is computed when it is needed.

    Parameters
    ----------
    model : perceptron, network or estimator
    data : Dask array or data frame
    target : str, optional
        A column of the data frame to leave out.
    features : list of str, optional
        Columns to predict from; all others by default.
    method : str
        For an estimator, the method to call: ``"predict"``, ``"predict_proba"`` or ``"decision_function"``.

    Returns
    -------
    prediction
        For a data frame, a Dask data frame. Its columns are the moments of a `Prediction` for a perceptron or network
        with one output, the means for a network with several outputs, and for an estimator one column with the name of
        the method, or one per class. For an array, the moments as Dask arrays, or a Dask array.
    """
    if not _gives_prediction(model) and method not in _METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, _METHODS))}, got {method!r}")
    if isinstance(data, dd.DataFrame):
        chosen = data[select_columns(list(data.columns), target, features)]
        meta = _predict_frame(_row_of_zeros(chosen), model, method)
        return chosen.map_partitions(_predict_frame, model, method, meta=meta)
    if not isinstance(data, da.Array) or data.ndim != 2:
        raise TypeError(f"data must be a Dask data frame or a Dask array (n, d), got {type(data).__name__}")
    rows = data.rechunk({1: -1})
    if _gives_prediction(model):
        width = len(_MOMENTS)
        parts = rows.map_blocks(_predict_moments, model, dtype=np.float64, chunks=(rows.chunks[0], (width,)))
        return PredictedMoments(*(parts[:, i] for i in range(width)))
    sample = np.asarray(_predict_values(np.zeros((1, rows.shape[1])), model, method))
    if sample.ndim == 1:
        return rows.map_blocks(_predict_values, model, method, dtype=sample.dtype, drop_axis=1)
    chunks = (rows.chunks[0], sample.shape[1:])
    return rows.map_blocks(_predict_values, model, method, dtype=sample.dtype, chunks=chunks)


def _gives_prediction(model: Any) -> bool:
    return not is_estimator(model) and getattr(model, "n_outputs", 1) == 1


def _row_of_zeros(data: Any) -> Any:
    """One row with the columns of a data frame, to find out what a model returns for it."""
    import pandas as pd

    return pd.DataFrame(np.zeros((1, len(data.columns))), columns=data.columns)


# Tasks, which run on the workers.


def _predict_moments(rows: Any, model: Any) -> Any:
    """The fields of a `PredictedMoments` as columns."""
    if not len(rows):
        return np.empty((0, len(_MOMENTS)))
    return np.column_stack(model.predict(np.asarray(rows)).moments)


def _predict_frame(frame: Any, model: Any, method: str) -> Any:
    import pandas as pd

    if _gives_prediction(model):
        return pd.DataFrame(_predict_moments(frame, model), columns=list(_MOMENTS), index=frame.index)
    values = np.asarray(_predict_values(frame, model, method))
    if values.ndim == 1:
        return pd.DataFrame({method: values}, index=frame.index)
    classes = getattr(model, "classes_", range(values.shape[1]))
    return pd.DataFrame(values, columns=[str(name) for name in classes], index=frame.index)


def _predict_values(rows: Any, model: Any, method: str) -> Any:
    if not len(rows):  # estimators raise an error for no rows
        one = _row_of_zeros(rows) if hasattr(rows, "columns") else np.zeros((1, rows.shape[1]))
        return _predict_values(one, model, method)[:0]
    if is_estimator(model):
        return getattr(model, method)(rows)
    return model.predict(rows).mean
