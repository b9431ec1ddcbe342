"""Rejected rows: written to a file, counted, and shown if there are few."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onepass.cli.growing_table import GrowingTable, WithTable, noted_tally

if TYPE_CHECKING:
    from onepass.cli.console import Console
    from onepass.tables.rows import Reject

__all__ = ["RejectOptions", "Rejects"]

_SHOWN = 5


@dataclass(frozen=True)
class RejectOptions:
    """What is done about rows that can't be learned or predicted."""

    rejects: Path | None = None  # where to write them
    strict: bool = False  # fail at the first


class Rejects(WithTable):
    """All rejected records of a run; as a context, which closes the file.

    Parameters
    ----------
    options : RejectOptions
    notes : dict, optional
        What `note` gave an interrupted run; anything written after that is cut off.
    """

    def __init__(self, options: RejectOptions, notes: dict[str, Any] | None = None) -> None:
        self.count = noted_tally(notes or {}, "rejects")
        self._table = GrowingTable("rejects", options.rejects, ("file", "line", "reason", "text"), notes or {})
        self._options = options
        self._first: list[str] = []

    def add(self, file: str, rejects: "tuple[Reject, ...]", unnamed: int = 0) -> None:
        """Take down some more; ``unnamed`` were only counted."""
        for reject in rejects[: 1 if self._options.strict else _SHOWN - len(self._first)]:
            sentence = f"{file}, line {reject.line}: {reject.reason}"
            if self._options.strict:
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
            rest = f"see {self._options.rejects}" if self._options.rejects else "--rejects FILE writes all of them down"
            console.aside(f"rejected: {self.count - len(self._first):,} more; {rest}")
