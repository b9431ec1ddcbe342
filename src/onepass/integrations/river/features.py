"""What River's rows, targets and predictions look like: named features, and the columns that models have for them.

A value must be a finite number. None, NaN and texts are refused with the name of the feature: what to put in their
place only the user can know, and River has transformers for it. A feature that a row leaves out counts as zero.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from math import isfinite
from typing import Any

import numpy as np
from river import proba
from river.utils import dataframe

from onepass._typing import FloatArray
from onepass.engine.named_rows import named_row
from onepass.models.prediction import Prediction

__all__ = [
    "NO_TARGET",
    "Columns",
    "as_label",
    "as_target",
    "as_weight",
    "gaussian",
    "name_from_plain",
    "plain_name",
]

_LARGEST = 1e150  # its square is finite
_FILL = "leave it out, or fill gaps first (preprocessing.StatImputer, or fillna in a frame)"
NO_TARGET = "learn a row once its target is known, and leave out rows that have none"


class Columns:
    """The columns of features, in the order in which they came."""

    def __init__(self, names: Iterable[Hashable] = ()) -> None:
        self._places: dict[Hashable, int] = {}
        self.add(names)

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._places)

    def add(self, names: Iterable[Hashable]) -> None:
        """Give names that have none the next columns."""
        for name in names:
            self._places.setdefault(name, len(self._places))

    def load(self, x: Mapping[Any, Any], n_columns: int) -> tuple[FloatArray, int, float]:
        """A row in ``n_columns`` columns, at least as many as there are names; and what has none.

        Of the latter the number of names, and the sum of their squares.
        """
        loaded = named_row(x if type(x) is dict else dict(x), self._places, n_columns, _LARGEST)
        if loaded is None:
            raise _wrong_value(x)
        return loaded

    def load_frame(self, frame: Any, n_columns: int) -> tuple[FloatArray, FloatArray]:
        """The rows of a frame, ``(n, d)``, and for each the sum of squares of its new features, ``(n,)``."""
        values = np.asarray(dataframe.to_numpy(frame), dtype=np.float64)
        rows, new_squares = np.zeros((len(values), n_columns)), np.zeros(len(values))
        for given, name in zip(values.T, frame.columns, strict=True):
            column = self._places.get(name)
            if column is None:
                new_squares += np.square(np.minimum(np.abs(given), _LARGEST))
            else:
                rows[:, column] = given
        return rows, new_squares

    @staticmethod
    def check_frame(frame: Any) -> None:
        """Raise a ValueError that names the first value that is no finite number."""
        values = np.asarray(dataframe.to_numpy(frame), dtype=np.float64)
        for i, k in np.argwhere(~np.isfinite(values))[:1]:
            raise ValueError(f"feature {frame.columns[k]!r} must be finite, got {values[i, k]} in row {i}; {_FILL}")

    def to_plain(self) -> list[Any]:
        """The names as values that JSON has."""
        return [plain_name(name) for name in self]

    @classmethod
    def from_plain(cls, given: Any, n_columns: int) -> "Columns":
        """The columns of names that JSON had, of which there are at most so many."""
        names = [name_from_plain(name) for name in given]
        if len(set(names)) != len(names) or len(names) > n_columns:
            raise ValueError("the saved feature names and weights do not match")
        return cls(names)


def _wrong_value(x: Mapping[Any, Any]) -> ValueError:
    """Name the first value of a row that is no finite number."""
    for name, value in x.items():
        try:
            is_number = isfinite(value)
        except (TypeError, ValueError, OverflowError):
            is_number = False
        if not is_number:
            return ValueError(f"feature {name!r} must be a finite number, got {value!r}; {_FILL}")
    raise AssertionError("all values of the row are numbers")


def as_target(y: Any) -> float:
    """A target that is a finite number."""
    try:
        number = float(y)
    except (TypeError, ValueError):
        number = float("nan")
    if not isfinite(number):
        raise ValueError(f"y must be a finite number, got {y!r}; {NO_TARGET}")
    return number


def as_label(y: Any) -> float:
    """A label that is True or False, as 1 or 0."""
    if y is True:
        return 1.0
    if y is False:
        return 0.0
    if y is None:
        raise ValueError(f"y must be True or False, got None; {NO_TARGET}")
    if y not in (False, True):
        raise ValueError(f"y must be True or False, got {y!r}; for more classes use onepass.river.SoftmaxClassifier")
    return float(y)


def as_weight(w: Any) -> float:
    """A row's weight, 0 for one that is not learned."""
    try:
        number = float(w)
    except (TypeError, ValueError):
        number = -1.0
    if not 0.0 <= number < np.inf:
        raise ValueError(f"w must be 0 for a row that is left out, or a finite number above, got {w!r}")
    return number


def gaussian(seen: Prediction) -> Any:
    """River's Gaussian with the moments of a new target."""
    kind: Any = proba.Gaussian
    return kind._from_state(n=1, m=float(seen.mean), var=float(seen.var + seen.noise_var), ddof=0)


def plain_name(name: Any) -> Any:
    """A feature's name as a value that JSON has: texts and whole numbers as they are, tuples of them as lists."""
    if isinstance(name, tuple):
        return [plain_name(part) for part in name]
    if isinstance(name, str) or type(name) is int:
        return name
    raise TypeError(f"to be saved, names of features must be strings, integers or tuples of these, got {name!r}")


def name_from_plain(given: Any) -> Any:
    """A feature's name from what JSON had for it."""
    if isinstance(given, list):
        return tuple(name_from_plain(part) for part in given)
    if isinstance(given, str) or type(given) is int:
        return given
    raise ValueError(f"names of features must be strings, integers or lists of these, got {str(given)[:40]!r}")
