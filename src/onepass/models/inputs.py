"""Rows that users give to perceptrons: dense or sparse, certain or with variances of their own."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from onepass._typing import FloatArray
from onepass._validation import as_floats, as_rows, as_sparse_rows
from onepass.beliefs.base import PerceptronBelief

__all__ = ["Inputs", "as_inputs"]

Inputs: TypeAlias = Any
"""Anything that NumPy makes an array of, or a SciPy sparse matrix."""


def as_inputs(
    X: Inputs, X_var: ArrayLike | None, n_features: int, belief: PerceptronBelief
) -> tuple[Any, FloatArray | None, bool]:
    """Check rows and their variances; also returns whether it was one row. They are without the bias's constant."""
    if issparse(X):
        sparse = as_sparse_rows(X, n_features)
        if X_var is not None:
            raise ValueError("X_var needs dense rows, got sparse X; pass X.toarray(), or leave X_var out")
        return (sparse if belief.takes_sparse_rows else sparse.toarray()), None, False
    rows, single = as_rows(X, n_features)
    if X_var is None:
        return rows, None, single
    given = as_floats(X_var, "X_var")
    if given.shape not in ((), (n_features,), rows.shape):
        raise ValueError(
            f"X_var must be a number, have shape ({n_features},), or the shape of X; "
            f"got shape {given.shape} for X of shape {np.shape(X)}"
        )
    row_vars = np.ascontiguousarray(np.broadcast_to(given, rows.shape))
    if (row_vars < 0).any():
        raise ValueError(f"X_var must not be negative, got {row_vars.min():g}")
    return rows, row_vars, single
