"""A look at a whole event store, for damage of any kind."""

from collections.abc import Iterator
from contextlib import contextmanager

from onepass.events import statements
from onepass.events.database import Database
from onepass.events.errors import EventStoreError
from onepass.events.reading import event_rows
from onepass.events.records import decoded
from onepass.events.snapshots import snapshots

__all__ = ["problems"]


def problems(database: Database) -> list[str]:
    """What is wrong: pages and indexes, checksums, missing events, snapshots."""
    found: list[str] = []
    with _noting(found):
        found += database.problems()
        for stream in database.streams():
            with _noting(found):
                found += _in_events(database, stream)
            with _noting(found):
                found += _in_snapshots(database, stream)
    return found


@contextmanager
def _noting(found: list[str]) -> Iterator[None]:
    """Where it is so damaged that nothing more can be read, that is what is found."""
    try:
        yield
    except EventStoreError as error:
        found.append(str(error.strerror))


def _in_events(database: Database, stream: str) -> list[str]:
    found = []
    before = database.number(statements.PRUNED, {"stream": stream})
    for number, row in event_rows(database, stream):
        if number != before + 1:
            found.append(f"stream {stream!r}: event {number} comes after event {before}")
        if decoded(row) is None:
            found.append(f"stream {stream!r}: event {number} is not what was written")
        before = number
    if before < database.last(stream):
        found.append(f"stream {stream!r}: event {before + 1} is missing")
    return found


def _in_snapshots(database: Database, stream: str) -> list[str]:
    found = []
    last = database.last(stream)
    for after, snapshot in snapshots(database, stream):
        if snapshot is None:
            found.append(f"stream {stream!r}: the snapshot after event {after} is not what was written")
        if after > last:
            found.append(f"stream {stream!r}: a snapshot was taken at event {after}, but the last event is {last}")
    return found
