"""Categorical columns of a data frame: each becomes one column of 0 and 1 per category.

The categories are those of the first data frame. A category that comes later is all zeros, so only the intercept is
known for it; a missing value is NaN in all columns of its categories.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.estimators.frames import Frame, as_frame

__all__ = ["Categories", "text_column"]


@dataclass(frozen=True)
class Categories:
    """Which columns of a data frame, by their place, have which categories."""

    n_columns: int
    labels: dict[int, tuple[Any, ...]]

    @classmethod
    def of(cls, X: Any) -> "Categories | None":
        """The categories that a data frame has; None where there are none."""
        frame = as_frame(X)
        if frame is None:
            return None
        n_columns = len(frame.names)
        labels = {i: own for i in range(n_columns) if (own := frame.labels(i)) is not None}
        return cls(n_columns, labels) if labels else None

    @classmethod
    def from_parameters(cls, given: Any) -> "Categories":
        """Check and take what `parameters` gave."""
        labels = {int(place): tuple(own) for place, own in given["labels"]}
        known = (bool, int, float, str)
        if not all(isinstance(label, known) for own in labels.values() for label in own):
            raise ValueError("the saved categories must be numbers or strings")
        return cls(int(given["n_columns"]), labels)

    @property
    def parameters(self) -> dict[str, Any]:
        """The categories as JSON has them."""
        for own in self.labels.values():
            for label in own:
                if not isinstance(label, (bool, int, float, str)):
                    raise TypeError(f"categories must be numbers or strings to be saved, got {label!r}")
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
        frame = as_frame(X)
        if frame is None:
            raise ValueError(
                f"X must be a data frame, as in the first call, which had categories in {len(self.labels)} of its "
                f"columns; got a {type(X).__name__}"
            )
        parts = []
        for i in range(self.n_columns):
            parts.append(_zeros_and_ones(frame, i, self.labels[i]) if i in self.labels else frame.numbers(i)[:, None])
        return np.hstack(parts)


def text_column(X: Any) -> tuple[Any, str] | None:
    """The first column of a data frame that is neither of numbers nor of categories; None without.

    Its name, and the code that makes its texts categories.
    """
    frame = as_frame(X)
    for i, name in enumerate([] if frame is None else frame.names):
        if frame is not None and frame.labels(i) is None:
            try:
                frame.numbers(i)
            except (TypeError, ValueError):
                return name, frame.categorical.format(name)
    return None


def _zeros_and_ones(frame: Frame, place: int, labels: tuple[Any, ...]) -> FloatArray:
    """A column of 0 and 1 for each label, ``(n, labels)``; NaN where nothing is known."""
    index, missing = frame.label_indices(place, labels)
    found = np.zeros((len(index), len(labels)))
    rows = np.flatnonzero(index >= 0)
    found[rows, index[rows]] = 1.0
    found[missing] = np.nan
    return found
