"""How many changes of a file were acknowledged, noted outside of it, so that a loss at its end is noticed.

SQLite reads its write-ahead log up to the first byte that is not as it was written and drops the rest without a word,
as it must after a crash. A damaged log therefore looks like a shorter one. The file ``NAME-tail`` knows better: each
transaction is counted in the database, and once it is durable the count is noted there. It is not synced, since that
would take as long as the transaction itself: after a power cut it may be behind, and is never ahead.
"""

import os
import struct
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from onepass.events.errors import EventStoreError

__all__ = ["Tail", "acknowledged", "tail_path", "why_lost"]

_NUMBER = struct.Struct(">Q8s")  # a count and its checksum
_PLACES = 64  # each count has one of its own, so that processes never write the same, and the highest counts


def tail_path(path: str) -> Path:
    """Where the count for a file is."""
    return Path(f"{path}-tail")


def acknowledged(path: str) -> int:
    """The highest count that was noted for a file; 0 if there is none."""
    try:
        content = tail_path(path).read_bytes()
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise _unusable(path, error) from error
    whole = content[: len(content) // _NUMBER.size * _NUMBER.size]
    return max((number for number, digest in _NUMBER.iter_unpack(whole) if digest == _digest(number)), default=0)


def _remains(path: str) -> list[Path]:
    """The files next to a database that show that something was written to it, whether or not it is still there."""
    found = [tail_path(path)] if acknowledged(path) else []
    log = Path(f"{path}-wal")
    with suppress(FileNotFoundError):  # the last process that closes the file deletes its log
        found += [log] if log.stat().st_size else []
    return found


def why_lost(path: str, note: Path | None = None) -> str | None:
    """What to do about a database that is gone while other files are left, in words; None if none is left.

    Parameters
    ----------
    path : of the database
    note : a file that says that there was a database, and may stay when it is restored
    """
    old = [one.name for one in _remains(path)]
    left = [*old, *([] if note is None else [note.name])]
    if not left:
        return None
    first, names = f"move {' and '.join(old)} away and " if old else "", " and ".join(left)
    return (
        f"the file is missing, and it had events, as can be seen from {names}; put it back; or {first}copy a backup "
        f"there; or, to start without events, move {names} away"
    )


class Tail:
    """The open file next to a database."""

    def __init__(self, path: str) -> None:
        binary = getattr(os, "O_BINARY", 0)  # Windows
        try:
            self._handle = os.open(tail_path(path), os.O_WRONLY | os.O_CREAT | binary, os.stat(path).st_mode & 0o666)
        except OSError as error:
            raise _unusable(path, error) from error

    def note(self, number: int) -> None:
        """Note that a change is durable. If that fails, the change is durable all the same, and one less is noted."""
        with suppress(OSError):
            os.lseek(self._handle, number % _PLACES * _NUMBER.size, os.SEEK_SET)
            os.write(self._handle, _NUMBER.pack(number, _digest(number)))

    def close(self) -> None:
        """Close the file."""
        os.close(self._handle)


def _unusable(path: str, error: OSError) -> EventStoreError:
    return EventStoreError(error.errno, f"{error.strerror}; the file must be readable and writable", tail_path(path))


def _digest(number: int) -> bytes:
    return blake2b(number.to_bytes(8, "big"), digest_size=8).digest()
