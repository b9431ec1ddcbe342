"""The SQLite file below an event store: opened with care, written in transactions that are whole or absent.

Events go to SQLite's write-ahead log, so that readers and the writer never wait for each other, and every transaction
is synced to the disk before it counts. A file that is something else, or of another version, is refused before
anything in it is changed.
"""

import os
import sqlite3
import stat
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from errno import EAGAIN, EINVAL, EIO, EISDIR, ENOENT, ENOTSUP, ESTALE
from pathlib import Path
from typing import Any
from urllib.parse import quote

from onepass.events.database import NO_VALUES, Database
from onepass.events.errors import DAMAGED, EventStoreError, check_version, damaged
from onepass.events.records import checksum
from onepass.events.sqlite import schema
from onepass.events.sqlite.tail import Tail, acknowledged, tail_path, why_lost
from onepass.events.sqlite.words import in_plain_words
from onepass.events.statements import VERSION
from onepass.files.lock import locked

__all__ = ["SQLiteDatabase"]

_SYNCHRONOUS = {"full": "FULL", "relaxed": "NORMAL"}
_LARGEST_LOG_KEPT = 64 * 2**20
"""Bytes to which the write-ahead log is cut once it has been copied into the file: large snapshots go through it."""
_PAUSE = 0.05  # seconds between two looks for events of other processes


