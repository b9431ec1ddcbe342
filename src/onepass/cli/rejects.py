"""Rejected rows: written to a file, counted, and shown if there are few."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onepass.cli.growing_table import GrowingTable, WithTable, noted_tally

if TYPE_CHECKING:
    from onepass.cli.console import Console
    from onepass.tables.rows import Reject

__all__ = ["Rejects"]

_SHOWN = 5


class Rejects(WithTable):
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
        self.count = noted_tally(notes or {}, "rejects")
        self._table = GrowingTable("rejects", path, ("file", "line", "reason", "text"), notes or {})
        self._strict = strict
        self._path = path
        self._first: list[str] = []

    def add(self, file: str, rejects: "tuple[Reject, ...]", unnamed: int = 0) -> None:
        """Take down some more; ``unnamed`` were only counted."""
        for reject in rejects[: 1 if self._strict else _SHOWN - len(self._first)]:
            sentence = f"{file}, line {reject.line}: {reject.reason}"
            if self._strict:
                raise click.ClickException(f"{sentence} (--strict).")
            self._first.append(sentence)
        self._table.write((file, str(reject.line), reject.reason, reject.text) for reject in rejects)
        self.count += len(rejects) + unnamed

    def note(self) -> dict[str, Any]:
        """What has to be kept with a run's progress, so that no record is written down twice."""
        return {"rejects": self.count, **self._table.note()}

    def tell(self, console: "Console") -> None:
        """Show the first of them."""
        for sentence in self._first:
            console.aside(f"rejected: {sentence}")
        if self.count > len(self._first):
            rest = f"see {self._path}" if self._path else "--rejects FILE writes all of them down"
            console.aside(f"rejected: {self.count - len(self._first):,} more; {rest}")
