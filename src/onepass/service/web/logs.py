"""Logs on standard error: JSON lines for machines, plain words at a terminal."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

from onepass.service.utc import utc_text

__all__ = ["JsonLines", "PlainWords", "set_up_logs"]

_KNOWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    """What a message says besides its words."""
    return {key: value for key, value in vars(record).items() if key not in _KNOWN}


class JsonLines(logging.Formatter):
    """A JSON object per line, with a traceback as one of its members.

    Examples
    --------
    >>> record = logging.makeLogRecord({"msg": "started", "levelname": "INFO", "port": 8080, "created": 0.0})
    >>> print(JsonLines().format(record))
    {"time": "1970-01-01T00:00:00.000Z", "level": "info", "message": "started", "port": 8080}
    """

    def format(self, record: logging.LogRecord) -> str:
        """Write a message."""
        moment = utc_text(datetime.fromtimestamp(record.created, UTC), "milliseconds")
        line = {"time": moment, "level": record.levelname.lower(), "message": record.getMessage(), **_extra(record)}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class PlainWords(logging.Formatter):
    """A sentence with the time before it; what comes from outside can't write control characters to the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a message."""
        more = " ".join(f"{key}={value}" for key, value in _extra(record).items() if value is not None)
        words = f"{self.formatTime(record, '%H:%M:%S')} {record.levelname.lower()}: {record.getMessage()} {more}"
        line = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in words.rstrip())
        return line + (f"\n{self.formatException(record.exc_info)}" if record.exc_info else "")


def set_up_logs(stream: TextIO | None = None) -> None:
    """Send the logs of the service and of its server to standard error.

    Warnings of the server are left out: anybody can cause one per request, and bad requests are counted elsewhere.
    """
    to = stream or sys.stderr
    handler = logging.StreamHandler(to)
    handler.setFormatter(PlainWords() if to.isatty() else JsonLines())
    for name, level in (("onepass.service", logging.INFO), ("uvicorn.error", logging.ERROR)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
