"""Word of new events from the server, for all threads of a store by one connection.

Whichever thread waits first reads from the connection, and wakes the others; when it goes, the next one takes over.
"""

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import psycopg

__all__ = ["Connection", "Listener"]

Connection = psycopg.Connection[tuple[Any, ...]]

_LONGEST = 0.5  # seconds of one wait, so that `close` is noticed


class Listener:
    """Counts the notifications of each stream."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._connection: Connection | None = None
        self._condition = threading.Condition()
        self._counts: Counter[str] = Counter()
        self._reading = self._closed = False

    def heard(self, stream: str) -> int:
        """How often a stream was named so far; from this call on nothing is missed."""
        with self._condition:
            if self._connection is None and not self._closed:
                self._connection = self._connect()
            return self._counts[stream]

    def wait(self, stream: str, heard: int, seconds: float) -> None:
        """Wait until that number has changed, but no longer than a time; may return early."""
        seconds = min(seconds, _LONGEST)
        with self._condition:
            if self._counts[stream] != heard or self._connection is None:
                return
            if self._reading:
                self._condition.wait(seconds)
                return
            self._reading, connection = True, self._connection
        named: list[str] = []
        try:
            named = [notice.payload for notice in connection.notifies(timeout=seconds, stop_after=1)]
        except psycopg.Error:  # a lost connection: waiters look at the stream and listen again
            connection.close()
        finally:
            with self._condition:
                self._reading = False
                self._counts.update(named)
                if self._closed or connection.closed:
                    connection.close()
                    self._connection = None
                self._condition.notify_all()

    def close(self) -> None:
        """Close the connection; a thread that is waiting does it within half a second."""
        with self._condition:
            self._closed = True
            if self._connection is not None and not self._reading:
                self._connection.close()
                self._connection = None
            self._condition.notify_all()
