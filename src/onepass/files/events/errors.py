"""What can go wrong with an event store, in words: one exception for where it is, one for a key with two meanings."""

from errno import EIO, ENOTSUP

from onepass.files.events.statements import VERSION

__all__ = ["DAMAGED", "NOTHING_WRITTEN", "ConflictError", "EventStoreError", "check_version", "damaged"]

NOTHING_WRITTEN = "; nothing was written"
DAMAGED = "the event store is damaged; restore it from a backup"


class EventStoreError(OSError):
    """An event store can't be opened, read or written; the message says why, and ``errno`` what kind.

    A full disk has ``errno`` ENOSPC, a store that can't be written EROFS or EACCES, one that others keep locked EAGAIN,
    a damaged one EIO; a server that can't be reached has ECONNREFUSED, a lost connection ECONNRESET.
    """


class ConflictError(ValueError):
    """The same stream, kind and key were appended before with other content; nothing was written.

    Attributes
    ----------
    stream, kind, key : name of the event
    number : of the event that is there
    """

    def __init__(self, stream: str, kind: str, key: str, number: int) -> None:
        super().__init__(
            f"key {key!r} of kind {kind!r} in stream {stream!r} is already there with other content, as event "
            f"{number}; another event needs another key"
        )
        self.stream, self.kind, self.key, self.number = stream, kind, key, number


def damaged(address: str, what: str) -> EventStoreError:
    """The error for content that is not what was written."""
    return EventStoreError(EIO, f"{what}: {DAMAGED}", address)


def check_version(version: int, address: str) -> None:
    """Raise unless the tables of an event store are of this version."""
    if version != VERSION:
        which = "a newer onepass" if version > VERSION else "the onepass that wrote it"
        words = f"the event store has version {version}, and this onepass reads version {VERSION}; use {which}"
        raise EventStoreError(ENOTSUP, words, address)
