"""Exceptions of an event store: one for the file or database, one for a key that was used with other content."""

from errno import EAGAIN, EBADMSG, ECONNREFUSED, ECONNRESET, ENODATA, ENOTSUP

from onepass.events.statements import VERSION

__all__ = ["DAMAGED", "NOTHING_WRITTEN", "ConflictError", "EventStoreError", "check_version", "damaged"]

NOTHING_WRITTEN = "; nothing was written"
_TEMPORARY = {EAGAIN, ECONNREFUSED, ECONNRESET}
_OF_CONTENT = {EBADMSG, ENODATA}
DAMAGED = "the event store is damaged; restore it from a backup"


class EventStoreError(OSError):
    """An event store can't be opened, read or written; the message says why, and ``errno`` says what kind of error.

    ENOSPC is a full disk, EROFS or EACCES a store that can't be written, EAGAIN one that is locked by another process,
    EIO a disk or server that reports an error, EBADMSG damaged content, ENODATA content that was pruned, ECONNREFUSED a
    server that can't be reached, ECONNRESET a lost connection.
    """

    @property
    def is_temporary(self) -> bool:
        """Whether the store is locked or away, so that the same call may succeed later without anything being changed.

        Examples
        --------
        >>> from errno import ECONNRESET, ENOSPC
        >>> from onepass.events import EventStoreError
        >>> EventStoreError(ECONNRESET, "the connection was lost").is_temporary
        True
        >>> EventStoreError(ENOSPC, "the disk is full").is_temporary
        False
        """
        return self.errno in _TEMPORARY

    @property
    def is_of_content(self) -> bool:
        """Whether what was to be read is damaged or was pruned: other events may still be read and written.

        Examples
        --------
        >>> from errno import EBADMSG, EIO
        >>> from onepass.events import EventStoreError
        >>> EventStoreError(EBADMSG, "event 3 of stream 'price' is not what was written").is_of_content
        True
        >>> EventStoreError(EIO, "the disk reports an error").is_of_content
        False
        """
        return self.errno in _OF_CONTENT


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
            f"{number}; use another key for another event"
        )
        self.stream = stream
        self.kind = kind
        self.key = key
        self.number = number


def damaged(address: str, what: str) -> EventStoreError:
    """The error for content that is not what was written."""
    return EventStoreError(EBADMSG, f"{what}: {DAMAGED}", address)


def check_version(version: int, address: str) -> None:
    """Raise unless the tables of an event store are of this version."""
    if version != VERSION:
        which = "a newer onepass" if version > VERSION else "the onepass that wrote it"
        words = f"the event store has version {version}, and this onepass reads version {VERSION}; use {which}"
        raise EventStoreError(ENOTSUP, words, address)
