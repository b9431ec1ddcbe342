"""Columns that are no inputs: the weight of a row, and the key whose model it belongs to."""

from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.values import Bad, as_numbers, as_texts
from onepass.tables.columns.wording import number_text

__all__ = ["HEAVIEST", "check_weights", "read_keys", "read_weights"]

HEAVIEST = 1000.0
"""The largest weight that is taken: such a row takes the time of that many."""
_HEAVY = 100.0  # on average


def read_weights(array: Any, name: str, bad: Bad) -> FloatArray:
    """How often each row counts, ``(n,)``: 0 leaves it out; what is no weight is noted in ``bad``."""
    values = as_numbers(array, name, bad)
    if not ((values >= 0.0) & (values <= HEAVIEST)).all():
        for row in np.flatnonzero(~((values >= 0.0) & (values <= HEAVIEST))).tolist():
            bad.setdefault(row, _complaint(float(values[row]), name))
    return values


def _complaint(value: float, name: str) -> str:
    if np.isnan(value):
        return f"the weight {name} is missing"
    wrong = "negative" if value < 0.0 else f"above {HEAVIEST:g}"
    return f"the weight {name} is {number_text(value)}, which is {wrong}"


def check_weights(array: Any, name: str) -> None:
    """Refuse a column that can't be the weights of rows, by its values in the first rows."""
    bad: Bad = {}
    weights = read_weights(array, name, bad)
    sound = weights[(weights > 0.0) & (weights <= HEAVIEST)]
    numbers = weights[np.isfinite(weights)]
    if len(numbers) and numbers.mean() > _HEAVY:
        raise SchemaError(
            f"the weights in {name!r} are {numbers.mean():,.4g} on average, but at most {_HEAVY:g} is allowed: a row "
            "of weight 2 counts as two rows; divide the weights by a constant",
            setting="weight",
        )
    if not len(sound):
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
