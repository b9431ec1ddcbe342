"""What an estimator learns at a time: rows, their targets as models take them, and the weights they were given.

Sparse and dense rows meet here too, as far as anything but a model can tell them apart.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack

from onepass._typing import FloatArray

__all__ = ["Batch", "ModelRows", "PredictedRows", "as_dense", "is_sparse"]

_FAR_MORE = 10  # times


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

    def run_length_encoded(self) -> "Batch":
        """The batch with every row that repeats the one before it, in inputs and targets, added to the weight of that.

        Repeats are copies if rows are equal in succession far more often than in pairs drawn at random, and if inputs
        change far more often than targets under the same inputs. Otherwise all rows stay: equal rows of coarse data are
        observations of their own, and rows whose inputs stay when the target changes are steps in time.
        """
        later, earlier = slice(1, None), slice(None, -1)
        same = _equal_rows(self.targets, later, earlier)
        if not same.any():
            return self
        same_inputs = _equal_rows(self.rows, later, earlier)
        in_time = same_inputs & ~same
        same &= same_inputs
        if not same.any() or not _far_more(~same_inputs, in_time):
            return self
        every, other = slice(None), np.random.default_rng(0).permutation(len(self))
        if not _far_more(same, _equal_rows(self.targets, every, other) & _equal_rows(self.rows, every, other)):
            return self
        starts = np.append(0, np.flatnonzero(~same) + 1)
        return replace(self.at(starts), weights=np.add.reduceat(self.full_weights, starts))

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
    epistemic: FloatArray
    """The variance that comes from not knowing the weights."""
    aleatoric: FloatArray
    """The variance that more data would not take away."""
    log_density: FloatArray
    """Log density (or probability) of each target, ``(n,)``."""
    outlier_probability: FloatArray
    """With ``outliers`` the probability that the target is not to be trusted, ``(n,)``; else 1 if it was set aside."""
    change_probability: FloatArray
    """With ``outliers`` or ``drift="auto"`` the probability that the truth has just changed, ``(n,)``; else 0."""

    @property
    def var(self) -> FloatArray:
        """Variance of each target."""
        return self.epistemic + self.aleatoric

    @property
    def std(self) -> FloatArray:
        """Standard deviation of each target."""
        return np.sqrt(self.var)

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


def _equal_rows(rows: Any, first: Any, second: Any) -> NDArray[np.bool_]:
    """Whether rows ``(n, d)`` at the first places equal those at the second; what is missing (NaN) is equal."""
    if is_sparse(rows):
        products = rows @ np.random.default_rng(0).normal(size=rows.shape[1])  # which differ for most rows that do
        same, places = np.asarray(products[first] == products[second]), np.arange(len(products))
        found = np.flatnonzero(same)
        differ = csr_array(rows[places[first][found]] != rows[places[second][found]])
        same[found] = np.diff(differ.indptr) == 0
        return same
    bits = rows.view(np.int64)  # by which NaN equals itself
    same = np.ones(len(bits[first]), dtype=bool)
    for column in bits.T:
        same &= column[first] == column[second]
        if not same.any():
            break
    return same


def _far_more(rows: NDArray[np.bool_], others: NDArray[np.bool_]) -> bool:
    """Whether far more of the rows are marked than of the others."""
    return bool(np.count_nonzero(rows) > _FAR_MORE * np.count_nonzero(others))
