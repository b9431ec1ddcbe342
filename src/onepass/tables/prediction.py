"""Predictions for rows of a table, wherever they come from: a batch of a file, a data frame, or a list."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from onepass._validation import as_share
from onepass.files.checkpoint import load
from onepass.models.distribution import Prediction
from onepass.models.tracking import as_levels
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.values import Bad
from onepass.tables.explanation import explain
from onepass.tables.frames import arrow_table
from onepass.tables.readers.addresses import located
from onepass.tables.readers.batches import RowBatch, row_blocks
from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.options import AS_FOUND, ReadOptions
from onepass.tables.readers.paths import FilePath
from onepass.tables.readers.prefetch import prefetch
from onepass.tables.readers.registry import open_source
from onepass.tables.readers.source import Source, check_has
from onepass.tables.reasons import Reason
from onepass.tables.rejects import Reject, rejects_of

if TYPE_CHECKING:
    from onepass.tables.model import TabularModel

__all__ = [
    "PredictedBatch",
    "as_given_levels",
    "limit_names",
    "predict",
    "predict_batch",
    "predict_distributions",
    "predict_rows",
    "predict_sources",
]


def predict_batch(
    model: "TabularModel",
    batch: RowBatch,
    level: float | Sequence[float],
    keep: Sequence[str] = (),
    *,
    explained: bool = False,
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


class PredictedBatch(NamedTuple):
    """Rows of a file with their predictions, and what was rejected among them."""

    source: Source
    batch: RowBatch
    predictions: Any  # a record batch with a row for each of the batch; None: there are none
    n_empty: int  # rows that could not be predicted
    rejects: tuple[Reject, ...]  # these, and records that can't be read as rows
    share: float  # of all input that has been read


def predict_sources(
    model: "TabularModel",
    sources: Sequence[Source],
    level: float | Sequence[float],
    keep: Sequence[str] = (),
    *,
    explained: bool = False,
    aligned: bool = True,
    whole_records: bool = False,
) -> Iterator[PredictedBatch]:
    """Predict all rows of files, which are read in a thread ahead.

    Without ``aligned`` none waits for others; with ``whole_records`` rejects have the columns that are not used, too.
    """
    for number, source in enumerate(sources):
        shown = model.unused_columns(source.columns()) if whole_records else ()
        types = model.types(target=False, more=(*shown, *keep))
        blocks = row_blocks(source.batches(types, 0), model.rows_per_prediction, aligned=aligned)
        for batch in (batch for block in prefetch(blocks) for batch in block.batches):
            share = (number + batch.share) / len(sources)
            if len(batch):
                predicted, bad = predict_batch(model, batch, level, keep, explained=explained)
                yield PredictedBatch(source, batch, predicted, len(bad), rejects_of(batch, bad), share)
            else:
                yield PredictedBatch(source, batch, None, 0, rejects_of(batch, {}), share)


def predict(
    model: "TabularModel | FilePath",
    files: FilePath | Sequence[FilePath],
    *,
    level: float | Sequence[float] = 0.95,
    keep: Sequence[str] = (),
    reading: ReadOptions = AS_FOUND,
) -> Any:
    """Predict the rows of files; returns an Arrow table of what ``onepass predict`` writes.

    Parameters
    ----------
    model : TabularModel, or the path of one
    files : path or paths, also patterns and URLs
    level : probability with which a new target lies between ``lower`` and ``upper``; of several levels these columns
        are ``lower_50``, ``upper_50`` and so on
    keep : columns of the files to copy
    reading : how files are read, where that is not to be found out
    """
    from onepass.tables.model import TabularModel  # which predicts
    from onepass.tables.schema import reading_of

    model = load(model) if isinstance(model, str | PathLike) else model
    if not isinstance(model, TabularModel):
        raise TypeError(f"model must be a TabularModel, or the path of one, got {type(model).__name__}")

    inputs, reading = located(files, reading)
    reading = reading_of(model, inputs, reading)
    sources = [open_source(file, reading) for file in inputs]
    for source in sources:
        check_has([*model.needed_columns(target=False), *keep], source)
    found = list(predict_sources(model, sources, level, keep))
    rejects = [(one.source.name, reject) for one in found for reject in one.rejects]
    if rejects:
        file, first = rejects[0]
        warnings.warn(
            f"{len(rejects)} rows can't be predicted, the first in {file}, line {first.line}: {first.reason}",
            stacklevel=2,
        )
    parts = [one.predictions for one in found if one.predictions is not None]
    if not parts:
        raise StreamError("there is no row to predict")
    return pa.Table.from_batches(parts)


def as_given_levels(level: float | Sequence[float]) -> tuple[float, ...]:
    """Check one level, or several, which are sorted.

    Examples
    --------
    >>> as_given_levels(0.95), as_given_levels([0.95, 0.5])
    ((0.95,), (0.5, 0.95))
    """
    if isinstance(level, Iterable):
        return as_levels(level)
    return (as_share(level, "level", open_above=True),)


def limit_names(levels: Sequence[float]) -> tuple[str, ...]:
    """Names of the columns that have the limits of intervals.

    Examples
    --------
    >>> limit_names([0.95]), limit_names([0.5, 0.975])
    (('lower', 'upper'), ('lower_50', 'upper_50', 'lower_97.5', 'upper_97.5'))
    """
    marks = [""] if len(levels) == 1 else [f"_{100.0 * level:.10g}" for level in levels]
    return tuple(f"{side}{mark}" for mark in marks for side in ("lower", "upper"))


def predict_distributions(model: "TabularModel", rows: Any) -> Prediction:
    """Distributions of the targets of rows: see `TabularModel.predict_dist`."""
    table = _checked_table(model, rows)
    encoded = [
        model.encode(RowBatch(batch, 0, tuple)) for batch in table.to_batches(max_chunksize=model.rows_per_prediction)
    ]
    for one in encoded:
        if one.bad:
            raise ValueError(f"{len(one.bad)} rows can't be predicted, the first because {one.bad[min(one.bad)]}")
    return Prediction.joined([model.distribution(one.X, one.keys) for one in encoded])


def predict_rows(model: "TabularModel", rows: Any, level: float | Sequence[float]) -> Any:
    """An Arrow table of predictions: see `TabularModel.predict`."""
    levels, table = as_given_levels(level), _checked_table(model, rows)
    parts: list[Any] = []
    reasons: Bad = {}
    start = 0
    for record_batch in table.to_batches(max_chunksize=model.rows_per_prediction):
        predicted, bad = predict_batch(model, RowBatch(record_batch, start, tuple), levels)
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


def _checked_table(model: "TabularModel", rows: Any) -> Any:
    """Rows to predict as an Arrow table that has all columns."""
    table = arrow_table(rows)
    if table is None:
        forms = "a data frame, an Arrow table or a list of mappings from columns to values"
        raise TypeError(f"rows must be {forms}, and not empty; got {type(rows).__name__}")
    if not table.num_rows:
        raise ValueError("there is no row to predict")
    missing = [name for name in model.needed_columns(target=False) if name not in table.column_names]
    if missing:
        names = table.column_names
        raise SchemaError(Reason("no_such_column", missing[0], file="the table", missing=missing, names=names))
    return table
