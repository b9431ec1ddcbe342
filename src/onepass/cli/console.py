"""The output of a command: text with a progress bar at a terminal, lines in a log, JSON lines for programs, or nothing.

Results go to standard output, progress to standard error.
"""

import json
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import click

from onepass.cli.schema import flag, option_text

if TYPE_CHECKING:
    from onepass.tables.advice import Advice
    from onepass.tables.readers.source import Source

__all__ = ["Console", "counted", "in_columns"]

_MOST_COLUMNS = 40
_SECONDS = 10.0  # between two lines of progress where there is no terminal


def counted(n: int, what: str) -> str:
    """A count with its noun, in the plural where it should be.

    Examples
    --------
    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{n:,} {what}" + ("" if n == 1 else "s")


def in_columns(table: list[tuple[str, ...]]) -> list[str]:
    """A table as lines, its columns below each other."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for first, *rest in table:
        cells = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *cells]).rstrip())
    return lines


class Console:
    """Prints what was chosen, the progress of a run and its result.

    Parameters
    ----------
    as_json, quiet : bool
        As the options of these names: JSON lines, or no output at all.
    to_stderr : bool
        Print to standard error, because standard output carries the data themselves.
    """

    def __init__(self, *, as_json: bool = False, quiet: bool = False, to_stderr: bool = False) -> None:
        self._json = as_json and not quiet
        self._plain = not as_json and not quiet
        self._to_stderr = to_stderr
        self._bar: Any = None
        self._task: Any = None
        self._begin = self._last_line = time.monotonic()
        self._rows = 0
        self._sources: Sequence[Source] = ()
        self._shown_before: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        if self._json and isinstance(error, click.ClickException):  # the reader of the events gets this one too
            with suppress(BrokenPipeError):
                self._emit({"event": "error", "text": error.format_message()})

    def fact(self, name: str, words: str, event: str = "choice", **numbers: Any) -> None:
        """Print one named fact on a line of its own; as JSON with its numbers."""
        if self._json:
            self._emit({"event": event, "name": name, "value": words, **numbers})
        elif self._plain:
            self._print(f"{name + ':':<14} {words}")

    def table(self, rows: list[tuple[str, ...]]) -> None:
        """Print a table; programs get its numbers otherwise."""
        if self._plain:
            for line in in_columns(rows):
                self._print(line)

    def aside(self, words: str) -> None:
        """Print a note that is not part of the result."""
        if self._json:
            self._emit({"event": "note", "text": words})
        elif self._plain:
            self._close()
            click.echo(words, err=True)

    @property
    def most_columns(self) -> int | None:
        """How many columns are described one by one; more are counted. Programs get them all."""
        return None if self._json else _MOST_COLUMNS

    def advise(self, advice: "Advice") -> None:
        """Print what to ask about a table; as JSON also its parts."""
        words, reason = advice.words(option_text), advice.reason
        if self._json:
            parts = {"code": reason.code, "column": reason.column, "value": reason.value, "text": words}
            self._emit({"event": "advice", **parts, "option": option_text(advice.setting, advice.value)})
        else:
            self.aside(f"advice: {words}")

    def tell_notes(self, sources: "Sequence[Source]") -> None:
        """Print what readers found out or mended by themselves, now and whenever they find more."""
        self._sources = sources
        self._tell_new_notes()

    def _tell_new_notes(self) -> None:
        for note in (note for source in self._sources for note in source.notes):
            words = note.words if note.setting is None else f"{note.words} ({flag(note.setting)})"
            if words not in self._shown_before:
                self._shown_before.add(words)
                self.aside(words)

    def start(self) -> None:
        """Start the clock, and the progress bar at a terminal."""
        self._begin = self._last_line = time.monotonic()
        if self._plain and sys.stderr.isatty():
            self._open()

    def advance(self, rows: int, share: float, rejected: int) -> None:
        """Add rows to the progress; ``share`` of the whole input has been read."""
        self._rows += rows
        self._tell_new_notes()
        now = time.monotonic()
        if self._bar is not None:
            speed = f"{self._rows / max(now - self._begin, 1e-9):,.0f} rows/s"
            self._bar.update(self._task, completed=share if share else None, rows=f"{self._rows:,}", speed=speed)
        elif now - self._last_line >= _SECONDS:
            self._last_line = now
            self._print_progress(now - self._begin, share, rejected)

    def done(self, facts: dict[str, Any], *words: str) -> None:
        """Print the result: the facts as JSON, or else the sentences."""
        self._tell_new_notes()
        self._close()
        if self._json:
            self._emit({"event": "done", **facts})
        elif self._plain:
            for sentence in words:
                self._print(sentence)

    @property
    def seconds(self) -> float:
        """Seconds since `start`."""
        return time.monotonic() - self._begin

    def _print_progress(self, seconds: float, share: float, rejected: int) -> None:
        speed = self._rows / max(seconds, 1e-9)
        left = seconds * (1.0 - share) / share if share else None
        if self._json:
            facts = {"rows": self._rows, "rows_per_second": round(speed), "rejected": rejected}
            self._emit({"event": "progress", **facts, "share": round(share, 4), "seconds_left": left and round(left)})
        elif self._plain:
            rest = f", {share:.0%}, {left:,.0f} s left" if left is not None else ""
            click.echo(f"{self._rows:,} rows, {speed:,.0f} rows/s{rest}", err=True)

    def _open(self) -> None:
        from rich.console import Console as RichConsole
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.fields[rows]} rows"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=RichConsole(stderr=True), transient=True)
        self._task = self._bar.add_task("", total=1.0, rows="0", speed="")
        self._bar.start()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _print(self, words: str) -> None:
        self._close()
        click.echo(words, err=self._to_stderr)

    def _emit(self, facts: dict[str, Any]) -> None:
        click.echo(json.dumps(facts), err=self._to_stderr)
        sys.stdout.flush()
