"""What PostgreSQL's errors mean for the caller."""

from errno import EACCES, EAGAIN, EBADMSG, ECONNREFUSED, ECONNRESET, EFBIG, EIO, ENOENT, ENOSPC, EROFS

import psycopg

from onepass.events.errors import DAMAGED, NOTHING_WRITTEN, EventStoreError

__all__ = ["in_plain_words", "lost", "unreachable"]

# Keys are SQLSTATE codes, or the classes that are their first two characters.
_WORDS = {
    "53100": (ENOSPC, "the server's disk is full" + NOTHING_WRITTEN),
    "25006": (EROFS, "the server is read-only, as a standby is" + NOTHING_WRITTEN),
    "42501": (EACCES, "the user has no right to do this on the server: it must own the schema onepass, or create it"),
    "55P03": (EAGAIN, "another process kept the stream locked for too long" + NOTHING_WRITTEN),
    "40P01": (EAGAIN, "another process changed the same streams in another order" + NOTHING_WRITTEN),
    "57014": (EAGAIN, "the server took too long or was asked to stop" + NOTHING_WRITTEN),
    "54": (EFBIG, "a name or the content is larger than PostgreSQL can store" + NOTHING_WRITTEN),
    "XX": (EBADMSG, DAMAGED),
    "23": (EBADMSG, DAMAGED),  # a number that an index has lost is there after all
}
_NO_CONNECTION = {  # the server says in words alone why it refuses one
    "password authentication failed": EACCES,
    "no password supplied": EACCES,
    "no pg_hba.conf entry": EACCES,
    "does not exist": ENOENT,
    "too many clients": EAGAIN,
}


def in_plain_words(error: psycopg.Error, address: str) -> EventStoreError:
    """The error that says what an error of PostgreSQL means for the caller."""
    code = error.sqlstate or ""
    number, words = _WORDS.get(code) or _WORDS.get(code[:2]) or (EIO, f"PostgreSQL reports {_first_line(error)!r}")
    return EventStoreError(number, words, address)


def lost(address: str) -> EventStoreError:
    """The error for a connection that ended; it is unknown whether a last COMMIT has reached the server."""
    words = "the connection to the server was lost; nothing was acknowledged: try the same again later"
    return EventStoreError(ECONNRESET, words, address)


def unreachable(error: psycopg.Error, address: str) -> EventStoreError:
    """The error for a connection that was not made."""
    reason = _first_line(error)
    number = next((number for words, number in _NO_CONNECTION.items() if words in reason), ECONNREFUSED)
    return EventStoreError(number, f"the server can't be used: {reason}", address)


def _first_line(error: psycopg.Error) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
