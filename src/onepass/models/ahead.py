"""Predictions some rows ahead: what happens to a belief before a row is learned is part of the row's prediction.

Before each row weights drift, the past fades and, after many targets that could not be trusted, the belief returns to
the prior's. A row that is learned next is one row ahead; 0 rows ahead is the belief as it is.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from onepass._typing import FloatArray
from onepass._validation import as_rows_ahead, as_whole

__all__ = ["RowsAhead", "each_ahead", "each_ahead_unchecked"]

RowsAhead: TypeAlias = int | NDArray[np.int64]
"""How many rows ahead is predicted: an integer, or one per row."""


def each_ahead(
    rows_ahead: RowsAhead, given: Sequence[Any], predict: Callable[..., Sequence[FloatArray]]
) -> Sequence[FloatArray]:
    """Predict rows, each as many rows ahead as it is said to be.

    Parameters
    ----------
    rows_ahead : int or (n,) array
    given : arrays with one entry per row, or None
    predict : function of one number of rows ahead and of ``given``, or a part of it
        Returns arrays with one entry per row.
    """
    n_rows = given[0].shape[0]
    ahead = as_rows_ahead(rows_ahead, n_rows)
    if isinstance(ahead, int):
        return predict(ahead, *given)
    found: list[FloatArray] = []
    for own_ahead in np.unique(ahead).tolist():
        own = np.flatnonzero(ahead == own_ahead)
        parts = predict(own_ahead, *(None if array is None else array[own] for array in given))
        found = found or [np.empty((n_rows, *part.shape[1:])) for part in parts]
        for whole, part in zip(found, parts, strict=True):
            whole[own] = part
    return found


def each_ahead_unchecked(
    rows_ahead: RowsAhead, X: Any, y: Any, X_var: Any, predict: Callable[..., Sequence[Any]]
) -> Sequence[Any]:
    """Predict rows as a user gave them, one or many, which others are to check: see `each_ahead`."""
    if np.ndim(rows_ahead) == 0 or np.ndim(X) == 1:
        return predict(as_whole(rows_ahead, "rows_ahead"), X, y, X_var)
    rows: Any = X if issparse(X) else np.asarray(X)
    row_vars = None if X_var is None else np.broadcast_to(X_var, rows.shape)
    return each_ahead(rows_ahead, (rows, None if y is None else np.asarray(y), row_vars), predict)
