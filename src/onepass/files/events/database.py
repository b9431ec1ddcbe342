"""The SQLite file below an event store: opened with care, written in transactions that are whole or absent.

Events go to SQLite's write-ahead log, so that readers and the writer never wait for each other, and every transaction
is synced to the disk before it counts. A file that is something else, or from a newer version of this library, is
refused before anything in it is changed.
"""

import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from errno import EAGAIN, EBADF, EINVAL, EISDIR, ENOENT, ENOTSUP, ESTALE
from pathlib import Path
from typing import Any

from onepass.files.events import statements
from onepass.files.events.errors import EventStoreError, damaged, in_plain_words
from onepass.files.events.tail import Tail, acknowledged, tail_path

__all__ = ["DURABILITIES", "Database"]

_NO_VALUES: dict[str, Any] = {}
DURABILITIES = ("full", "relaxed")
_SYNCHRONOUS = {"full": "FULL", "relaxed": "NORMAL"}
_LARGEST_LOG_KEPT = 64 * 2**20
"""Bytes to which the write-ahead log is cut once it has been copied into the file: large snapshots go through it."""


class Database:
    """One connection to the file, for one thread at a time; the lock makes others wait."""

    def __init__(self, path: str | os.PathLike[str], durability: str, timeout: float) -> None:
        self.path = os.path.abspath(path)  # absolute, so that ":memory:" is an ordinary name
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._depth = 0
        self._erased = False
        self._tail: Tail | None = None
        _check_path(Path(self.path))
        if not os.path.exists(self.path):  # what is noted there belongs to a file that was deleted
            tail_path(self.path).unlink(missing_ok=True)
        try:
            self._connection: sqlite3.Connection | None = sqlite3.connect(
                self.path, timeout=timeout, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise in_plain_words(error, self.path) from error
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

    def rows(self, statement: str, values: Mapping[str, Any] = _NO_VALUES) -> list[tuple[Any, ...]]:
        """Run one statement and return all its rows."""
        with self._lock:
            if self._depth and not self._opened().in_transaction:
                raise EventStoreError(EINVAL, "an earlier error has undone this transaction; begin another", self.path)
            return self._run(statement, values)

    def number(self, statement: str, values: Mapping[str, Any] = _NO_VALUES) -> int:
        """Run a statement that gives one whole number."""
        ((number,),) = self.rows(statement, values)
        if not isinstance(number, int):
            raise damaged(self.path, "a number of an event is no number")
        return number

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything in the block is written when it ends, or nothing if it raises; within another, as a part of it."""
        with self._lock:
            outermost = self._depth == 0
            begin, end, undo = _OUTER if outermost else _INNER
            connection, change = self._opened(), 0
            self._depth += 1
            try:
                self._run(begin)
                before = connection.total_changes
                yield
                if outermost and connection.total_changes != before:
                    change = self._counted()
                self.rows(end)
            except BaseException:  # also Ctrl-C
                if connection.in_transaction:  # SQLite itself ends it when the disk is full
                    with suppress(sqlite3.Error):
                        for statement in undo:
                            connection.execute(statement)
                raise
            finally:
                self._depth -= 1
            if change and self._tail is not None:
                self._tail.note(change)
            if self._erased and outermost:
                self._empty_log(connection)

    @contextmanager
    def one_change(self) -> Iterator[None]:
        """A transaction for a block that changes but one row, and so needs no part of its own within another."""
        with self._lock:
            if self._depth:
                yield
            else:
                with self.transaction():
                    yield

    def erased(self) -> None:
        """Note that something was deleted, which must not survive in the log after this transaction either."""
        self._erased = True

    def _counted(self) -> int:
        """The number of this transaction, as the last thing before it is written."""
        if self._files() != self._identity:
            raise EventStoreError(
                ESTALE,
                "the file was deleted or replaced while it was open; nothing was written; open it again",
                self.path,
            )
        self.rows(statements.COUNT_CHANGE)
        return self.number(statements.CHANGES)

    def _files(self) -> list[tuple[int, int]]:
        """What the operating system calls the file and its log, whatever becomes of their names."""
        with suppress(FileNotFoundError):
            return [(found.st_dev, found.st_ino) for found in map(os.stat, (self.path, f"{self.path}-wal"))]
        return []

    def _empty_log(self, connection: sqlite3.Connection) -> None:
        with suppress(sqlite3.Error):  # what can't be done while another process reads is done with the next deletion
            ((busy, _, _),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            self._erased = bool(busy)

    def _run(self, statement: str, values: Mapping[str, Any] = _NO_VALUES) -> list[tuple[Any, ...]]:
        try:
            return self._opened().execute(statement, values).fetchall()
        except sqlite3.ProgrammingError:  # a bug of ours
            raise
        except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
            raise in_plain_words(error, self.path) from error

    def _opened(self) -> sqlite3.Connection:
        if os.getpid() != self._process:
            raise EventStoreError(EBADF, "the file was opened before a fork; open it again", self.path)
        if self._connection is None:
            raise EventStoreError(EBADF, "this event store is closed; open it again", self.path)
        return self._connection

    def _prepare(self, durability: str, timeout: float) -> None:
        noted = acknowledged(self.path)  # first, or another process may add to it after the look at the file
        try:
            self._run("BEGIN")  # one look at the file, which another process may be creating
            is_new = self._is_new()
            lost = noted - (0 if is_new else self.number(statements.CHANGES))
        finally:
            self._opened().rollback()
        if lost > 0:
            raise damaged(
                self.path,
                f"{lost} transactions that were acknowledged are gone from the end (an older backup opens once "
                f"{tail_path(self.path).name} is deleted)",
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
        self._run(statements.TABLES)  # from its first use on, the log stays until the last process closes the file
        self._identity = self._files()
        if is_new:
            with self.transaction():
                if self._is_new():  # another process may have been faster
                    self._create_tables()
        if durability == "full":  # otherwise a power cut may take what was noted, which is no damage
            self._tail = Tail(self.path)

    def _is_new(self) -> bool:
        """Whether the file is empty; raises for one that is not an event store of this version."""
        ((application,),) = self._run("PRAGMA application_id")
        ((version,),) = self._run("PRAGMA user_version")
        tables = dict(self._run(statements.TABLES))
        if not (application or version or tables):
            return True
        if application != statements.APPLICATION_ID:
            raise EventStoreError(EINVAL, "the file is a database of another program", self.path)
        if version != statements.VERSION:
            which = "a newer onepass" if version > statements.VERSION else "the onepass that wrote it"
            raise EventStoreError(
                ENOTSUP,
                f"the file is an event store of version {version}, and this onepass reads version "
                f"{statements.VERSION}; use {which}",
                self.path,
            )
        if any(tables.get(name) != table for name, table in statements.SCHEMA.items()):
            raise damaged(self.path, "the tables are not those of an event store")
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
            raise EventStoreError(ENOTSUP, "this disk can't hold a write-ahead log; use a local one", self.path)

    def _create_tables(self) -> None:
        for table in statements.SCHEMA.values():
            self.rows(table)
        self.rows(statements.START_CHANGES)
        self.rows(f"PRAGMA application_id = {statements.APPLICATION_ID}")
        self.rows(f"PRAGMA user_version = {statements.VERSION}")


_OUTER = ("BEGIN IMMEDIATE", "COMMIT", ("ROLLBACK",))
_INNER = ("SAVEPOINT part", "RELEASE part", ("ROLLBACK TO part", "RELEASE part"))


def _check_path(path: Path) -> None:
    if not path.parent.is_dir():
        raise EventStoreError(ENOENT, f"the folder {str(path.parent)!r} does not exist", str(path))
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        raise EventStoreError(EISDIR if path.is_dir() else EINVAL, "the path of a file is needed", str(path))
