"""Snapshots in an event store: each names the event it stands at, and a damaged one gives way to the one before."""

import warnings
from collections.abc import Iterator

from onepass.files.events import statements
from onepass.files.events.database import Database
from onepass.files.events.errors import damaged
from onepass.files.events.records import Snapshot, checksum

__all__ = ["latest", "save", "snapshots"]

_KEPT = 3  # a damaged one leaves two to fall back on


def save(database: Database, snapshot: Snapshot) -> None:
    """Write a snapshot, and delete those that are too many."""
    stream, after = snapshot.stream, snapshot.after
    row = {**snapshot._asdict(), "checksum": checksum((stream, after, snapshot.time), None, snapshot.content)}
    with database.transaction():
        last = database.number(statements.LAST, row)
        first = max([database.number(statements.PRUNED, row), *(number for number, _ in snapshots(database, stream))])
        if not first <= after <= last:
            allowed = f"from {first}, where the latest snapshot stands, to {last}, the last event"
            raise ValueError(f"after must be the number of an event of stream {stream!r} {allowed}, got {after}")
        database.rows(statements.INSERT_SNAPSHOT, row)
        database.rows(statements.KEEP_SNAPSHOTS, {"stream": stream, "keep": _KEPT})


def latest(database: Database, stream: str) -> Snapshot | None:
    """The last sound snapshot of a stream; warns of damaged ones after it."""
    last = database.number(statements.LAST, {"stream": stream})
    for after, snapshot in snapshots(database, stream):
        if after > last:
            raise damaged(database.path, f"stream {stream!r} ends with event {last}, its snapshot stands at {after}")
        if snapshot is not None:
            return snapshot
        warnings.warn(
            f"{database.path}: the snapshot of stream {stream!r} after event {after} is damaged; using the one before",
            RuntimeWarning,
            stacklevel=3,
        )
    return None


def snapshots(database: Database, stream: str) -> Iterator[tuple[int, Snapshot | None]]:
    """Numbers of the events at which snapshots stand, latest first, and the snapshots; None for a damaged one."""
    below = 2**63 - 1
    while rows := database.rows(statements.SNAPSHOT_BEFORE, {"stream": stream, "below": below}):
        ((below, time, content, digest),) = rows
        sound = isinstance(content, bytes) and checksum((stream, below, time), None, content) == digest
        yield below, Snapshot(stream, below, content, time) if sound else None
