"""Rows that are predicted, learned and labelled."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from typing import Any
from uuid import uuid4

import msgspec

from onepass._typing import FloatArray
from onepass.estimators.rows import Rows, given_limits
from onepass.events import Event
from onepass.service.errors import ProblemError
from onepass.service.model_state import History, ModelState, Prepared, read_inputs, read_label, table_bytes
from onepass.service.operations.base import Change, Operation, Plan, Planning, check_free, check_kept, digest, encode
from onepass.service.served import RowModel
from onepass.service.wire import Key, LabelRequest, Learned, LearnRequest, Prediction, PredictRequest, RowsRequest

__all__ = ["Label", "Learn", "LearnRows", "Predict", "prepare"]


class RowOperation(Operation):
    """A request with one row."""

    def __init__(self, x: Any, fleet_key: Key | None) -> None:
        self.x, self.fleet_key = x, fleet_key
        self.rows: Rows | None = None
        self.y: FloatArray | None = None

    @property
    def target(self) -> Any:
        """The target, or `msgspec.UNSET`."""
        return msgspec.UNSET

    def blob(self) -> bytes:
        """The row as an event keeps it."""
        return encode({"x": self.x} if self.fleet_key is None else {"x": self.x, "key": self.fleet_key})


class _Learning(Operation):
    """A request to learn, which clients may name."""

    id: str | None

    def key(self, planning: Planning) -> str | None:
        """The id that the client has given."""
        return self.id

    def answer_of(self, event: Event) -> Learned:
        """What was answered."""
        return msgspec.convert(event.payload["answer"], Learned)

    def _learned(self, planning: Planning, n_rows: int) -> Learned:
        """The answer to rows that are learned."""
        return Learned(self.id or uuid4().hex, "learned", planning.next_number, planning.n_seen(n_rows))


class Predict(RowOperation):
    """Predict a row and keep it until its label comes."""

    kind = "prediction"
    undone = "the prediction was not stored"

    def __init__(self, request: PredictRequest) -> None:
        super().__init__(request.x, request.key)
        assert request.id is not None
        self.id, self.asked = request.id, request.asked
        self.answer: dict[str, Any] = {}
        self.limits: list[float] | None = None

    def key(self, planning: Planning) -> str:
        """The id of the prediction."""
        return self.id

    @cached_property
    def request(self) -> str:
        """What was to be predicted, and how."""
        return digest(self.x, self.fleet_key, *self.asked)

    def answer_of(self, event: Event) -> Prediction:
        """The prediction that was made."""
        return msgspec.convert(event.payload["answer"], Prediction)

    def plan(self, planning: Planning) -> Plan:
        """Keep the prediction; a label that has come before is learned with it."""
        check_free(planning, self.id, "learn", "rows")
        label = planning.find("label", self.id)
        answer = Prediction(planning.state.version, self.id, **self.answer)
        payload: dict[str, Any] = {"request": self.request}
        if self.limits is not None:  # with which its label is scored
            payload["limits"] = self.limits
        prepared = None
        if label is not None:
            check_kept(label)
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
            y, bad = _rows_of(planning).read_targets([payload["y"]])
            if bad:  # the model was replaced by one with another target since the label came
                raise bad[0]
            assert self.rows is not None
            prepared = Prepared(_rows_of(planning), replace(self.rows, y=y))
        payload["answer"] = msgspec.to_builtins(answer)
        change = Change(self.kind, self.id, payload, self.blob(), 0 if prepared is None else 1, prepared)
        return Plan(answer, (change,))


class Learn(_Learning, RowOperation):
    """Learn a row with its target."""

    kind = "learn"

    def __init__(self, request: LearnRequest) -> None:
        super().__init__(request.x, request.key)
        self.given_y, self.id = request.y, request.id

    @property
    def target(self) -> Any:
        """The target."""
        return self.given_y

    @cached_property
    def request(self) -> str:
        """The row, if it has a name to be known by."""
        return "" if self.id is None else digest(self.x, self.fleet_key, self.given_y)

    def plan(self, planning: Planning) -> Plan:
        """Learn the row."""
        if self.id is not None:
            check_free(planning, self.id, "prediction", "label", "rows")
        answer = self._learned(planning, 1)
        payload = {"y": self.given_y, "request": self.request, "answer": msgspec.to_builtins(answer)}
        assert self.rows is not None
        assert self.y is not None
        prepared = Prepared(_rows_of(planning), replace(self.rows, y=self.y))
        return Plan(answer, (Change(self.kind, answer.id, payload, self.blob(), 1, prepared),))


class LearnRows(_Learning):
    """Learn several rows as one event: all of them, or none."""

    kind = "rows"

    def __init__(self, rows: RowsRequest, id: str | None) -> None:
        self.rows, self.id = rows, id
        self.prepared: Prepared | None = None

    def prepare(self, model: RowModel) -> None:
        """Read all rows; the first bad one is the answer."""
        self.prepared = Prepared(model, model.read_all(self.rows, learn=True))

    @cached_property
    def _blob(self) -> bytes:
        return table_bytes(self.rows.table) if self.rows.records is None else encode(self.rows.records)

    @cached_property
    def request(self) -> str:
        """The rows, if they have a name to be known by."""
        if self.id is None:
            return ""
        return digest(blake2b(self._blob).hexdigest() if self.rows.records is None else self.rows.records)

    def plan(self, planning: Planning) -> Plan:
        """Learn the rows."""
        if self.id is not None:
            check_free(planning, self.id, "learn", "prediction", "label")
        n_rows = len(self.rows)
        answer = self._learned(planning, n_rows)
        payload = {
            "format": "arrow" if self.rows.records is None else "json",
            "rows": n_rows,
            "request": self.request,
            "answer": msgspec.to_builtins(answer),
        }
        return Plan(answer, (Change(self.kind, answer.id, payload, self._blob, n_rows, self.prepared),))


class Label(_Learning):
    """Learn the target of an earlier prediction, or keep it until the prediction comes."""

    kind = "label"
    id: str

    def __init__(self, request: LabelRequest) -> None:
        self.id, self.given_y = request.id, request.y
        self.y: FloatArray | None = None

    @property
    def target(self) -> Any:
        """The target."""
        return self.given_y

    @property
    def request(self) -> str:
        """The target."""
        return digest(self.given_y)

    def plan(self, planning: Planning) -> Plan:
        """Learn the label if its prediction is there, or keep it."""
        check_free(planning, self.id, "learn", "rows")
        prediction = planning.find("prediction", self.id)
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
            rows, bad = _rows_of(planning).read([x], [key])
            if bad:  # the model was rolled back or replaced by one with other columns
                raise bad[0]
            assert self.y is not None
            limits = given_limits([(prediction.payload.get("limits"), 1)])
            prepared = Prepared(_rows_of(planning), replace(rows, y=self.y, limits=limits))
        status, more = ("waiting", 0) if prepared is None else ("learned", 1)
        answer = Learned(self.id, status, planning.next_number, planning.n_seen(more))
        payload = {"request": self.request, "answer": msgspec.to_builtins(answer)}
        return Plan(answer, (Change(self.kind, self.id, payload, encode(self.given_y), more, prepared),))


def prepare(operations: Sequence[Operation], state: ModelState, history: History) -> None:
    """Read and predict the rows of all operations at once; what is wrong with one is its own problem."""
    for one in operations:
        try:
            one.look_back(state, history)
        except ProblemError as problem:
            one.problem = problem
    by_row = [one for one in operations if isinstance(one, RowOperation)]
    targeted = [one for one in operations if isinstance(one, Learn | Label)]
    batches = [one for one in operations if isinstance(one, LearnRows)]
    if not (by_row or targeted or batches):
        return
    try:
        model = state.champion.as_rows("rows with targets")
    except ProblemError as problem:
        for one in (*by_row, *targeted, *batches):
            one.problem = problem
        return
    if by_row:
        numbers, bad = model.read([one.x for one in by_row], [one.fleet_key for one in by_row])
        for i, one in enumerate(by_row):
            one.rows, one.problem = numbers.at([i]), bad.get(i)
            if isinstance(one, Predict):
                one.problem = one.problem or model.unpredictable(one.rows).get(0)
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
    for asked in {one.asked for one in wanted}:
        some = [one for one in wanted if one.asked == asked]
        rows = Rows.joined([one.rows for one in some if one.rows is not None])
        for one, answer in zip(some, model.answers(rows, asked), strict=True):
            one.answer = answer
        for one, limits in zip(some, model.tracked_limits(rows) or (), strict=False):
            one.limits = limits


def _rows_of(planning: Planning) -> RowModel:
    return planning.state.champion.as_rows("rows with targets")
