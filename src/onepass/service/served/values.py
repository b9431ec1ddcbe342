"""Values of single requests as columns: what a value means never depends on the requests that were read with it.

Numbers are numbers, however a table writes them; texts are read as in a file.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from onepass.service.errors import ProblemError
from onepass.service.served.base import Bad
from onepass.service.wire import Key, Scalar
from onepass.tables.columns.number_format import NumberFormat
from onepass.tables.columns.values import Bad as Reasons
from onepass.tables.columns.values import parse_numbers
from onepass.tables.columns.wording import listed, number_text
from onepass.tables.reasons import Reason

__all__ = ["check_columns", "numbers_of", "refuse_keys", "texts_of"]

_PLAIN_TYPES = {int, float, type(None)}


def numbers_of(values: Sequence[Scalar], name: str, written: NumberFormat, reasons: Reasons) -> Any:
    """Values of a column of numbers as an Arrow array; why some are none goes into ``reasons``.

    Examples
    --------
    >>> reasons = {}
    >>> numbers_of([1.5, "1,5", None, True], "km", NumberFormat(","), reasons).to_pylist(), reasons
    ([1.5, 1.5, None, None], {3: <boolean_for_number: km is true, not a number>})
    """
    if _PLAIN_TYPES.issuperset(map(type, values)):
        return pa.array([_number(value) for value in values], pa.float64(), from_pandas=True)
    found = np.array([_number(value) if type(value) in _PLAIN_TYPES else np.nan for value in values])
    for i, value in enumerate(values):
        if isinstance(value, bool):
            reasons.setdefault(i, Reason("boolean_for_number", name, _text(value)))
    texts = [value if isinstance(value, str) else None for value in values]
    parsed = parse_numbers(pa.array(texts, pa.string()), name, reasons, written)
    found = np.where([text is None for text in texts], found, parsed)
    return pa.array(found, pa.float64(), from_pandas=True)


def texts_of(values: Sequence[Scalar]) -> Any:
    """Values of any other column as an Arrow array of texts.

    Examples
    --------
    >>> texts_of(["a", True, 2.0, 0.5, None]).to_pylist()
    ['a', 'true', '2', '0.5', None]
    """
    return pa.array([_text(value) for value in values], pa.string())


def _number(value: Any) -> float:
    if value is None:
        return float("nan")
    try:
        return float(value)
    except OverflowError:  # a whole number beyond all floats
        return float("inf")


def _text(value: Scalar) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else number_text(value)


def refuse_keys(keys: Sequence[Key | None], bad: Bad, by: str | None = None) -> None:
    """Note rows that name a key where there is no fleet; ``by`` is the column that has a table's keys."""
    for i, key in enumerate(keys):
        if key is not None:
            more = "" if by is None else f"; put it into x.{by}"
            bad[i] = ProblemError(
                422, "bad value", f"key can be given for a fleet of perceptrons only{more}", field="key"
            )


def check_columns(table: Any, names: Sequence[str], what: str = "column") -> None:
    """Refuse an Arrow batch that lacks a column, or has it twice."""
    for name in names:
        count = len(table.schema.get_all_field_indices(name))
        if count == 0:
            words = f"the {what} {name!r} is missing; there are {listed(table.schema.names, 20)}"
            raise ProblemError(422, "missing column", words, field=name)
        if count > 1:
            raise ProblemError(422, "bad value", f"there are {count} columns with the name {name!r}", field=name)