class SQLiteDatabase(Database):
    """One connection to the file."""

    _names_of_streams = schema.STREAMS

    def __init__(self, path: str | os.PathLike[str], durability: str, timeout: float) -> None:
        super().__init__(os.path.abspath(path))  # absolute, so that ":memory:" is an ordinary name
        self._erased = False
        self._tail: Tail | None = None
        self._change = 0  # number of the last transaction that changed something
        self._touched: set[str] = set()  # streams that this transaction may change
        _check_path(Path(self.address))
        _check_not_lost(self.address)
        try:
            self._connection: sqlite3.Connection | None = sqlite3.connect(
                self.address, timeout=timeout, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise in_plain_words(error, self.address) from error
        try:
            self._prepare(durability, timeout)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file; what was appended stays."""
        with self._lock:
            # In a forked process, closing could take the log away from under the process that writes it.
            if self._connection is not None and os.getpid() == self._process:
                self._connection.close()
                self._connection = None
                if self._tail is not None:
                    self._tail.close()

    def last(self, stream: str) -> int:
        """Number of the last event, as the index of events and the note about its end agree."""
        ((last, name, noted, digest),) = self.rows(schema.END, {"stream": stream})
        if stream in self._touched:  # the note is written with the transaction
            return int(last)
        if (noted or 0) != last or (name is not None and _end(stream, noted)["checksum"] != digest):
            raise damaged(self.address, f"stream {stream!r} ends with event {last}, and was noted to end with {noted}")
        return int(last)

    def take_turn(self, stream: str) -> None:
        """A transaction has the whole file to itself from its beginning."""
        if stream not in self._touched:
            self.last(stream)
            self._touched.add(stream)

    def erased(self) -> None:
        """Note that the log is to be emptied after this transaction."""
        self._erased = True

    def problems(self) -> list[str]:
        """What SQLite finds in pages and indexes."""
        return [f"SQLite: {text}" for (text,) in self.rows("PRAGMA integrity_check") if text != "ok"]

    def only_writer(self, name: str) -> AbstractContextManager[None]:
        """Lock a file next to this one."""
        return locked(Path(f"{self.address}-{quote(name, safe='')}"))

    def heard(self, stream: str) -> int:
        """Nothing is heard: SQLite does not tell of other processes."""
        return 0

    def listen(self, stream: str, heard: int, seconds: float) -> None:
        """Wait until it is time to look again."""
        time.sleep(min(seconds, _PAUSE))

    def _begin(self) -> None:
        self._run("BEGIN IMMEDIATE")
        self._before, self._change = self._opened().total_changes, 0
        self._touched.clear()

    def _commit(self) -> None:
        if self._opened().total_changes != self._before:
            if self._files() != self._identity:
                words = "the file was deleted or replaced while it was open; nothing was written; open it again"
                raise EventStoreError(ESTALE, words, self.address)
            for stream in self._touched:
                if last := self.last(stream):
                    self.rows(schema.SET_END, _end(stream, last))
            self.rows(schema.COUNT_CHANGE)
            self._change = self.number(schema.CHANGES)
        self.rows("COMMIT")
        self._touched.clear()

    def _committed(self) -> None:
        if self._change and self._tail is not None:
            self._tail.note(self._change)
        if self._erased:
            with suppress(sqlite3.Error):  # what can't be done while another process reads is done the next time
                ((busy, _, _),) = self._opened().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                self._erased = bool(busy)

    def _in_transaction(self) -> bool:
        return self._opened().in_transaction

    def _undo(self, statements: tuple[str, ...]) -> None:
        if self._depth == 1:
            self._touched.clear()
        if self._connection is not None and self._connection.in_transaction:  # SQLite ends it when the disk is full
            with suppress(sqlite3.Error):
                for statement in statements:
                    self._connection.execute(statement)

    def _run(self, statement: str, values: Mapping[str, Any] = NO_VALUES) -> list[tuple[Any, ...]]:
        try:
            return self._opened().execute(statement, values).fetchall()
        except sqlite3.ProgrammingError:  # a bug of this library
            raise
        except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
            raise in_plain_words(error, self.address) from error

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            raise self.closed()
        return self._connection

    def _files(self) -> list[tuple[int, int]]:
        """What the operating system calls the file and its log, whatever becomes of their names."""
        with suppress(FileNotFoundError):
            return [(found.st_dev, found.st_ino) for found in map(os.stat, (self.address, f"{self.address}-wal"))]
        return []

    def _prepare(self, durability: str, timeout: float) -> None:
        noted = acknowledged(self.address)  # first, or another process may add to it after the look at the file
        try:
            self._run("BEGIN")  # one look at the file, which another process may be creating
            is_new = self._is_new()
            lost = noted - (0 if is_new else self.number(schema.CHANGES))
        finally:
            self._opened().rollback()
        if lost > 0:
            raise EventStoreError(
                EIO,
                f"{lost} transactions that were acknowledged are gone from the end: {DAMAGED}; if you have just "
                f"restored a backup, delete {tail_path(self.address).name}",
                self.address,
            )
        self._use_log(timeout)
        for setting in (
            f"synchronous = {_SYNCHRONOUS[durability]}",
            f"fullfsync = {int(durability == 'full')}",  # macOS: fsync alone does not reach the disk
            "checkpoint_fullfsync = 1",
            "secure_delete = 1",  # what is forgotten is overwritten
            f"journal_size_limit = {_LARGEST_LOG_KEPT}",
        ):
            self.rows(f"PRAGMA {setting}")
        self._run(schema.TABLES)  # from its first use on, the log stays until the last process closes the file
        self._identity = self._files()
        if is_new:
            with self.transaction():
                if self._is_new():  # another process may have been faster
                    self._create_tables()
        if durability == "full":  # otherwise a power cut may take what was noted, which is not damage
            self._tail = Tail(self.address)

    def _is_new(self) -> bool:
        """Whether the file is empty; raises for one that is not an event store of this version."""
        ((application,),) = self._run("PRAGMA application_id")
        ((version,),) = self._run("PRAGMA user_version")
        tables = dict(self._run(schema.TABLES))
        if not (application or version or tables):
            return True
        if application != schema.APPLICATION_ID:
            raise EventStoreError(EINVAL, "the file is a database of another program", self.address)
        check_version(version, self.address)
        if any(tables.get(name) != table for name, table in schema.SCHEMA.items()):
            raise damaged(self.address, "the tables are not those of an event store")
        return False

    def _use_log(self, timeout: float) -> None:
        """Switch to the write-ahead log; with this statement SQLite does not wait for others on every system."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                ((mode,),) = self._run("PRAGMA journal_mode = WAL")
                break
            except EventStoreError as error:
                if error.errno != EAGAIN or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        if mode != "wal":
            raise EventStoreError(
                ENOTSUP, "this disk does not support SQLite's write-ahead log; use a local disk", self.address
            )

    def _create_tables(self) -> None:
        for table in schema.SCHEMA.values():
            self.rows(table)
        self.rows(schema.START_CHANGES)
        self.rows(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        self.rows(f"PRAGMA user_version = {VERSION}")


def _end(stream: str, last: int) -> dict[str, Any]:
    """The note about the end of a stream."""
    return {"stream": stream, "last": last, "checksum": checksum((stream, last), None, None)}


def _check_not_lost(path: str) -> None:
    """Raise if the file is gone that other files belong to: a store that was lost must not look like a new one."""
    words = why_lost(path)
    if words is not None and not os.path.exists(
        path
    ):  # in this order: another process that creates a store begins with this file
        raise EventStoreError(ENOENT, words, path)


def _check_path(path: Path) -> None:
    if not path.parent.is_dir():
        raise EventStoreError(ENOENT, f"the folder {str(path.parent)!r} does not exist", str(path))
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        raise EventStoreError(EISDIR if path.is_dir() else EINVAL, "the path of a file is needed", str(path))
