"""Long tables, one row per value of a series, of the library that a user has: pandas, polars, or columns in a dict."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onepass._typing import FloatArray
from onepass._validation import as_floats_or_nan
from onepass.forecasting.times import as_times

__all__ = ["LIBRARIES", "as_input_names", "as_level", "as_library", "columns_of", "library_of"]

LIBRARIES = ("pandas", "polars")
_OWN = ("unique_id", "ds", "y")


def library_of(frame: Any) -> str | None:
    """The library of a data frame; None for a dict of columns."""
    library = type(frame).__module__.partition(".")[0]
    return library if library in LIBRARIES else None


def as_library(columns: dict[str, NDArray[Any]], library: str | None) -> Any:
    """Columns as a data frame of a library."""
    return columns if library is None else import_module(library).DataFrame(columns)


def as_input_names(value: Sequence[str]) -> tuple[str, ...]:
    """Check the names of inputs: different ones, and none that a table uses otherwise."""
    if isinstance(value, str):
        raise TypeError(f"inputs must be a sequence of names, got the text {value!r}: write [{value!r}]")
    names = tuple(value)
    wrong = next((name for name in names if not isinstance(name, str) or name in _OWN or names.count(name) > 1), None)
    if wrong is not None:
        raise ValueError(f"inputs must be different names of columns besides {', '.join(_OWN)}, got {wrong!r}")
    return names


def as_level(value: float) -> float:
    """The share of a level in percent."""
    if not 1.0 <= value < 100.0:
        raise ValueError(f"levels must be percentages from 1 to below 100, such as 95, got {value!r}")
    return value / 100.0


def columns_of(
    frame: Any, own: Sequence[str], inputs: Sequence[str]
) -> tuple[NDArray[Any], NDArray[Any], FloatArray, FloatArray]:
    """Names, times, values and inputs ``(n, q)`` of a long table; values are NaN if ``y`` is not one of its own."""
    missing = [name for name in (*own, *inputs) if name not in frame]
    if missing:
        raise ValueError(f"the table must have the columns {', '.join((*own, *inputs))}; it lacks {', '.join(missing)}")
    names = np.asarray(frame["unique_id"])
    times = as_times(np.asarray(frame["ds"]), len(names))
    n = len(names)
    values = as_floats_or_nan(np.asarray(frame["y"]), "y") if "y" in own else np.full(n, np.nan)
    columns = [as_floats_or_nan(np.asarray(frame[name]), name) for name in inputs]
    return names, times, values, np.stack(columns, axis=1) if columns else np.zeros((n, 0))
