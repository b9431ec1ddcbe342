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

__all__ = ["atomic_file", "write_atomically"]


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file, replacing an old one in a single step; on return it is on the disk.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_atomically(folder / "note.txt", b"complete")
    >>> [(file.name, file.read_bytes()) for file in folder.iterdir()]
    [('note.txt', b'complete')]
    """
    with atomic_file(path) as file:
        file.write(content)


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file to be written piece by piece; it appears under its name when the block ends without an error.

    After an error, or Ctrl-C, the old file of that name is unchanged and no temporary file is left.

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
    draft = path.with_name(f".{path.name}.{token_hex(6)}.part")
    try:
        # Unlike tempfile, "x" gives the file the permissions of the umask: a report is meant to be read by others.
        with draft.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:  # also Ctrl-C
        draft.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


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
