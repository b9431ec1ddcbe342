"""Columns that are not inputs: the weight of a row, the key whose model it belongs to, and what only names a row."""

import re
from typing import Any

import numpy as np

from onepass._typing import FloatArray
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.values import Bad, as_numbers, as_texts
from onepass.tables.reasons import Reason

__all__ = ["check_weights", "is_identifier_name", "read_keys", "read_weights"]

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_IDENTIFIERS = (
    *(
        "id",
        "ids",
        "uid",
        "uuid",
        "guid",
        "pk",
        "identifier",
        "phone",
        "ssn",
        "isbn",
        "ean",
        "sku",
        "code",
        "codes",
        "barcode",
    ),
    *("zip", "zipcode", "postcode", "postal", "plz"),
)


def is_identifier_name(name: str) -> bool:
    """Whether a column is called as one that names things in digits, which measure nothing.

    Examples
    --------
    >>> [is_identifier_name(name) for name in ("customer_id", "zipCode", "shop code", "idle", "width", "solid")]
    [True, True, True, False, False, False]
    """
    return any(word.lower() in _IDENTIFIERS for word in _WORDS.findall(name))


def read_weights(array: Any, name: str, bad: Bad) -> FloatArray:
    """How often each row counts, ``(n,)``: 0 leaves it out; what is not a weight is noted in ``bad``."""
    values = as_numbers(array, name, bad)
    for row in np.flatnonzero(~((values >= 0.0) & np.isfinite(values))).tolist():
        value = float(values[row])
        code = "missing" if np.isnan(value) else "negative" if value < 0.0 else "infinite"
        bad.setdefault(row, Reason(code, name, value, "weight"))
    return values


def check_weights(array: Any, name: str) -> None:
    """Refuse a column that can't be the weights of rows, by its values in the first rows."""
    bad: Bad = {}
    weights = read_weights(array, name, bad)
    if not ((weights > 0.0) & np.isfinite(weights)).any():
        why = next(iter(bad.values()), Reason("all_weights_zero", name))
        raise SchemaError(Reason("no_weight", name, role="weight", why=why), setting="weight")


def read_keys(array: Any, name: str, bad: Bad) -> tuple[str, ...]:
    """The key of each row, ``(n,)``; a row without one is noted in ``bad``."""
    keys = as_texts(array, name).to_pylist()
    for row, key in enumerate(keys):
        if key is None:
            bad.setdefault(row, Reason("missing", name, role="key"))
    return tuple("" if key is None else key for key in keys)
