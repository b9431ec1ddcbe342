"""Data frames of pandas and polars and Arrow tables, seen alike: columns by their place, some of which are categories.

None of these libraries is imported: a caller with a data frame has its library.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onepass._typing import FloatArray

__all__ = ["Frame", "as_frame", "date_column"]

_DATES = ("m", "M")  # kinds of NumPy's dtypes


class Frame(ABC):
    """A data frame, whatever library it is of."""

    categorical: str
    """How a user makes a column of categories; ``{}`` stands for its name."""

    def __init__(self, data: Any) -> None:
        self.data = data

    @property
    @abstractmethod
    def names(self) -> list[Any]:
        """Names of the columns."""

    @abstractmethod
    def column(self, place: int) -> Any:
        """A column, as its library has it."""

    @abstractmethod
    def labels(self, place: int) -> tuple[Any, ...] | None:
        """The categories of a column; None for a column of anything else."""

    @property
    @abstractmethod
    def dates(self) -> list[bool]:
        """Whether each column has dates, times or durations."""

    @abstractmethod
    def values(self, place: int) -> list[Any]:
        """The values of a column, None where one is missing."""

    def numbers(self, place: int) -> FloatArray:
        """A column as numbers, ``(n,)``, NaN where one is missing; a ValueError or TypeError if it has others."""
        return np.asarray(self.column(place).to_numpy(), dtype=np.float64)

    def label_indices(self, place: int, labels: tuple[Any, ...]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Which of the labels each value of a column is, ``(n,)``, -1 for others; and where one is missing."""
        known = {label: k for k, label in enumerate(labels)}
        values = self.values(place)
        missing = np.array([value is None for value in values], dtype=bool)
        return np.array([known.get(value, -1) for value in values], dtype=np.intp), missing


class _PandasFrame(Frame):
    categorical = "X[{0!r}].astype('category')"

    @property
    def names(self) -> list[Any]:
        return list(self.data.columns)

    def column(self, place: int) -> Any:
        return self.data.iloc[:, place]

    def labels(self, place: int) -> tuple[Any, ...] | None:
        dtype = self.data.dtypes.iloc[place]
        return tuple(dtype.categories.tolist()) if hasattr(dtype, "categories") else None

    @property
    def dates(self) -> list[bool]:
        return [getattr(dtype, "kind", "") in _DATES for dtype in self.data.dtypes]

    def values(self, place: int) -> list[Any]:
        column = self.column(place)
        return [None if missing else value for value, missing in zip(column.tolist(), column.isna(), strict=True)]

    def numbers(self, place: int) -> FloatArray:
        return np.asarray(self.column(place), dtype=np.float64)

    def label_indices(self, place: int, labels: tuple[Any, ...]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        own = self.labels(place)
        if own is None:  # of texts, in a data frame after the first
            return super().label_indices(place, labels)
        known, column = {label: k for k, label in enumerate(labels)}, self.column(place)
        index = np.array([*(known.get(label, -1) for label in own), -1], dtype=np.intp)
        return index[np.asarray(column.cat.codes)], np.asarray(column.isna())  # the code -1, of a missing one, is last


class _PolarsFrame(Frame):
    categorical = "X.with_columns(pl.col({0!r}).cast(pl.Categorical))"

    @property
    def names(self) -> list[Any]:
        return list(self.data.columns)

    def column(self, place: int) -> Any:
        return self.data.to_series(place)

    def labels(self, place: int) -> tuple[Any, ...] | None:
        column = self.column(place)
        if hasattr(column.dtype, "categories") and str(column.dtype).startswith("Enum"):
            return tuple(column.dtype.categories.to_list())
        if str(column.dtype).startswith("Categorical"):  # a dtype that all columns share: those that are there
            return tuple(sorted(value for value in column.unique().to_list() if value is not None))
        return None

    @property
    def dates(self) -> list[bool]:
        return [dtype.is_temporal() for dtype in self.data.dtypes]

    def values(self, place: int) -> list[Any]:
        values: list[Any] = self.column(place).to_list()
        return values


class _ArrowTable(Frame):
    categorical = "X.set_column(i, {0!r}, X[{0!r}].dictionary_encode())"

    @property
    def names(self) -> list[Any]:
        return list(self.data.column_names)

    def column(self, place: int) -> Any:
        return self.data.column(place)

    def labels(self, place: int) -> tuple[Any, ...] | None:
        kind = self.data.schema.types[place]
        if not hasattr(kind, "value_type") or not hasattr(kind, "index_type"):
            return None
        chunks = self.column(place).chunks
        found = dict.fromkeys(label for chunk in chunks for label in chunk.dictionary.to_pylist())
        return tuple(label for label in found if label is not None)

    @property
    def dates(self) -> list[bool]:
        return [str(kind).startswith(("timestamp", "date", "time", "duration")) for kind in self.data.schema.types]

    def values(self, place: int) -> list[Any]:
        values: list[Any] = self.column(place).to_pylist()
        return values


_KINDS: dict[str, Callable[[Any], Frame]] = {"pandas": _PandasFrame, "polars": _PolarsFrame, "pyarrow": _ArrowTable}


def as_frame(X: Any) -> Frame | None:
    """The columns of a data frame or an Arrow table; None for anything else.

    Examples
    --------
    >>> import pandas as pd
    >>> as_frame(pd.DataFrame({"colour": pd.Categorical(["red", "blue"])})).labels(0)
    ('blue', 'red')
    >>> as_frame([[1.0]]) is None
    True
    """
    if len(getattr(X, "shape", ())) != 2 or not hasattr(X, "columns"):
        return None
    for base in type(X).__mro__:  # a subclass, such as that of GeoPandas, is one too
        kind = _KINDS.get(base.__module__.partition(".")[0])
        if kind is not None:
            return kind(X)
    return None


def date_column(X: Any) -> str | None:
    """The first column of dates, times or durations in a data frame, or an array of them; None without.

    Examples
    --------
    >>> import pandas as pd
    >>> date_column(pd.DataFrame({"size": [1.0], "sold": pd.to_datetime(["2024-01-31"])}))
    "column 'sold' of X"
    """
    if (frame := as_frame(X)) is not None:
        names = (name for name, is_date in zip(frame.names, frame.dates, strict=True) if is_date)
        return next((f"column {name!r} of X" for name in names), None)
    return "X" if getattr(getattr(X, "dtype", None), "kind", "") in _DATES else None
