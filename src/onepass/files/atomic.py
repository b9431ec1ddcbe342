"""Files that are either complete or absent, whatever interrupts the writing, also after a power failure.

Content goes to a temporary file in the same folder, which is renamed to the final name once it is on the disk. Renaming
within a folder is a single step for every reader; syncing the folder afterwards makes the new name durable too.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EBADF, EINVAL, EISDIR, ENOENT, ENOTSUP
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from onepass.files.lock import try_lock

__all__ = ["atomic_file", "clear_drafts", "write_atomically", "write_in_pieces"]

_TOKEN = 6  # random bytes in the name of a draft
_PIECE = 2**24  # bytes written at once, between which Ctrl-C is heard


def write_atomically(path: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Write a file, replacing an old one in a single step; on return it is on the disk.

    Parameters
    ----------
    path : of the file
    content : all of it
    mode : permissions of the file, from which the umask takes away

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_atomically(folder / "note.txt", b"complete")
    >>> [(file.name, file.read_bytes()) for file in folder.iterdir()]
    [('note.txt', b'complete')]
    """
    with atomic_file(path, mode=mode) as file:
        write_in_pieces(file, content)


def write_in_pieces(file: BinaryIO, content: bytes) -> None:
    """Write a large content so that Ctrl-C need not wait for all of it."""
    view = memoryview(content)
    for start in range(0, len(view), _PIECE):
        file.write(view[start : start + _PIECE])


@contextmanager
def atomic_file(path: Path, *, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Open a file to be written piece by piece; it appears under its name when the block ends without an error.

    After an error, or Ctrl-C, the old file of that name is unchanged and no temporary file is left.

    Parameters
    ----------
    path : of the file
    mode : permissions of the file, from which the umask takes away; unlike with tempfile, others may read a report

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "note.txt"
    >>> with atomic_file(path) as file:
    ...     _ = file.write(b"first half, ")
    ...     visible = path.exists()
    ...     _ = file.write(b"second half")
    >>> visible, path.read_bytes()
    (False, b'first half, second half')
    """
    if path.is_dir():
        raise IsADirectoryError(EISDIR, "the path of a file is needed, but this is a folder", str(path))
    if not path.parent.is_dir():
        raise FileNotFoundError(ENOENT, f"the folder {str(path.parent)!r} does not exist", str(path))
    draft = path.with_name(f".{path.name}.{token_hex(_TOKEN)}.part")
    try:
        with open(draft, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            try_lock(file.fileno())  # by which `clear_drafts` sees that it is still being written
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:  # also Ctrl-C
        draft.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def clear_drafts(path: Path) -> int:
    """Delete what writers of a file left behind that were killed; returns the number of such drafts.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "note.txt"
    >>> _ = path.with_name(".note.txt.0123456789ab.part").write_bytes(b"half")
    >>> clear_drafts(path), list(path.parent.iterdir())
    (1, [])
    """
    beginning, cleared = f".{path.name}.", 0
    for draft in path.parent.glob("*.part"):  # the name may have signs that mean something in a pattern
        token = draft.name.removeprefix(beginning).removesuffix(".part")
        if draft.name == f"{beginning}{token}.part" and _is_token(token) and _is_abandoned(draft):
            draft.unlink(missing_ok=True)
            cleared += 1
    return cleared


def _is_token(text: str) -> bool:
    return len(text) == 2 * _TOKEN and not set(text) - set("0123456789abcdef")


def _is_abandoned(draft: Path) -> bool:
    try:
        with draft.open("rb") as file:
            return try_lock(file.fileno())
    except OSError:  # another process was faster, or it belongs to another process
        return False


def _sync_folder(folder: Path) -> None:
    """Bring a new name in a folder to the disk, as far as the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # any folder on Windows, elsewhere one that may be written but not read
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (EBADF, EINVAL, ENOTSUP):  # file systems that can't sync a folder
            raise
    finally:
        os.close(handle)
