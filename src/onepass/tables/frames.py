"""Rows as Python programs have them, data frames or lists of mappings, as Arrow tables."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

__all__ = ["arrow_table", "from_records"]


def arrow_table(rows: Any) -> Any:
    """A data frame of pandas or polars, an Arrow table, or a list of mappings, as an Arrow table; None for others.

    Examples
    --------
    >>> arrow_table([{"km": 1.5}, {"car": "van"}]).to_pydict()
    {'km': [1.5, None], 'car': [None, 'van']}
    """
    if hasattr(rows, "iloc") and hasattr(rows, "columns"):
        return pa.Table.from_pandas(rows, preserve_index=False)
    if hasattr(rows, "collect_schema") and hasattr(rows, "collect"):  # a lazy frame of polars
        rows = rows.collect()
    if hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__"):
        return _with_plain_texts(pa.table(rows))
    if isinstance(rows, list | tuple) and rows and all(isinstance(row, Mapping) for row in rows):
        return from_records(rows)
    return None


def _with_plain_texts(table: Any) -> Any:
    """The table without the newer types of texts, for which Arrow lacks functions."""
    for place, field in enumerate(table.schema):
        if field.type in (pa.string_view(), pa.binary_view()):
            kind = pa.string() if field.type == pa.string_view() else pa.binary()
            table = table.set_column(place, field.name, table.column(place).cast(kind))
    return table


def from_records(records: Sequence[Mapping[str, Any]]) -> Any:
    """Mappings from columns to values as an Arrow table; what one lacks is missing."""
    columns = {}
    for name in dict.fromkeys(name for record in records for name in record):
        try:
            columns[name] = pa.array([record.get(name) for record in records])
        except pa.ArrowException as error:
            raise TypeError(
                f"{name} must have values of one kind, only numbers, only strings or only booleans: {error}"
            ) from None
    return pa.table(columns)
