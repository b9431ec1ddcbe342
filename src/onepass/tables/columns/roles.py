"""Columns that are no inputs: the weight of a row, and the key whose model it belongs to."""

from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.values import Bad, as_numbers, as_texts
from onepass.tables.columns.wording import number_text

__all__ = ["check_weights", "read_keys", "read_weights"]


def read_weights(array: Any, name: str, bad: Bad) -> FloatArray:
    """How often each row counts, ``(n,)``: 0 leaves it out; what is not a weight is noted in ``bad``."""
    values = as_numbers(array, name, bad)
    for row in np.flatnonzero(~((values >= 0.0) & np.isfinite(values))).tolist():
        bad.setdefault(row, _complaint(float(values[row]), name))
    return values


def _complaint(value: float, name: str) -> str:
    if np.isnan(value):
        return f"the weight {name} is missing"
    return f"the weight {name} is {number_text(value)}, which is {'negative' if value < 0.0 else 'infinite'}"


def check_weights(array: Any, name: str) -> None:
    """Refuse a column that can't be the weights of rows, by its values in the first rows."""
    bad: Bad = {}
    weights = read_weights(array, name, bad)
    if not ((weights > 0.0) & np.isfinite(weights)).any():
        raise SchemaError(
            f"no row would count: {next(iter(bad.values()), f'the weights in {name!r} are all 0')}", setting="weight"
        )


def read_keys(array: Any, name: str, bad: Bad) -> tuple[str, ...]:
    """The key of each row, ``(n,)``; a row without one is noted in ``bad``."""
    keys = as_texts(array, name).to_pylist()
    for row, key in enumerate(keys):
        if key is None:
            bad.setdefault(row, f"the key {name} is missing")
    return tuple("" if key is None else key for key in keys)
