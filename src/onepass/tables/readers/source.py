"""What every file format provides: an open table that can be read from its beginning as often as needed.

A format is a `FileFormat`: a name, a function that recognises it by its first bytes, and one that opens it as a
`TableFile`. `StandardInput` makes a source of a table that can be read only once.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from onepass.tables.columns.errors import SchemaError
from onepass.tables.readers.batches import RowBatch, first_rows
from onepass.tables.readers.byte_stream import ByteStream
from onepass.tables.readers.extent import Extent
from onepass.tables.readers.notes import Note
from onepass.tables.readers.options import ReadOptions
from onepass.tables.reasons import Reason

__all__ = ["FileFormat", "Source", "StandardInput", "TableFile", "check_has"]


class Source(Protocol):
    """One file, or standard input."""

    name: str
    extent: Extent | None
    """How much of the file is read; None where it can't be read again."""
    table: str
    """The table of a database that is read, said or found; empty: it has none, or a query is read."""

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was inferred or corrected and should be reported; more may come while rows are read."""

    @property
    def left_out(self) -> int:
        """Rows that a condition left out when the rows were last read."""

    @property
    def unreadable(self) -> str:
        """The first value for which the condition could not be evaluated, with its place; empty if there was none."""

    def columns(self) -> list[str] | None:
        """Names of the columns, or None where every row may have its own."""

    def head(self, n: int) -> list[RowBatch]:
        """The first ``n`` rows with all columns; they will come again."""

    def batches(self, types: dict[str, Any] | None, skip: int) -> Iterator[RowBatch]:
        """Rows after the first ``skip``: the columns in ``types`` (name to Arrow type), or all of them."""

    def stop(self) -> None:
        """End after the rows that have come so far, where more may always come."""


def check_has(needed: Sequence[str], source: Source) -> None:
    """Refuse a file that lacks some columns."""
    names = source.columns()
    missing = [] if names is None else [name for name in needed if name not in names]
    if missing:
        raise SchemaError(Reason("no_such_column", missing[0], file=source.name, missing=missing, names=names or ()))


@dataclass(frozen=True)
class FileFormat:
    """A file format: see `onepass.tables.readers.registry` for how to add one."""

    name: str  # in messages, e.g. "JSON lines"
    recognises: Callable[[bytes], bool]
    """Whether a file that begins with these bytes (decompressed, up to 64 KiB) has the format."""
    open: "Callable[[ByteStream, ReadOptions], TableFile]"
    """Opens such a file; the stream has been peeked at only, and is closed afterwards."""
    takes: tuple[str, ...] = ()
    """Which of the settings ``table`` and ``sql`` of `ReadOptions` say what is read of such a file."""


class TableFile:
    """A table that can be read from its beginning as often as needed: the base class of all formats."""

    name: str
    extent: Extent | None = None
    table: str = ""
    grows_by_lines: bool = False
    """Whether rows may be added at the end of a file, all others staying as they are."""

    left_out: int = 0
    unreadable: str = ""

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was inferred or corrected and should be reported; more may come while rows are read."""
        return ()

    def columns(self) -> list[str] | None:
        """Names of the columns, or None where every row may have its own."""
        raise NotImplementedError

    def batches(self, types: dict[str, Any] | None, skip: int) -> Iterator[RowBatch]:
        """Rows after the first ``skip``: the columns in ``types`` (name to Arrow type), or all of them.

        Values may be of another type than asked for, e.g. texts: they are converted later, so that a bad one costs
        its row only.
        """
        raise NotImplementedError

    def head(self, n: int) -> list[RowBatch]:
        """The first ``n`` rows with all columns; they will come again."""
        return list(first_rows(n, self.batches(None, 0)))

    def stop(self) -> None:
        """Do nothing: a file ends by itself."""


class StandardInput:
    """A table on standard input: rows that were looked at are kept, and come first when the rows are read."""

    def __init__(self, table: TableFile, stream: ByteStream) -> None:
        self.name: str = table.name
        self.extent: Extent | None = None
        self.table: str = table.table
        self._table, self._stream = table, stream
        self._coming = table.batches(None, 0)
        self._kept: list[RowBatch] = []

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was inferred or corrected and should be reported; more may come while rows are read."""
        return self._table.notes

    @property
    def left_out(self) -> int:
        """Rows that a condition left out."""
        return self._table.left_out

    @property
    def unreadable(self) -> str:
        """The first value for which the condition could not be evaluated."""
        return self._table.unreadable

    def columns(self) -> list[str] | None:
        """Names of the columns, or None where every row may have its own."""
        return self._table.columns()

    def head(self, n: int) -> list[RowBatch]:
        """The first ``n`` rows with all columns; they will come again."""
        while sum(map(len, self._kept)) < n:
            batch = next(self._coming, None)
            if batch is None:
                break
            self._kept.append(batch)
        return list(first_rows(n, self._kept))

    def batches(self, types: dict[str, Any] | None, skip: int) -> Iterator[RowBatch]:
        """All rows that have not been read yet."""
        kept, self._kept = self._kept, []
        yield from kept
        yield from self._coming

    def stop(self) -> None:
        """End after the rows that have come so far."""
        self._stream.stopping.set()
