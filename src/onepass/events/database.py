"""What an event log needs of a database: statements, transactions that are whole or absent, turns, and word of others.

One connection serves all threads, one at a time. What differs between databases is in their own packages; the SQL in
`statements` is the same for all of them, with parameters as ``:name``.
"""

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from errno import EBADF, EINVAL
from typing import Any, ClassVar

from onepass.events import statements
from onepass.events.errors import EventStoreError, damaged

__all__ = ["DURABILITIES", "NO_VALUES", "Database"]

DURABILITIES = ("full", "relaxed")
NO_VALUES: Mapping[str, Any] = {}


class Database(ABC):
    """One connection to a database, for one thread at a time; the lock makes others wait."""

    _names_of_streams: ClassVar[str] = statements.STREAMS

    def __init__(self, address: str) -> None:
        self.address = address
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._depth = 0

    def rows(self, statement: str, values: Mapping[str, Any] = NO_VALUES) -> list[tuple[Any, ...]]:
        """Run one statement and return all its rows."""
        with self._lock:
            self._check_process()
            if self._depth and not self._in_transaction():
                raise EventStoreError(
                    EINVAL, "an earlier error has undone this transaction; begin another", self.address
                )
            return self._run(statement, values)

    def number(self, statement: str, values: Mapping[str, Any] = NO_VALUES) -> int:
        """Run a statement that gives one whole number."""
        ((number,),) = self.rows(statement, values)
        if not isinstance(number, int):
            raise damaged(self.address, "the number of an event is not a number")
        return number

    def last(self, stream: str) -> int:
        """Number of the last event of a stream, 0 if it has had none."""
        return self.number(statements.LAST, {"stream": stream})

    def streams(self) -> list[str]:
        """Names of all streams, sorted."""
        names = [name for (name,) in self.rows(self._names_of_streams)]
        if not all(isinstance(name, str) for name in names):
            raise damaged(self.address, "the name of a stream is not text")
        return names

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything in the block is written when it ends, or nothing if it raises; within another, as a part of it."""
        with self._lock:
            self._check_process()
            outermost = self._depth == 0
            self._depth += 1
            try:
                self._begin() if outermost else self.rows("SAVEPOINT part")
                yield
                self._commit() if outermost else self.rows("RELEASE part")
            except BaseException:  # also Ctrl-C
                self._undo(("ROLLBACK",) if outermost else ("ROLLBACK TO part", "RELEASE part"))
                raise
            finally:
                self._depth -= 1
            if outermost:
                self._committed()

    @contextmanager
    def one_change(self) -> Iterator[None]:
        """A transaction for a block that changes but one row, and so needs no part of its own within another."""
        with self._lock:
            if self._depth:
                yield
            else:
                with self.transaction():
                    yield

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise EventStoreError(EBADF, "the store was opened before a fork; open it again", self.address)

    def closed(self) -> EventStoreError:
        """The error for a call after `close`."""
        return EventStoreError(EBADF, "this event store is closed; open it again", self.address)

    @abstractmethod
    def close(self) -> None:
        """Close the connection; what was appended stays."""

    @abstractmethod
    def take_turn(self, stream: str) -> None:
        """Within a transaction: wait until no other process is about to change a stream, and keep others waiting."""

    @abstractmethod
    def erased(self) -> None:
        """Note that something was deleted, which must not survive in any log after this transaction either."""

    @abstractmethod
    def problems(self) -> list[str]:
        """What the database itself finds wrong with its files."""

    @abstractmethod
    def only_writer(self, name: str) -> AbstractContextManager[None]:
        """Hold a lock that only one can have at a time; raises LockedError if it is taken."""

    @abstractmethod
    def heard(self, stream: str) -> int:
        """A number that changes with what is heard of a stream; from this call on nothing is missed."""

    @abstractmethod
    def listen(self, stream: str, heard: int, seconds: float) -> None:
        """Wait until that number has changed, but no longer than a time; may return early."""

    @abstractmethod
    def _run(self, statement: str, values: Mapping[str, Any] = NO_VALUES) -> list[tuple[Any, ...]]:
        """Run one statement; raises EventStoreError."""

    @abstractmethod
    def _in_transaction(self) -> bool:
        """Whether a transaction is open in which statements can go on."""

    @abstractmethod
    def _begin(self) -> None:
        """Begin a transaction."""

    @abstractmethod
    def _commit(self) -> None:
        """Write the transaction, so that it is durable on return."""

    @abstractmethod
    def _undo(self, statements: tuple[str, ...]) -> None:
        """Undo a transaction or its part by these statements, unless an error has done so already; never raises."""

    @abstractmethod
    def _committed(self) -> None:
        """What is to be done once a transaction is durable; never raises."""
