"""Tables of a PostgreSQL server, as Arrow batches that arrive while they are learned, by ADBC's driver.

All that is read of a table is one snapshot, in a transaction that can't write. Its rows come in the order in which the
server stores them, whatever else is read at the time; a query with ``order by`` gives them another one.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from onepass._extras import MissingExtraError, require
from onepass.tables.readers.database import ROWS, Database, quoted
from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.options import ReadOptions
from onepass.tables.readers.paths import shown

__all__ = ["PostgreSQLTable"]

_SECONDS = "10"  # to reach the server in
_BEGIN = (
    "set transaction isolation level repeatable read, read only",
    "set local synchronize_seqscans = off",  # or a scan may begin where that of another session is
    "set local max_parallel_workers_per_gather = 0",  # whose rows come in any order
)
_TABLES = """
    select table_schema, table_name, table_schema = any(current_schemas(false)) as is_plain
    from information_schema.tables where table_schema not in ('pg_catalog', 'information_schema')
    order by 3 desc, 1, 2
"""
_BEFORE_ANSWER = re.compile(r".*(?:ERROR:|FATAL:|failed:)\s+|[A-Z_]+: (?:\[libpq\] )?")


class PostgreSQLTable(Database):
    """A table or a query of a PostgreSQL server."""

    def __init__(self, address: str, options: ReadOptions) -> None:
        try:
            require("sql", f"the database {shown(address)}")
        except MissingExtraError as error:
            raise StreamError(str(error), code="missing_extra") from None
        from adbc_driver_manager import Error

        self.errors: tuple[type[Exception], ...] = (Error,)
        parts = urlsplit(address)
        query = urlencode({"connect_timeout": _SECONDS, **dict(parse_qsl(parts.query))})
        self._address = parts._replace(query=query).geturl()
        self._written: dict[str, str] = {}  # tables, as a query has them
        super().__init__(shown(address), options)

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        from adbc_driver_manager import OperationalError
        from adbc_driver_postgresql import dbapi

        try:
            connection = dbapi.connect(self._address)
        except OperationalError as error:
            raise StreamError(f"{self.name} can't be reached: {_reason(error)}", code="server_away") from None
        with connection, connection.cursor() as cursor:
            for command in _BEGIN:
                cursor.execute(command)
            yield cursor

    def _stream_error(self, error: Exception) -> StreamError:
        return StreamError(f"{self.name} can't be read: {_reason(error)}")

    def _in_query(self, table: str) -> str:
        return self._written[table]

    def _tables(self) -> list[str]:
        with self._cursor() as cursor:
            cursor.execute(_TABLES)
            for schema, name, is_plain in cursor.fetchall():
                self._written[name if is_plain else f"{schema}.{name}"] = f"{quoted(schema)}.{quoted(name)}"
        return list(self._written)

    def _count(self) -> int:
        with self._cursor() as cursor:
            cursor.execute(f"select count(*) from ({self._query}) as counted")
            return int(cursor.fetchone()[0])

    def _columns(self) -> list[str]:
        with self._cursor() as cursor:
            names = list(cursor.adbc_execute_schema(self._query).names)
        if not names:
            raise StreamError(f"the query of {self.name} returns no rows; it must be a single 'select'")
        return names

    def _record_batches(self, types: dict[str, Any] | None) -> Iterator[Any]:
        wanted = [name for name in self._names if types is None or name in types]
        with self._cursor() as cursor:
            cursor.execute(self._query)
            for batch in cursor.fetch_record_batch():
                for start in range(0, batch.num_rows, ROWS):
                    part = batch.slice(start, ROWS)
                    columns = [_plain(part.column(name)) for name in wanted]
                    yield pa.RecordBatch.from_arrays(columns, names=wanted)


def _plain(values: Any) -> Any:
    """Values of a type that only PostgreSQL has: decimal numbers as numbers, all others as texts."""
    if not isinstance(values.type, pa.BaseExtensionType) and not pa.types.is_interval(values.type):
        return values
    if getattr(values.type, "type_name", "") == "numeric":
        return pc.cast(values.storage, pa.float64())
    return pa.array([None if value is None else str(value) for value in values.to_pylist()], pa.string())


def _reason(error: Exception) -> str:
    """What a message of the driver says, without what only its authors want to know."""
    return _BEFORE_ANSWER.sub("", str(error).strip().splitlines()[0].rstrip("."), count=1)
