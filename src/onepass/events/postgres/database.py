"""The connection to a PostgreSQL server below an event store: made again when it was lost, and never in the middle.

Outside of a transaction a statement only reads, so it is simply run once more on a new connection. Within one, a lost
connection ends the transaction, which the server then undoes; only whether a COMMIT has arrived is unknown, and
appending the same events again is safe.
"""

import os
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from errno import EAGAIN, EINVAL, ENOENT, ENOTSUP
from functools import lru_cache
from math import ceil
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from onepass.events.database import NO_VALUES, Database
from onepass.events.errors import EventStoreError, check_version
from onepass.events.postgres import schema
from onepass.events.postgres.listening import Connection, Listener
from onepass.events.postgres.words import in_plain_words, lost, unreachable
from onepass.files.lock import LockedError

__all__ = ["PostgresDatabase"]

# A server that is gone without a word is noticed within a minute; `schema.SETTINGS` has the same for the server.
_WATCHED = {"keepalives_idle": 20, "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": 50_000}


class PostgresDatabase(Database):
    """One connection to the server, and one more that listens."""

    def __init__(self, address: str, durability: str, timeout: float, *, read_only: bool) -> None:
        self._options, shown = _parsed(address)
        super().__init__(shown)
        self._durability, self._timeout, self._read_only = durability, timeout, read_only
        self._connection: Connection | None = None
        self._open = True
        self._writers: set[str] = set()  # names under which this store is the only writer
        self._turns: set[str] = set()  # streams that this transaction has to itself
        self._changed: set[str] = set()  # streams to notify others of
        self._listener = Listener(self._listening)
        try:
            self._create_tables()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection; what was appended stays."""
        with self._lock:
            self._open = False
            if os.getpid() == self._process:  # the server must not mistake the end of a fork for this one's
                self._listener.close()
                if self._connection is not None:
                    self._connection.close()

    def take_turn(self, stream: str) -> None:
        """Lock the stream until the end of the transaction; the first time only, as it takes a round trip."""
        self._changed.add(stream)
        if stream not in self._turns:
            self.rows(schema.LOCK, {"lock": schema.lock_number("stream", stream)})
            self._turns.add(stream)

    def erased(self) -> None:
        """The server's own log and files are for its administrator to clean."""

    def problems(self) -> list[str]:
        """The server has its own tools to check pages and indexes, which need its administrator."""
        return []

    @contextmanager
    def only_writer(self, name: str) -> Iterator[None]:
        """Hold a lock of the session that also writes: without the lock it can't write either."""
        with self._lock:
            if name in self._writers or self.rows(schema.LOCK_WRITER, _writer_lock(name)) != [(True,)]:
                raise LockedError(f"{name!r} in {self.address} is being written by {self._writer(name)}")
            self._writers.add(name)
        try:
            yield
        finally:
            with self._lock:
                self._writers.remove(name)
                try:
                    self.rows(schema.UNLOCK_WRITER, _writer_lock(name))
                except EventStoreError:  # a closed connection gives it back, too
                    if self._connection is not None:
                        self._connection.close()

    def heard(self, stream: str) -> int:
        """How often the server has sent a notification of the stream."""
        self._check_process()
        return self._listener.heard(_tag(stream))

    def listen(self, stream: str, heard: int, seconds: float) -> None:
        """Wait for the server to tell of the stream."""
        self._listener.wait(_tag(stream), heard, seconds)

    def _begin(self) -> None:
        self._turns.clear()
        self._changed.clear()
        # Each statement has to see what those who had the turn before have written, whatever the server's default.
        self._run_or_reconnect("BEGIN ISOLATION LEVEL READ COMMITTED")

    def _commit(self) -> None:
        for stream in self._changed:
            self.rows(schema.NOTIFY, {"stream": _tag(stream)})
        self.rows("COMMIT")

    def _committed(self) -> None:
        """Nothing is left to do."""

    def _in_transaction(self) -> bool:
        return self._connection is not None and self._connection.info.transaction_status == TransactionStatus.INTRANS

    def _undo(self, statements: tuple[str, ...]) -> None:
        self._turns.clear()  # with a part of a transaction its locks are undone
        connection = self._connection
        if connection is None or connection.closed:
            return
        try:
            if connection.info.transaction_status != TransactionStatus.IDLE:
                for statement in statements:
                    connection.execute(statement.encode())
        except psycopg.Error:  # the server undoes what a closed connection leaves
            connection.close()

    def _run(self, statement: str, values: Mapping[str, Any] = NO_VALUES) -> list[tuple[Any, ...]]:
        return self._run_or_reconnect(statement, values) if self._depth == 0 else self._run_once(statement, values)

    def _run_or_reconnect(self, statement: str, values: Mapping[str, Any] = NO_VALUES) -> list[tuple[Any, ...]]:
        if not self._open:
            raise self.closed()
        if self._connection is not None and not self._connection.closed:
            try:
                return self._run_once(statement, values)
            except EventStoreError:
                if not self._connection.closed:
                    raise
        self._connection = self._connect()
        for name in self._writers:
            if self._run_once(schema.LOCK_WRITER, _writer_lock(name)) != [(True,)]:
                words = f"the connection was lost, and {self._writer(name)} is the writer of {name!r} now"
                self._connection.close()  # so that the next call asks again
                raise EventStoreError(EAGAIN, words, self.address)
        return self._run_once(statement, values)

    def _run_once(self, statement: str, values: Mapping[str, Any] = NO_VALUES) -> list[tuple[Any, ...]]:
        if self._connection is None:
            raise self.closed()
        try:
            cursor = self._connection.execute(_with_percent_signs(statement), values or None, binary=True)
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            raise (lost(self.address) if self._connection.closed else in_plain_words(error, self.address)) from error

    def _writer(self, name: str) -> str:
        rows = self._run_once(schema.WRITER, _writer_lock(name))
        return (rows and rows[0][0]) or "another process"

    def _connect(self) -> Connection:
        """A connection with the settings that everything else relies on."""
        who = f"process {self._process} on {socket.gethostname()}"[:60]  # the server keeps no more
        defaults = {"fallback_application_name": who, "connect_timeout": max(2, ceil(self._timeout)), **_WATCHED}
        try:
            connection: Connection = psycopg.connect(autocommit=True, **{**defaults, **self._options})
        except psycopg.Error as error:
            raise unreachable(error, self.address) from error
        try:
            milliseconds = str(max(1, round(1000 * self._timeout)))
            settings = connection.execute(_with_percent_signs(schema.SETTINGS), {"milliseconds": milliseconds})
            self._check_settings(connection, *settings.fetchall()[0])
        except psycopg.Error as error:
            connection.close()
            raise unreachable(error, self.address) from error
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_settings(self, connection: Connection, encoding: str, fsync: str, commits: str, *_: str) -> None:
        if encoding != "UTF8":
            words = f"the database is in {encoding}, and the names of events may have any letter; create one in UTF8"
            raise EventStoreError(ENOTSUP, words, self.address)
        if self._durability == "relaxed":
            commits = "off"
        elif fsync == "off":
            words = "the server runs with fsync = off, so that nothing survives a power cut; turn it on, or use relaxed"
            raise EventStoreError(ENOTSUP, f"{words} durability", self.address)
        elif commits == "off":  # all other values wait for the server's disk, and some for more
            commits = "on"
        connection.execute(_with_percent_signs(schema.SET_DURABILITY), {"value": commits})
        if self._read_only:
            connection.execute(schema.SET_READ_ONLY.encode())

    def _listening(self) -> Connection:
        connection = self._connect()
        try:
            connection.execute(schema.LISTEN.encode())
        except psycopg.Error as error:
            connection.close()
            raise in_plain_words(error, self.address) from error
        return connection

    def _create_tables(self) -> None:
        if not self._is_new():
            return
        if self._read_only:
            raise EventStoreError(ENOENT, "there is no event store in this database", self.address)
        with self.transaction():
            self.rows(schema.LOCK, {"lock": schema.lock_number("creation", "")})
            if self._is_new():  # another process may have been faster
                if not self.rows(schema.SCHEMA):
                    self.rows(schema.CREATE_SCHEMA)
                for table in schema.TABLES.values():
                    self.rows(table)

    def _is_new(self) -> bool:
        """Whether there are no tables yet; raises for those that are not of an event store of this version."""
        tables = {name for (name,) in self.rows(schema.TABLES_THERE)}
        if not tables:
            return True
        if not schema.TABLES.keys() <= tables:
            words = "the schema onepass of this database belongs to another program, or has lost tables"
            raise EventStoreError(EINVAL, words, self.address)
        check_version(self.number(schema.STORE_VERSION), self.address)
        return False


