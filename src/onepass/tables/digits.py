"""Predictions for text files, with the digits that matter: 17 say nothing that the standard deviation does not drown.

A number keeps seven digits of what is unknown about it: those of its standard deviation, or of a probability's distance
from the nearer of 0 and 1. So a reader loses less than a millionth of a standard deviation.
"""

from collections.abc import Sequence
from math import floor, log10
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["rounded_predictions"]

_DIGITS = 7
_MOST_DECIMALS = 300  # of the smallest numbers that there are


def rounded_predictions(batch: Any, names: Sequence[str]) -> Any:
    """A record batch whose columns of predictions, of these names, have no more digits than matter.

    Examples
    --------
    >>> columns = {"id": [0.1 + 0.2], "mean": [12.345678901], "std": [0.25], "lower": [11.8456789], "upper": [12.9]}
    >>> batch = pa.RecordBatch.from_pydict(columns)
    >>> rounded_predictions(batch, ["mean", "std", "lower", "upper"]).to_pylist()
    [{'id': 0.30000000000000004, 'mean': 12.3456789, 'std': 0.25, 'lower': 11.8456789, 'upper': 12.9}]
    """
    columns: dict[str, Any] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        columns[name] = column
        if name in names and pa.types.is_floating(column.type):
            values = column.to_numpy(zero_copy_only=False)
            columns[name] = pa.array(_rounded(values, _unknown(name, values, batch)), mask=np.asarray(column.is_null()))
    return pa.RecordBatch.from_pydict(columns)


def _unknown(name: str, values: Any, batch: Any) -> Any:
    """How much is unknown about the values of a column: what their last digits are to be compared with."""
    if name.startswith("p_"):
        return np.minimum(values, 1.0 - values)
    part = name.removeprefix("add_")
    of_target = name in ("mean", "std") or name.startswith(("lower", "upper"))
    own = "std" if of_target else name if name.startswith("std_") else f"std_{part}"
    place = batch.schema.get_field_index(own)
    return values if place < 0 else batch.column(place).to_numpy(zero_copy_only=False)


def _rounded(values: Any, unknown: Any) -> list[float]:
    return [_round(value, size) for value, size in zip(values.tolist(), unknown.tolist(), strict=True)]


def _round(value: float, unknown: float) -> float:
    if not (np.isfinite(value) and np.isfinite(unknown) and unknown > 0.0):
        return value
    decimals = _DIGITS - 1 - floor(log10(unknown))
    return round(value, min(decimals, _MOST_DECIMALS))
