"""Long results in batches: rows are read as they are needed, and none of them keeps the database busy meanwhile."""

from collections.abc import Iterator
from typing import Any

from onepass.events import statements
from onepass.events.database import Database
from onepass.events.errors import damaged

__all__ = ["LAST_POSSIBLE", "event_rows", "open_rows"]

LAST_POSSIBLE = 2**63 - 1
_ROWS_AT_ONCE = 100


def event_rows(
    database: Database, stream: str, after: int = 0, until: int = LAST_POSSIBLE
) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Numbers and rows of the events of a stream above ``after``, up to and with ``until``."""
    values = {"stream": stream, "until": until, "limit": _ROWS_AT_ONCE}
    while rows := database.rows(statements.READ, {**values, "after": after}):
        for row in rows:
            after = _next(database, stream, after, row[1])
            yield after, row


def open_rows(database: Database, stream: str, kind: str, without: str) -> Iterator[tuple[str, float]]:
    """Keys and times of the events of a kind that have no counterpart of the kind ``without``."""
    values, after = {"stream": stream, "kind": kind, "without": without, "limit": _ROWS_AT_ONCE}, 0
    while rows := database.rows(statements.OPEN_KEYS, {**values, "after": after}):
        for number, key, time in rows:
            after = _next(database, stream, after, number)
            yield key, time


def _next(database: Database, stream: str, after: int, number: int) -> int:
    """The number of a row, which is above that of the row before: a damaged index may give one again and again."""
    if number <= after:
        raise damaged(database.address, f"events of stream {stream!r} are out of order: {number} comes after {after}")
    return number
