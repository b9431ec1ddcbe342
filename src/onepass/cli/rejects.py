"""Rejected rows: written to a file, counted, shown if there are few, and too many of them a failure.

Most rows of a table rejected means that the table was misread, and a model of the rest would be a model of nothing.
Rows that merely have no target are left out and counted, unless they are most of the rows.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onepass.cli.growing_table import GrowingTable, WithTable, noted_tally

if TYPE_CHECKING:
    from onepass.cli.console import Console
    from onepass.tables.rejects import Reject

__all__ = ["NO_LIMIT", "RejectLimit", "RejectOptions", "Rejects", "TooManyRejectsError"]

_SHOWN = 5
_REASONS_SHOWN = 3
_MOST_KINDS = 1000  # of reasons that are counted
_IN_FORCE = 20  # rejects below which no share is judged
_SURE = 2.0  # how far an estimate of all rows must be exceeded to fail before the end: lines differ in length
_WITHOUT_TARGET = 0.5  # share of rows up to which it is plausible that a table is only partly labelled
_STREAM_ROWS = 1000  # of a stream, whose end is not known, before a share is judged
_HINTS = {
    "not_in_encoding": "--encoding NAME, if the file is in another encoding",
    "decimal_comma": "--decimal , if the file has decimal commas",
    "missing_word": "--missing '', or with the words that do stand for a missing value, if it is a class",
    "wrong_field_count": "--delimiter CHAR, if fields are separated otherwise",
}
"""Options that help, by the code of the reason."""


@dataclass(frozen=True)
class RejectLimit:
    """How many rows may be rejected: a count, or a share of all rows."""

    share: float = 1.0
    count: int | None = None

    def __str__(self) -> str:
        return f"{100.0 * self.share:g}%" if self.count is None else f"{self.count}"

    def is_exceeded(self, rejected: int, rows: float) -> bool:
        """Whether there are too many rejects among the rows."""
        if self.count is not None:
            return rejected > self.count
        return rejected >= _IN_FORCE and rejected > self.share * rows


NO_LIMIT = RejectLimit()
_DEFAULT = RejectLimit(share=0.05)


@dataclass(frozen=True)
class RejectOptions:
    """What is done about rows that can't be learned or predicted."""

    rejects: Path | None = None  # where to write them
    strict: bool = False  # fail at the first
    max_rejects: RejectLimit | None = None  # as usual for the command


class TooManyRejectsError(click.ClickException):
    """More rows were rejected than is allowed; nothing must be written."""


