"""What goes over the socket: requests that are checked, answers, and the knobs as they are sent to the page."""

from typing import Any

import msgspec

from onepass.service.playground.scenes import SCENES, AnyRequest, View

__all__ = ["MAX_SIZE", "Answer", "Failure", "WrongMessageError", "catalogue", "decode", "encode"]

MAX_SIZE = 1 << 16
"""Characters of a message: those of a request with as many points as are allowed are a tenth of it."""

_NOT_KNOBS = ("scene", "id", "points", "steps")


class WrongMessageError(ValueError):
    """A message that is not a request; ``id`` is its number, if it has one."""

    def __init__(self, words: str, id: int | None) -> None:
        super().__init__(words)
        self.id = id


class Answer(msgspec.Struct, frozen=True):
    """The view that was asked for."""

    id: int
    view: View


class Failure(msgspec.Struct, frozen=True):
    """Why there is no view."""

    id: int | None
    error: str


class _Numbered(msgspec.Struct):
    id: int | None = None


_requests: msgspec.json.Decoder[AnyRequest] = msgspec.json.Decoder(AnyRequest)
_numbers = msgspec.json.Decoder(_Numbered)


def decode(message: str | bytes) -> AnyRequest:
    """Take a message apart; a `WrongMessageError` says what is wrong with it, and where.

    Examples
    --------
    >>> decode('{"scene": "curve", "points": [[0.5, 1]]}').points
    [(0.5, 1.0)]
    >>> decode('{"scene": "curve", "id": 3, "units": 1000}')
    Traceback (most recent call last):
    onepass.service.playground.messages.WrongMessageError: Expected `int` <= 20 - at `$.units`
    """
    if len(message) > MAX_SIZE:
        raise WrongMessageError(f"a message may have at most {MAX_SIZE:,} characters, got {len(message):,}", None)
    try:
        return _requests.decode(message)
    except (msgspec.DecodeError, UnicodeError) as error:  # the first includes what is well-formed but not allowed
        raise WrongMessageError(str(error), _number(message)) from None


def _number(message: str | bytes) -> int | None:
    try:
        return _numbers.decode(message).id
    except (msgspec.DecodeError, UnicodeError):
        return None


def encode(answer: Answer | Failure) -> str:
    """An answer as JSON, its arrays in base64."""
    return msgspec.json.encode(answer).decode()


def catalogue() -> list[dict[str, Any]]:
    """Every scene and its knobs, in the order of the page: what each is called, allows, and starts with.

    Examples
    --------
    >>> [scene["scene"] for scene in catalogue()]
    ['curve', 'classes', 'outliers', 'drift', 'bandit', 'merging']
    >>> catalogue()[0]["knobs"][2]["name"], catalogue()[0]["knobs"][2]["maximum"]
    ('units', 20)
    """
    found = []
    for request in SCENES:
        (described,), _ = msgspec.json.schema_components([request], ref_template="{name}")
        schema = msgspec.json.schema(request)["$defs"][described["$ref"]]
        knobs = [{"name": name, **knob} for name, knob in schema["properties"].items() if name not in _NOT_KNOBS]
        found.append({"scene": request.__struct_config__.tag, "knobs": knobs})
    return found
