"""Files that are there whole or not at all, whatever interrupts the writing, and stay so when the power fails."""

import os
import tempfile
from errno import EISDIR, ENOENT
from pathlib import Path

__all__ = ["write_atomically"]


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file beside its place and move it there in one step; on return it is on the disk.

    Examples
    --------
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_atomically(folder / "note.txt", b"whole")
    >>> [(file.name, file.read_bytes()) for file in folder.iterdir()]
    [('note.txt', b'whole')]
    """
    if path.is_dir():
        raise IsADirectoryError(EISDIR, "the path of a file is needed, but this is a folder", str(path))
    if not path.parent.is_dir():
        raise FileNotFoundError(ENOENT, f"the folder {str(path.parent)!r} does not exist", str(path))
    handle, draft = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            # mkstemp makes files only their owner can read; a report is meant to be shown around.
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(draft, 0o666 & ~umask)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:  # Ctrl-C too
        Path(draft).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Bring the new name of a file to the disk, where folders can be opened at all."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
