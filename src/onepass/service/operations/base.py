"""What an operation is, what it is planned into, and how the same request is known when it comes again."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, ClassVar, NamedTuple, Protocol

import msgspec

from onepass.decisions.planned import Planned
from onepass.events import Event
from onepass.service.errors import ProblemError
from onepass.service.model_state import History, ModelState, Prepared, cant_be_learned

__all__ = ["Change", "Operation", "Plan", "Planning", "check_free", "check_kept", "digest", "encode", "plan_once"]

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


class Change(NamedTuple):
    """What a request changes, as an event keeps it."""

    kind: str
    key: str
    payload: Mapping[str, Any]
    blob: bytes = b""
    n_rows: int = 0
    """That the model will have learned with it."""
    prepared: Prepared | None = None
    """Its rows as the model reads them, so that they need not be read again."""


class Plan(NamedTuple):
    """What becomes of a request: its answer, and the changes to append and apply; none if it came before."""

    answer: Any
    changes: tuple[Change, ...] = ()
    becomes: ModelState | None = None
    """What the changes lead to, where that is stored with them: then they need no past any more."""


class Planning(Protocol):
    """What a request is planned with: the past up to the request before it, and the model before its group."""

    state: ModelState
    planned: Planned
    """Decisions and rewards of a bandit that requests of the same group will have made."""

    def find(self, kind: str, key: str) -> Event | None:
        """An event, also one of the same group."""

    @property
    def next_number(self) -> int:
        """Number of the next event."""

    def n_seen(self, more: int) -> int:
        """Rows that the model will have learned with an event of ``more`` rows that comes next."""


class Operation(ABC):
    """One request, ``asked``; ``problem`` is set if it is found to be wrong before it is planned."""

    alone: ClassVar[bool] = False
    """Whether no other may share its group: what others are prepared for would not be the model any more."""
    kind: ClassVar[str] = ""
    """Of the event that it becomes, where clients can name it."""
    problem: ProblemError | None = None
    undone: str = "nothing was learned"
    """What the caller gets if its events can't be stored."""

    def __init__(self, request: Any = None) -> None:
        self.asked = request

    def look_back(self, state: ModelState, history: History) -> None:
        """Read the earlier events that it needs, before its transaction, so that other writers don't wait for it.

        The model does not change in between. A `ProblemError` refuses the request.
        """
        return

    def key(self, planning: Planning) -> str | None:
        """Key of its event, by which it is known when it comes again; None if the client has not named it."""
        return None

    @property
    def request(self) -> str:
        """What tells it from another request with the same key."""
        return ""

    @abstractmethod
    def plan(self, planning: Planning) -> Plan:
        """Say what is to be changed, and the answer; a `ProblemError` refuses the request."""

    def answer_of(self, event: Event) -> Any:
        """The answer that a request got when it came first."""
        return event.payload["answer"]


def plan_once(operation: Operation, planning: Planning) -> Plan:
    """Plan a request, or answer it as before: nothing else decides whether a request has come before.

    Another request with the same key is refused, and so is one about what was deleted.
    """
    key = operation.key(planning)
    event = None if key is None else planning.find(operation.kind, key)
    if event is None:
        return operation.plan(planning)
    check_kept(event)
    if event.payload["request"] != operation.request:
        raise used_before(event)
    if event.number in planning.state.refusals:
        raise cant_be_learned(event.number, planning.state.refusals[event.number])
    return Plan(operation.answer_of(event))


def used_before(event: Event) -> ProblemError:
    """What is said to another request of the same id."""
    return ProblemError(
        422,
        "id used before",
        f"the id {event.key!r} was used by another request, event {event.number}; use a new id for each request",
        field="id",
    )


def check_free(planning: Planning, key: str, *kinds: str) -> None:
    """Refuse an id that another kind of request has used: a row that is learned and labelled would count twice.

    What has expired is no longer in the way: its row may be learned under the same id.
    """
    for kind in kinds:
        event = planning.find(kind, key)
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