@lru_cache
def _with_percent_signs(statement: str) -> bytes:
    """A statement with parameters as psycopg wants them.

    Examples
    --------
    >>> _with_percent_signs("SELECT :number")
    b'SELECT %(number)s'
    """
    return re.sub(r":(\w+)", r"%(\1)s", statement).encode()


def _writer_lock(name: str) -> dict[str, int]:
    return {"lock": schema.lock_number("writer", name)}


def _tag(stream: str) -> str:
    """What the server says when it tells of a stream, whose name may be longer than it can say."""
    return str(schema.lock_number("stream", stream))


def _parsed(address: str) -> tuple[dict[str, Any], str]:
    """What libpq needs to connect, and the address as it may be shown: without a password."""
    try:
        given = conninfo_to_dict(address)
    except psycopg.ProgrammingError:  # its text may have the password
        words = (
            "the address must look like postgresql://user:password@host:5432/database, with special characters as %40"
        )
        raise EventStoreError(EINVAL, words, "postgresql://...") from None
    user, host, port, name = (quote(str(given.get(key) or ""), safe="") for key in ("user", "host", "port", "dbname"))
    shown = "postgresql://" + (user and f"{user}@") + host + (port and f":{port}") + f"/{name}"
    return {**given, "client_encoding": "utf8"}, shown
