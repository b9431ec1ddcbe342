"""Events and snapshots, and how they become the columns of a row and back: exact, and checked."""

import json
from collections.abc import Mapping
from hashlib import blake2b
from math import isfinite
from typing import Any, NamedTuple

__all__ = [
    "Event",
    "Remains",
    "Snapshot",
    "as_blob",
    "as_name",
    "as_time",
    "checksum",
    "decoded",
    "encoded",
    "remains_of",
]


_JSON = json.JSONEncoder(allow_nan=False, sort_keys=True, separators=(",", ":"))


class Event(NamedTuple):
    """One event of a stream.

    Attributes
    ----------
    number : its place in the stream, from 1
    stream, kind, key : its name
    payload : what was given as JSON; empty if forgotten
    blob : what was given as bytes; empty if erased or forgotten
    time : when it happened, in seconds since 1970 unless the caller has another clock
    forgotten : whether payload and blob were deleted on request
    erased : whether the blob was deleted on request, alone or with the payload
    """

    number: int
    stream: str
    kind: str
    key: str
    payload: dict[str, Any]
    blob: bytes
    time: float
    forgotten: bool = False
    erased: bool = False


class Remains(NamedTuple):
    """What is left of an event, whatever has happened to it.

    Attributes
    ----------
    number : its place in the stream
    condition : "whole", "changed" (not what was written), "deleted" (on request), or "missing"
    kind, key, time, payload, blob : as they are found, of any type if changed; None if missing or deleted
    """

    number: int
    condition: str
    kind: Any = None
    key: Any = None
    time: Any = None
    payload: Any = None
    blob: Any = None


class Snapshot(NamedTuple):
    """What a stream had led to after one of its events.

    Attributes
    ----------
    stream : name of the stream
    after : number of the last event that it includes, 0 for none
    content : the bytes that were saved
    time : when it was saved
    pinned : whether it is kept until it is deleted on request
    """

    stream: str
    after: int
    content: bytes
    time: float
    pinned: bool = False


def as_name(value: object, name: str) -> str:
    """``value`` as text that can name a stream, a kind or an event."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be text, got {value!r} ({type(value).__name__})")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} must be text that UTF-8 can encode, got {value!r}") from None
    if not value or "\0" in value:
        raise ValueError(f"{name} must be text of at least one character and without NUL, got {value!r}")
    return str(value)


def as_blob(value: object, name: str) -> bytes:
    """``value`` as bytes; numbers keep every bit."""
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(f"{name} must be bytes, got {type(value).__name__}; for an array pass array.tobytes()")
    return bytes(value)


def as_time(value: object) -> float:
    """``value`` as a point in time."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"time must be a number of seconds, got {value!r} ({type(value).__name__})")
    if not isfinite(value):
        raise ValueError(f"time must be a finite number of seconds, got {value}")
    return float(value)


def encoded(payload: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """A payload as JSON, the same text for the same content, and as it will be when it is read.

    Examples
    --------
    >>> encoded({"reward": 0.1, "arm": "red"})
    ('{"arm":"red","reward":0.1}', {'arm': 'red', 'reward': 0.1})
    """
    if not isinstance(payload, Mapping):
        raise TypeError(f"payload must be a dict, got {type(payload).__name__}; put bytes into blob")
    try:
        text = _JSON.encode(dict(payload))
        content: dict[str, Any] = json.loads(text)
    except TypeError as error:
        raise TypeError(f"payload must contain only what JSON can hold: {error}; put arrays into blob") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"payload must contain only what JSON can hold: {error}") from None
    if content != payload:
        raise ValueError(
            "payload must be the same after writing and reading JSON: keys of dicts must be strings, and sequences "
            "must be lists, not tuples"
        )
    return text, content


def decoded(row: tuple[Any, ...]) -> Event | None:
    """The event in a row of the table, or None if it is not what was written."""
    stream, number, kind, key, time, payload, blob, digest = row
    types_as_written = isinstance(payload, str | None) and isinstance(blob, bytes | None)
    if not types_as_written or checksum((stream, number, kind, key, time), payload, blob) != digest:
        return None
    if payload is None:
        return Event(number, stream, kind, key, {}, b"", time, forgotten=True, erased=True)
    return Event(number, stream, kind, key, json.loads(payload), blob or b"", time, erased=blob is None)


def remains_of(row: tuple[Any, ...]) -> Remains:
    """What a row of the table says, also one that is not what was written."""
    _, number, kind, key, time, payload, blob, _ = row
    event = decoded(row)
    if event is None:
        return Remains(number, "changed", kind, key, time, payload, blob)
    if event.forgotten:
        return Remains(number, "deleted", kind, key, time)
    return Remains(number, "whole", kind, key, time, event.payload, blob)


def checksum(name: tuple[Any, ...], payload: str | None, blob: bytes | None) -> bytes:
    """A checksum of a row: of what identifies it, and of its content, of which None was deleted."""
    text = b"" if payload is None else payload.encode()
    lengths = (None if payload is None else len(text), None if blob is None else len(blob))
    header = "\0".join(map(str, name + lengths))  # names have no NUL, so nothing else gives the same bytes
    digest = blake2b(header.encode(), digest_size=16)
    digest.update(text)
    digest.update(blob or b"")
    return digest.digest()
