"""What an operation is, and how the same request is known when it comes again."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import msgspec

from onepass.events import Event
from onepass.service.errors import ProblemError
from onepass.service.learner import History, Learner, Prepared, cant_be_learned

__all__ = ["Desk", "Operation", "check_free", "check_kept", "digest", "earlier_answer", "encode", "used_before"]

encode = msgspec.json.Encoder(order="sorted").encode
"""JSON that is the same for the same content."""


def digest(*parts: Any) -> str:
    """What tells one request from another of the same id, without keeping what is in it.

    Numbers are compared as numbers: ``1`` and, after a crash, ``1.0`` are the same request.
    """
    return blake2b(encode(_compared(msgspec.to_builtins(parts))), digest_size=16).hexdigest()


def _compared(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _compared(own) for key, own in value.items()}
    if isinstance(value, (list, tuple)):
        return [_compared(own) for own in value]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return float(value) + 0.0 if abs(value) <= 2**53 else value  # -0.0 is 0.0


class Desk(Protocol):
    """Where operations write: the journal inside a transaction, and the model before it."""

    learner: Learner

    def find(self, kind: str, key: str) -> Event | None:
        """An event, also one of this transaction."""

    def write(
        self, kind: str, key: str, payload: dict[str, Any], blob: bytes = b"", prepared: Prepared | None = None
    ) -> Event:
        """Append an event, to be applied after the transaction."""

    def next_number(self) -> int:
        """Number of the next event."""

    def n_seen(self, more: int) -> int:
        """Rows that the model will have learned with an event of ``more`` rows that is written next."""

    def become(self, learner: Learner) -> None:
        """Have the transaction lead to another learner, which is stored with it: its events need no past any more."""


class Operation(ABC):
    """One request; ``problem`` is set if it is found to be wrong before the transaction."""

    alone: ClassVar[bool] = False
    """Whether no other may share its group: what others are prepared for would not be the model any more."""
    problem: ProblemError | None = None
    undone: str = "nothing was learned"
    """What the caller gets if its events can't be stored."""
    note: Mapping[str, Any] = MappingProxyType({})
    """What its event keeps in addition."""
    event_key: str | None = None
    """Key of its event, where it is not for the model to say."""

    def look_back(self, learner: Learner, history: History) -> None:
        """Read the earlier events that it needs, before its transaction, so that other writers don't wait for it.

        The model does not change in between. A `ProblemError` refuses the request.
        """
        return

    @abstractmethod
    def write(self, desk: Desk) -> Any:
        """Write what there is to write, and return the answer; a `ProblemError` leaves everything as it was."""


def earlier_answer(event: Event, request: str, learner: Learner) -> Any:
    """The answer to a request that was made before; another one of the same id is refused."""
    check_kept(event)
    if event.payload["request"] != request:
        raise used_before(event)
    if event.number in learner.refusals:
        raise cant_be_learned(event.number, learner.refusals[event.number])
    return event.payload["answer"]


def used_before(event: Event) -> ProblemError:
    """What is said to another request of the same id."""
    return ProblemError(
        422,
        "id used before",
        f"the id {event.key!r} was used by another request, event {event.number}; use a new id for each request",
        field="id",
    )


def check_free(desk: Desk, key: str, *kinds: str) -> None:
    """Refuse an id that another kind of request has used: a row that is learned and labelled would count twice.

    What has expired is no longer in the way: its row may be learned under the same id.
    """
    for kind in kinds:
        event = desk.find(kind, key)
        if event is None:
            continue
        check_kept(event)
        if not event.erased:
            raise ProblemError(
                422,
                "id used before",
                f"the id {key!r} was used by a {_WORDS[kind]}, event {event.number}; {_REMEDIES[kind]}",
                field="id",
            )


_WORDS = {"prediction": "prediction", "label": "label", "learn": "row that was learned", "rows": "batch of rows"}
_LEARNED = "an observation is learned once; use a new id for another one"
_REMEDIES = {
    "prediction": "send its target as a label",
    "label": "send the row as a prediction with this id, and it is learned at once",
    "learn": _LEARNED,
    "rows": _LEARNED,
}


def check_kept(event: Event) -> None:
    """Refuse a request about what was deleted on request."""
    if event.forgotten:
        raise ProblemError(410, "content deleted", f"what was stored for the id {event.key!r} was deleted", field="id")
