"""Rows from reader to model: inputs, targets, weights and keys in one record, and what was predicted of them.

Sparse and dense rows meet here too, as far as anything but a model can tell them apart.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse, vstack

from onepass._typing import FloatArray
from onepass.models.tracking import TrackedPlaces

__all__ = ["PredictedRows", "Rows", "as_dense", "given_limits", "is_sparse", "stacked"]

_FAR_MORE = 10  # times
_TINY = 1e-300


@dataclass(frozen=True)
class Rows:
    """Rows in their order as numbers, with everything else that is known of each.

    One record goes all the way from a file or a request to the model: what a step does not need, it passes on.
    """

    X: Any  # (n, d), dense or sparse
    y: Any = None  # (n,), or (n, q) inside a learner; None of rows that are only predicted
    weights: FloatArray | None = None  # (n,), not negative; None: each counts once
    keys: tuple[Any, ...] | None = None  # (n,), in a model per key
    variances: FloatArray | None = None  # (n, d), of inputs that are uncertain
    limits: FloatArray | None = None
    """Tracked limits ``(n, q)`` that rows were given when they were predicted earlier; NaN: not given."""
    ids: Callable[[], Sequence[int]] = tuple
    """Gives the line of each row in its file; computed only when needed."""
    rejects: tuple[Any, ...] = ()
    """The records read with these rows that can't be learned: `onepass.tables.rejects.Reject`."""
    bad: dict[int, Any] = field(default_factory=dict)
    """Why rows among these mean nothing, by their place; their inputs are all 0."""
    n_left_out: int = 0  # records read with these rows that count nothing: their weight is 0

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_read(self) -> int:
        """Number of records that were read, those among them that are not learned."""
        return len(self) + len(self.rejects) + self.n_left_out

    def at(self, places: Any) -> "Rows":
        """Some of the rows, by a slice or their places, without what is known of others."""
        keys = self.keys
        if keys is not None:
            keys = keys[places] if isinstance(places, slice) else tuple(keys[place] for place in places)
        given = (self.y, self.weights, self.variances, self.limits)
        y, weights, variances, limits = (None if one is None else one[places] for one in given)
        ids = self.ids if self.ids is tuple else lambda: np.asarray(self.ids())[places].tolist()
        return Rows(self.X[places], y, weights, keys, variances, limits, ids)

    @classmethod
    def joined(cls, parts: "Sequence[Rows]") -> "Rows":
        """Consecutive rows as one; they are sparse if all parts are."""
        first = parts[0]
        if len(parts) == 1:
            return first
        weighted = any(part.weights is not None for part in parts)
        return cls(
            stacked([part.X for part in parts]),
            None if first.y is None else np.concatenate([part.y for part in parts]),
            np.concatenate([part.full_weights for part in parts]) if weighted else None,
            None if first.keys is None else tuple(key for part in parts for key in part.keys or ()),
            limits=given_limits([(part.limits, len(part)) for part in parts]),
            ids=lambda: [line for part in parts for line in part.ids()],
            rejects=tuple(reject for part in parts for reject in part.rejects),
            n_left_out=sum(part.n_left_out for part in parts),
        )

    @property
    def in_columns(self) -> "Rows":
        """The same with targets ``(n, q)``."""
        return self if self.y.ndim == 2 else replace(self, y=self.y[:, None])

    def without_zeros(self) -> "Rows":
        """The rows that count, in which weights that are all 1 are left out."""
        if self.weights is None:
            return self
        kept = self.at(np.flatnonzero(self.weights > 0.0))
        return replace(kept, weights=None) if (kept.full_weights == 1.0).all() else kept

    def run_length_encoded(self) -> "Rows":
        """The rows with every row that repeats the one before it, in inputs and targets, added to the weight of that.

        Repeats are copies if rows are equal in succession far more often than in pairs drawn at random, and if inputs
        change far more often than targets under the same inputs. Otherwise all rows stay: equal rows of coarse data are
        observations of their own, and rows whose inputs stay when the target changes are steps in time.
        """
        later, earlier = slice(1, None), slice(None, -1)
        same = _equal_rows(self.y, later, earlier)
        if not same.any():
            return self
        same_inputs = _equal_rows(self.X, later, earlier)
        in_time = same_inputs & ~same
        same &= same_inputs
        if not same.any() or not _far_more(~same_inputs, in_time):
            return self
        every, other = slice(None), np.random.default_rng(0).permutation(len(self))
        if not _far_more(same, _equal_rows(self.y, every, other) & _equal_rows(self.X, every, other)):
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

    def observed_columns(self) -> "Iterator[tuple[int, Rows]]":
        """Number of each column of the targets, and the rows with it alone ``(n,)`` in which it is observed: not NaN.

        A column that was not observed at all is left out.
        """
        for k, column in enumerate(self.y.T):
            own, seen = replace(self, y=column), ~np.isnan(column)
            if seen.all():
                yield k, own
            elif seen.any():
                yield k, own.at(np.flatnonzero(seen))

    @property
    def options(self) -> dict[str, Any]:
        """What models are given besides inputs and targets, by the names of their arguments."""
        given = {"X_var": self.variances, "sample_weight": self.weights, "keys": self.keys}
        return {name: values for name, values in given.items() if values is not None}

    def without(self, left_out: NDArray[np.bool_]) -> "Rows":
        """The same rows, of whose first some targets were not observed, ``(m, q)``."""
        y = self.y.copy()
        y[: len(left_out)][left_out] = np.nan
        return replace(self, y=y)


