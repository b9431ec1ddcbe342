"""Tables of database files: SQLite by the standard library, DuckDB by its own package.

A database with one table needs no more than its name; otherwise the table, or a query, has to be said. Rows come in the
order in which the database has them, the same whenever they are read.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from onepass._extras import MissingExtraError, require
from onepass.tables.readers.batches import RowBatch, rows_after
from onepass.tables.readers.byte_stream import ByteStream
from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.notes import Note
from onepass.tables.readers.options import ReadOptions
from onepass.tables.readers.origins import LocalFile
from onepass.tables.readers.source import FileFormat, TableFile

__all__ = ["DUCKDB", "SQLITE", "DuckDBFile", "SQLiteFile"]

_ROWS = 8192  # read at a time
_LOOKED_AT = 2**20  # rows by which columns of several types are found


class _DatabaseFile(TableFile):
    """A table or a query of a database file; the line of a row in messages is its number."""

    kind: str  # of database, in messages
    errors: tuple[type[Exception], ...]

    def __init__(self, stream: ByteStream, options: ReadOptions) -> None:
        self.name: str = stream.file
        if stream.compression or not isinstance(stream.origin, LocalFile):
            raise StreamError(
                f"{stream.name}: a {self.kind} database can be read only from an uncompressed file on this machine"
            )
        self._chosen = ""
        with self._stream_errors():
            self.table: str = "" if options.sql else self._table(options.table)
            self._query = options.sql or f"select * from {_quoted(self.table)}"
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
            raise StreamError(f"{self.name} has no table {asked!r}; it has {listed or 'none'}", "table")
        if not names:
            raise StreamError(f"{self.name} is a database without tables")
        if len(names) > 1:
            raise StreamError(f"{self.name} has several tables, {listed}; say which one to read", "table")
        self._chosen = names[0]
        return names[0]

    @contextmanager
    def _stream_errors(self) -> Iterator[None]:
        """Turn errors of the database into one sentence."""
        try:
            yield
        except self.errors as error:
            raise StreamError(f"{self.name} can't be read: {str(error).strip().splitlines()[0].rstrip('.')}") from None

    def _tables(self) -> list[str]:
        raise NotImplementedError

    def _count(self) -> int:
        raise NotImplementedError

    def _columns(self) -> list[str]:
        raise NotImplementedError

    def _record_batches(self, types: dict[str, Any] | None) -> Iterator[Any]:
        raise NotImplementedError


class SQLiteFile(_DatabaseFile):
    """A table or a query of an SQLite file."""

    kind = "SQLite"
    errors: tuple[type[Exception], ...] = (sqlite3.Error, sqlite3.Warning)

    def _opened(self) -> Any:
        # Rows may be read in one thread, and be closed by another if a run is stopped; never both at a time.
        address = f"{Path(self.name).absolute().as_uri()}?mode=ro"
        return closing(sqlite3.connect(address, uri=True, check_same_thread=False))

    def _tables(self) -> list[str]:
        query = (
            "select name from sqlite_master where type in ('table', 'view') and name not like 'sqlite!_%' escape '!'"
        )
        with self._opened() as opened:
            return [name for (name,) in opened.execute(query)]

    def _count(self) -> int:
        with self._opened() as opened:
            return int(opened.execute(f"select count(*) from ({self._query})").fetchone()[0])

    def _columns(self) -> list[str]:
        with self._opened() as opened:
            found = opened.execute(self._query).description
        if found is None:
            raise StreamError(f"the query of {self.name} returns no rows; it must be a single 'select'")
        return [name for name, *_ in found]

    def _record_batches(self, types: dict[str, Any] | None) -> Iterator[Any]:
        places = [i for i, name in enumerate(self._names) if types is None or name in types]
        names = [self._names[i] for i in places]
        with self._opened() as opened:
            wanted = self._types(opened) if types is None else types
            cursor = opened.execute(self._query)
            while rows := cursor.fetchmany(_ROWS):
                columns = [_column([row[i] for row in rows], wanted.get(self._names[i])) for i in places]
                yield pa.RecordBatch.from_arrays(columns, names=names)

    def _types(self, opened: Any) -> dict[str, Any]:
        """The types of columns that have values of several, which must not change from batch to batch: texts."""
        kind = "case typeof({0}) when 'null' then null when 'integer' then 'real' else typeof({0}) end"
        kinds = [kind.format(_quoted(name)) for name in self._names]
        mixed = ", ".join(f"min({one}) <> max({one})" for one in kinds)
        query = self._query.strip().rstrip(";")
        try:
            (found,) = opened.execute(f"select {mixed} from (select * from ({query}\n) limit {_LOOKED_AT})")
        except sqlite3.Error:  # not every query can be part of another; reading raises the error if it is wrong
            return {}
        return {name: pa.string() for name, several in zip(self._names, found, strict=True) if several}


def _column(values: Sequence[Any], wanted: Any) -> Any:
    """Values of one column, which SQLite allows to be of several types: then texts, as CSV would have them."""
    try:
        return pa.array(values, wanted)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return pa.array([_as_text(value) for value in values], pa.string())


def _as_text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if value is None or isinstance(value, str) else repr(value)


class DuckDBFile(_DatabaseFile):
    """A table or a query of a DuckDB file."""

    kind = "DuckDB"

    def __init__(self, stream: ByteStream, options: ReadOptions) -> None:
        try:
            require("duckdb", f"the DuckDB database {stream.name}")
        except MissingExtraError as error:
            raise StreamError(str(error)) from None
        import duckdb

        self.errors: tuple[type[Exception], ...] = (duckdb.Error,)
        # A table needs no more to be read once; a query may sort and join, and gets what DuckDB finds right.
        self._config: dict[str, Any] = {} if options.sql else {"memory_limit": "128MB"}
        super().__init__(stream, options)

    def _opened(self) -> Any:
        import duckdb

        opened = duckdb.connect(self.name, read_only=True, config=self._config)
        opened.execute("set enable_progress_bar = false")  # it would go to standard output
        return opened

    def _tables(self) -> list[str]:
        query = "select table_name from information_schema.tables where table_schema = 'main' order by 1"
        with self._opened() as opened:
            return [name for (name,) in opened.execute(query).fetchall()]

    def _count(self) -> int:
        with self._opened() as opened:
            return int(opened.execute(f"select count(*) from ({self._query})").fetchone()[0])

    def _columns(self) -> list[str]:
        with self._opened() as opened:
            return [name for name, *_ in opened.execute(self._query).description or ()]

    def _record_batches(self, types: dict[str, Any] | None) -> Iterator[Any]:
        wanted = [name for name in self._names if types is None or name in types]
        with self._opened() as opened:
            found = opened.sql(self._query)
            reader = getattr(found, "to_arrow_reader", None) or found.fetch_record_batch  # its name before version 1.4
            for batch in reader(_ROWS):
                yield batch.select(wanted)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


SQLITE = FileFormat("SQLite", lambda head: head.startswith(b"SQLite format 3\0"), SQLiteFile)
DUCKDB = FileFormat("DuckDB", lambda head: head[8:12] == b"DUCK" and b"\0" in head[:64], DuckDBFile)
