"""A new model for some files: what is to be learned, inferred from their first rows.

The first rows say what the columns hold and how large numbers are. Classes must all be known before the first row is
learned: those that are declared, or those that a look through the target column of all files finds (see
`target_inference`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.inference import BUCKETS, ONE_HOT, infer
from onepass.tables.columns.roles import check_weights
from onepass.tables.columns.wording import no_such_column
from onepass.tables.model import TabularModel
from onepass.tables.readers.batches import RowBatch
from onepass.tables.readers.source import Source
from onepass.tables.settings import Settings
from onepass.tables.target_inference import infer_target

__all__ = ["SAMPLE", "SchemaOptions", "check_columns", "check_has", "infer_model", "left_out_words"]

SAMPLE = 10_000  # rows that are looked at first


@dataclass(frozen=True)
class SchemaOptions:
    """What the user asks for; only the target has to be named."""

    target: str
    task: str | None = None  # "regression", "counts" or "classification"; None: whatever the target looks like
    classes: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()  # none: all of them
    ignore: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    one_hot: int = ONE_HOT
    buckets: int = BUCKETS
    sample: int = SAMPLE
    settings: Settings = field(default_factory=Settings)


def infer_model(sources: Sequence[Source], options: SchemaOptions, *, rereadable: bool) -> tuple[TabularModel, str]:
    """Make a model that has learned nothing, and return it with the reason for its task.

    Parameters
    ----------
    sources : files that will be learned; the first that has rows is looked at
    options : SchemaOptions
    rereadable : bool
        Whether all of them can be looked through for classes.
    """
    first, batches = _first_rows(sources, options.sample)
    names = list(dict.fromkeys(name for batch in batches for name in batch.record_batch.schema.names))
    _check_names(options, names, first.name)
    for source in sources:
        check_has([options.target], source)
    sample = _sample(batches, names)
    scanned = sources if rereadable and not options.classes else ()
    outliers = options.settings.outliers
    target, reason = infer_target(
        sample[options.target], options.target, options.task, options.classes, scanned, outliers
    )
    weight, by = options.settings.weight, options.settings.by
    if weight is not None:
        check_weights(sample[weight], weight)
    leave_out = {options.target, *options.ignore, *(name for name in (weight, by) if name is not None)}
    if options.columns:
        leave_out |= set(names) - set(options.columns)
    sizes = {"one_hot": options.one_hot, "buckets": options.buckets}
    encoding = infer(sample, sorted(leave_out), kinds=options.kinds, **sizes, outliers=outliers)
    if not encoding.columns:
        reasons = "; ".join(f"{name}: {why}" for name, why in encoding.ignored.items())
        raise SchemaError(f"{first.name} has no column to learn from{f' ({reasons})' if reasons else ''}")
    model = TabularModel(encoding, target, options.settings)
    for source in sources:
        check_columns(model, source, target=True)
    return model, reason


def _first_rows(sources: Sequence[Source], n: int) -> tuple[Source, list[RowBatch]]:
    """The first file with rows, and the first of these; a condition may leave out all rows of a file."""
    for source in sources:
        batches = source.head(n)
        if any(map(len, batches)):
            return source, batches
    raise SchemaError(f"{sources[0].name} has no rows{left_out_words(sources)}")


def left_out_words(sources: Sequence[Source]) -> str:
    """How many rows a condition left out, as an addition to a message; nothing if it left out none."""
    left_out = sum(source.left_out for source in sources)
    if not left_out:
        return ""
    unreadable = next((source.unreadable for source in sources if source.unreadable), "")
    return f": the condition left out all {left_out:,}" + (f" ({unreadable})" if unreadable else "")


def check_columns(model: TabularModel, source: Source, *, target: bool) -> None:
    """Refuse a file that lacks columns the model has learned from, before anything is done with it."""
    check_has(model.needed_columns(target=target), source)


def check_has(needed: Sequence[str], source: Source) -> None:
    """Refuse a file that lacks some columns."""
    names = source.columns()
    missing = [] if names is None else [name for name in needed if name not in names]
    if missing:
        raise SchemaError(no_such_column(source.name, missing, names or ()))


def _check_names(options: SchemaOptions, names: Sequence[str], file: str) -> None:
    given = {"target": (options.target,), "columns": options.columns, "ignore": options.ignore, "kinds": options.kinds}
    for setting in ("weight", "by"):
        if (name := getattr(options.settings, setting)) is not None:
            given[setting] = (name,)
            if name == options.target:
                raise SchemaError(f"{name!r} is the target", setting=setting)
    for setting, asked in given.items():
        for name in asked:
            if name not in names:
                raise SchemaError(no_such_column(file, [name], names), setting=setting)


def _sample(batches: Sequence[RowBatch], names: Sequence[str]) -> Any:
    tables = [pa.Table.from_batches([batch.record_batch]) for batch in batches if len(batch)]
    return pa.concat_tables(tables, promote_options="permissive").select(names).combine_chunks()
