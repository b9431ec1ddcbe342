"""River's rows as the rows of a model: named features, and a column for each.

A value must be a finite number. None, NaN and texts are refused with the name of the feature, and a feature that a row
leaves out counts as zero. With ``missing="mean"`` None, NaN and features left out are all unknown: each is replaced by
the mean of its column so far, which is as uncertain as the column varies.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from math import isfinite, nan
from typing import Any

import numpy as np
from river.utils import dataframe

from onepass._typing import FloatArray
from onepass._validation import one_of
from onepass.engine.named_rows import named_row
from onepass.files.state import Arrays, nested, under
from onepass.models.missing import ColumnMoments

__all__ = ["NO_TARGET", "Columns", "as_target", "as_weight", "as_weights"]

_LARGEST = 1e150  # its square is finite
_FILL = "leave it out, fill gaps first (preprocessing.StatImputer, or fillna in a frame), or pass missing='mean'"
NO_TARGET = "learn a row once its target is known, and leave out rows that have none"


class Columns:
    """The columns of features, in the order in which they came, and how to fill gaps in them."""

    def __init__(self, missing: str) -> None:
        self._places: dict[Hashable, int] = {}
        self.moments: ColumnMoments | None = None
        if one_of(missing, ("error", "mean"), "missing") == "mean":
            self.moments = ColumnMoments.start(0)
        self._absent = 0.0 if self.moments is None else nan

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._places)

    def add(self, names: Iterable[Hashable]) -> None:
        """Give names that have none the next columns, in an order that does not depend on that of the names."""
        new = sorted((name for name in names if name not in self._places), key=repr)
        for name in new:
            self._places[name] = len(self._places)
        if self.moments is not None:
            parts = self.moments.arrays.values()
            self.moments = ColumnMoments(*(np.concatenate([part, np.zeros(len(new))]) for part in parts))

    @property
    def state(self) -> tuple[int, ColumnMoments | None]:
        """What `go_back` needs."""
        return len(self._places), self.moments

    def go_back(self, state: tuple[int, ColumnMoments | None]) -> None:
        """Go back to an earlier state: names that came after it lose their columns."""
        n_names, self.moments = state
        while len(self._places) > n_names:
            self._places.popitem()

    # Rows.

    def load(self, x: Mapping[Any, Any], n_columns: int) -> tuple[FloatArray, int, float]:
        """A row in ``n_columns`` columns, at least as many as there are names; and what has none.

        Of the latter the number of names, and the sum of their squares. What is unknown is NaN.
        """
        loaded = named_row(x if type(x) is dict else dict(x), self._places, n_columns, _LARGEST, self._absent)
        if loaded is None:
            problem = self._wrong_value(x)
            assert problem is not None
            raise problem
        return loaded

    def load_frame(self, frame: Any, n_columns: int) -> tuple[FloatArray, FloatArray]:
        """The rows of a frame, ``(n, n_columns)``, and for each the sum of squares of its new features, ``(n,)``."""
        for name, kind in frame.schema.items():
            if not kind.is_numeric():  # the names of such columns are lost where the frame becomes an array
                for i, value in enumerate(frame[name].to_list()):
                    if (problem := self._wrong_value({name: value}, f" in row {i}")) is not None:
                        raise problem
        values = dataframe.to_numpy(frame)
        wrong = ~np.isfinite(values) if self.moments is None else np.isinf(values)
        for i, k in np.argwhere(wrong)[:1]:
            raise ValueError(f"feature {frame.columns[k]!r} must be finite, got {values[i, k]} in row {i}; {_FILL}")
        rows, new_squares = np.zeros((len(values), n_columns)), np.zeros(len(values))
        rows[:, : len(self)] = self._absent
        for given, name in zip(values.T, frame.columns, strict=True):
            column = self._places.get(name)
            if column is None:
                new_squares += np.square(np.minimum(np.abs(np.nan_to_num(given)), _LARGEST))
            else:
                rows[:, column] = given
        return rows, new_squares

    def fill(self, rows: FloatArray) -> FloatArray | None:
        """Fill gaps in rows ``(n, n_columns)`` that are to be predicted; returns the variances of all entries, if any.

        All in place. The variances are None where nothing was unknown.
        """
        if self.moments is None:
            return None
        return self._filled(rows, *self.moments.filled(rows[:, : len(self)]))

    def fill_in_order(self, rows: FloatArray, weights: FloatArray | None) -> tuple[FloatArray | None, ColumnMoments]:
        """The same for rows to be learned, by the values before each; and the moments after the last row."""
        assert self.moments is not None
        with np.errstate(over="ignore", invalid="ignore"):  # such rows can't be learned, and their model says so
            filled, variances, after = self.moments.filled_in_order(rows[:, : len(self)], weights)
        return self._filled(rows, filled, variances), after

    def _filled(self, rows: FloatArray, filled: FloatArray, variances: FloatArray | None) -> FloatArray | None:
        rows[:, : len(self)] = filled
        if variances is None:
            return None
        every = np.zeros_like(rows)
        every[:, : len(self)] = variances
        return every

    def _wrong_value(self, x: Mapping[Any, Any], where: str = "") -> ValueError | None:
        """Name the first value of a row that is neither a finite number nor a gap that may be there; None without."""
        for name, value in x.items():
            try:
                is_right = isfinite(value) or (self.moments is not None and value != value)
            except (TypeError, ValueError, OverflowError):
                is_right = self.moments is not None and value is None
            if not is_right:
                return ValueError(f"feature {name!r} must be a finite number, got {value!r}{where}; {_FILL}")
        return None

    # Files.

    def export_state(self) -> tuple[list[Any], Arrays]:
        """The names as values that JSON has, and the moments of the columns."""
        arrays = {} if self.moments is None else nested("columns", self.moments.arrays)
        return [_plain_name(name) for name in self], arrays

    def restore(self, names: Any, arrays: Arrays, n_columns: int) -> None:
        """Take what `export_state` gave, of at most so many columns."""
        self._places = {_name_from_plain(name): place for place, name in enumerate(names)}
        if len(self) != len(names) or len(self) > n_columns:
            raise ValueError("the saved feature names and weights do not match")
        if self.moments is not None:
            self.moments = ColumnMoments.from_arrays(under("columns", arrays), len(self))


def as_target(y: Any) -> float:
    """A target that is a finite number."""
    try:
        number = float(y)
    except (TypeError, ValueError):
        number = nan
    if not isfinite(number):
        raise ValueError(f"y must be a finite number, got {y!r}; {NO_TARGET}")
    return number


def as_weight(w: Any) -> float:
    """A row's weight, 0 for one that is not learned."""
    try:
        number = float(w)
    except (TypeError, ValueError):
        number = -1.0
    if not 0.0 <= number < np.inf:
        raise ValueError(f"w must be 0 for a row that is left out, or a finite number above, got {w!r}")
    return number


def as_weights(w: Any, n_rows: int) -> FloatArray | None:
    """The weights of rows ``(n,)``, from one number for all or a series of them; None where every row counts once."""
    if not np.ndim(w) and as_weight(w) == 1.0:
        return None
    given = [w] * n_rows if not np.ndim(w) else dataframe.into_series(w).to_list()
    if len(given) != n_rows:
        raise ValueError(f"w must be a number, or a series of {n_rows}, one per row of X, got {len(given)}")
    return np.array([as_weight(one) for one in given])


def _plain_name(name: Any) -> Any:
    """A feature's name as a value that JSON has: texts and whole numbers as they are, tuples of them as lists."""
    if isinstance(name, tuple):
        return [_plain_name(part) for part in name]
    if isinstance(name, str) or type(name) is int:
        return name
    raise TypeError(f"to be saved, names of features must be strings, integers or tuples of these, got {name!r}")


def _name_from_plain(given: Any) -> Any:
    """A feature's name from what JSON had for it."""
    if isinstance(given, list):
        return tuple(_name_from_plain(part) for part in given)
    if isinstance(given, str) or type(given) is int:
        return given
    raise ValueError(f"names of features must be strings, integers or lists of these, got {str(given)[:40]!r}")
