"""Snapshots in an event store: each names its event, and a damaged one is replaced by the one before."""

import warnings
from collections.abc import Iterator

from onepass.events import statements
from onepass.events.database import Database
from onepass.events.errors import damaged
from onepass.events.reading import LAST_POSSIBLE
from onepass.events.records import Snapshot, checksum

__all__ = ["delete", "delete_unusable", "save", "snapshots", "sound_snapshot"]

_KEPT = 3  # a damaged one leaves two to fall back on


def save(database: Database, snapshot: Snapshot) -> None:
    """Write a snapshot, and delete those that are too many."""
    stream, after = snapshot.stream, snapshot.after
    with database.transaction():
        database.take_turn(stream)
        last, pruned = database.last(stream), database.number(statements.PRUNED, {"stream": stream})
        latest, present = next(snapshots(database, stream), (0, None))
        first = max(pruned, latest)
        if not first <= after <= last:
            allowed = f"from {first}, where the latest snapshot was taken, to {last}, the last event"
            raise ValueError(f"after must be the number of an event of stream {stream!r} {allowed}, got {after}")
        if present is not None and present.after == after and present.pinned:
            snapshot = snapshot._replace(pinned=True)
        row = {**snapshot._asdict(), "pinned": int(snapshot.pinned), "checksum": _checksum(snapshot)}
        database.rows(statements.INSERT_SNAPSHOT, row)
        database.rows(statements.KEEP_SNAPSHOTS, {"stream": stream, "keep": _KEPT})


def sound_snapshot(database: Database, stream: str, number: int = LAST_POSSIBLE) -> Snapshot | None:
    """The last sound snapshot of a stream that was taken at an event or before it; warns of damaged ones after it."""
    last = database.last(stream)
    for after, snapshot in snapshots(database, stream, number):
        if after > last:
            raise damaged(
                database.address, f"stream {stream!r} ends with event {last}, its snapshot was taken at {after}"
            )
        if snapshot is not None:
            return snapshot
        which = f"the snapshot of stream {stream!r} after event {after}"
        warnings.warn(
            f"{database.address}: {which} is damaged; using the one before",
            RuntimeWarning,
            stacklevel=3,
        )
    return None


def delete(database: Database, stream: str, after: int) -> bool:
    """Delete one snapshot, but not the last sound one from which a pruned stream can be rebuilt."""
    with database.transaction():
        database.take_turn(stream)
        numbers = {number: snapshot is not None for number, snapshot in snapshots(database, stream)}
        if after not in numbers:
            return False
        pruned = database.number(statements.PRUNED, {"stream": stream})
        others = [number for number, sound in numbers.items() if sound and number != after]
        if pruned and max(others, default=0) < pruned:
            raise ValueError(
                f"after must not be {after}: events 1 to {pruned} of stream {stream!r} were pruned, and no other "
                "snapshot was taken after them; save another first"
            )
        database.rows(statements.DELETE_SNAPSHOT, {"stream": stream, "after": after})
        database.erased()
    return True


def delete_unusable(database: Database, stream: str, after: int) -> None:
    """Delete the snapshots that are damaged or that include events above a number."""
    for number, snapshot in list(snapshots(database, stream)):
        if snapshot is None or number > after:
            database.rows(statements.DELETE_SNAPSHOT, {"stream": stream, "after": number})


def snapshots(database: Database, stream: str, until: int = LAST_POSSIBLE) -> Iterator[tuple[int, Snapshot | None]]:
    """Numbers of the events at which there are snapshots, latest first, and the snapshots; None for a damaged one."""
    while rows := database.rows(statements.SNAPSHOT_UNTIL, {"stream": stream, "until": until}):
        ((after, time, content, pinned, digest),) = rows
        snapshot = Snapshot(stream, after, content, time, bool(pinned))
        yield after, snapshot if isinstance(content, bytes) and _checksum(snapshot) == digest else None
        until = after - 1


def _checksum(snapshot: Snapshot) -> bytes:
    return checksum((snapshot.stream, snapshot.after, snapshot.time, snapshot.pinned), None, snapshot.content)
