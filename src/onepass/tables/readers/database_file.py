"""Tables of database files: SQLite by the standard library, DuckDB by its own package."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa

from onepass._extras import MissingExtraError, require
from onepass.tables.readers.byte_stream import ByteStream
from onepass.tables.readers.database import ROWS, Database, quoted
from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.options import ReadOptions
from onepass.tables.readers.origins import LocalFile
from onepass.tables.readers.source import FileFormat

__all__ = ["DUCKDB", "SQLITE", "DuckDBFile", "SQLiteFile"]

_LOOKED_AT = 2**20  # rows by which columns of several types are found


class _DatabaseFile(Database):
    """A table or a query of a database file."""

    kind: str  # of database, in messages

    def __init__(self, stream: ByteStream, options: ReadOptions) -> None:
        if stream.compression or not isinstance(stream.origin, LocalFile):
            raise StreamError(
                f"{stream.name}: a {self.kind} database can be read only from an uncompressed file on this machine"
            )
        super().__init__(stream.file, options)


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
            while rows := cursor.fetchmany(ROWS):
                columns = [_column([row[i] for row in rows], wanted.get(self._names[i])) for i in places]
                yield pa.RecordBatch.from_arrays(columns, names=names)

    def _types(self, opened: Any) -> dict[str, Any]:
        """The types of columns that have values of several, which must not change from batch to batch: texts."""
        kind = "case typeof({0}) when 'null' then null when 'integer' then 'real' else typeof({0}) end"
        kinds = [kind.format(quoted(name)) for name in self._names]
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
            raise StreamError(str(error), code="missing_extra") from None
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
            for batch in reader(ROWS):
                yield batch.select(wanted)


SQLITE = FileFormat("SQLite", lambda head: head.startswith(b"SQLite format 3\0"), SQLiteFile, ("table", "sql"))
DUCKDB = FileFormat("DuckDB", lambda head: head[8:12] == b"DUCK" and b"\0" in head[:64], DuckDBFile, ("table", "sql"))
