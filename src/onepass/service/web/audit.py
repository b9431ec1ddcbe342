"""Who changed what, and when: JSON lines that are only ever appended, without features and without secrets.

What can't be written is logged instead: a full disk must not stop predictions, nor what an administrator does about it.
"""

import logging
import os
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from onepass.service.web.buckets import Bucket

__all__ = ["AuditLog"]

_log = logging.getLogger("onepass.service")
_REFUSALS = 100.0  # of somebody, written at once; then one per second, so that nobody can fill the disk


class _Record(msgspec.Struct, omit_defaults=True):
    time: str
    who: str
    action: str
    status: int
    model: str | None = None
    token: str | None = None
    """Name of the token that was made or revoked, or was to be."""
    scope: str | None = None
    client: str | None = None
    """Address of whoever was refused."""
    skipped: int = 0
    """Refusals of the same one since the last that was written."""


class _Refusals:
    """How many refusals of somebody may be written, and how many were not."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.bucket = Bucket(1.0, _REFUSALS, clock)
        self.skipped = 0


class AuditLog:
    """Appends a line for everything that changes the service or takes a model out of it, and for who was refused.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "audit.jsonl"
    >>> AuditLog(path).changed("ann", "delete model", 204, model="price")
    >>> msgspec.json.decode(path.read_bytes())["action"]
    'delete model'
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._refusals: dict[str, _Refusals] = defaultdict(lambda: _Refusals(clock))

    def changed(
        self,
        who: str,
        action: str,
        status: int,
        *,
        model: str | None = None,
        token: str | None = None,
        scope: str | None = None,
    ) -> None:
        """Note what somebody did, or tried to do, with a model, or with a token and its scope."""
        self._append(_Record(_now(), who, action, status, model, token, scope))

    def refused(
        self,
        action: str,
        status: int,
        client: str | None,
        *,
        who: str = "unknown",
        model: str | None = None,
        token: str | None = None,
        scope: str | None = None,
    ) -> None:
        """Note that somebody was not allowed to do something; of many at once only some are written, all counted."""
        own = self._refusals[who]
        if own.bucket.take():
            own.skipped += 1
            return
        self._append(_Record(_now(), who, action, status, model, token, scope, client, own.skipped))
        own.skipped = 0

    def _append(self, record: _Record) -> None:
        line = msgspec.json.encode(record) + b"\n"
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(handle, line)
            finally:
                os.close(handle)
        except OSError as error:
            _log.error("the audit log can't be written: %s; it lacks %s", error.strerror, line.decode().strip())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
