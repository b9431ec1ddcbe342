"""What a model has learned, run by run: the files by their content, so that none is learned twice under any name.

A file is known by the digest of all of it, whatever it is called now. One that has grown since begins with a content
that is known, and is learned from there on. A remote file is known by its address, its size and the version that
its server gives (an ETag, or the time of its last change), so that it need not be fetched to be recognised. The
history is part of the model and stays small: the oldest of more than 20,000 files are forgotten.
"""

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from onepass.files.state import Parameters, as_tally
from onepass.tables.readers.content import Content
from onepass.tables.readers.options import ALL, Part

__all__ = ["LearnedFile", "LearnedRun", "TrainingHistory", "now"]

_MOST_FILES = 20_000


@dataclass(frozen=True)
class LearnedFile:
    """A file that was learned to its end, or as many bytes of it as there were."""

    name: str  # or its URL
    size: int
    head: str  # digest of its first MiB; of a remote file its version, empty if the server doesn't give one
    digest: str | None  # of all of it; None: a remote file, which is not fetched to be recognised
    rows: int | None  # of the file, good or bad; None: not counted
    part: Part = ALL
    goes_on: int | None = None
    """The first row of what may be added, if the last line was not whole and was rejected; None: all rows stay."""

    @classmethod
    def of(cls, name: str, content: Content, rows: int | None, part: Part) -> "LearnedFile":
        """A part of a content under its name."""
        return cls(name, content.size, content.head, content.digest, rows, part)

    @classmethod
    def remote(cls, url: str, rows: int | None, part: Part) -> "LearnedFile":
        """A part of the file that is at an address now."""
        from onepass.tables.readers.remote import remote_address, remote_fingerprint  # what few need takes long to load

        found = remote_fingerprint(url)
        return cls(remote_address(url), found["size"], found["digest"], None, rows, part)

    def state(self) -> list[Any]:
        """All of it as data that JSON can hold; short, since there may be thousands."""
        part = list(self.part)
        more = [part, self.goes_on] if self.goes_on is not None else [part] if self.part != ALL else []
        return [self.name, self.size, self.head, self.digest, self.rows, *more]

    @classmethod
    def from_state(cls, state: Any) -> "LearnedFile":
        """Make the file that `state` described."""
        name, size, head, digest, rows, *more = state
        part = Part(*more[0]) if more else ALL
        goes_on = as_tally(more[1], "goes_on") if more[1:] else None
        texts = (name, head, *part)
        if not all(isinstance(one, str) for one in texts) or not isinstance(digest, str | None):
            raise ValueError("a file of the history must have a name and digests")
        return cls(
            name,
            as_tally(size, "size"),
            head,
            digest,
            None if rows is None else as_tally(rows, "rows"),
            part,
            goes_on,
        )


@dataclass(frozen=True)
class LearnedRun:
    """One run: the files learned in it, and what came of them."""

    when: str  # it ended, in UTC
    rows: int  # learned
    rejected: int
    passes: int = 1
    files: tuple[LearnedFile, ...] = ()  # none: standard input

    def state(self) -> Parameters:
        """All of it as data that JSON can hold."""
        counts = {"rows": self.rows, "rejected": self.rejected, "passes": self.passes}
        return {"when": self.when, **counts, "files": [file.state() for file in self.files]}

    @classmethod
    def from_state(cls, state: Any) -> "LearnedRun":
        """Make the run that `state` described."""
        if not isinstance(state["when"], str):
            raise ValueError("a run of the history must have a time")
        rows, rejected, passes = (as_tally(state[name], name) for name in ("rows", "rejected", "passes"))
        return cls(state["when"], rows, rejected, passes, tuple(map(LearnedFile.from_state, state["files"])))


@dataclass(frozen=True)
class TrainingHistory:
    """All runs, in their order.

    Examples
    --------
    >>> history = TrainingHistory().with_run(LearnedRun("2026-01-31T20:00:00Z", 10, 0))
    >>> TrainingHistory.from_state(history.state()) == history
    True
    """

    runs: tuple[LearnedRun, ...] = ()
    forgotten: int = 0
    """Files of runs that are not kept any more."""

    def with_run(self, run: LearnedRun) -> "TrainingHistory":
        """One run more."""
        runs, forgotten = [*self.runs, run], self.forgotten
        n_files = sum(max(len(one.files), 1) for one in runs)
        while n_files > _MOST_FILES and len(runs) > 1:
            oldest = runs.pop(0)
            n_files -= max(len(oldest.files), 1)
            forgotten += len(oldest.files)
        return TrainingHistory(tuple(runs), forgotten)

    @property
    def files(self) -> Iterable[LearnedFile]:
        """All files that are known, those learned last first."""
        return (file for run in reversed(self.runs) for file in reversed(run.files))

    def run_of(self, file: LearnedFile) -> LearnedRun:
        """The last run in which a file was learned."""
        return next(run for run in reversed(self.runs) if file in run.files)

    def is_one_run_of(self, files: Sequence[Content], passes: int) -> bool:
        """Whether nothing was learned but these files, in one run; of their contents the beginning is looked at.

        A content that is given several times may have been learned once.
        """
        if len(self.runs) != 1 or self.runs[0].passes != passes:
            return False
        return {(file.size, file.head) for file in self.runs[0].files} == {(file.size, file.head) for file in files}

    def state(self) -> Parameters:
        """All of it as data that JSON can hold."""
        return {"runs": [run.state() for run in self.runs], "forgotten": self.forgotten}

    @classmethod
    def from_state(cls, state: Any) -> "TrainingHistory":
        """Make the history that `state` described."""
        return cls(tuple(map(LearnedRun.from_state, state["runs"])), as_tally(state["forgotten"], "forgotten"))


def now() -> str:
    """The time in UTC, for a history; ``SOURCE_DATE_EPOCH`` replaces it, so that equal runs write equal files."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(fixed) if fixed.isdecimal() else None))
