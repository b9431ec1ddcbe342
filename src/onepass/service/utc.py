"""Times as people and programs read them: UTC in ISO 8601."""

from datetime import UTC, datetime

__all__ = ["utc_text"]


def utc_text(moment: datetime, timespec: str = "seconds") -> str:
    """A time in UTC, to the second or, with ``timespec="milliseconds"``, to the millisecond.

    Examples
    --------
    >>> utc_text(datetime.fromisoformat("2030-01-31T12:30:00+02:00"))
    '2030-01-31T10:30:00Z'
    """
    return moment.astimezone(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")
