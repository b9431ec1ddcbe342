"""A model's file over several runs: never written over what was not read, and with one step back.

The version of a file tells one content from another; a model's header holds a checksum of all of it, so only the header
is read. What a run replaces is kept as ``NAME.previous-...``, where the rest of the name is from the version that
replaced it: it is the way back from that version and no other. It is a second name of the old file and takes no time.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from onepass.files.atomic import atomic_file, clear_drafts, write_atomically, write_in_pieces
from onepass.files.lock import locked

__all__ = ["ChangedError", "NothingToUndoError", "VersionedFile", "only_writer", "previous_path", "undo", "version"]

_SHORT = 12  # hexadecimal digits of a version in a name


class ChangedError(ValueError):
    """Another process has written a file since it was read."""


class NothingToUndoError(ValueError):
    """What stood in a file before its last run is not known."""


def version(path: Path) -> str | None:
    """What tells one content of a model's file from another; None where there is no file."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            start = file.read(8)
            header = int.from_bytes(start, "little")
            return _version(size, start + file.read(header if header <= size - 8 else size))
    except (FileNotFoundError, NotADirectoryError):
        return None


def _version_of(content: bytes) -> str:
    header = int.from_bytes(content[:8], "little")
    return _version(len(content), content[: 8 + header] if header <= len(content) - 8 else content)


def _version(size: int, beginning: bytes) -> str:
    return hashlib.blake2b(b"%d:" % size + beginning, digest_size=16).hexdigest()


class VersionedFile:
    """A file that one run reads and writes, perhaps several times.

    Parameters
    ----------
    path : of the file, which need not exist yet; its version now is the one that may be replaced

    Examples
    --------
    >>> import tempfile
    >>> file = VersionedFile(Path(tempfile.mkdtemp()) / "model")
    >>> file.write(b"first")
    >>> VersionedFile(file.path).write(b"second")
    >>> undo(file.path)
    >>> file.path.read_bytes()
    b'first'
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.version = version(path)
        self._before = None if self.version is None else path
        """Where what stood there before the run is now."""

    def write(self, content: bytes) -> None:
        """Replace the file in a single step, and keep what stood there when the run began.

        Raises
        ------
        ChangedError
            If another process has written the file meanwhile; the content is then kept next to it.
        """
        if version(self.path) != self.version:
            kept = _free_name(self.path)
            write_atomically(kept, content)
            raise ChangedError(
                f"{self.path} was changed by something else during this run, so it is not replaced; the model that "
                f"this run learned is in {kept}"
            )
        new = _version_of(content)
        if new == self.version:
            return
        kept = previous_path(self.path, new)
        try:
            with atomic_file(self.path) as file:
                write_in_pieces(file, content)
                if self._before is not None:
                    _name_again(self._before, kept)
        except BaseException:
            if version(self.path) != new:
                kept.unlink(missing_ok=True)
            raise
        self.version = new
        self._before = None if self._before is None else kept
        _forget_previous(self.path, but=self._before)


@contextmanager
def only_writer(path: Path, wait: float = 0.0) -> Iterator[VersionedFile]:
    """Keep other processes from writing a file for the length of the block, and clear what killed ones left behind.

    Raises
    ------
    LockedError
        If another process holds the lock of the file for longer than ``wait`` seconds.
    """
    with locked(path, wait):
        clear_drafts(path)
        yield VersionedFile(path)


def previous_path(path: Path, current: str) -> Path:
    """Where is kept what a version of a file replaced."""
    return path.with_name(f"{path.name}.previous-{current[:_SHORT]}")


def undo(path: Path) -> None:
    """Bring back what stood in a file before its last run.

    Raises
    ------
    NothingToUndoError
        If that is not there: one step is kept, and only for the version that the run wrote.
    """
    current = version(path)
    if current is None:
        raise FileNotFoundError(2, "there is no such file", str(path))
    kept = previous_path(path, current)
    if not kept.exists():
        others = _all_previous(path)
        raise NothingToUndoError(
            f"{path} was changed after its last run, so that run can't be undone; the model from before the run is "
            f"{others[0]}: copy it to use it"
            if others
            else f"{path} can't be undone: only one earlier model is kept, and this one was made new or has been "
            "undone already"
        )
    os.replace(kept, path)


def _all_previous(path: Path) -> list[Path]:
    pattern = re.compile(re.escape(path.name) + rf"\.previous-[0-9a-f]{{{_SHORT}}}")
    return sorted(other for other in path.parent.iterdir() if pattern.fullmatch(other.name))


def _forget_previous(path: Path, but: Path | None) -> None:
    for other in _all_previous(path):
        if other != but:
            with suppress(OSError):
                other.unlink()


def _name_again(path: Path, second: Path) -> None:
    second.unlink(missing_ok=True)  # left by a run that was killed at this very place
    try:
        os.link(path, second)
    except OSError:  # a file system without such names
        shutil.copy2(path, second)


def _free_name(path: Path) -> Path:
    number, kept = 1, path.with_name(path.name + ".learned")
    while kept.exists():
        number += 1
        kept = path.with_name(f"{path.name}.learned-{number}")
    return kept
