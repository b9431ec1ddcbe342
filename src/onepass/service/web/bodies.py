"""Bodies of requests: read up to a limit, and decoded with an error that names the field.

JSON that can't be parsed is 400, JSON that does not fit its type 422. Decoders are built once per type.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

import msgspec
from starlette.types import Receive

from onepass.service.errors import ProblemError
from onepass.service.mismatch import find_mismatch

__all__ = [
    "ARROW",
    "BYTES",
    "JSON",
    "LINES",
    "Lines",
    "from_text",
    "json_decoder",
    "lines_decoder",
    "media_type",
    "read_body",
]

JSON = "application/json"
LINES = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
BYTES = "application/octet-stream"

_SEARCHED = 2**16  # bytes of a body in which the value that does not fit is searched for: other requests wait
_ROWS = {"x", "y"}  # a field of what may come many at once


async def read_body(headers: Mapping[bytes, bytes], receive: Receive, limit: int) -> bytes:
    """The body of a request, refused as soon as it is known to be longer than the limit."""
    announced = headers.get(b"content-length")
    if announced is not None and (not announced.isdigit() or int(announced) > limit):
        raise _too_large(limit)
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body", False):
        body = await _read_rest(body, receive, limit)
    if len(body) > limit:
        raise _too_large(limit)
    return body


async def _read_rest(first: bytes, receive: Receive, limit: int) -> bytes:
    parts, size, more = [first], len(first), True
    while more and size <= limit:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ProblemError(400, "body incomplete", "the connection was closed before the end of the body")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        more = message.get("more_body", False)
    return b"".join(parts)


def _too_large(limit: int) -> ProblemError:
    words = (
        f"a body may have at most {limit:,} bytes; send fewer rows at once, or start the service with a larger "
        "--max-body"
    )
    return ProblemError(413, "body too large", words, more={"limit": limit})


_UNSAID = ("", "application/x-www-form-urlencoded")  # the client has not said what it is


def media_type(content_type: bytes) -> str:
    """The type alone, without parameters such as the character set; what `curl -d` sends by default is JSON here.

    Examples
    --------
    >>> media_type(b"Application/JSON; charset=utf-8"), media_type(b"application/x-www-form-urlencoded")
    ('application/json', 'application/json')
    """
    given = content_type.partition(b";")[0].strip().lower().decode("latin-1")
    return "application/json" if given in _UNSAID else given


def json_decoder(kind: Any) -> Callable[[bytes], Any]:
    """A function from a body to a value of a type.

    Examples
    --------
    >>> json_decoder(dict[str, float])(b'{"a": 1}')
    {'a': 1.0}
    """
    decode = msgspec.json.Decoder(kind).decode

    def decoded(body: bytes) -> Any:
        try:
            return decode(body)
        except (ValueError, RecursionError) as error:
            raise _refusal(error, body, kind) from None

    return decoded


class Lines(list[Any]):
    """Values of JSON lines, which know the lines that they came in."""

    def __init__(self, values: Iterable[Any], body: bytes) -> None:
        super().__init__(values)
        self._body = body

    def refused(self, problem: ProblemError, place: int) -> ProblemError:
        """A problem with the value at a place, which names its line; lines are counted from 1, empty ones too."""
        return problem.at("line", self._numbers[place] if place < len(self._numbers) else place + 1)

    @cached_property
    def _numbers(self) -> list[int]:
        return _filled_lines(self._body)


def lines_decoder(kind: Any) -> Callable[[bytes], Lines]:
    """A function from JSON lines to a list of values."""
    decode = msgspec.json.Decoder(kind).decode_lines

    def decoded(body: bytes) -> Lines:
        try:
            rows = decode(body)
        except (ValueError, RecursionError) as error:
            raise _line_refusal(error, body, kind) from None
        if not rows:
            raise ProblemError(422, "no rows", "at least one row is needed")
        return Lines(rows, body)

    return decoded


def _filled_lines(body: bytes) -> list[int]:
    """Numbers of the lines with values, of which each is taken to have a line of its own."""
    return [number for number, line in enumerate(body.split(b"\n"), 1) if line.strip()]


def from_text(value: str, kind: Any, field: str) -> Any:
    """A part of an address as a value of a type.

    Examples
    --------
    >>> from_text("0.9", float, "level")
    0.9
    """
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError:
        found = find_mismatch(value, kind, field)
        words = f"{field} can't be this" if found is None else found.words
        got = "" if found is not None and found.names_value else f", got {value!r}"
        raise ProblemError(422, f"bad {field}", words + got, field=field) from None


def _line_refusal(error: Exception, body: bytes, kind: Any) -> ProblemError:
    """A problem with lines; the first bad one is searched for, because the error does not say which it is."""
    decode = msgspec.json.Decoder(kind).decode
    for number, line in enumerate(body.split(b"\n"), 1):
        try:
            if line.strip():
                decode(line)
        except (ValueError, RecursionError) as found:
            return _refusal(found, line, kind).at("line", number)
    return _refusal(error, body, kind)


def _refusal(error: Exception, body: bytes, kind: Any) -> ProblemError:
    """A problem with a body that is not JSON, or does not fit a type."""
    if isinstance(error, msgspec.ValidationError):
        if body.lstrip()[:1] == b"[" and _ROWS.intersection(getattr(kind, "__struct_fields__", ())):
            words = (
                f"the body must be one row as a JSON object, got an array; send many rows as JSON lines ({LINES}) or "
                f"Arrow ({ARROW})"
            )
            return ProblemError(422, "bad request", words)
        if len(body) > _SEARCHED:
            return ProblemError(422, "bad request", f"the body does not fit: {error}", code="wrong_type")
        try:
            return _unfit(json.loads(body, parse_int=_whole_number), kind)
        except (ValueError, RecursionError) as worse:  # it does not fit, and further on it is not JSON either
            error = worse
    return ProblemError(400, "not JSON", _no_json_words(error, body))


def _whole_number(digits: str) -> float:
    """A whole number; one of more digits than Python reads is infinite."""
    return int(digits) if len(digits) < 400 else float(digits)


def _no_json_words(error: Exception, body: bytes) -> str:
    if not body.strip():
        return "the body is empty"
    if b"\0" in body[:16] or body[:2] == b"\xff\xff":
        return f"the body is not text; the content type of a model file is {BYTES}, that of Arrow {ARROW}"
    if isinstance(error, UnicodeDecodeError):
        return "texts must be UTF-8, which this body is not"
    if isinstance(error, RecursionError):
        return "this body is nested too deeply"
    if _has_constants(body):
        return "NaN and Infinity are not JSON; write null for a missing value"
    return f"the body can't be parsed: {error}"


def _has_constants(body: bytes) -> bool:
    """Whether nothing but NaN or Infinity, which Python reads and JSON does not have, keeps a body from being JSON."""
    found: list[str] = []
    try:
        json.loads(body, parse_constant=found.append, parse_int=_whole_number)
    except (ValueError, RecursionError):
        return False
    return bool(found)


def _unfit(value: Any, kind: Any) -> ProblemError:
    found = find_mismatch(value, kind, "the body")
    if found is None:
        return ProblemError(422, "bad request", "the body does not fit what is expected here", code="wrong_type")
    return ProblemError(422, "bad request", found.words, field=found.path.removeprefix(".") or None, code=found.code)
