"""What can go wrong with an event store, in words: one exception for the file, one for a key with two meanings."""

import sqlite3
from errno import EACCES, EAGAIN, EFBIG, EIO, ENOSPC, EROFS

__all__ = ["ConflictError", "EventStoreError", "damaged", "in_plain_words"]

_NOTHING_WRITTEN = "; nothing was written"
_DAMAGED = "the file is damaged; restore it from a backup"

# Keys are SQLite's primary result codes.
_WORDS = {
    sqlite3.SQLITE_FULL: (ENOSPC, "the disk is full" + _NOTHING_WRITTEN),
    sqlite3.SQLITE_READONLY: (
        EROFS,
        "the file, its folder or its disk is read-only" + _NOTHING_WRITTEN,
    ),
    sqlite3.SQLITE_BUSY: (EAGAIN, "another process kept the file locked for too long" + _NOTHING_WRITTEN),
    sqlite3.SQLITE_LOCKED: (EAGAIN, "another connection kept a table locked" + _NOTHING_WRITTEN),
    sqlite3.SQLITE_CANTOPEN: (EACCES, "the file can't be opened: it and its folder must be readable and writable"),
    sqlite3.SQLITE_PERM: (EACCES, "the file can't be opened: it and its folder must be readable and writable"),
    sqlite3.SQLITE_TOOBIG: (EFBIG, "the content is larger than SQLite can store" + _NOTHING_WRITTEN),
    sqlite3.SQLITE_NOTADB: (EIO, "the file is not an event store, or its beginning is damaged"),
    sqlite3.SQLITE_CORRUPT: (EIO, _DAMAGED),
    sqlite3.SQLITE_CONSTRAINT: (EIO, _DAMAGED),  # a number that an index has lost is there after all
    # After a failed fsync nobody can tell what has reached the disk; keys make it safe to append again.
    sqlite3.SQLITE_IOERR: (EIO, "the disk reports an error; nothing was acknowledged: append the same events again"),
}


class EventStoreError(OSError):
    """The file of an event store can't be opened, read or written; the message says why, and ``errno`` what kind.

    A full disk has ``errno`` ENOSPC, a file that can't be written EROFS or EACCES, one that others keep locked EAGAIN,
    a damaged one EIO.
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


def damaged(path: str, what: str) -> EventStoreError:
    """The error for content that is not what was written."""
    return EventStoreError(EIO, f"{what}: {_DAMAGED}", path)


def in_plain_words(error: Exception, path: str) -> EventStoreError:
    """The error that says what an error of SQLite means for the caller."""
    # Python's module gives no code where it fails itself: at a blob of 2 GB, and at text or messages not in UTF-8.
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        too_large = isinstance(error, OverflowError | sqlite3.DataError)
        code = sqlite3.SQLITE_TOOBIG if too_large else sqlite3.SQLITE_CORRUPT
    number, words = _WORDS.get(code & 0xFF, (EIO, f"SQLite reports {str(error)!r}"))
    return EventStoreError(number, words, path)
