"""Predictions for rows of a table, wherever they come from: a batch of a file, a data frame, or a list."""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.values import Bad
from onepass.tables.explanation import explain
from onepass.tables.frames import arrow_table
from onepass.tables.readers.batches import RowBatch
from onepass.tables.reasons import Reason

if TYPE_CHECKING:
    from onepass.tables.model import TabularModel

__all__ = ["predict_batch", "predict_rows"]


def predict_batch(
    model: "TabularModel", batch: RowBatch, level: float, keep: Sequence[str] = (), *, explained: bool = False
) -> tuple[Any, Bad]:
    """A record batch of predictions, after the columns to keep, and the rows that are empty in it with the reason."""
    encoded = model.encode(batch)
    gone = np.zeros(len(batch), dtype=bool)
    gone[list(encoded.bad)] = True
    columns: dict[str, Any] = {}
    for name in keep:
        column = batch.column(name)
        columns[name] = pa.nulls(len(batch), pa.string()) if column is None else column
    found = model.predictions(encoded.X, level, encoded.keys)
    if explained:
        found |= explain(model, encoded.X, encoded.keys).table()
    for name, values in found.items():
        columns[name] = pa.array(values, mask=gone)
    return pa.RecordBatch.from_pydict(columns), encoded.bad


def predict_rows(model: "TabularModel", rows: Any, level: float) -> Any:
    """An Arrow table of predictions: see `TabularModel.predict`."""
    table = arrow_table(rows)
    if table is None:
        forms = "a data frame, an Arrow table or a list of mappings from columns to values"
        raise TypeError(f"rows must be {forms}, and not empty; got {type(rows).__name__}")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be between 0 and 1, got {level}")
    if not table.num_rows:
        raise ValueError("there is no row to predict")
    missing = [name for name in model.needed_columns(target=False) if name not in table.column_names]
    if missing:
        names = table.column_names
        raise SchemaError(Reason("no_such_column", missing[0], file="the table", missing=missing, names=names))
    parts: list[Any] = []
    reasons: Bad = {}
    start = 0
    for record_batch in table.to_batches(max_chunksize=model.rows_per_prediction):
        predicted, bad = predict_batch(model, RowBatch(record_batch, start, tuple), level)
        reasons |= {start + row: reason for row, reason in bad.items()}
        parts.append(predicted)
        start += len(predicted)
    if reasons:
        first = min(reasons)
        warnings.warn(
            f"{len(reasons)} of {start} rows can't be predicted and are empty; the first is row {first}, counted from "
            f"0: {reasons[first]}",
            stacklevel=3,
        )
    return pa.Table.from_batches(parts)
