"""Rejected rows: written to a file, counted, shown if there are few, and too many of them a failure.

Most rows of a table rejected means that the table was misread, and a model of the rest would be a model of nothing.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onepass.cli.growing_table import GrowingTable, WithTable, noted_tally

if TYPE_CHECKING:
    from onepass.cli.console import Console
    from onepass.tables.rows import Reject

__all__ = ["NO_LIMIT", "RejectLimit", "RejectOptions", "Rejects", "TooManyRejectsError"]

_SHOWN = 5
_REASONS_SHOWN = 3
_MOST_REASONS = 1000  # kinds that are counted
_IN_FORCE = 20  # rejects below which no share is judged
_SURE = 2.0  # how far an estimate of all rows must be exceeded to fail before the end: lines differ in length
_STREAM_ROWS = 1000  # of a stream, whose end is not known, before a share is judged
_VARIABLE = re.compile(r"""'(?:[^'\\]|\\.)*'|"[^"]*"|\d[\d,.]*""")  # what differs between reasons of one kind
_DELIMITER = "--delimiter CHAR, if fields are separated otherwise"
_HINTS = (
    (r"encoding of the file", "--encoding NAME, if the file is in another encoding"),
    (r"'-?[\d.]*\d,\d+'.*not a number", "--decimal , if the file has decimal commas"),
    (
        r"taken for missing and not for a class",
        "--missing '', or with the words that do stand for a missing value, if it is a class",
    ),
    (r"fields? where the first line", _DELIMITER),
)


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
        self._rows = noted_tally(notes or {}, "records")
        self._table = GrowingTable("rejects", options.rejects, ("file", "line", "reason", "text"), notes or {})
        self._options = options
        self._limit = limit or options.max_rejects or _DEFAULT
        self._first: list[str] = []
        self._reasons: dict[str, _Reason] = {}

    def add(self, file: str, rejects: "tuple[Reject, ...]", unnamed: int = 0) -> None:
        """Take down some more; ``unnamed`` were only counted."""
        for reject in rejects[: 1 if self._options.strict else _SHOWN - len(self._first)]:
            sentence = f"{file}, line {reject.line}: {reject.reason}"
            if self._options.strict:
                raise click.ClickException(f"{sentence} (--strict).")
            self._first.append(sentence)
        for reject in rejects:
            self._count_reason(file, reject)
        self._table.write((file, str(reject.line), reject.reason, reject.text) for reject in rejects)
        self.count += len(rejects) + unnamed

    def _count_reason(self, file: str, reject: "Reject") -> None:
        kind = _VARIABLE.sub("...", reject.reason)
        if kind not in self._reasons and len(self._reasons) < _MOST_REASONS:
            self._reasons[kind] = _Reason(f"{reject.reason} ({file}, line {reject.line})")
        if kind in self._reasons:
            self._reasons[kind].count += 1

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

    def _too_many(self) -> str:
        commonest = sorted(self._reasons.values(), key=lambda reason: -reason.count)[:_REASONS_SHOWN]
        hints = _hints(reason.example for reason in commonest)
        if self._options.rejects is None:
            hints.append("--rejects FILE, which writes all of them to a file")
        hints.append("--max-rejects 100%, which continues with the other rows")
        return "\n".join(
            [
                f"{self.count:,} of {self._rows:,} rows were rejected, more than --max-rejects {self._limit} allows; "
                "nothing more is written. The most common reasons:",
                *(f"  {reason.count:,} like this: {reason.example}" for reason in commonest),
                "What helps: " + "; ".join(hints) + ".",
            ]
        )

    def note(self) -> dict[str, Any]:
        """What has to be kept with a run's progress, so that no record is written down twice."""
        return {"rejects": self.count, "records": self._rows, **self._table.note()}

    def tell(self, console: "Console") -> None:
        """Show the first of them."""
        for sentence in self._first:
            console.aside(f"rejected: {sentence}")
        for hint in _hints(reason.example for reason in self._reasons.values()):
            if hint != _DELIMITER or 2 * self.count > self._rows:  # a few such lines are damaged, not misread
                console.aside(f"rejected: what helps is {hint}")
        if self.count > len(self._first):
            rest = f"see {self._options.rejects}" if self._options.rejects else "--rejects FILE writes all to a file"
            console.aside(f"rejected: {self.count - len(self._first):,} more; {rest}")


@dataclass
class _Reason:
    """One kind of reason: its first case, and how often it came."""

    example: str
    count: int = 0


def _hints(reasons: Iterable[str]) -> list[str]:
    """Options that help against some of these reasons."""
    found = list(reasons)
    return [words for pattern, words in _HINTS if any(re.search(pattern, reason) for reason in found)]
