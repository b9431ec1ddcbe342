"""What is to be predicted, inferred from the target column: a number, or one of which classes.

Standard input can't be read twice, so there the first rows have to show all classes, unless they are declared.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from onepass.estimators.scaling import absurd, near
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.inference import WRONG, FirstValues
from onepass.tables.columns.missing import without_words
from onepass.tables.columns.notation import AS_WRITTEN, Notation
from onepass.tables.columns.number import centre_and_scale
from onepass.tables.columns.values import as_numbers, as_texts, is_text, plain
from onepass.tables.columns.wording import number_text
from onepass.tables.readers.source import Source
from onepass.tables.reasons import Reason
from onepass.tables.targets import ClassTarget, CountTarget, NumberTarget, Target

__all__ = ["infer_target", "n_wild"]

_MOST_CLASSES = 1000
_SOME = 0.05  # share of outliers that is expected where one looks for some


def infer_target(
    column: Any,
    name: str,
    task: str | None,
    classes: Sequence[str],
    sources: Sequence[Source],
    outliers: float = 0.0,
    notation: Notation = AS_WRITTEN,
) -> tuple[Target, Reason]:
    """Infer the target from its values in the first rows, and return it with the reason for its task.

    Parameters
    ----------
    column : Arrow array of its first values
    name : of the column
    task : "regression", "counts", "classification", or None for whatever the values look like
    classes : all that will ever come, if they are declared
    sources : files to look through for further classes
    outliers : share of numbers that are not to be trusted, and don't count for the scale if they are wild
    notation : how values are written, as far as it is known
    """
    first = FirstValues(name, plain(column), notation)
    found, reason = (task, Reason("as_asked")) if task else _likely_task(first, classes)
    if found == "regression":
        return _number_target(first, outliers), reason
    if found == "counts":
        return _count_target(first), reason
    target = _class_target(first, classes, sources)
    if found == "undecided" and target.numeric and len(target.labels) > 2:
        return _number_target(first, outliers), Reason("numbers")
    return target, reason


def _likely_task(first: FirstValues, classes: Sequence[str]) -> tuple[str, Reason]:
    """The task and why; one that is undecided depends on all labels."""
    if classes:
        return "classification", Reason("classes_declared")
    known = (first.texts if is_text(first.array) else first.array).drop_null()
    if not len(known):
        raise SchemaError(Reason("target_without_values", first.name, role="target"))
    if pa.types.is_boolean(known.type):
        return "classification", Reason("booleans")
    _, share = first.as_numbers
    if share < 1.0 - WRONG:  # a few bad values don't make a class of every number
        return "classification", Reason("texts")
    if first.are_codes:
        return "classification", Reason("leading_zeros")
    values = _numbers(first)
    distinct = np.unique(values)
    if share == 1.0 and len(distinct) <= 2 and (distinct == np.floor(distinct)).all():
        return "undecided", Reason("two_whole_numbers")
    counts = share == 1.0 and (distinct >= 0.0).all() and (distinct == np.floor(distinct)).all()
    return "regression", Reason("whole_numbers" if counts else "numbers")


def _numbers(first: FirstValues) -> Any:
    """Those of the first values that are numbers."""
    values = as_numbers(first.array, first.name, {}, first.as_numbers[0])
    return values[np.isfinite(values)]


def _number_target(first: FirstValues, outliers: float) -> NumberTarget:
    values = _numbers(first)
    if not len(values):
        shown = next((value for value in first.array.to_pylist() if value is not None), None)
        raise SchemaError(Reason("target_without_numbers", first.name, str(shown), "target"))
    wild = 0 if outliers else n_wild(values)
    usual = values[~absurd(values[:, None])[:, 0]]  # models set the others aside
    return NumberTarget(first.name, *centre_and_scale(usual, outliers), first.as_numbers[0], n_wild=wild)


def n_wild(values: Any) -> int:
    """How many values are so far from the others that they may be errors: ten standard deviations."""
    return int((~near(values, _SOME)).sum())


def _count_target(first: FirstValues) -> CountTarget:
    """A count, if most of the first values are counts; a few that are not will be rejected."""
    values = _numbers(first)
    bad = values[(values < 0.0) | (values != np.floor(values))]
    if not len(values) or len(bad) > WRONG * len(values):
        example = f" (such as {number_text(bad[0])})" if len(bad) else ""
        reason = Reason("target_without_counts", first.name, role="target", example=example)
        raise SchemaError(reason, suggestions={"task": "regression"})
    return CountTarget(first.name, written=first.as_numbers[0])


def _class_target(first: FirstValues, classes: Sequence[str], sources: Sequence[Source]) -> ClassTarget:
    found = set(classes) or _all_labels(first, sources)
    numeric = all(_float(label) is not None for label in found) and not first.are_codes
    labels = sorted(found, key=lambda label: (_float(label) or 0.0, label) if numeric else (0.0, label))
    if len(labels) < 2:
        may_be_number = bool(labels) and numeric
        or_number = ", or is it a number?" if may_be_number else ""
        raise SchemaError(
            Reason("one_class", first.name, "".join(labels), "target", or_number=or_number),
            suggestions={"classes": "a,b"} | ({"task": "regression"} if may_be_number else {}),
        )
    words = first.as_numbers[0].missing_words if numeric else first.missing_words
    return ClassTarget(first.name, tuple(labels), numeric, tuple(word for word in words if word not in labels))


def _all_labels(first: FirstValues, sources: Sequence[Source]) -> set[str]:
    """Labels among the first rows and in all files, each as it was written."""
    written, share = first.as_numbers
    numeric = written.is_plain and share == 1.0 and not first.are_codes
    name, words = first.name, written.missing_words if numeric else first.missing_words
    found = _Spellings(name, words, numeric)
    found.add(first.array)
    for source in sources:
        for batch in source.batches({name: pa.float64() if numeric else pa.string()}, 0):
            if (values := batch.column(name)) is not None:
                found.add(values)
            if len(found.labels) > _MOST_CLASSES:
                may_be_number = not first.are_codes and all(_float(str(label)) is not None for label in found.labels)
                or_number = ", or a number" if may_be_number else ""
                reason = Reason("too_many_classes", name, role="target", most=_MOST_CLASSES, or_number=or_number)
                raise SchemaError(reason, suggestions={"task": "regression"} if may_be_number else {})
    return set(found.labels.values())


class _Spellings:
    """Labels as they were written; where one is written in several ways, in the simplest."""

    def __init__(self, name: str, missing_words: Sequence[str], numeric: bool) -> None:
        self._name, self._missing_words, self._numeric = name, missing_words, numeric
        self.labels: dict[float | str, str] = {}

    def add(self, array: Any) -> None:
        """Take up the labels of some values."""
        array = plain(array)
        if self._numeric and not is_text(array):
            values = np.unique(as_numbers(array, self._name, {}))
            for value in values[np.isfinite(values)].tolist():
                self.labels.setdefault(value, number_text(value))
            return
        texts = as_texts(array, self._name).unique()
        texts = without_words(texts, self._missing_words) if self._numeric else texts
        for text in texts.drop_null().to_pylist():
            self._add_text(text)

    def _add_text(self, text: str) -> None:
        if self._numeric:
            value = _float(text)
            if value is not None and self.labels.setdefault(value, text) != text:
                self.labels[value] = number_text(value)
        elif text.lower() in ("true", "false"):
            if self.labels.setdefault(text.lower(), text) != text:
                self.labels[text.lower()] = text.lower()
        elif text not in self._missing_words:
            self.labels[text] = text


def _float(label: str) -> float | None:
    try:
        value = float(label.replace("_", "?"))  # 1_000 is a number in Python's source only
    except ValueError:
        return None
    return value if np.isfinite(value) else None
