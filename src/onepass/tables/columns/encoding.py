"""All columns of a table as numbers: what is done with each, once inferred, never changes.

An `Encoding` turns any rows into the numbers a model learns from, says in words what it does, and goes into the model's
file. A row with a value that its column can't have is named, with the reason.
"""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array, hstack

from onepass._typing import FloatArray
from onepass.estimators.rows import Rows
from onepass.estimators.scaling import zero_for_nan
from onepass.files.state import Parameters
from onepass.tables.columns.column import Column, column_class
from onepass.tables.columns.names import COLUMN_KINDS
from onepass.tables.columns.number import FARTHEST, Number, note_far
from onepass.tables.columns.text import Text
from onepass.tables.columns.values import Bad, as_numbers, parse_numbers
from onepass.tables.reasons import Reason

__all__ = ["Encoding"]

_SCRATCH = 2**18  # numbers that are scaled before they are turned into rows
_room = threading.local()


@dataclass(frozen=True)
class Encoding:
    """What is done with every column that is learned from, and why the others are not.

    Examples
    --------
    >>> from onepass.tables.columns.inference import infer
    >>> table = pa.RecordBatch.from_pydict({"km": [1.0, 2.0, 3.0], "car": ["a", "b", "a"]})
    >>> encoding = infer(table, [])
    >>> encoding.features
    ['km', 'car=a', 'car=b', 'car=(other)']
    >>> encoding.encode(table).X.round(2).tolist()
    [[-1.22, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [1.22, 1.0, 0.0, 0.0]]
    """

    columns: tuple[Column, ...]  # those of text last
    ignored: Mapping[str, str]  # name -> reason
    left_out: tuple[str, ...] = ()  # as asked
    doubts: Mapping[str, Reason] = field(default_factory=dict, compare=False)
    """Why columns may be numbers although they were not taken for that, by name; not in files."""

    @cached_property
    def unused(self) -> frozenset[str]:
        """Names of the columns that rows may have, but that are not learned from."""
        return frozenset((*self.ignored, *self.left_out))

    @cached_property
    def features(self) -> list[str]:
        """Names of all features."""
        return [name for column in self.columns for name in column.features]

    @cached_property
    def texts(self) -> tuple[Text, ...]:
        """The columns that hold text: their features, the last of all, are many, and sparse."""
        return tuple(column for column in self.columns if isinstance(column, Text))

    @property
    def n_dense(self) -> int:
        """Number of features that are not of text."""
        return self._plan.width

    @cached_property
    def steps(self) -> FloatArray:
        """What a feature is when it is on, ``(d,)``: 1, or for text what a word is in an average text."""
        sizes = [np.ones(self.n_dense), *(np.full(text.buckets, text.typical) for text in self.texts)]
        return np.concatenate(sizes)

    def groups(self) -> Iterator[tuple[slice, FloatArray]]:
        """Features of which a row has just one on, and how often each is.

        All of them could rise together and the bias fall: only the gap to an average row means something.
        """
        at = 0
        for column in self.columns:
            start, shares = column.exclusive
            if shares:
                yield slice(at + start, at + start + len(shares)), np.array(shares)
            at += len(column.features)

    def contrasts(self, features: Any, most: int = 2**22) -> Iterator[FloatArray]:
        """What some features stand for, ``(k, d)``: each its step, or in a group its gap to an average row.

        The rows of the matrix come in bands of ``most`` numbers, since all of them may be too many.
        """
        d = len(self.features)
        groups = list(self.groups())
        height = max(most // d, 1)
        for first in range(0, len(features), height):
            chosen = np.asarray(features[first : first + height])
            band = np.zeros((len(chosen), d))
            band[np.arange(len(chosen)), chosen] = self.steps[chosen]
            for group, shares in groups:
                band[(group.start <= chosen) & (chosen < group.stop), group] -= shares
            yield band

    def types(self) -> dict[str, Any]:
        """Arrow types in which to ask a reader for the columns."""
        return {column.name: column.arrow_type for column in self.columns}

    def encode(self, record_batch: Any) -> Rows:
        """Turn the rows of an Arrow record batch into numbers; a row with a bad value is all zeros.

        A number that is missing is NaN. Where a column holds text the rows are sparse, and it is 0, the mean.
        """
        bad: Bad = {}
        plan = self._plan
        X = np.empty((record_batch.num_rows, plan.width))
        X[:, plan.others] = 0.0
        if plan.numbers:
            self._fill_numbers(record_batch, X, bad)
        for column, at in plan.rest:
            column.fill(_column_of(record_batch, column.name), X[:, at : at + len(column.features)], bad)
        X[list(bad)] = 0.0
        if not self.texts:
            return Rows(X, bad=bad)
        X = zero_for_nan(X)
        words = [text.rows(_column_of(record_batch, text.name)) for text in self.texts]
        sparse = csr_array(hstack([csr_array(X), *words], format="csr"))
        for row in bad:
            sparse.data[sparse.indptr[row] : sparse.indptr[row + 1]] = 0.0
        return Rows(sparse, bad=bad)

    def encode_one(self, values: Mapping[str, Any]) -> FloatArray | None:
        """Turn one row of plain values into the numbers ``(1, d)`` that `encode` makes of it, but faster.

        None if a value has to be parsed, or can't be taken: `encode` reads it, or says why not.

        Examples
        --------
        >>> from onepass.tables.columns.inference import infer
        >>> encoding = infer(pa.RecordBatch.from_pydict({"km": [1.0, 3.0], "car": ["a", "b"]}), [])
        >>> encoding.encode_one({"km": 1, "car": "b"}).tolist(), encoding.encode_one({"km": "1 km"})
        ([[-1.0, 0.0, 1.0, 0.0]], None)
        """
        if self.texts:
            return None
        x = [0.0] * self._plan.width
        for column, at in self._plan.places:
            if not column.fill_one(values.get(column.name), x, at):
                return None
        return np.array([x])

    @cached_property
    def _plan(self) -> "_Plan":
        places: list[tuple[Any, int]] = []
        at = 0
        for column in self.columns:
            if not column.is_sparse:
                places.append((column, at))
                at += len(column.features)
        numbers = tuple((column, at) for column, at in places if isinstance(column, Number))
        others = sorted(set(range(at)) - {place for _, place in numbers})
        rest = tuple((column, place) for column, place in places if not isinstance(column, Number))
        return _Plan(at, tuple(places), numbers, rest, others)

    @np.errstate(over="ignore")
    def _fill_numbers(self, record_batch: Any, X: FloatArray, bad: Bad) -> None:
        """Write all numbers: each column is scaled where it is contiguous, then many are turned into rows at once."""
        n, has_far = len(X), False
        at_once = max(_SCRATCH // max(n, 1), 1)
        for first in range(0, len(self._plan.numbers), at_once):
            numbers = self._plan.numbers[first : first + at_once]
            scaled = _scratch(len(numbers), n)
            for row, (column, at) in zip(scaled, numbers, strict=True):
                values = parse_numbers(_column_of(record_batch, column.name), column.name, bad, column.written)
                if column.missing:
                    X[:, at + 1] = np.isnan(values)
                column.scaled(values, out=row)
                # A look at the extremes finds infinite, far and missing values; what they are is sorted out only then.
                if not (row.min(initial=0.0) >= -FARTHEST and row.max(initial=0.0) <= FARTHEST):
                    has_far = has_far or bool((np.abs(row) > FARTHEST).any())
                    row[np.abs(row) > FARTHEST] = 0.0
            places = [at for _, at in numbers]
            together = places == list(range(places[0], places[0] + len(places)))
            X[:, slice(places[0], places[0] + len(places)) if together else places] = scaled.T
        if has_far:
            self._note_bad_numbers(record_batch, bad)

    def _note_bad_numbers(self, record_batch: Any, bad: Bad) -> None:
        """Note infinite values before far ones: of a row with several bad values the first reason is kept."""
        bad.clear()
        values = [
            as_numbers(_column_of(record_batch, column.name), column.name, bad, column.written)
            for column, _ in self._plan.numbers
        ]
        for own, (column, _) in zip(values, self._plan.numbers, strict=True):
            note_far(column.scaled(own, out=np.empty_like(own)), own, column.name, bad)

    def state(self) -> Parameters:
        """All of it as data that JSON can hold."""
        columns = [{"kind": column.kind, **column.state()} for column in self.columns]
        return {"columns": columns, "ignored": dict(self.ignored), "left_out": list(self.left_out)}

    @classmethod
    def from_state(cls, state: Any) -> "Encoding":
        """Make the encoding that `state` described; what it says may be anything, so all of it is checked."""
        columns = tuple(_column_from_state(entry) for entry in state["columns"])
        ignored = {_as_text(name): _as_text(why) for name, why in state["ignored"].items()}
        left_out = tuple(map(_as_text, state["left_out"]))
        names = [column.name for column in columns]
        if not columns or len(set(names)) != len(names):
            raise ValueError("the encoding must have columns, each once")
        if any(one.is_sparse and not other.is_sparse for one, other in pairwise(columns)):
            raise ValueError("the columns of text must be the last of the encoding")
        return cls(columns, ignored, left_out)


@dataclass(frozen=True)
class _Plan:
    """The positions of each column's features, but for text."""

    width: int
    places: tuple[tuple[Any, int], ...]
    numbers: tuple[tuple[Number, int], ...]
    rest: tuple[tuple[Any, int], ...]  # all other columns
    others: list[int]  # features of other columns


def _scratch(n_columns: int, n: int) -> FloatArray:
    """Room for columns of ``n`` numbers, the same for every batch of a thread: new memory costs more than its use."""
    width = n + 8  # columns at a distance of a power of two would push each other out of the cache
    room = getattr(_room, "numbers", None)
    if room is None or len(room) < n_columns * width:
        room = _room.numbers = np.empty(n_columns * width)
    return np.asarray(room[: n_columns * width].reshape(n_columns, width)[:, :n])


def _column_of(record_batch: Any, name: str) -> Any:
    place = record_batch.schema.get_field_index(name)
    return record_batch.column(place) if place >= 0 else pa.nulls(record_batch.num_rows)


def _column_from_state(entry: Any) -> Column:
    given = dict(entry)
    kind = given.pop("kind")
    if kind not in COLUMN_KINDS:
        raise ValueError(f"a column is of the unknown kind {str(kind)[:40]!r}")
    _as_text(given["name"])
    return column_class(kind).from_state(given)


def _as_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"a text was expected, got {str(value)[:40]!r}")
    return value
