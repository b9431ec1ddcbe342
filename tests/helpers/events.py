"""Places where events can be kept, the same for all tests of event logs, and what the tests do there."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from onepass.events import EventLog
from tests.helpers.postgres_server import PostgresServer

__all__ = ["Place", "PostgresPlace", "SQLitePlace", "appending", "fill", "in_threads", "numbers", "undone"]

_SOURCE = Path(__file__).parents[2] / "src"
_PROGRAM = """
import sys
from onepass.events import open_event_log
with open_event_log(sys.argv[1]) as store:
    for i in range(int(sys.argv[3])):
        print(store.append("s", "row", f"{sys.argv[2]} {i}", {"i": i}, b"x" * 500).number, flush=True)
"""


class Place(Protocol):
    """Where events are kept."""

    @property
    def target(self) -> str:
        """What `open_event_log` wants."""

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """Run SQL behind the store's back."""

    def clear(self) -> None:
        """Delete everything."""


class SQLitePlace:
    """A file."""

    def __init__(self, path: Path | str) -> None:
        self.target = str(path)

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        with sqlite3.connect(self.target) as connection:
            rows = connection.execute(statement).fetchall()
        connection.close()
        return rows

    def clear(self) -> None:
        for end in ("", "-wal", "-shm", "-tail"):
            Path(self.target + end).unlink(missing_ok=True)


class PostgresPlace:
    """A database on a server."""

    def __init__(self, server: PostgresServer) -> None:
        self.target = server.address()
        self._server = server

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        return self._server.execute(statement)

    def clear(self) -> None:
        self.execute("SET lock_timeout = 5000; DROP SCHEMA IF EXISTS onepass CASCADE")


def fill(store: EventLog, count: int, stream: str = "s") -> None:
    with store.transaction():
        for i in range(count):
            store.append(stream, "row", str(i), {"i": i}, b"x" * 50)


def numbers(store: EventLog, stream: str = "s", after: int = 0) -> list[int]:
    return [event.number for event in store.events(stream, after)]


@contextmanager
def undone(store: EventLog) -> Iterator[None]:
    """A transaction that fails at its end."""
    with suppress(ZeroDivisionError), store.transaction():
        yield
        raise ZeroDivisionError


def in_threads(work: Callable[[str], None]) -> None:
    """Run work("a") to work("d") at the same time; an error in one of them fails the test."""
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, "abcd")) == [None] * 4


def appending(target: Path | str, name: str, count: int) -> "subprocess.Popen[bytes]":
    """A process that appends events and prints their numbers once they are acknowledged."""
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(target), name, str(count)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(_SOURCE)},
    )
