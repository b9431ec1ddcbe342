"""What all databases have in common: which table or query is read, and in which batches.

A database with one table needs no more than its name; otherwise the table, or a query, has to be said. Rows come in the
order in which the database has them, the same whenever they are read.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from onepass.tables.readers.batches import RowBatch, rows_after
from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.notes import Note
from onepass.tables.readers.options import ReadOptions
from onepass.tables.readers.source import TableFile

__all__ = ["ROWS", "Database", "quoted"]

ROWS = 8192
"""Read at a time."""


class Database(TableFile):
    """A table or a query of a database; the line of a row in messages is its number."""

    errors: tuple[type[Exception], ...]
    """What its package raises when it can't read."""

    def __init__(self, name: str, options: ReadOptions) -> None:
        self.name: str = name
        self._chosen = ""
        with self._stream_errors():
            self.table: str = "" if options.sql else self._table(options.table)
            self._query = options.sql or f"select * from {self._in_query(self.table)}"
            self._total = 0 if options.sql else self._count()
            self._names = self._columns()
        twice = sorted({name for name in self._names if self._names.count(name) > 1})
        if twice:
            raise StreamError(f"the query of {self.name} has more than one column {twice[0]!r}; name them with 'as'")

    @property
    def notes(self) -> tuple[Note, ...]:
        """Which table was chosen, if none was named."""
        return (Note(f"{self.name}: the table {self._chosen!r} is read", "table"),) if self._chosen else ()

    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._names)

    def batches(self, types: dict[str, Any] | None, skip: int) -> Iterator[RowBatch]:
        """Rows after the first ``skip``."""
        start = 0
        with self._stream_errors():
            for found in self._record_batches(types):
                end = start + found.num_rows
                before, share = (min(n / self._total, 1.0) if self._total else 0.0 for n in (start, end))
                numbers = partial(range, start + 1, end + 1)
                yield from rows_after(skip, RowBatch(found, start, numbers, share_before=before, share=share))
                start = end

    def _table(self, asked: str | None) -> str:
        names = self._tables()
        if asked is not None and asked in names:
            return asked
        listed = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
        if asked is not None:
            words = f"{self.name} has no table {asked!r}; it has {listed or 'none'}"
            raise StreamError(words, "table", code="no_such_table")
        if not names:
            raise StreamError(f"{self.name} is a database without tables")
        if len(names) > 1:
            words = f"{self.name} has several tables, {listed}; say which one to read"
            raise StreamError(words, "table", code="several_tables")
        self._chosen = names[0]
        return names[0]

    @contextmanager
    def _stream_errors(self) -> Iterator[None]:
        """Turn errors of the database into one sentence."""
        try:
            yield
        except self.errors as error:
            raise self._stream_error(error) from None

    def _stream_error(self, error: Exception) -> StreamError:
        return StreamError(f"{self.name} can't be read: {str(error).strip().splitlines()[0].rstrip('.')}")

    def _in_query(self, table: str) -> str:
        """The name of a table as a query has it."""
        return quoted(table)

    def _tables(self) -> list[str]:
        raise NotImplementedError

    def _count(self) -> int:
        raise NotImplementedError

    def _columns(self) -> list[str]:
        raise NotImplementedError

    def _record_batches(self, types: dict[str, Any] | None) -> Iterator[Any]:
        raise NotImplementedError


def quoted(name: str) -> str:
    """A name in SQL.

    Examples
    --------
    >>> quoted('the "best" trips')
    '"the ""best"" trips"'
    """
    return '"' + name.replace('"', '""') + '"'
