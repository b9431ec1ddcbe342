"""Who changed what, and when: JSON lines that are only ever appended, without features and without secrets.

Each line has the SHA-256 of the line before it, across files: a large file is renamed and the next begins with the hash
of its last line. A line that is changed, removed or added later breaks this chain, which `verify_audit` finds. Somebody
who may write the files can cut the end off or compute the whole chain anew; against that, the hash of the last line
is logged when the service starts and stops, where logs are usually kept elsewhere.

What can't be written is logged instead: a full disk must not stop predictions, nor what an administrator does about it.
"""

import hashlib
import logging
import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from errno import ENOSPC
from pathlib import Path
from typing import NamedTuple, TypedDict, Unpack

import msgspec

from onepass.service.utc import utc_text
from onepass.service.web.buckets import Bucket

__all__ = ["AUDIT", "COMMAND_LINE", "About", "AuditLog", "Verified", "audit_files", "verify_audit"]

AUDIT = "audit.jsonl"
"""Name of the file that is written; ``audit-000001.jsonl`` and so on were written before it."""
COMMAND_LINE = "command line"
"""Who does what a command does while the service is stopped."""
_EARLIER = re.compile(r"audit-(\d{6,})\.jsonl")
_LARGEST = 16 * 2**20
_BEGIN = b'{"time":"'  # of each line
_FIRST = "0" * 64  # in place of a hash, where there is no line before
_TAIL = 2**16  # bytes at the end of a file that are read first; a line usually has a few hundred
_log = logging.getLogger("onepass.service")
_REFUSALS = 100.0  # of somebody, written at once; then one per second, so that nobody can fill the disk


class About(TypedDict, total=False):
    """What an action was about."""

    model: str
    version: int
    """That a model goes back to."""
    token: str
    """Name of the token that was made or revoked, or was to be."""
    scope: str
    """Of that token."""
    models: list[str]
    """That this token is for."""
    expires: datetime
    """When this token stops being valid."""
    lost: int
    """Events that a repaired model has lost."""


class _Record(msgspec.Struct, omit_defaults=True):
    time: str
    who: str
    action: str
    status: int
    previous: str
    """SHA-256 of the line before."""
    model: str | None = None
    version: int | None = None
    token: str | None = None
    scope: str | None = None
    models: list[str] | None = None
    expires: datetime | None = None
    lost: int | None = None
    client: str | None = None
    """Address that the request came from."""
    skipped: int = 0
    """Refusals of the same one since the last that was written."""


class _Refusals:
    """How many refusals of somebody may be written, and how many were not."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.bucket = Bucket(1.0, _REFUSALS, clock)
        self.skipped = 0


class AuditLog:
    """Appends a line for everything that changes the service or takes a model out of it, and for who was refused.

    Parameters
    ----------
    folder : with the files of the log
    largest : bytes after which a file is renamed, and a new one begun
    clock : seconds, for the number of refusals that are written

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> AuditLog(folder).changed("ann", "delete model", 204, model="price")
    >>> msgspec.json.decode((folder / AUDIT).read_bytes())["action"]
    'delete model'
    >>> verify_audit(folder).problems
    []
    """

    def __init__(self, folder: Path, *, largest: int = _LARGEST, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._largest = folder / AUDIT, largest
        self._refusals: dict[str, _Refusals] = defaultdict(lambda: _Refusals(clock))
        self._head: str | None = None

    @property
    def head(self) -> str:
        """Hash of the last line: what comes before it can't be changed without changing this."""
        if self._head is None:
            self._head = _head(self._path.parent)
        return self._head

    def changed(self, who: str, action: str, status: int, client: str | None = None, **about: Unpack[About]) -> None:
        """Note what somebody did, or tried to do."""
        self._append(_Record(_now(), who, action, status, _FIRST, client=client, **about))

    def refused(
        self, action: str, status: int, client: str | None, *, who: str = "unknown", **about: Unpack[About]
    ) -> None:
        """Note that somebody was not allowed to do something; of many at once only some are written, all counted."""
        own = self._refusals[who]
        if own.bucket.take():
            own.skipped += 1
            return
        self._append(_Record(_now(), who, action, status, _FIRST, client=client, skipped=own.skipped, **about))
        own.skipped = 0

    def _append(self, record: _Record) -> None:
        try:
            record.previous = self.head
            line = msgspec.json.encode(record)
            size = self._write(line)
        except OSError as error:
            self._head = None  # it is read again, with whatever is there then
            lacking = msgspec.json.encode(record).decode()
            _log.error("the audit log can't be written: %s; it lacks %s", error.strerror, lacking)
            return
        self._head = _hashed(line)
        if size >= self._largest:
            with suppress(OSError):  # then this file grows further
                self._path.rename(_next_name(self._path.parent))

    def _write(self, line: bytes) -> int:
        """Append a line, all of it or nothing; returns the size of the file."""
        binary = getattr(os, "O_BINARY", 0)  # Windows
        handle = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | binary, 0o600)
        try:
            size = os.lseek(handle, 0, os.SEEK_END)
            os.lseek(handle, max(size - 1, 0), os.SEEK_SET)
            is_cut = os.read(handle, 1) not in (b"\n", b"")  # by a crash of the machine; the rest of that line stays
            content = (b"\n" if is_cut else b"") + line + b"\n"
            if os.write(handle, content) != len(content):
                os.ftruncate(handle, size)
                raise OSError(ENOSPC, os.strerror(ENOSPC))
            return size + len(content)
        finally:
            os.close(handle)