class Rejects(WithTable):
    """All rejected records of a run; as a context, which closes the file.

    Parameters
    ----------
    options : RejectOptions
    notes : dict, optional
        What `note` gave an interrupted run; anything written after that is cut off.
    limit : RejectLimit, optional
        How many are allowed, in place of what the options say.
    """

    def __init__(
        self, options: RejectOptions, notes: dict[str, Any] | None = None, limit: RejectLimit | None = None
    ) -> None:
        self.count: int = noted_tally(notes or {}, "rejects")
        self.without_target: int = noted_tally(notes or {}, "without_target")
        self._rows = noted_tally(notes or {}, "records")
        self._table = GrowingTable("rejects", options.rejects, ("file", "line", "reason", "text"), notes or {})
        self._options = options
        self._limit = limit or options.max_rejects or _DEFAULT
        self._first: list[str] = []
        self._kinds: dict[tuple[str, str], _Kind] = {}

    def add(self, file: str, rejects: "tuple[Reject, ...]", unnamed: int = 0) -> None:
        """Take down some more; ``unnamed`` were only counted."""
        self._table.write((file, str(reject.line), str(reject.reason), reject.text) for reject in rejects)
        if not self._options.strict:
            n_read = len(rejects)
            rejects = tuple(reject for reject in rejects if not reject.has_no_target)
            self.without_target += n_read - len(rejects)
        for reject in rejects[: 1 if self._options.strict else _SHOWN - len(self._first)]:
            sentence = f"{file}, line {reject.line}: {reject.reason}"
            if self._options.strict:
                raise click.ClickException(f"{sentence} (--strict).")
            self._first.append(sentence)
        for reject in rejects:
            self._count_kind(file, reject)
        self.count += len(rejects) + unnamed

    def _count_kind(self, file: str, reject: "Reject") -> None:
        kind = reject.reason.code, reject.reason.column
        if kind not in self._kinds and len(self._kinds) < _MOST_KINDS:
            self._kinds[kind] = _Kind(reject.reason.code, f"{reject.reason} ({file}, line {reject.line})")
        if kind in self._kinds:
            self._kinds[kind].count += 1

    def judge(self, rows: int, share: float) -> None:
        """Fail if there are too many already, whatever comes.

        Parameters
        ----------
        rows : read since the last time, rejected ones among them
        share : of all input that has been read by now; 0 if that is not known
        """
        self._rows += rows
        if share > 0.0:
            expected = _SURE * self._rows / share
        else:  # what has come so far has to stand for the rest
            expected = self._rows if self._rows >= _STREAM_ROWS else float("inf")
        self._judge(expected)

    def judge_all(self) -> None:
        """Fail if there are too many, now that all rows have been read."""
        self._judge(self._rows)

    def _judge(self, rows: float) -> None:
        if self._limit.is_exceeded(self.count, rows):
            raise TooManyRejectsError(self._too_many())
        if (
            self._limit != NO_LIMIT
            and self.without_target >= _IN_FORCE
            and self.without_target > _WITHOUT_TARGET * rows
        ):
            raise TooManyRejectsError(
                f"{self.without_target:,} of {self._rows:,} rows have no target; nothing more is written. Is it the "
                "right column? --max-rejects 100% learns the other rows."
            )

    def _too_many(self) -> str:
        commonest = sorted(self._kinds.values(), key=lambda kind: -kind.count)[:_REASONS_SHOWN]
        hints = _hints({kind.code for kind in commonest})
        if self._options.rejects is None:
            hints.append("--rejects FILE, which writes all of them to a file")
        hints.append("--max-rejects 100%, which continues with the other rows")
        return "\n".join(
            [
                f"{self.count:,} of {self._rows:,} rows were rejected, more than --max-rejects {self._limit} allows; "
                "nothing more is written. The most common reasons:",
                *(f"  {kind.count:,} like this: {kind.example}" for kind in commonest),
                "Hints: " + "; ".join(hints) + ".",
            ]
        )

    def note(self) -> dict[str, Any]:
        """What has to be kept with a run's progress, so that no record is written down twice."""
        return {
            "rejects": self.count,
            "without_target": self.without_target,
            "records": self._rows,
            **self._table.note(),
        }

    def tell(self, console: "Console") -> None:
        """Show the first of them."""
        if self.without_target:
            have = "row has" if self.without_target == 1 else "rows have"
            console.aside(f"left out: {self.without_target:,} {have} no target")
        for sentence in self._first:
            console.aside(f"rejected: {sentence}")
        codes = {kind.code for kind in self._kinds.values()}
        if 2 * self.count <= self._rows:  # a few such lines are damaged, not misread
            codes.discard("wrong_field_count")
        for hint in _hints(codes):
            console.aside(f"rejected: hint: {hint}")
        if self.count > len(self._first):
            rest = f"see {self._options.rejects}" if self._options.rejects else "--rejects FILE writes all to a file"
            console.aside(f"rejected: {self.count - len(self._first):,} more; {rest}")


@dataclass
class _Kind:
    """Rejects for one reason in one column: the first of them, and how many there are."""

    code: str
    example: str
    count: int = 0


def _hints(codes: set[str]) -> list[str]:
    """Options that help against some reasons."""
    return [words for code, words in _HINTS.items() if code in codes]
