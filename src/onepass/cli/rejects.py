"""Rejected rows: written to a file, counted, and shown if there are few.

The file grows with the run, so unlike all others it is not written as a whole: after an interruption it is cut back to
where the run goes on.
"""

import csv
import hashlib
import io
import os
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import click

if TYPE_CHECKING:
    from onepass.cli.console import Console
    from onepass.tables.rows import Reject

__all__ = ["Rejects"]

_SHOWN = 5
_CHUNK = 2**20  # bytes read at a time


class Rejects:
    """All rejected records of a run; as a context, which closes the file.

    Parameters
    ----------
    path : where to write them, if anywhere
    strict : bool
        Fail at the first.
    notes : dict, optional
        What `note` gave an interrupted run; anything written after that is cut off.
    """

    def __init__(self, path: Path | None, *, strict: bool, notes: dict[str, Any] | None = None) -> None:
        self.count, length, digest = _noted(notes or {})
        self._kept = {"rejects_bytes": length, "rejects_digest": digest} if length else {}
        self._strict = strict
        self._path = path
        self._file: Any = None
        self._digest = hashlib.blake2b(digest_size=16)
        self._first: list[str] = []
        if path is not None:
            if length:
                self._check_kept(path, length, digest)
            try:
                self._file = open(path, "r+b" if length else "wb")  # noqa: SIM115 (closed in __exit__)
            except OSError as error:
                raise click.ClickException(f"cannot write to --rejects {path}: {error.strerror}.") from None
            if length:
                self._file.truncate(length)
                self._file.seek(0, os.SEEK_END)
            else:
                self._write(("file", "line", "reason", "text"))

    def _check_kept(self, path: Path, length: int, digest: str) -> None:
        """See to it that what is going to be cut is what the interrupted run wrote."""
        if path.is_file():
            with path.open("rb") as opened:
                while length > 0 and (content := opened.read(min(length, _CHUNK))):
                    self._digest.update(content)
                    length -= len(content)
        if self._digest.hexdigest() != digest:
            raise click.ClickException(
                f"--rejects {path} is not the file that the interrupted run wrote, or has lost rows since; "
                "put it back, or name a new one and delete the progress to start over."
            )

    def add(self, file: str, rejects: "tuple[Reject, ...]", unnamed: int = 0) -> None:
        """Take down some more; ``unnamed`` were only counted."""
        for reject in rejects:
            sentence = f"{file}, line {reject.line}: {reject.reason}"
            if self._strict:
                raise click.ClickException(f"{sentence} (--strict).")
            if len(self._first) < _SHOWN:
                self._first.append(sentence)
            if self._file is not None:
                self._write((file, str(reject.line), reject.reason, reject.text))
        self.count += len(rejects) + unnamed

    def note(self) -> dict[str, Any]:
        """What has to be kept with a run's progress, so that no record is written down twice."""
        if self._file is None:
            return {"rejects": self.count, **self._kept}
        self._file.flush()
        os.fsync(self._file.fileno())
        digest = self._digest.hexdigest()
        return {"rejects": self.count, "rejects_bytes": self._file.tell(), "rejects_digest": digest}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def tell(self, console: "Console") -> None:
        """Show the first of them."""
        for sentence in self._first:
            console.aside(f"rejected: {sentence}")
        if self.count > len(self._first):
            rest = f"see {self._path}" if self._path else "--rejects FILE writes all of them down"
            console.aside(f"rejected: {self.count - len(self._first):,} more; {rest}")

    def _write(self, fields: tuple[str, ...]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(fields)
        line = text.getvalue().encode("utf-8", "replace")
        self._digest.update(line)
        self._file.write(line)


def _noted(notes: dict[str, Any]) -> tuple[int, int, str]:
    """How many were rejected, how long their file was and its digest, when the progress was kept."""
    from onepass.files.state import as_tally

    try:
        count, length = (as_tally(notes.get(name, 0), name) for name in ("rejects", "rejects_bytes"))
        return count, length, str(notes.get("rejects_digest", ""))
    except (TypeError, ValueError) as error:
        raise click.ClickException(f"the progress of the interrupted run is damaged: {error}.") from None
