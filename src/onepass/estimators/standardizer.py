"""The warm-up: which statistics of the first rows inputs and targets are standardised by."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onepass.estimators.rows import Rows, as_dense, is_sparse
from onepass.estimators.scaling import Scaling, absurd, warn_of_constant, warn_of_unseen

__all__ = ["MEAN_AND_STD", "SIZE", "Standardizer"]

MEAN_AND_STD, SIZE = "mean and standard deviation", "size"
"""By which targets can be standardised; others stay as they are."""


@dataclass(frozen=True)
class Standardizer:
    """Takes the statistics of the first rows."""

    warm_up: int  # rows; 0 without standardisation
    outliers: float
    targets_by: str | None  # MEAN_AND_STD or SIZE
    keeps_sparse: bool  # whether sparse rows reach the models as they are
    n_channels: int | None = None  # of images, which share their scales

    def columns(self, rows: Any) -> Any:
        """The numbers of rows ``(n, d)`` by the scale that they have, a column each.

        Of images the channels: a pixel that is dark in all of the first images has no scale of its own.
        """
        return rows if self.n_channels is None else rows.reshape(-1, self.n_channels)

    def of_inputs(self, rows: Rows) -> Scaling:
        """Statistics of rows; centring would fill sparse ones that could stay so."""
        if is_sparse(rows.X) and self.keeps_sparse:
            return Scaling.of_entries(rows.X, rows.weights)
        columns = self.columns(as_dense(rows.X))
        weights = None if rows.weights is None else np.repeat(rows.weights, len(columns) // len(rows))
        found = Scaling.of_near(columns, self.outliers, weights)
        return found.repeated(rows.X.shape[1] // columns.shape[1])

    def of_targets(self, rows: Rows) -> Scaling:
        """Statistics of the targets."""
        if self.targets_by == SIZE:
            return Scaling.of_size(rows.y, self.outliers, rows.weights)
        if self.targets_by is None:
            return Scaling.none(rows.y.shape[1])
        if len(rows) == self.warm_up:
            warn_of_unseen(rows.y)
            warn_of_constant(rows.y, self.outliers)
        return Scaling.of_targets(rows.y, self.outliers, rows.weights)

    def absurd(self, rows: Rows) -> NDArray[np.bool_]:
        """Which targets ``(n, q)`` are set aside, since the others have shown what can't be."""
        if self.outliers or self.targets_by is None:
            return np.zeros(rows.y.shape, dtype=bool)
        found = absurd(rows.y)
        if found.any() and not is_sparse(rows.X):  # inputs that are as far off may well explain a target
            found &= ~absurd(rows.X).any(axis=1, keepdims=True)
        return found
