"""Inputs that were not observed: each is replaced by the mean of its column, as uncertain as the column varies.

The mean is that of the values before the row, so that what is learned does not depend on what comes later, nor on how
calls divide the rows. All in the units that models have, in which an unknown column has mean 0 and variance 1.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

import numpy as np

from onepass._typing import FloatArray
from onepass.files.state import Arrays, sized

__all__ = ["COLUMNS", "ColumnMoments", "Columns", "StandardColumns"]


class Columns(Protocol):
    """What is known of each column, for the rows in which it was not observed."""

    learns: ClassVar[bool]
    """Whether observed values change it."""

    @classmethod
    def start(cls, size: int) -> Self:
        """Before the first row."""

    @classmethod
    def from_arrays(cls, arrays: Arrays, size: int) -> Self:
        """Check and take what `arrays` gave."""

    @property
    def arrays(self) -> Arrays:
        """What has been learned, by the names that files have for it."""

    @property
    def mean(self) -> FloatArray:
        """Means of the columns, ``(d,)``."""

    @property
    def variance(self) -> FloatArray:
        """Variances of the columns, ``(d,)``."""

    def filled(self, rows: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """Rows with means for NaN, and the variances of all entries; None where nothing was NaN."""

    def filled_in_order(
        self, rows: FloatArray, weights: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray | None, Self]:
        """The same with what is known before each row, and what is known after the last."""


@dataclass(frozen=True)
class ColumnMoments:
    """Number of values in every column so far, their mean, and the sum of squared distances from it, all by weight."""

    count: FloatArray  # (d,)
    mean: FloatArray  # (d,)
    square: FloatArray  # (d,)
    learns: ClassVar[bool] = True

    @classmethod
    def start(cls, size: int) -> "ColumnMoments":
        """Before the first row."""
        return cls(np.zeros(size), np.zeros(size), np.zeros(size))

    @classmethod
    def from_arrays(cls, arrays: Arrays, size: int) -> "ColumnMoments":
        """Check and take what `arrays` gave."""
        return cls(*(sized(arrays, name, (size,)) for name in ("count", "mean", "square")))

    @property
    def arrays(self) -> Arrays:
        """The moments by the names that files have for them."""
        return {"count": self.count, "mean": self.mean, "square": self.square}

    @property
    def variance(self) -> FloatArray:
        """Variances of the columns, ``(d,)``, to which one value at distance 1 counts as known beforehand."""
        return (1.0 + self.square) / (1.0 + self.count)

    def filled(self, rows: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """Rows with means for NaN, and the variances of all entries; None where nothing was NaN.

        Examples
        --------
        >>> seen = ColumnMoments(np.array([3.0]), np.array([0.5]), np.array([1.0]))
        >>> seen.filled(np.array([[2.0], [np.nan]]))
        (array([[2. ],
               [0.5]]), array([[0. ],
               [0.5]]))
        """
        unknown = np.isnan(rows)
        if not unknown.any():
            return rows, None
        return np.where(unknown, self.mean, rows), np.where(unknown, self.variance, 0.0)

    @np.errstate(over="ignore", invalid="ignore")  # models refuse such rows
    def filled_in_order(
        self, rows: FloatArray, weights: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray | None, "ColumnMoments"]:
        """The same with the moments before each row, and the moments after the last; weights ``(n,)`` count rows."""
        known = ~np.isnan(rows)
        count = known if weights is None else known * weights[:, None]
        gaps = np.where(known, rows - self.mean, 0.0)
        own = (count, count * gaps, count * gaps**2)
        counts, sums, squares = (np.cumsum(part, axis=0) for part in own)
        after = self._moved(counts[-1], sums[-1], squares[-1])
        if known.all():
            return rows, None, after
        before = self._moved(counts - own[0], sums - own[1], squares - own[2])
        return np.where(known, rows, before.mean), np.where(known, 0.0, before.variance), after

    def _moved(self, counts: FloatArray, sums: FloatArray, squares: FloatArray) -> "ColumnMoments":
        """The moments with more values, of which count, sum and sum of squares around the mean so far are given."""
        count = self.count + counts
        move = np.divide(sums, count, out=np.zeros_like(sums), where=count > 0.0)
        return ColumnMoments(count, self.mean + move, np.maximum(self.square + squares - count * move**2, 0.0))


@dataclass(frozen=True)
class StandardColumns:
    """Columns that are standardised already: each has mean 0 and variance 1, and nothing has to be learned."""

    size: int
    learns: ClassVar[bool] = False

    @classmethod
    def start(cls, size: int) -> "StandardColumns":
        """Before the first row."""
        return cls(size)

    @classmethod
    def from_arrays(cls, arrays: Arrays, size: int) -> "StandardColumns":
        """There is nothing to take."""
        return cls(size)

    @property
    def arrays(self) -> Arrays:
        """Nothing."""
        return {}

    @property
    def mean(self) -> FloatArray:
        """Means of the columns, ``(d,)``."""
        return np.zeros(self.size)

    @property
    def variance(self) -> FloatArray:
        """Variances of the columns, ``(d,)``."""
        return np.ones(self.size)

    def filled(self, rows: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """Rows with 0 for NaN, and the variances of all entries; None where nothing was NaN.

        Examples
        --------
        >>> StandardColumns(2).filled(np.array([[2.0, np.nan]]))
        (array([[2., 0.]]), array([[0., 1.]]))
        """
        unknown = np.isnan(rows)
        if not unknown.any():
            return rows, None
        return np.where(unknown, 0.0, rows), unknown.astype(np.float64)

    def filled_in_order(
        self, rows: FloatArray, weights: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray | None, "StandardColumns"]:
        """The same, and the columns as they were."""
        return *self.filled(rows), self


COLUMNS: dict[str, type[Columns]] = {"mean": ColumnMoments, "standard": StandardColumns}
"""What ``missing`` of an estimator may be, besides "error"."""
