"""A CSV file that grows with a run: rejected rows, alarms.

Unlike all other files it is not written as a whole. Lines are written as they are found, and always whole ones, so that
the file of a run that is under way, or was killed, never ends with half of one. After an interruption the file
is cut back to where the run continues.
"""

import csv
import hashlib
import io
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import click

__all__ = ["GrowingTable", "WithTable", "noted_tally"]

_CHUNK = 2**20  # bytes read at a time


class GrowingTable:
    """Lines of a CSV file, written as they are found; as a context, which closes the file.

    Parameters
    ----------
    name : of the option that asks for it, which is also the beginning of the names in `note`
    path : where to write, if anywhere
    header : names of the columns
    notes : what `note` gave an interrupted run; anything written after that is cut off
    """

    def __init__(self, name: str, path: Path | None, header: Iterable[str], notes: dict[str, Any]) -> None:
        self._name = name
        self._length = noted_tally(notes, f"{name}_bytes")
        self._kept_digest = str(notes.get(f"{name}_digest", ""))
        self._digest = hashlib.blake2b(digest_size=16)
        self._file: Any = None
        if path is None:
            return
        kept = self._length
        if kept:
            self._check_kept(path)
        try:
            self._file = _opened(path, "r+b" if kept else "wb")
        except OSError as error:
            raise click.ClickException(f"cannot write to --{name} {path}: {error.strerror}.") from None
        if kept:
            self._file.truncate(kept)
            self._file.seek(0, os.SEEK_END)
        else:
            self.write([header])

    def _check_kept(self, path: Path) -> None:
        """See to it that what is going to be cut is what the interrupted run wrote."""
        left = self._length
        if path.is_file() and _descriptor(path) is None:
            with path.open("rb") as opened:
                while left > 0 and (content := opened.read(min(left, _CHUNK))):
                    self._digest.update(content)
                    left -= len(content)
        if self._digest.hexdigest() != self._kept_digest:
            raise click.ClickException(
                f"--{self._name} {path} is not the file that the interrupted run wrote, or has lost rows since; "
                "put it back, or name a new one and delete the progress to start over."
            )

    def write(self, lines: Iterable[Iterable[str]]) -> None:
        """Add lines, if there is a file."""
        if self._file is None:
            return
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(lines)
        content = text.getvalue().encode("utf-8", "replace")
        self._digest.update(content)
        self._length += len(content)
        while content:  # nearly always at once
            content = content[self._file.write(content) :]

    def note(self) -> dict[str, Any]:
        """What has to be kept with a run's progress, so that nothing is written down twice."""
        if self._file is None:
            digest = self._kept_digest
        else:
            digest = self._digest.hexdigest()
            if stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):  # and no pipe
                os.fsync(self._file.fileno())
        return {f"{self._name}_bytes": self._length, f"{self._name}_digest": digest} if self._length else {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()


class WithTable:
    """What keeps such a file, as a context, which closes it."""

    _table: GrowingTable

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._table.__exit__(kind, error, trace)


def _opened(path: Path, mode: str) -> Any:
    """A file to write to; what the shell has opened is written on from its position, and never emptied."""
    descriptor = _descriptor(path)
    return open(path if descriptor is None else os.dup(descriptor), mode, buffering=0)


def _descriptor(path: Path) -> int | None:
    """The number of a stream of this process that a path names, as /dev/stdout and /dev/fd/3 do."""
    ours = {"/dev/fd", os.path.realpath("/proc/self/fd")}
    for _ in range(8):  # links from one name to the next
        folder = os.path.realpath(path.parent)
        if folder in ours and path.name.isdecimal():
            return int(path.name)
        if not path.is_symlink():
            break
        path = Path(folder, path.readlink())
    return None


def noted_tally(notes: dict[str, Any], name: str) -> int:
    """A number that was kept with the progress of a run; 0 if it was not."""
    from onepass.files.state import as_tally

    try:
        return as_tally(notes.get(name, 0), name)
    except (TypeError, ValueError) as error:
        raise click.ClickException(f"the progress of the interrupted run is damaged: {error}.") from None
