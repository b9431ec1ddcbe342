"""Convert rows and values of Python, NumPy and pandas to the JSON or Arrow table that a client sends.

The service knows numbers, strings, booleans and missing values. Dates and times are sent as ISO 8601. Infinite numbers
are refused here, where the column is known.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from typing import Any

import numpy as np

__all__ = ["arrow_stream", "is_pairs", "json_lines", "plain", "table_of"]

_MISSING = {"NAType", "NaTType"}  # of pandas, which need not be installed
_LISTS = (list, tuple, np.ndarray)


def plain(value: Any, name: str) -> Any:
    """A value as JSON has it; what is missing, also NaN, is None.

    Parameters
    ----------
    value : a scalar, or mappings and lists of such
    name : for the message if it can't be sent

    Examples
    --------
    >>> plain({"km": np.float32(1.5), "sold": date(2030, 1, 31), "car": float("nan")}, "x")
    {'km': 1.5, 'sold': '2030-01-31', 'car': None}
    """
    if type(value).__name__ in _MISSING:
        return None
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else str(value)
    if isinstance(value, np.generic):
        return plain(value.item(), name)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float | Decimal):
        return _number(float(value), name)
    if isinstance(value, _LISTS):
        return [plain(one, f"{name}[{i}]") for i, one in enumerate(value)]
    if isinstance(value, Mapping) or _is_series(value):
        return {_key(key, name): plain(one, str(key)) for key, one in value.items()}
    raise TypeError(f"{name} must be a number, string, boolean, date, time or None, got {type(value).__name__}")


def _number(value: float, name: str) -> float | None:
    if math.isinf(value):
        raise ValueError(f"{name} is infinite; send a finite number, or None if it is missing")
    return None if math.isnan(value) else value


def _key(key: Any, name: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"the names of columns in {name} must be strings, got {key!r}")
    return key


def _is_series(value: Any) -> bool:
    return hasattr(value, "items") and hasattr(value, "index")


def is_pairs(rows: Any) -> bool:
    """Whether rows are pairs of inputs and target.

    Examples
    --------
    >>> is_pairs([({"km": 1}, 2.0)]), is_pairs([[1.0, 2.0]])
    (True, False)
    """
    return isinstance(rows, list | tuple) and all(
        isinstance(row, list | tuple) and len(row) == 2 and (_is_named(row[0]) or isinstance(row[0], _LISTS))
        for row in rows
    )


def _is_named(row: Any) -> bool:
    return isinstance(row, Mapping) or _is_series(row)


def json_lines(lines: Iterable[Mapping[str, Any]]) -> bytes:
    """A body of JSON lines.

    Examples
    --------
    >>> json_lines([{"x": {"km": float("nan")}, "y": 1.0}]).strip()
    b'{"x": {"km": null}, "y": 1.0}'
    """
    return "".join(f"{json.dumps(plain(dict(line), f'row {i}'))}\n" for i, line in enumerate(lines)).encode()


def table_of(rows: Any, names: Callable[[], Sequence[str]] | None) -> Any:
    """Rows as an Arrow table.

    Parameters
    ----------
    rows : a data frame, an Arrow table, mappings, or lists of values
    names : tells the columns of such lists; None if those can't be sent
    """
    from onepass.tables.frames import arrow_table, from_records

    if isinstance(rows, list | tuple) and rows and all(map(_is_named, rows)):
        return from_records([plain(row, f"row {i}") for i, row in enumerate(rows)])
    if (table := arrow_table(rows)) is not None:
        return table
    if names is not None and isinstance(rows, _LISTS) and len(rows) and all(isinstance(row, _LISTS) for row in rows):
        return from_records(_by_name(rows, names()))
    forms = "a data frame, an Arrow table, a list of mappings from columns to values, or " + (
        "a list of (x, y) pairs" if names is None else "a list of lists with the values of all columns"
    )
    raise TypeError(f"rows must be {forms}, and not empty; got {type(rows).__name__}{_first(rows)}")


def _first(rows: Any) -> str:
    return f" of {type(rows[0]).__name__}" if isinstance(rows, list | tuple) and rows else ""


def _by_name(rows: Any, names: Sequence[str]) -> list[dict[str, Any]]:
    for i, row in enumerate(rows):
        if len(row) != len(names):
            raise ValueError(
                f"row {i} has {len(row)} values, but the model has {len(names)} columns: {', '.join(names)}"
            )
    return [plain(dict(zip(names, row, strict=True)), f"row {i}") for i, row in enumerate(rows)]


def arrow_stream(table: Any) -> bytes:
    """A table as the body of a request; infinite numbers are refused."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_floating(column.type) and pc.any(pc.is_inf(column)).as_py():
            raise ValueError(f"{name} has infinite numbers; send finite ones, or null where they are missing")
    whole, sink = table.combine_chunks(), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, whole.schema) as writer:
        writer.write_table(whole)
    return bytes(sink.getvalue())
