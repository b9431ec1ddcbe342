"""What is to be predicted, inferred from the target column: a number, or one of which classes.

Standard input can't be read twice, so there the first rows have to show all classes, unless they are declared.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from onepass.estimators.scaling import near
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.number import centre_and_scale
from onepass.tables.columns.values import Bad, as_numbers, as_texts
from onepass.tables.columns.wording import number_text
from onepass.tables.readers.source import Source
from onepass.tables.targets import ClassTarget, CountTarget, NumberTarget, Target

__all__ = ["WRONG", "infer_target", "n_wild"]

_MOST_CLASSES = 1000
_SOME = 0.05  # share of outliers that is expected where one looks for some
WRONG = 0.02  # share of the first targets that may be no number in a regression


def infer_target(
    column: Any,
    name: str,
    task: str | None,
    classes: Sequence[str],
    sources: Sequence[Source],
    outliers: float = 0.0,
) -> tuple[Target, str]:
    """Infer the target from its values in the first rows, and return it with the reason for its task.

    Parameters
    ----------
    column : Arrow array of its first values
    name : of the column
    task : "regression", "counts", "classification", or None for whatever the values look like
    classes : all that will ever come, if they are declared
    sources : files to look through for further classes
    outliers : share of numbers that are not to be trusted, and don't count for the scale if they are wild
    """
    found, reason = (task, "as asked") if task else _likely_task(column, name, classes)
    if found == "regression":
        return _number_target(column, name, outliers), reason
    if found == "counts":
        return _count_target(column, name), reason
    target = _class_target(column, name, classes, sources)
    if found == "undecided" and target.numeric and len(target.labels) > 2:
        return _number_target(column, name, outliers), "numbers"
    return target, reason


def _likely_task(column: Any, name: str, classes: Sequence[str]) -> tuple[str, str]:
    """The task and why; one that is undecided depends on all labels."""
    if classes:
        return "classification", "classes were declared"
    known = column.drop_null()
    if not len(known):
        raise SchemaError(f"the target {name!r} has no values among the first rows; is it the right column?")
    if pa.types.is_boolean(known.type):
        return "classification", "true or false"
    bad: Bad = {}
    numeric = not pa.types.is_temporal(known.type)
    values = as_numbers(known, name, bad) if numeric else np.empty(0)
    if not numeric or any("no number" in reason for reason in bad.values()):
        # A few bad values don't make a class of every number.
        if numeric and len(bad) <= WRONG * len(known):
            return "regression", "numbers"
        return "classification", "texts"
    distinct = np.unique(values[np.isfinite(values)])
    if len(distinct) <= 2 and (distinct == np.floor(distinct)).all():
        return "undecided", "two whole numbers"
    counts = (distinct >= 0.0).all() and (distinct == np.floor(distinct)).all()
    return "regression", "whole numbers from 0 on" if counts else "numbers"


def _number_target(column: Any, name: str, outliers: float) -> NumberTarget:
    values = as_numbers(column, name, {})
    values = values[np.isfinite(values)]
    if not len(values):
        first = next((value for value in column.to_pylist() if value is not None), None)
        raise SchemaError(
            f"the target {name!r} has no numbers among the first rows (the first is {str(first)[:40]!r}); "
            "is it the right column?"
        )
    return NumberTarget(name, *centre_and_scale(values, outliers), n_wild=0 if outliers else n_wild(values))


def n_wild(values: Any) -> int:
    """How many values are so far from the others that they may be errors: ten standard deviations."""
    return int((~near(values, _SOME)).sum())


def _count_target(column: Any, name: str) -> CountTarget:
    """A count, if most of the first values are counts; a few that are not will be rejected."""
    values = as_numbers(column, name, {})
    values = values[np.isfinite(values)]
    bad = values[(values < 0.0) | (values != np.floor(values))]
    if not len(values) or len(bad) > WRONG * len(values):
        shown = f" (such as {number_text(bad[0])})" if len(bad) else ""
        raise SchemaError(
            f"the target {name!r} does not hold counts 0, 1, 2, ...{shown}; is it the right column?",
            suggestions={"task": "regression"},
        )
    return CountTarget(name)


def _class_target(column: Any, name: str, classes: Sequence[str], sources: Sequence[Source]) -> ClassTarget:
    found = set(classes) or _all_labels(column, name, sources)
    numeric = all(_float(label) is not None for label in found)
    labels = sorted(found, key=lambda label: (_float(label) or 0.0, label) if numeric else (0.0, label))
    if {label.lower() for label in labels} == {"false", "true"}:
        labels = ["false", "true"]
    if len(labels) < 2:
        may_be_number = bool(labels) and numeric
        raise SchemaError(
            f"the target {name!r} has only one class, {labels[0] if labels else ''!r}: nothing to tell apart; "
            f"declare all classes that will come{', or is it a number?' if may_be_number else ''}",
            suggestions={"classes": "a,b"} | ({"task": "regression"} if may_be_number else {}),
        )
    return ClassTarget(name, tuple(labels), numeric)


def _all_labels(column: Any, name: str, sources: Sequence[Source]) -> set[str]:
    """Labels among the first rows and in all files."""
    numeric = _is_numeric(column, name)
    found = _labels(column, name, numeric)
    for source in sources:
        for batch in source.batches({name: pa.float64() if numeric else pa.string()}, 0):
            values = batch.column(name)
            if values is not None:
                found |= _labels(values, name, numeric)
            if len(found) > _MOST_CLASSES:
                raise SchemaError(
                    f"the target {name!r} has more than {_MOST_CLASSES} classes; is it the right column, or a number?",
                    suggestions={"task": "regression"},
                )
    return found


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
