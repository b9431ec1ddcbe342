"""What can be asked of the one who writes a model's events; each operation is one request.

An operation is prepared before the transaction, together with all others of its group, so that rows are read and
predicted at once. Inside the transaction it looks whether the same was asked before and writes its event. Events are
applied after the transaction: what is learned is durable already.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, ClassVar, Protocol
from uuid import uuid4

import msgspec

from onepass._typing import FloatArray
from onepass.decisions.choice import Pending
from onepass.decisions.journal import change_of
from onepass.decisions.ledger import UnknownDecision
from onepass.files.checkpoint import CheckpointError, from_bytes
from onepass.files.events import Event
from onepass.service.errors import ProblemError
from onepass.service.journal import own_key
from onepass.service.learner import Learner, Prepared, cant_be_learned, read_inputs, read_label, table_bytes
from onepass.service.rows import Rows
from onepass.service.served import BanditModel, RowModel, RowNumbers, Served, serve
from onepass.service.served.base import answers, not_for
from onepass.service.served.values import raise_first
from onepass.service.wire import (
    DecideRequest,
    Decision,
    LabelRequest,
    Learned,
    LearnRequest,
    Prediction,
    PredictRequest,
    RewardRequest,
)
from onepass.tables.columns.wording import listed

__all__ = [
    "Call",
    "Decide",
    "Desk",
    "DropShadow",
    "Expire",
    "Label",
    "Learn",
    "LearnRows",
    "Operation",
    "Predict",
    "Promote",
    "Reward",
    "Rollback",
    "Shadow",
    "Withdraw",
    "checked_candidate",
    "checked_content",
    "digest",
    "prepare",
]

_ENCODE = msgspec.json.Encoder(order="sorted").encode


def digest(*parts: Any) -> str:
    """What tells one request from another of the same id, without keeping what is in it."""
    return blake2b(_ENCODE(parts), digest_size=16).hexdigest()


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


class Operation(ABC):
    """One request; ``problem`` is set if it is found to be wrong before the transaction."""

    alone: ClassVar[bool] = False
    """Whether no other may share its group: what others are prepared for would not be the model any more."""
    problem: ProblemError | None = None
    undone: str = "nothing was learned"
    """What is told of it if its events can't be stored."""
    note: Mapping[str, Any] = MappingProxyType({})
    """What its events keep beside what they are about."""

    @abstractmethod
    def write(self, desk: Desk) -> Any:
        """Write what there is to write, and return the answer; a `ProblemError` leaves everything as it was."""


def earlier_answer(event: Event, request: str, learner: Learner) -> Any:
    """The answer to a request that was made before; another one of the same id is refused."""
    _check_kept(event)
    if event.payload["request"] != request:
        raise ProblemError(
            422,
            "id used before",
            f"the id {event.key!r} was used by another request, event {event.number}; use a new id for each request",
            field="id",
        )
    if event.number in learner.refusals:
        raise cant_be_learned(event.number, learner.refusals[event.number])
    return event.payload["answer"]


def check_free(desk: Desk, key: str, *kinds: str) -> None:
    """Refuse an id that another kind of request has used: a row that is learned and labelled would count twice.

    What has expired is no longer in the way: its row may be learned under the same id.
    """
    for kind in kinds:
        event = desk.find(kind, key)
        if event is None:
            continue
        _check_kept(event)
        if not event.erased:
            raise ProblemError(
                422,
                "id used before",
                f"the id {key!r} was used by a {_WORDS[kind]}, event {event.number}; {_REMEDIES[kind]}",
                field="id",
            )


_WORDS = {"prediction": "prediction", "label": "label", "learn": "row that was learned"}
_REMEDIES = {
    "prediction": "tell its target as a label",
    "label": "send the row as a prediction with this id, which is learned at once",
    "learn": "one observation is learned once: take another id for another one",
}


def _check_kept(event: Event) -> None:
    if event.forgotten:
        raise ProblemError(410, "content deleted", f"what was stored for the id {event.key!r} was deleted", field="id")


class RowOperation(Operation):
    """A request with one row."""

    def __init__(self, x: Any, key: str | None) -> None:
        self.x, self.key = x, key
        self.rows: RowNumbers | None = None
        self.y: FloatArray | None = None

    @property
    def target(self) -> Any:
        """The target, or `msgspec.UNSET`."""
        return msgspec.UNSET

    def blob(self) -> bytes:
        """The row as an event keeps it."""
        return _ENCODE({"x": self.x} if self.key is None else {"x": self.x, "key": self.key})


