"""Who changed what, and when: JSON lines that are only ever appended, without features and without secrets.

What can't be written is logged instead: a full disk must not stop predictions, nor what an administrator does about it.
"""

import logging
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from onepass.service.web.buckets import Bucket

__all__ = ["AuditLog"]

_log = logging.getLogger("onepass.service")
_REFUSALS = 100.0  # written at once; then one per second, so that strangers can't fill the disk


class _Record(msgspec.Struct, omit_defaults=True):
    time: str
    who: str
    action: str
    status: int
    model: str | None = None
    token: str | None = None
    """Name of the token that was made or revoked."""
    scope: str | None = None
    client: str | None = None
    """Address of whoever was not let in."""
    skipped: int = 0
    """Refusals since the last one that was written."""


class AuditLog:
    """Appends a line for everything that changes the service.

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
        self._refusals = Bucket(1.0, _REFUSALS, clock)
        self._skipped = 0

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
        """Note what somebody did to a model, or to a token and its scope, or was refused."""
        self._append(_Record(_now(), who, action, status, model, token, scope))

    def refused(self, action: str, status: int, client: str | None) -> None:
        """Note that somebody unknown was not let in; of many at once only some are written, and the others counted."""
        if self._refusals.take():
            self._skipped += 1
            return
        self._append(_Record(_now(), "unknown", action, status, client=client, skipped=self._skipped))
        self._skipped = 0

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
