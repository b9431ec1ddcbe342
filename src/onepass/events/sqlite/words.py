"""What SQLite's errors mean for the caller."""

import sqlite3
from errno import EACCES, EAGAIN, EBADMSG, EFBIG, EIO, ENOSPC, EROFS

from onepass.events.errors import DAMAGED, NOTHING_WRITTEN, EventStoreError

__all__ = ["in_plain_words"]

# Keys are SQLite's primary result codes; an extended one comes first.
_WORDS = {
    sqlite3.SQLITE_IOERR_SHMSIZE: (
        ENOSPC,
        "the disk is full: SQLite needs 32 kB next to the file, also for reading; make room",
    ),
    sqlite3.SQLITE_FULL: (ENOSPC, "the disk is full" + NOTHING_WRITTEN),
    sqlite3.SQLITE_READONLY: (
        EROFS,
        "the file, its folder or its disk is read-only" + NOTHING_WRITTEN,
    ),
    sqlite3.SQLITE_BUSY: (EAGAIN, "another process kept the file locked for too long" + NOTHING_WRITTEN),
    sqlite3.SQLITE_LOCKED: (EAGAIN, "another connection kept a table locked" + NOTHING_WRITTEN),
    sqlite3.SQLITE_CANTOPEN: (EACCES, "the file can't be opened: it and its folder must be readable and writable"),
    sqlite3.SQLITE_PERM: (EACCES, "the file can't be opened: it and its folder must be readable and writable"),
    sqlite3.SQLITE_TOOBIG: (EFBIG, "the content is larger than SQLite can store" + NOTHING_WRITTEN),
    sqlite3.SQLITE_NOTADB: (EBADMSG, "the file is not an event store, or its beginning is damaged"),
    sqlite3.SQLITE_CORRUPT: (EBADMSG, DAMAGED),
    sqlite3.SQLITE_CONSTRAINT: (EBADMSG, DAMAGED),  # a number that an index has lost is there after all
    # After a failed fsync it is unknown what has reached the disk; keys make it safe to append again.
    sqlite3.SQLITE_IOERR: (EIO, "the disk reports an error; nothing was acknowledged: try the same again later"),
}


def in_plain_words(error: Exception, path: str) -> EventStoreError:
    """The error that says what an error of SQLite means for the caller."""
    # Python's module gives no code where it fails itself: at a blob of 2 GB, and at text or messages not in UTF-8.
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        too_large = isinstance(error, OverflowError | sqlite3.DataError)
        code = sqlite3.SQLITE_TOOBIG if too_large else sqlite3.SQLITE_CORRUPT
    unknown = (EIO, f"SQLite reports {str(error)!r}")
    number, words = _WORDS.get(code) or _WORDS.get(code & 0xFF, unknown)
    return EventStoreError(number, words, path)
