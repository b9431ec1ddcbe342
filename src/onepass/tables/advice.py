"""What a careful colleague would ask about a table: whether a column is a leak, an identifier or a code.

Each piece of advice is data: the reason with its column and value, and the option that follows the advice. `advise`
finds it among the first rows; commands print it in the words of their options, programs get it as JSON.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from onepass._typing import FloatArray
from onepass.tables.columns.encoding import Encoding
from onepass.tables.columns.inference import FirstValues
from onepass.tables.columns.number import Number
from onepass.tables.columns.roles import is_identifier_name
from onepass.tables.columns.values import as_numbers, as_texts, plain
from onepass.tables.dependence import share_explained
from onepass.tables.reasons import Reason
from onepass.tables.targets import NumberTarget, Target

__all__ = ["LEAKS", "Advice", "advise", "network_advice"]

LEAKS = ("leak", "leak_by_presence")
"""Codes of advice on columns that give the target away."""

_ROWS = 2_000  # looked at
_FEWEST = 50  # rows from which on anything is said
_FEWEST_FOR_CODES = 200
_LEAK = 0.99  # share of the target that no honest column explains alone
_MOST_CODES = 12  # different values of a column of codes
_MOST_CLASS_CODES = 10
_GAIN = 0.05  # share of the target by which categories have to explain more than a line through their codes


class Advice(NamedTuple):
    """One piece of advice.

    Examples
    --------
    >>> print(Advice(Reason("leak", "paid", share=0.998, target="price"), "ignore", "paid"))
    'paid' alone explains 99.8 % of 'price': is it a leak, known only after the target? ignore=paid leaves it out
    """

    reason: Reason
    setting: str  # the option that follows the advice
    value: str  # of the option

    def words(self, shown: Callable[[str, str], str]) -> str:
        """The advice as a sentence, with its option as ``shown(setting, value)`` has it."""
        return str(self.reason).replace("{option}", shown(self.setting, self.value))

    def __str__(self) -> str:
        return self.words(lambda setting, value: f"{setting}={value}")


def advise(sample: Any, encoding: Encoding, target: Target, *, task_is_open: bool) -> tuple[Advice, ...]:
    """Advice on a table by its first rows.

    Parameters
    ----------
    sample : pyarrow.Table
    encoding, target : what was made of its columns
    task_is_open : whether the task was found out, not asked for
    """
    found = [Advice(reason, "kinds", f"{name}=number") for name, reason in encoding.doubts.items()]
    rows = sample.slice(0, _ROWS)
    if rows.num_rows < _FEWEST:
        return tuple(found)
    if task_is_open and isinstance(target, NumberTarget):
        found += _class_codes(rows, target)
    outcomes = _outcomes(rows, target)
    if outcomes is not None and len(encoding.columns) > 1:
        for column in encoding.columns:
            found += _on_column(column, rows, outcomes, target)
    return tuple(found)


def network_advice(reason: str) -> Advice:
    """How to learn the network that was skipped."""
    return Advice(Reason("network_skipped", value=reason), "model_kind", "network")


def _class_codes(rows: Any, target: NumberTarget) -> Iterator[Advice]:
    """Whether the target may be one of a few classes that have numbers for names."""
    values = np.unique(_numbers(rows, target.name, target.written))
    n = len(values)
    if 3 <= n <= _MOST_CLASS_CODES and values[0] in (0.0, 1.0) and (np.diff(values) == 1.0).all():
        shown = f"{values[0]:g} to {values[-1]:g}"
        yield Advice(Reason("class_codes", target.name, shown, "target"), "task", "classification")


def _on_column(column: Any, rows: Any, outcomes: FloatArray, target: Target) -> Iterator[Advice]:
    is_number = isinstance(column, Number)
    values = _numbers(rows, column.name, column.written) if is_number else _levels(rows, column.name)
    filled = np.isfinite(values).astype(np.float64)
    for code, found, ordered in zip(LEAKS, (values, filled), (is_number, False), strict=True):
        if (share := share_explained(found, outcomes, ordered=ordered, classes=_n_classes(target))) >= _LEAK:
            yield Advice(Reason(code, column.name, share=share, target=target.name), "ignore", column.name)
            return
    if is_number:
        yield from _codes(column.name, values, outcomes if _n_classes(target) <= 2 else None)


def _codes(name: str, values: FloatArray, outcomes: FloatArray | None) -> Iterator[Advice]:
    """Whether numbers are names of something: by the name of their column, or since no line goes through them."""
    known = values[np.isfinite(values)]
    distinct = np.unique(known)
    if not len(known) or (distinct != np.floor(distinct)).any():
        return
    if is_identifier_name(name) and len(distinct) < len(known):
        yield Advice(Reason("identifier", name), "kinds", f"{name}=category")
    elif outcomes is not None and 3 <= len(distinct) <= _MOST_CODES and len(known) >= _FEWEST_FOR_CODES:
        line = share_explained(values, outcomes, ordered=True)
        groups = share_explained(values, outcomes, ordered=False)
        if groups - line >= _GAIN:
            yield Advice(Reason("codes", name, len(distinct), groups=groups, line=line), "kinds", f"{name}=category")


def _n_classes(target: Target) -> int:
    return 0 if isinstance(target, NumberTarget) else len(target.labels)


def _outcomes(rows: Any, target: Target) -> FloatArray | None:
    """Targets as numbers or places of classes, NaN where there is none."""
    bad: dict[int, Reason] = {}
    values = np.array(target.encode(plain(rows[target.name]), bad), dtype=np.float64)
    values[list(bad)] = np.nan
    return values if np.isfinite(values).sum() >= _FEWEST else None


def _numbers(rows: Any, name: str, written: Any) -> FloatArray:
    values = as_numbers(plain(rows[name]), name, {}, written)
    return np.where(np.isfinite(values), values, np.nan)


def _levels(rows: Any, name: str) -> FloatArray:
    """Each different text of a column as a number of its own, NaN for none."""
    coded = as_texts(FirstValues(name, plain(rows[name])).array, name).dictionary_encode()
    return np.array(coded.indices.to_pylist(), dtype=np.float64)