class Predict(RowOperation):
    """Predict a row and keep it until its label comes."""

    undone = "the prediction was not stored"

    def __init__(self, request: PredictRequest) -> None:
        super().__init__(request.x, request.key)
        assert request.id is not None
        self.id, self.level = request.id, request.level
        self.answer: dict[str, Any] = {}

    def write(self, desk: Desk) -> Prediction:
        """Write the prediction; a label that has come before is learned with it."""
        request = digest(self.x, self.key, self.level)
        event = desk.find("prediction", self.id)
        if event is not None:
            return msgspec.convert(earlier_answer(event, request, desk.learner), Prediction)
        check_free(desk, self.id, "learn")
        label = desk.find("label", self.id)
        answer = Prediction(desk.learner.version, self.id, **self.answer)
        payload: dict[str, Any] = {"request": request}
        prepared = None
        if label is not None:
            _check_kept(label)
            if label.erased or label.payload["answer"]["status"] != "waiting":
                what = "its label" if label.erased else "the prediction that its label belonged to"
                raise ProblemError(
                    410,
                    "content deleted",
                    f"{what} was deleted before the prediction {self.id!r} came; learn it with its row",
                    field="id",
                )
            answer.learned = True
            payload["y"] = read_label(label)
            y, bad = _rows_of(desk).read_targets([payload["y"]])
            if bad:  # the model was replaced by one with another target since the label came
                raise bad[0]
            assert self.rows is not None
            prepared = Prepared(_rows_of(desk), self.rows, y)
        payload["answer"] = msgspec.to_builtins(answer)
        desk.write("prediction", self.id, payload, self.blob(), prepared)
        return answer


class Learn(RowOperation):
    """Learn a row with its target."""

    def __init__(self, request: LearnRequest) -> None:
        super().__init__(request.x, request.key)
        self.given_y, self.id = request.y, request.id or uuid4().hex

    @property
    def target(self) -> Any:
        """The target."""
        return self.given_y

    def write(self, desk: Desk) -> Learned:
        """Write the row."""
        request = digest(self.x, self.key, self.given_y)
        event = desk.find("learn", self.id)
        if event is not None:
            return msgspec.convert(earlier_answer(event, request, desk.learner), Learned)
        check_free(desk, self.id, "prediction", "label")
        answer = Learned(self.id, "learned", desk.next_number(), desk.n_seen(1))
        payload = {"y": self.given_y, "request": request, "answer": msgspec.to_builtins(answer)}
        assert self.rows is not None
        assert self.y is not None
        desk.write("learn", self.id, payload, self.blob(), Prepared(_rows_of(desk), self.rows, self.y))
        return answer


class LearnRows(Operation):
    """Learn several rows as one event: all of them, or none."""

    def __init__(self, rows: Rows, id: str | None) -> None:
        self.rows, self.id = rows, id or uuid4().hex
        self.prepared: Prepared | None = None

    def prepare(self, model: RowModel) -> None:
        """Read all rows; the first bad one is the answer."""
        if not len(self.rows):
            raise ProblemError(422, "bad value", "there are no rows")
        if self.rows.records is None:
            numbers, y = model.read_table(self.rows.table, learn=True)
            assert y is not None
        else:
            records = self.rows.records
            named = next((i for i, one in enumerate(records) if one.get("id") is not None), None)
            if named is not None:
                raise ProblemError(
                    422,
                    "bad value",
                    "rows of a batch can't have ids: they are one request; give its id as the parameter ?id=",
                    field=f"rows[{named}].id",
                )
            numbers, bad = model.read([one["x"] for one in records], [one.get("key") for one in records])
            y, bad_targets = model.read_targets([one.get("y") for one in records])
            raise_first({**bad_targets, **bad})
        self.prepared = Prepared(model, numbers, y)

    def write(self, desk: Desk) -> Learned:
        """Write the rows."""
        if self.rows.records is None:
            form, blob = "arrow", table_bytes(self.rows.table)
        else:
            form, blob = "json", _ENCODE(self.rows.records)
        request = blake2b(blob, digest_size=16).hexdigest()
        event = desk.find("rows", self.id)
        if event is not None:
            return msgspec.convert(earlier_answer(event, request, desk.learner), Learned)
        answer = Learned(self.id, "learned", desk.next_number(), desk.n_seen(len(self.rows)))
        payload = {
            "format": form,
            "rows": len(self.rows),
            "request": request,
            "answer": msgspec.to_builtins(answer),
        }
        desk.write("rows", self.id, payload, blob, self.prepared)
        return answer


