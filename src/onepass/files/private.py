"""Files for one user: what a process creates is closed to others, and files that were open to them can be closed."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["close_to_others", "private_files"]

_OTHERS, _WRITE = 0o077, 0o022


@contextmanager
def private_files() -> Iterator[None]:
    """Create files with mode 0600 and folders with 0700 in this block, whatever the umask was before.

    The umask belongs to the process, not to a thread, so this is for the main function of a command. SQLite gives its
    write-ahead log the mode of the database, which was created this way, too.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "note.txt"
    >>> with private_files():
    ...     _ = path.write_text("for one user")
    >>> oct(path.stat().st_mode & 0o777) if os.name != "nt" else "0o600"
    '0o600'
    """
    before = os.umask(_OTHERS)
    try:
        yield
    finally:
        os.umask(before)


def close_to_others(folder: Path, files: Iterable[Path]) -> list[str]:
    """Take existing files in a folder away from other users; returns a sentence for all that was open to them.

    The mode of the folder itself is not changed, because it may have other files. But if other users can write to it, a
    sentence says so, because they could replace any file in it. Windows has no such modes, so nothing is done there.
    """
    if os.name == "nt" or not folder.is_dir():
        return []
    found = [words for path in files if (words := _closed(path)) is not None]
    mode = folder.stat().st_mode & 0o777
    if mode & _WRITE:
        found.append(f"other users can write to {folder} (mode {mode:04o}), and replace its files: chmod it to 0700")
    return found


def _closed(path: Path) -> str | None:
    try:
        mode = path.stat().st_mode & 0o777
    except FileNotFoundError:  # it was deleted meanwhile, as SQLite does with its log
        return None
    except PermissionError:
        return f"the mode of {path} can't be read: this user needs access to its folder"
    if not mode & _OTHERS:
        return None
    try:
        path.chmod(mode & ~_OTHERS)
    except FileNotFoundError:
        return None
    except PermissionError:
        return (
            f"{path} has mode {mode:04o}, so other users can read it, and it belongs to another user: chmod it to 0600"
        )
    return f"{path} had mode {mode:04o}, so other users could read it; it has {mode & ~_OTHERS:04o} now"
