"""Rows made ready for an estimator, and the records that were rejected on the way."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from onepass._typing import FloatArray
from onepass.tables.columns.values import Bad
from onepass.tables.readers.batches import RowBatch
from onepass.tables.reasons import Reason

__all__ = ["Reject", "Rows", "record_text", "rejects_of"]


class Reject(NamedTuple):
    """A record that was not learned or predicted, and why."""

    line: int
    reason: Reason
    text: str = ""


@dataclass(frozen=True)
class Rows:
    """Rows made ready for learning."""

    X: Any  # (n, d), dense or sparse
    y: FloatArray  # (n,)
    rejects: tuple[Reject, ...]
    lines: int  # records that they were made of, bad ones among them
    line_numbers: Callable[[], Sequence[int]] = tuple
    """Gives the line of each row in its file; computed only when needed."""
    weights: FloatArray | None = None  # (n,), all above 0; None: each counts once
    keys: tuple[str, ...] | None = None  # of each row, in a model per key
    record: Callable[[int], str] = lambda row: ""
    """Gives what was read of a row, as a line that can be corrected and learned; made only when needed."""

    @property
    def options(self) -> dict[str, Any]:
        """What else the estimator is given with the rows, by the names of its arguments."""
        given = {"sample_weight": self.weights, "keys": self.keys}
        return {name: value for name, value in given.items() if value is not None}

    def at(self, places: Any) -> "Rows":
        """Some of the rows, without what was rejected."""
        return Rows(
            self.X[places],
            self.y[places],
            (),
            len(places),
            lambda: np.asarray(self.line_numbers())[places].tolist(),
            None if self.weights is None else self.weights[places],
            None if self.keys is None else tuple(self.keys[place] for place in places),
            lambda row: self.record(int(places[row])),
        )

    @classmethod
    def joined(cls, parts: Sequence["Rows"]) -> "Rows":
        """Consecutive rows as one."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            _stacked([part.X for part in parts]),
            np.concatenate([part.y for part in parts]),
            tuple(reject for part in parts for reject in part.rejects),
            sum(part.lines for part in parts),
            lambda: [line for part in parts for line in part.line_numbers()],
            None if parts[0].weights is None else np.concatenate([part.weights for part in parts]),
            None if parts[0].keys is None else tuple(key for part in parts for key in part.keys or ()),
            lambda row: _record_of(parts, row),
        )


def _record_of(parts: Sequence[Rows], row: int) -> str:
    """The record of a row of consecutive rows."""
    ends = np.cumsum([len(part.y) for part in parts])
    place = int(np.searchsorted(ends, row, side="right"))
    return parts[place].record(row - int(ends[place]) + len(parts[place].y))


def _stacked(parts: Sequence[Any]) -> Any:
    return csr_array(vstack(parts, format="csr")) if issparse(parts[0]) else np.concatenate(parts)


def rejects_of(batch: RowBatch, bad: Bad) -> tuple[Reject, ...]:
    """Everything wrong with a batch, in the order of its lines."""
    found = [Reject(one.line, one.reason, one.text) for one in batch.malformed]
    if bad:
        lines = batch.lines
        found += [Reject(lines[row], reason, record_text(batch, row)) for row, reason in bad.items()]
    return tuple(sorted(found, key=lambda one: one.line))


def record_text(batch: RowBatch, row: int) -> str:
    """What was read of a row, as a line that can be corrected and learned."""
    (values,) = batch.record_batch.slice(row, 1).to_pylist()
    return json.dumps(values, default=str, ensure_ascii=False)
