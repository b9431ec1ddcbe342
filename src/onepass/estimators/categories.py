"""Columns of a pandas data frame that hold categories: a column of 0 and 1 for each category that the dtype names.

The categories are those of the first data frame. One that comes later is none of them, all zeros, of which nothing but
the intercept is known; a missing one is unknown (NaN) in all its columns.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from onepass._typing import FloatArray

__all__ = ["Categories", "text_column"]


@dataclass(frozen=True)
class Categories:
    """Which columns of a data frame, by their place, have which categories."""

    n_columns: int
    labels: dict[int, tuple[Any, ...]]

    @classmethod
    def of(cls, X: Any) -> "Categories | None":
        """The categories that a pandas data frame has; None where there are none."""
        if not (hasattr(X, "iloc") and hasattr(X, "dtypes") and np.ndim(X) == 2):
            return None
        labels = {
            i: tuple(dtype.categories.tolist()) for i, dtype in enumerate(X.dtypes) if hasattr(dtype, "categories")
        }
        return cls(len(X.dtypes), labels) if labels else None

    @classmethod
    def from_parameters(cls, given: Any) -> "Categories":
        """Check and take what `parameters` gave."""
        labels = {int(place): tuple(own) for place, own in given["labels"]}
        known = (bool, int, float, str)
        if not all(isinstance(label, known) for own in labels.values() for label in own):
            raise ValueError("categories are not numbers or texts")
        return cls(int(given["n_columns"]), labels)

    @property
    def parameters(self) -> dict[str, Any]:
        """The categories as JSON has them."""
        for own in self.labels.values():
            for label in own:
                if not isinstance(label, (bool, int, float, str)):
                    raise TypeError(f"categories must be numbers or texts to be saved, got {label!r}")
        return {"n_columns": self.n_columns, "labels": [[place, list(own)] for place, own in self.labels.items()]}

    @property
    def n_inputs(self) -> int:
        """How many columns of numbers there are."""
        return self.n_columns + sum(len(own) - 1 for own in self.labels.values())

    def names(self, columns: list[str]) -> list[str]:
        """Names of the columns of numbers, such as ``colour=red``."""
        found = []
        for i, name in enumerate(columns):
            found += [f"{name}={label}" for label in self.labels[i]] if i in self.labels else [name]
        return found

    def sizes_of_columns(self, sizes: FloatArray) -> FloatArray:
        """For sizes of the columns of numbers ``(n_inputs,)`` those of the columns they come from, ``(n_columns,)``.

        Of categories the root of the sum of squares: as many more that hardly matter hardly add to it.
        """
        counts = [len(self.labels.get(i, ("",))) for i in range(self.n_columns)]
        own = np.repeat(np.arange(self.n_columns), counts)
        return np.sqrt(np.bincount(own, np.square(sizes), minlength=self.n_columns))

    def encoded(self, X: Any) -> FloatArray:
        """A data frame as numbers, ``(n, n_inputs)``."""
        if not hasattr(X, "iloc"):
            raise ValueError(
                f"X must be a data frame, as in the first call, which had categories in {len(self.labels)} of its "
                f"columns; got a {type(X).__name__}"
            )
        parts = []
        for i in range(self.n_columns):
            column = X.iloc[:, i]
            if i in self.labels:
                parts.append(_zeros_and_ones(column, self.labels[i]))
            else:
                parts.append(np.asarray(column, dtype=np.float64)[:, None])
        return np.hstack(parts)


def text_column(X: Any) -> Any:
    """Name of the first column of a pandas data frame that is neither of numbers nor of categories; None without."""
    if not (hasattr(X, "iloc") and hasattr(X, "dtypes") and np.ndim(X) == 2):
        return None
    for i, name in enumerate(X.columns):
        if not hasattr(X.dtypes.iloc[i], "categories"):
            try:
                np.asarray(X.iloc[:, i], dtype=np.float64)
            except (TypeError, ValueError):
                return name
    return None


def _zeros_and_ones(column: Any, labels: tuple[Any, ...]) -> FloatArray:
    """A column of 0 and 1 for each label, ``(n, labels)``; NaN where nothing is known."""
    place = {label: k for k, label in enumerate(labels)}
    if hasattr(column.dtype, "categories"):
        own = np.array([place.get(label, -1) for label in column.cat.categories.tolist()] + [-1], dtype=np.intp)
        index = own[np.asarray(column.cat.codes)]  # -1, of what is missing, is the last
    else:
        index = np.array([place.get(label, -1) for label in column.tolist()], dtype=np.intp)
    found = np.zeros((len(index), len(labels)))
    rows = np.flatnonzero(index >= 0)
    found[rows, index[rows]] = 1.0
    found[np.asarray(column.isna())] = np.nan
    return found