class Label(Operation):
    """Learn the target of an earlier prediction, or keep it until the prediction comes."""

    def __init__(self, request: LabelRequest) -> None:
        self.id, self.given_y = request.id, request.y
        self.y: FloatArray | None = None

    @property
    def target(self) -> Any:
        """The target."""
        return self.given_y

    def write(self, desk: Desk) -> Learned:
        """Write the label; it is learned if its prediction is there."""
        request = digest(self.given_y)
        event = desk.find("label", self.id)
        if event is not None:
            return msgspec.convert(earlier_answer(event, request, desk.learner), Learned)
        check_free(desk, self.id, "learn")
        prediction = desk.find("prediction", self.id)
        if prediction is not None and not prediction.blob:
            raise ProblemError(
                410,
                "prediction expired",
                f"the features of prediction {self.id!r} were deleted before its label came; learn it with its row",
                field="id",
            )
        prepared = None
        if prediction is not None:
            x, key = read_inputs(prediction)
            rows, bad = _rows_of(desk).read([x], [key])
            if bad:  # the model was rolled back or replaced by one with other columns
                raise bad[0]
            assert self.y is not None
            prepared = Prepared(_rows_of(desk), rows, self.y)
        status, more = ("waiting", 0) if prepared is None else ("learned", 1)
        answer = Learned(self.id, status, desk.next_number(), desk.n_seen(more))
        payload = {"request": request, "answer": msgspec.to_builtins(answer)}
        desk.write("label", self.id, payload, _ENCODE(self.given_y), prepared)
        return answer


class Decide(Operation):
    """Let a bandit choose."""

    undone = "nothing was decided"

    def __init__(self, request: DecideRequest) -> None:
        self.request = request
        self.note = {"request": digest(request.context, request.n, request.arms)}

    def write(self, desk: Desk) -> Decision:
        """Choose, and write the decision; the same request again gets the same decision."""
        bandit, asked = _bandit_of(desk), self.request
        event = None if asked.id is None else desk.find("decision", asked.id)
        if event is not None:
            _check_kept(event)
            if event.payload["request"] != self.note["request"]:
                raise ProblemError(
                    422, "id used before", f"the id {asked.id!r} was used by another decision", field="id"
                )
            made = Pending.of(change_of(event))
            names = [arm.name for arm in made.arms]
            return Decision(made.id, names[0], names, made.propensity or 0.0, event.number)
        try:
            number = desk.next_number()
            choice = bandit.model.choose(asked.context, asked.n, arms=asked.arms, id=asked.id)
        except (ValueError, KeyError, TypeError) as error:
            raise ProblemError(422, "bad value", str(error), field="context") from None
        return Decision(choice.id, choice.arm, list(choice.arms), choice.propensity, number)


class Reward(Operation):
    """Tell a bandit what came of a decision."""

    def __init__(self, request: RewardRequest) -> None:
        self.request = request

    def write(self, desk: Desk) -> Learned:
        """Learn the reward; once, however often it comes."""
        bandit, asked = _bandit_of(desk), self.request
        try:
            bandit.model.reward(asked.id, asked.reward, asked.arm, unknown="error")
        except UnknownDecision as error:
            raise ProblemError(404, "unknown decision", str(error), field="id") from None
        except ValueError as error:
            conflict = "before" in str(error)
            raise ProblemError(
                422, "id used before" if conflict else "bad value", str(error), field="id" if conflict else "reward"
            ) from None
        return Learned(asked.id, "learned", desk.next_number() - 1, bandit.n_seen)


class Withdraw(Operation):
    """Have a bandit stop waiting for the reward of a decision, and delete its context."""

    undone = "nothing was deleted"

    def __init__(self, id: str) -> None:
        self.id = id

    def write(self, desk: Desk) -> bool:
        """Write that no reward is expected."""
        return _bandit_of(desk).model.withdraw(self.id)


