"""One writer at a time for a file: a lock of the operating system on a file next to it.

The system gives the lock back when its holder ends, however it ends, so a crash leaves nothing locked. The file
``NAME.lock`` says who holds it, for the message that others get; it is deleted with the lock. Where the file system
knows no locks (some network folders) there is none, and a writer has to check whether the file has changed.
"""

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EACCES, EAGAIN, EDEADLK, ENOLCK, ENOSYS, ENOTSUP, EWOULDBLOCK
from pathlib import Path

__all__ = ["LockedError", "check_unlocked", "lock_path", "locked", "try_lock"]

_TAKEN = {EACCES, EAGAIN, EDEADLK, EWOULDBLOCK}
_NO_LOCKS = {ENOLCK, ENOSYS, ENOTSUP}
_PAUSE = 0.1  # seconds between two attempts
_FAR = 2**30  # Windows locks bytes, which no other process can read; who holds the lock has to stay readable


class LockedError(ValueError):
    """Another process holds the lock; the message says which, as far as that is known.

    Attributes
    ----------
    holds : who holds which lock, in words that name the file of the lock, not the one that it protects
    """

    def __init__(self, words: str, holds: str | None = None) -> None:
        super().__init__(words)
        self.holds = holds or words


def lock_path(path: Path) -> Path:
    """Where the lock of a file is."""
    return path.with_name(path.name + ".lock")


@contextmanager
def locked(path: Path, wait: float = 0.0) -> Iterator[None]:
    """Hold the lock of a file for the length of the block; the file itself need not exist.

    Parameters
    ----------
    path : of the file that is going to be written
    wait : seconds to wait for another holder, at most; may be infinite

    Raises
    ------
    LockedError
        If another process holds the lock for longer than that.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "model"
    >>> with locked(path):
    ...     held = lock_path(path).exists()
    >>> held, lock_path(path).exists()
    (True, False)
    """
    lock_file, until = lock_path(path), time.monotonic() + wait
    while (handle := _attempt(lock_file)) is None:
        if time.monotonic() >= until:
            raise _taken(path)
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        if os.name != "nt":  # while locked: others that have opened it see that it is gone, and start again
            lock_file.unlink(missing_ok=True)
        os.close(handle)
        if os.name == "nt":
            with suppress(OSError):
                lock_file.unlink()


def check_unlocked(path: Path) -> None:
    """Raise if a process holds the lock of a file; writes nothing, so the folder may be read-only.

    Raises
    ------
    LockedError
        If a process holds the lock.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "model"
    >>> check_unlocked(path)
    >>> with locked(path):
    ...     check_unlocked(path)
    Traceback (most recent call last):
    onepass.files.lock.LockedError: ...model is being written by process ...
    """
    try:
        handle = os.open(lock_path(path), os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        if not try_lock(handle):
            raise _taken(path)
    finally:
        os.close(handle)


def try_lock(handle: int) -> bool:
    """Lock an open file until it is closed; False if another process has."""
    try:
        _lock(handle)
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        if error.errno not in _NO_LOCKS:
            raise
    return True


def _attempt(lock_file: Path) -> int | None:
    handle = os.open(lock_file, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if try_lock(handle) and _is_there(lock_file, handle):
            with suppress(OSError):  # a full disk: the lock holds, and only the message to others says less
                os.ftruncate(handle, 0)
                os.write(handle, _words_of_holder())
            return handle
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


def _is_there(lock_file: Path, handle: int) -> bool:
    """Whether the open file is the one under its name, and not one that the last holder took away."""
    try:
        return os.path.samestat(os.stat(lock_file), os.fstat(handle))
    except FileNotFoundError:
        return False


def _words_of_holder() -> bytes:
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    return json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": since}).encode()


def _taken(path: Path) -> LockedError:
    holder = _holder(lock_path(path))
    return LockedError(f"{path} is being written by {holder}", f"{lock_path(path)} is held by {holder}")


def _holder(lock_file: Path) -> str:
    try:
        who = json.loads(lock_file.read_bytes())
        return f"process {who['pid']} on {who['host']}, since {who['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


if os.name == "nt":
    import msvcrt

    def _lock(handle: int) -> None:
        os.lseek(handle, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        finally:
            os.lseek(handle, 0, os.SEEK_SET)
else:
    import fcntl

    def _lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
