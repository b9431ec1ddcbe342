"""What is to be learned from some files: looked up in their first rows, said in words, and made into a model.

The first rows say what the columns hold and how large numbers are. Classes must all be known before the first row is
learned: those that are declared, or those that a look through the target column of all files finds. Standard input
can't be read twice, so there the first rows have to show them all.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow as pa

from onepass.tables.columns.encoding import (
    BUCKETS,
    ONE_HOT,
    Bad,
    SchemaError,
    as_numbers,
    as_texts,
    centre_and_spread,
    infer,
    number_text,
)
from onepass.tables.model import ClassTarget, NumberTarget, Settings, TabularModel, Target
from onepass.tables.readers.stream import Piece, Source

__all__ = ["SAMPLE", "Request", "check_columns", "check_has", "survey"]

SAMPLE = 10_000  # rows that are looked at first
_MOST_CLASSES = 1000


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    target: str
    task: str | None = None  # "regression", "classification" or whatever the target looks like
    classes: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()  # none: all of them
    ignore: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    one_hot: int = ONE_HOT
    buckets: int = BUCKETS
    sample: int = SAMPLE
    settings: Settings = field(default_factory=Settings)


def survey(sources: Sequence[Source], request: Request, *, rereadable: bool) -> tuple[TabularModel, str]:
    """Make a model that has learned nothing, and say what its task is and why.

    Parameters
    ----------
    sources : files that will be learned, the first of which is looked at
    request : Request
    rereadable : bool
        Whether all of them can be looked through for classes.
    """
    pieces = sources[0].head(request.sample)
    names = list(dict.fromkeys(name for piece in pieces for name in piece.batch.schema.names))
    if not any(map(len, pieces)):
        raise SchemaError(f"{sources[0].name} has no rows")
    _check_names(request, names, sources[0].name)
    for source in sources:
        check_has([request.target], source)
    looked_at = _sample(pieces, names)
    task, why = _task(looked_at[request.target], request)
    if task == "regression":
        target: Target = _number_target(looked_at[request.target], request.target)
    else:
        scanned = sources if rereadable and not request.classes else ()
        target = _class_target(looked_at[request.target], request, scanned)
        if task == "" and target.numeric and len(target.labels) > 2:
            target = _number_target(looked_at[request.target], request.target)
            why = "numbers"
    leave_out = {request.target, *request.ignore}
    if request.columns:
        leave_out |= set(names) - set(request.columns)
    encoding = infer(
        looked_at, sorted(leave_out), kinds=request.kinds, one_hot=request.one_hot, buckets=request.buckets
    )
    if not encoding.columns:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in encoding.ignored.items())
        raise SchemaError(f"{sources[0].name} has no column to learn from{f' ({reasons})' if reasons else ''}")
    model = TabularModel(encoding, target, request.settings)
    for source in sources:
        check_columns(model, source, target=True)
    return model, _task_words(model, why)


def check_columns(model: TabularModel, source: Source, *, target: bool) -> None:
    """Refuse a file that lacks columns the model has learned from, before anything is done with it."""
    check_has([column.name for column in model.encoding.columns] + ([model.target.name] if target else []), source)


def check_has(needed: Sequence[str], source: Source) -> None:
    """Refuse a file that lacks some columns."""
    names = source.columns()
    missing = [] if names is None else [name for name in needed if name not in names]
    if missing:
        listed = ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else "")
        raise SchemaError(
            f"{source.name} has no column {listed}{_hint(missing[0], names or ())}; it has {_columns(names or ())}"
        )


def _check_names(request: Request, names: Sequence[str], file: str) -> None:
    given = {
        "--target": (request.target,),
        "--columns": request.columns,
        "--ignore": request.ignore,
        "--as": request.kinds,
    }
    for option, asked in given.items():
        for name in asked:
            if name not in names:
                raise SchemaError(
                    f"{option} {name!r}: {file} has no such column{_hint(name, names)}; it has {_columns(names)}"
                )


def _hint(name: str, names: Iterable[str]) -> str:
    close = get_close_matches(name, list(names), 1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _columns(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")


def _sample(pieces: Sequence[Piece], names: Sequence[str]) -> Any:
    tables = [pa.Table.from_batches([piece.batch]) for piece in pieces if len(piece)]
    return pa.concat_tables(tables, promote_options="permissive").select(names).combine_chunks()


# The target.


def _task(column: Any, request: Request) -> tuple[str, str]:
    """The task and why; an empty one has to be settled by all labels."""
    if request.task:
        return request.task, "as asked"
    if request.classes:
        return "classification", "classes were declared"
    known = column.drop_null()
    if not len(known):
        raise SchemaError(f"the target {request.target!r} has no values among the first rows; is it the right column?")
    if pa.types.is_boolean(known.type):
        return "classification", "true or false"
    bad: Bad = {}
    numeric = not pa.types.is_temporal(known.type)
    values = as_numbers(known, request.target, bad) if numeric else np.empty(0)
    if not numeric or any("no number" in reason for reason in bad.values()):
        # A few bad values don't make a class of every number.
        if numeric and len(bad) <= 0.02 * len(known):
            return "regression", "numbers"
        return "classification", "texts"
    distinct = np.unique(values[np.isfinite(values)])
    if len(distinct) <= 2 and (distinct == np.floor(distinct)).all():
        return "", "two whole numbers"
    return "regression", "numbers"


def _number_target(column: Any, name: str) -> NumberTarget:
    values = as_numbers(column, name, {})
    values = values[np.isfinite(values)]
    if not len(values):
        first = next((value for value in column.to_pylist() if value is not None), None)
        raise SchemaError(
            f"the target {name!r} has no numbers among the first rows (the first is {str(first)[:40]!r}); "
            "is it the right column?"
        )
    return NumberTarget(name, *centre_and_spread(values))


def _class_target(column: Any, request: Request, sources: Sequence[Source]) -> ClassTarget:
    name = request.target
    found: set[str] = set(request.classes)
    if not found:
        numeric = _is_numeric(column, name)
        found = _labels(column, name, numeric)
        for source in sources:
            for piece in source.pieces({name: pa.float64() if numeric else pa.string()}, 0):
                place = piece.batch.schema.get_field_index(name)
                if place >= 0:
                    found |= _labels(piece.batch.column(place), name, numeric)
                if len(found) > _MOST_CLASSES:
                    raise SchemaError(
                        f"the target {name!r} has more than {_MOST_CLASSES} classes; is it the right column, or a "
                        "number (--task regression)?"
                    )
    numeric = all(_float(label) is not None for label in found)
    labels = sorted(found, key=lambda label: (_float(label) or 0.0, label) if numeric else (0.0, label))
    if {label.lower() for label in labels} == {"false", "true"}:
        labels = ["false", "true"]
    if len(labels) < 2:
        number = ", or is it a number (--task regression)?" if labels and numeric else ""
        raise SchemaError(
            f"the target {name!r} has only one class, {labels[0] if labels else ''!r}: nothing to tell apart; "
            f"declare all that will come with --classes a,b{number}"
        )
    return ClassTarget(name, tuple(labels), numeric)


def _is_numeric(column: Any, name: str) -> bool:
    if pa.types.is_boolean(column.type):
        return False
    bad: Bad = {}
    as_numbers(column, name, bad)
    return not any("no number" in reason for reason in bad.values())


def _labels(column: Any, name: str, numeric: bool) -> set[str]:
    if numeric:
        bad: Bad = {}
        values = np.unique(as_numbers(column, name, bad))
        return {number_text(value) for value in values[np.isfinite(values)].tolist()}
    texts = as_texts(column, name).unique().drop_null().to_pylist()
    return {text.lower() if text.lower() in ("true", "false") else text for text in texts}


def _float(label: str) -> float | None:
    try:
        value = float(label)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _task_words(model: TabularModel, why: str) -> str:
    name = model.target.name
    if isinstance(model.target, NumberTarget):
        return f"regression ({name}: {why}; --task classification would take its values for classes)"
    count = "two classes" if len(model.labels) == 2 else f"{len(model.labels)} classes"
    return f"classification, {count} ({name}: {why})"