class Expire(Operation):
    """Have a bandit stop waiting for the rewards of decisions that are older than so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def write(self, desk: Desk) -> int:
        """Write which they are."""
        return _bandit_of(desk).model.expire(self.seconds)


class Rollback(Operation):
    """Go back to an earlier version; what was learned since is no longer part of the model."""

    alone = True
    undone = "the model was not rolled back"

    def __init__(self, version: int) -> None:
        self.version = version

    def write(self, desk: Desk) -> dict[str, Any]:
        """Write where to go."""
        origin = desk.learner.origin["version"]
        if not origin <= self.version < desk.next_number():
            last = desk.next_number() - 1
            raise ProblemError(
                404,
                "no such version",
                f"version must be from {origin} to {last}, got {self.version}",
                field="version",
            )
        event = desk.write("rollback", own_key("rollback", desk.next_number()), {"to": self.version})
        return {"version": event.number, "to": self.version}


class Shadow(Operation):
    """Let a candidate learn the same stream."""

    alone = True
    undone = "the candidate was not added"

    def __init__(self, content: bytes) -> None:
        self.content = content

    def write(self, desk: Desk) -> dict[str, Any]:
        """Write the candidate."""
        champion = desk.learner.champion
        if not isinstance(champion, RowModel):
            raise not_for(champion.kind, "a shadow")
        if desk.learner.candidate is not None:
            raise ProblemError(409, "shadow taken", "this model has a candidate already; promote or delete it first")
        candidate = _served(self.content)
        if isinstance(candidate, RowModel) and (differs := _difference(champion, candidate)):
            raise ProblemError(422, "another shape", f"the candidate must answer the same requests: {differs}")
        event = desk.write("shadow", own_key("shadow", desk.next_number()), {}, self.content)
        return {"version": event.number}


class DropShadow(Operation):
    """End the shadow of a candidate."""

    alone = True
    undone = "the candidate was not removed"

    def write(self, desk: Desk) -> None:
        """Write that it ended."""
        _check_candidate(desk)
        desk.write("drop", own_key("drop", desk.next_number()), {})


class Promote(Operation):
    """Let the candidate answer from now on."""

    alone = True
    undone = "the candidate was not promoted"

    def write(self, desk: Desk) -> dict[str, Any]:
        """Write that it does."""
        _check_candidate(desk)
        event = desk.write("promote", own_key("promote", desk.next_number()), {})
        return {"version": event.number}


class Call(Operation):
    """Something that changes no model, done between two groups, outside any transaction."""

    alone = True

    def __init__(self, action: Callable[[], Any], undone: str = "nothing was done") -> None:
        self.action, self.undone = action, undone

    def write(self, desk: Desk) -> Any:
        """Never called: see `onepass.service.writer`."""
        raise AssertionError


def prepare(operations: Sequence[Operation], learner: Learner) -> None:
    """Read and predict the rows of all operations at once; what is wrong with one is its own problem."""
    model = learner.champion
    by_row = [one for one in operations if isinstance(one, RowOperation)]
    targeted = [one for one in operations if isinstance(one, Learn | Label)]
    batches = [one for one in operations if isinstance(one, LearnRows)]
    if not isinstance(model, RowModel):
        for one in (*by_row, *targeted, *batches):
            one.problem = not_for(model.kind, "rows with targets")
        return
    if by_row:
        numbers, bad = model.read([one.x for one in by_row], [one.key for one in by_row])
        for i, one in enumerate(by_row):
            one.rows, one.problem = numbers.at([i]), bad.get(i)
        _predict([one for one in by_row if isinstance(one, Predict) and one.problem is None], model)
    if targeted:
        y, bad = model.read_targets([one.target for one in targeted])
        for i, one in enumerate(targeted):
            one.y, one.problem = y[i : i + 1], one.problem or bad.get(i)
    for batch in batches:
        try:
            batch.prepare(model)
        except ProblemError as problem:
            batch.problem = problem


def _predict(wanted: list[Predict], model: RowModel) -> None:
    for level in {one.level for one in wanted}:
        some = [one for one in wanted if one.level == level]
        rows = RowNumbers.joined([one.rows for one in some if one.rows is not None])
        for one, answer in zip(some, answers(model, model.predict(rows, level)), strict=True):
            one.answer = answer


def _rows_of(desk: Desk) -> RowModel:
    assert isinstance(desk.learner.champion, RowModel)
    return desk.learner.champion


def _bandit_of(desk: Desk) -> BanditModel:
    if not isinstance(desk.learner.champion, BanditModel):
        raise not_for(desk.learner.champion.kind, "deciding")
    return desk.learner.champion


def _difference(champion: RowModel, candidate: RowModel) -> str:
    """What a candidate takes or gives that the model does not, in words; empty if there is nothing."""
    columns = [{column["name"] for column in one.schema()["columns"]} for one in (champion, candidate)]
    if columns[0] != columns[1]:
        return f"its columns are {listed(sorted(columns[1]), 10)}, and the model's {listed(sorted(columns[0]), 10)}"
    if champion.task != candidate.task or set(champion.labels) != set(candidate.labels):
        theirs, ours = (listed(one.labels, 10) or one.task for one in (candidate, champion))
        return f"it predicts {theirs}, and the model {ours}"
    return ""


def _check_candidate(desk: Desk) -> None:
    if desk.learner.candidate is None:
        raise ProblemError(409, "no shadow", "this model has no candidate; set one first")


def checked_content(content: bytes) -> bytes:
    """A model file that can be served, or a problem."""
    _served(content)
    return content


def checked_candidate(content: bytes) -> bytes:
    """A model file that can learn in the shadow of another, or a problem."""
    candidate = _served(content)
    if not isinstance(candidate, RowModel):
        raise not_for(candidate.kind, "the shadow of another model")
    return content


def _served(content: bytes) -> Served:
    try:
        return serve(from_bytes(content))
    except CheckpointError as error:
        raise ProblemError(422, "not a model file", str(error)) from None
