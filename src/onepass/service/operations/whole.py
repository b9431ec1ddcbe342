"""What is done to a model as a whole: back to an earlier version, a candidate in its shadow, looks from outside."""

from collections.abc import Callable
from typing import Any

from onepass.files.checkpoint import CheckpointError, from_bytes
from onepass.service.errors import ProblemError
from onepass.service.journal import own_key
from onepass.service.model_state import History, ModelState
from onepass.service.operations.base import Change, Operation, Plan, Planning
from onepass.service.served import RowModel, Served, serve
from onepass.tables.columns.wording import listed

__all__ = ["DropShadow", "Promote", "Rollback", "Shadow", "WriterCall", "checked_candidate", "checked_content"]


class Rollback(Operation):
    """Go back to an earlier version; what was learned since is no longer part of the model."""

    alone = True
    undone = "the model was not rolled back"

    def __init__(self, version: int) -> None:
        self.version = version
        self.earlier: ModelState | None = None

    def look_back(self, state: ModelState, history: History) -> None:
        """Recreate the earlier version; a `ProblemError` says why if that is impossible."""
        origin = state.origin["version"]
        if not origin <= self.version <= state.version:
            raise ProblemError(
                404,
                "no such version",
                f"version must be from {origin} to {state.version}, got {self.version}",
                field="version",
            )
        self.earlier = history.at(self.version)

    def plan(self, planning: Planning) -> Plan:
        """Say where to go, together with the model that was found there: its events may be deleted one day."""
        assert self.earlier is not None
        number = planning.next_number
        becomes = planning.state.back_to(self.earlier, number)
        return Plan({"version": number, "to": self.version}, (_own(planning, "rollback", to=self.version),), becomes)


class Shadow(Operation):
    """Let a candidate learn the same stream."""

    alone = True
    undone = "the candidate was not added"

    def __init__(self, content: bytes) -> None:
        self.content = content

    def plan(self, planning: Planning) -> Plan:
        """Keep the candidate."""
        champion = planning.state.champion.as_rows("a shadow")
        if planning.state.candidate is not None:
            raise ProblemError(409, "shadow taken", "this model has a candidate already; promote or delete it first")
        candidate = _served(self.content).as_rows("the shadow of another model")
        if differs := _difference(champion, candidate):
            raise ProblemError(422, "another shape", f"the candidate must answer the same requests: {differs}")
        change = _own(planning, "shadow", metrics=candidate.metrics_now)._replace(blob=self.content)
        return Plan({"version": planning.next_number}, (change,))


class DropShadow(Operation):
    """End the shadow of a candidate."""

    alone = True
    undone = "the candidate was not removed"

    def plan(self, planning: Planning) -> Plan:
        """Let it end."""
        _check_candidate(planning)
        return Plan(None, (_own(planning, "drop"),))


class Promote(Operation):
    """Let the candidate answer from now on."""

    alone = True
    undone = "the candidate was not promoted"

    def plan(self, planning: Planning) -> Plan:
        """Put it in the model's place."""
        _check_candidate(planning)
        return Plan({"version": planning.next_number}, (_own(planning, "promote"),))


class WriterCall(Operation):
    """Something that changes no model, done between two groups, outside any transaction."""

    alone = True

    def __init__(self, action: Callable[[], Any], undone: str = "nothing was done") -> None:
        self.action = action
        self.undone = undone

    def plan(self, planning: Planning) -> Plan:
        """Never called: see `onepass.service.writer`."""
        raise AssertionError


def _own(planning: Planning, kind: str, **payload: Any) -> Change:
    """A change of the model as a whole, which no client can name."""
    return Change(kind, own_key(kind, planning.next_number), payload)


def _difference(champion: RowModel, candidate: RowModel) -> str:
    """What a candidate takes or gives that the model does not, in words; empty if there is nothing."""
    columns = [{column["name"] for column in one.schema()["columns"]} for one in (champion, candidate)]
    if columns[0] != columns[1]:
        return f"its columns are {listed(sorted(columns[1]), 10)}, and the model's {listed(sorted(columns[0]), 10)}"
    if champion.task != candidate.task or set(champion.labels) != set(candidate.labels):
        theirs, ours = (listed(one.labels, 10) or one.task for one in (candidate, champion))
        return f"it predicts {theirs}, and the model {ours}"
    return ""


def _check_candidate(planning: Planning) -> None:
    if planning.state.candidate is None:
        raise ProblemError(409, "no shadow", "this model has no candidate; set one first")


def checked_content(content: bytes) -> bytes:
    """A model file that can be served, or a problem."""
    _served(content)
    return content


def checked_candidate(content: bytes) -> bytes:
    """A model file that can learn in the shadow of another, or a problem."""
    _served(content).as_rows("the shadow of another model")
    return content


def _served(content: bytes) -> Served:
    try:
        return serve(from_bytes(content))
    except CheckpointError as error:
        raise ProblemError(422, "not a model file", str(error)) from None