def given_limits(parts: Sequence[tuple[Any, int]]) -> FloatArray | None:
    """Limits of rows in parts, each with its number of rows; NaN for parts without, and None if no part has any."""
    width = next((np.shape(limits)[-1] for limits, _ in parts if limits is not None), None)
    if width is None:
        return None
    return np.concatenate(
        [np.full((n, width), np.nan) if one is None else np.reshape(one, (n, width)) for one, n in parts]
    )


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
    places: TrackedPlaces | None = None
    """With adaptive intervals, where each target fell among the limits that held for it."""

    @property
    def var(self) -> FloatArray:
        """Variance of each target."""
        return self.epistemic + self.aleatoric

    @property
    def std(self) -> FloatArray:
        """Standard deviation of each target."""
        return np.sqrt(self.var)

    def with_probabilities(self, probabilities: FloatArray, places: FloatArray) -> "PredictedRows":
        """The same rows with other probabilities of classes ``(n, K)``, scored by them where the class was observed."""
        rows = np.flatnonzero(~np.isnan(places))
        log_density = self.log_density.copy()
        log_density[rows] = np.log(np.maximum(probabilities[rows, places[rows].astype(np.int64)], _TINY))
        return self._replace(mean=probabilities, log_density=log_density)

    def at(self, index: Any) -> "PredictedRows":
        """Some of the rows."""
        parts: list[Any] = [part[index] for part in self[:-1]]
        return PredictedRows(*parts)._replace(places=None if self.places is None else self.places.at(index))

    @classmethod
    def joined(cls, parts: "list[PredictedRows]") -> "PredictedRows":
        """Put rows that were predicted in parts together again."""
        if len(parts) == 1:
            return parts[0]
        places = TrackedPlaces.joined([(part.places, len(part.mean)) for part in parts])
        columns: list[Any] = [np.concatenate(own) for own in zip(*(part[:-1] for part in parts), strict=True)]
        return cls(*columns)._replace(places=places)


def as_dense(rows: Any) -> FloatArray:
    """Rows as a contiguous array."""
    return np.ascontiguousarray(rows.toarray() if is_sparse(rows) else rows)


def stacked(parts: Sequence[Any]) -> Any:
    """Inputs below each other; they are sparse if all parts are."""
    if all(map(is_sparse, parts)):
        return csr_array(vstack(parts, format="csr"))
    return np.concatenate([as_dense(part) for part in parts])


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