class Verified(NamedTuple):
    """What a look at an audit log has found."""

    lines: int
    """That are whole."""
    unfinished: int
    """Lines whose end a crash of the machine has lost."""
    files: int
    head: str
    """Hash of the last line."""
    problems: list[str]
    """Where the chain is broken, one sentence each."""
    notes: list[str]
    """What is worth knowing but is not damage."""


def audit_files(folder: Path) -> list[Path]:
    """The files of an audit log, in the order in which they were written."""
    earlier = sorted((int(found[1]), path) for path, found in _earlier(folder))
    return [*(path for _, path in earlier), *(path for path in [folder / AUDIT] if path.exists())]


def verify_audit(folder: Path) -> Verified:
    """Check that every line of an audit log follows from the one before it; the service may be running.

    The oldest files may have been archived elsewhere, which is not damage: the chain is checked from the first line
    that is there. A line whose end a crash has lost is not damage either: it has no line break, unless the service has
    gone on with a line that follows from what is left.
    """
    files, problems, notes = audit_files(folder), [], []
    number, unfinished, head, cut = 0, 0, None, None
    for where, line in _placed(files):
        content = line.removesuffix(b"\n")
        previous, cut = _previous(content), None
        if previous is not None:
            number += 1
            if head is None and previous != _FIRST:
                notes.append(f"{where} is the first, and follows a line with the hash {previous}, which is not here")
            elif previous != (head or _FIRST):
                words = "does not follow from the line before it: lines were changed, removed or added"
                problems.append(f"{where} {words}")
        elif _is_beginning(content):
            unfinished += 1
            notes.append(f"{where} is unfinished, as after a crash of the machine")
            cut = where if line.endswith(b"\n") else None
        else:
            problems.append(f"{where} is not a line of an audit log: it was changed or added")
        head = _hashed(content)
    if cut is not None:
        problems.append(
            f"{cut} is unfinished and has a line break, which a crash does not leave: it was changed or added"
        )
    return Verified(number, unfinished, len(files), head or _FIRST, problems, notes)


def _previous(line: bytes) -> str | None:
    try:
        return msgspec.json.decode(line, type=_Record).previous
    except ValueError:
        return None


def _is_beginning(content: bytes) -> bool:
    """Whether this may be what is left of a line."""
    return content.startswith(_BEGIN) or _BEGIN.startswith(content)


def _placed(files: list[Path]) -> Iterator[tuple[str, bytes]]:
    """All lines with their line breaks, each after its place in words."""
    for file in files:
        with file.open("rb") as handle:
            for number, line in enumerate(handle, 1):
                yield f"{file.name}, line {number}", line


def _earlier(folder: Path) -> Iterator[tuple[Path, re.Match[str]]]:
    for path in folder.glob("audit-*.jsonl"):
        found = _EARLIER.fullmatch(path.name)
        if found is not None:
            yield path, found


def _next_name(folder: Path) -> Path:
    last = max((int(found[1]) for _, found in _earlier(folder)), default=0)
    return folder / f"audit-{last + 1:06d}.jsonl"


def _head(folder: Path) -> str:
    for path in reversed(audit_files(folder)):
        if line := _last_line(path):
            return _hashed(line)
    return _FIRST


def _last_line(path: Path) -> bytes:
    """The last line of a file, however long it is; empty if there is none."""
    with path.open("rb") as file:
        end, size = file.seek(0, os.SEEK_END), _TAIL
        while True:
            file.seek(max(end - size, 0))
            content = file.read(min(size, end)).removesuffix(b"\n")
            _, newline, line = content.rpartition(b"\n")
            if newline or size >= end:
                return line
            size *= 2


def _hashed(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def _now() -> str:
    return utc_text(datetime.now(UTC), "milliseconds")
