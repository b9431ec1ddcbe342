"""What an estimator learns at a time: rows, their targets as models take them, and the weights they were given.

Sparse and dense rows meet here too, as far as anything but a model can tell them apart.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack

from onepass._typing import FloatArray

__all__ = ["Batch", "ModelRows", "PredictedRows", "as_dense", "is_sparse"]


@dataclass(frozen=True)
class Batch:
    """Rows to learn in their order, their targets, and their weights unless these are all 1."""

    rows: Any  # (n, d), dense or sparse
    targets: FloatArray  # (n, q)
    weights: FloatArray | None = None  # (n,)
    variances: FloatArray | None = None  # (n, d), of inputs that are uncertain

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def without_zeros(self) -> "Batch":
        """The rows that count, in which weights that are all 1 are left out."""
        if self.weights is None:
            return self
        kept = self.weights > 0.0
        weights = self.weights[kept]
        return Batch(self.rows[kept], self.targets[kept], None if (weights == 1.0).all() else weights)

    @property
    def n_counted(self) -> int:
        """Number of rows that count: those whose weight is not 0."""
        return len(self) if self.weights is None else int(np.count_nonzero(self.weights))

    @property
    def full_weights(self) -> FloatArray:
        """The weights, written out, ``(n,)``."""
        return np.ones(len(self)) if self.weights is None else self.weights

    def observed_columns(self) -> Iterator[tuple[int, "Batch"]]:
        """Number of each column, and the batch with it alone ``(n,)``, in the rows in which it was observed: not NaN.

        A column that was not observed at all is left out.
        """
        if not np.isnan(self.targets).any():
            for k in range(self.targets.shape[1]):
                yield k, Batch(self.rows, self.targets[:, k], self.weights, self.variances)
            return
        for k, column in enumerate(self.targets.T):
            seen = ~np.isnan(column)
            if seen.any():
                weights = None if self.weights is None else self.weights[seen]
                variances = None if self.variances is None else self.variances[seen]
                yield k, Batch(self.rows[seen], column[seen], weights, variances)

    @property
    def options(self) -> dict[str, Any]:
        """What models are given besides rows and targets."""
        given = {"X_var": self.variances, "sample_weight": self.weights}
        return {name: values for name, values in given.items() if values is not None}

    def part(self, start: int, stop: int) -> "Batch":
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[start:stop]
        return Batch(self.rows[start:stop], self.targets[start:stop], weights)

    def at(self, places: Any) -> "Batch":
        """The rows at these places, in their order."""
        weights = None if self.weights is None else self.weights[places]
        return Batch(self.rows[places], self.targets[places], weights)

    def without(self, left_out: NDArray[np.bool_]) -> "Batch":
        """The same rows, of whose first some targets were not observed, ``(m, q)``."""
        targets = self.targets.copy()
        targets[: len(left_out)][left_out] = np.nan
        return Batch(self.rows, targets, self.weights)

    def after(self, earlier: "Batch") -> "Batch":
        """Join rows that came before with these."""
        weights = None
        if self.weights is not None or earlier.weights is not None:
            weights = np.concatenate([earlier.full_weights, self.full_weights])
        rows: Any
        if is_sparse(earlier.rows) and is_sparse(self.rows):
            rows = csr_array(vstack([earlier.rows, self.rows]))
        else:
            rows = np.concatenate([as_dense(earlier.rows), as_dense(self.rows)])
        return Batch(rows, np.concatenate([earlier.targets, self.targets]), weights)


class ModelRows(NamedTuple):
    """Rows to predict, as the models take them."""

    X: Any
    options: dict[str, Any]
    """Of the models' ``predict``."""


class PredictedRows(NamedTuple):
    """What was predicted for rows just before each was learned."""

    mean: FloatArray
    """Expected targets, ``(n,)`` or ``(n, q)``; for classes their probabilities, ``(n, K)``."""
    var: FloatArray
    """The variance that comes from not knowing the weights."""
    noise_var: FloatArray
    """The variance that more data would not take away."""
    log_density: FloatArray
    """Log density (or probability) of each target, ``(n,)``."""
    outlier_probability: FloatArray
    """With ``outliers`` the probability that the target is not to be trusted, ``(n,)``; else 1 if it was set aside."""
    change_probability: FloatArray
    """With ``outliers`` or ``drift="auto"`` the probability that the truth has just changed, ``(n,)``; else 0."""

    def at(self, index: Any) -> "PredictedRows":
        """Some of the rows."""
        return PredictedRows(*(part[index] for part in self))

    @classmethod
    def joined(cls, parts: "list[PredictedRows]") -> "PredictedRows":
        """Put rows that were predicted in parts together again."""
        return parts[0] if len(parts) == 1 else cls(*map(np.concatenate, zip(*parts, strict=True)))


def as_dense(rows: Any) -> FloatArray:
    """Rows as a contiguous array."""
    return np.ascontiguousarray(rows.toarray() if is_sparse(rows) else rows)


def is_sparse(rows: Any) -> bool:
    """Whether rows are a SciPy sparse matrix or array."""
    return bool(issparse(rows))
