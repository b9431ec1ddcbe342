"""Rows as readers produce them, and the blocks in which they are learned.

A `RowBatch` is as many consecutive rows as a reader found convenient to read at once. `row_blocks` cuts batches at
multiples of a fixed number of rows of their file, so that a run that was interrupted and resumed learns the very same
blocks as one that was not.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pyarrow as pa

from onepass.tables.reasons import Reason

__all__ = [
    "LineNumbers",
    "Malformed",
    "RowBatch",
    "RowBlock",
    "as_record_batch",
    "first_rows",
    "row_blocks",
    "rows_after",
    "shortened",
    "shortened_bytes",
]

_SHOWN = 200  # characters of a malformed record that are kept


@dataclass(frozen=True)
class Malformed:
    """A record that is not a row."""

    line: int
    reason: Reason
    text: str
    before: int  # rows of the file before it


class LineNumbers(Protocol):
    """The positions of a batch's rows in their file."""

    def __call__(self) -> Sequence[int]:
        """Return the line number of every row; computed only when needed."""


@dataclass(frozen=True)
class RowBatch:
    """Consecutive rows of a file, and the malformed records between them."""

    record_batch: Any  # pyarrow.RecordBatch
    start: int  # rows of the file before it
    line_numbers: LineNumbers = field(repr=False)
    offset: int = 0  # of its first row among the line numbers
    share_before: float = 0.0  # of the file
    share: float = 0.0  # of the file up to its end
    malformed: tuple[Malformed, ...] = ()

    def __len__(self) -> int:
        return int(self.record_batch.num_rows)

    @property
    def lines(self) -> Sequence[int]:
        """Line number of every row."""
        return self.line_numbers()[self.offset : self.offset + len(self)]

    @property
    def is_empty(self) -> bool:
        """Whether it has neither rows nor malformed records."""
        return not len(self) and not self.malformed

    def column(self, name: str) -> Any:
        """A column as an Arrow array, or None if the batch does not have it."""
        place = self.record_batch.schema.get_field_index(name)
        return self.record_batch.column(place) if place >= 0 else None

    def first(self, n: int) -> "RowBatch":
        """The first ``n`` rows, and the malformed records before each of them."""
        end = self.start + n
        return replace(
            self,
            record_batch=self.record_batch.slice(0, n),
            malformed=tuple(record for record in self.malformed if record.before < end),
            share=self._share_at(n),
        )

    def rest(self, n: int) -> "RowBatch":
        """Everything after the first ``n`` rows; it may have malformed records only."""
        begin = self.start + n
        return replace(
            self,
            record_batch=self.record_batch.slice(n),
            start=begin,
            offset=self.offset + n,
            malformed=tuple(record for record in self.malformed if record.before >= begin),
            share_before=self._share_at(n),
        )

    def _share_at(self, n: int) -> float:
        return self.share_before + (self.share - self.share_before) * (n / len(self) if len(self) else 1.0)


def first_rows(n: int, batches: Iterable[RowBatch]) -> Iterator[RowBatch]:
    """Batches up to the row ``n``, or up to the end."""
    found = 0
    for batch in batches:
        part = batch.first(min(n - found, len(batch)))
        yield part
        found += len(part)
        if found >= n:
            return


def rows_after(skip: int, batch: RowBatch) -> Iterator[RowBatch]:
    """A batch without the first ``skip`` rows of the file and the malformed records between them."""
    drop = skip - batch.start
    left = batch if drop <= 0 else batch.rest(min(drop, len(batch)))
    # Malformed records after the last row that is skipped belong to the row after it.
    if drop <= len(batch) and not left.is_empty:
        yield left


@dataclass(frozen=True)
class RowBlock:
    """The rows of one step of learning."""

    batches: tuple[RowBatch, ...]

    @property
    def start(self) -> int:
        """Rows of the file before this block."""
        return self.batches[0].start

    @property
    def end(self) -> int:
        """Rows of the file up to the end of this block."""
        return self.batches[-1].start + len(self.batches[-1])

    @property
    def share(self) -> float:
        """Share of the file that has been read."""
        return self.batches[-1].share


def row_blocks(batches: Iterable[RowBatch], size: int, *, aligned: bool = True) -> Iterator[RowBlock]:
    """Cut batches where the number of the row in the file is a multiple of ``size``.

    Without ``aligned`` rows don't wait until a block is full: for streams that may pause.
    """
    waiting: list[RowBatch] = []
    for batch in batches:
        rest = batch
        while not rest.is_empty:
            room = size - rest.start % size
            if len(rest) < room:
                waiting.append(rest)
                break
            yield RowBlock((*waiting, rest.first(room)))
            waiting, rest = [], rest.rest(room)
        if waiting and not aligned:
            yield RowBlock(tuple(waiting))
            waiting = []
    if waiting:
        yield RowBlock(tuple(waiting))


def as_record_batch(table: Any) -> Any:
    """An Arrow table as one record batch."""
    return table.combine_chunks().to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], table.schema)


def shortened(text: str) -> str:
    """The text of a malformed record, cut to a length that can be shown."""
    text = text.rstrip("\r\n").encode("utf-8", "replace").decode()
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def shortened_bytes(text: bytes) -> str:
    """The same of bytes, of which no more is decoded than can be shown."""
    return shortened(text[: 8 * _SHOWN].decode("utf-8", "replace"))
