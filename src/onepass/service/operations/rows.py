"""Rows that are predicted, learned and labelled."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any
from uuid import uuid4

import msgspec

from onepass._typing import FloatArray
from onepass.service.errors import ProblemError
from onepass.service.learner import History, Learner, Prepared, read_inputs, read_label, table_bytes
from onepass.service.operations.base import Desk, Operation, check_free, check_kept, digest, earlier_answer, encode
from onepass.service.rows import Rows
from onepass.service.served import RowModel, RowNumbers
from onepass.service.served.base import answers, not_for
from onepass.service.served.values import raise_first
from onepass.service.wire import Key, LabelRequest, Learned, LearnRequest, Prediction, PredictRequest

__all__ = ["Label", "Learn", "LearnRows", "Predict", "prepare"]


class RowOperation(Operation):
    """A request with one row."""

    def __init__(self, x: Any, key: Key | None) -> None:
        self.x, self.key = x, key
        self.rows: RowNumbers | None = None
        self.y: FloatArray | None = None

    @property
    def target(self) -> Any:
        """The target, or `msgspec.UNSET`."""
        return msgspec.UNSET

    def blob(self) -> bytes:
        """The row as an event keeps it."""
        return encode({"x": self.x} if self.key is None else {"x": self.x, "key": self.key})


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
        check_free(desk, self.id, "learn", "rows")
        label = desk.find("label", self.id)
        answer = Prediction(desk.learner.version, self.id, **self.answer)
        payload: dict[str, Any] = {"request": request}
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
        self.given_y, self.id = request.y, request.id

    @property
    def target(self) -> Any:
        """The target."""
        return self.given_y

    def write(self, desk: Desk) -> Learned:
        """Write the row."""
        request = ""
        if self.id is not None:
            request = digest(self.x, self.key, self.given_y)
            event = desk.find("learn", self.id)
            if event is not None:
                return msgspec.convert(earlier_answer(event, request, desk.learner), Learned)
            check_free(desk, self.id, "prediction", "label", "rows")
        answer = Learned(self.id or uuid4().hex, "learned", desk.next_number(), desk.n_seen(1))
        payload = {"y": self.given_y, "request": request, "answer": msgspec.to_builtins(answer)}
        assert self.rows is not None
        assert self.y is not None
        desk.write("learn", answer.id, payload, self.blob(), Prepared(_rows_of(desk), self.rows, self.y))
        return answer


class LearnRows(Operation):
    """Learn several rows as one event: all of them, or none."""

    def __init__(self, rows: Rows, id: str | None) -> None:
        self.rows, self.id = rows, id
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
            numbers, bad = model.read([one["x"] for one in records], [one.get("key") for one in records])
            y, bad_targets = model.read_targets([one.get("y") for one in records])
            raise_first({**bad_targets, **bad})
        self.prepared = Prepared(model, numbers, y)

    def write(self, desk: Desk) -> Learned:
        """Write the rows."""
        records, request = self.rows.records, ""
        form, blob = ("arrow", table_bytes(self.rows.table)) if records is None else ("json", encode(records))
        if self.id is not None:
            request = digest(blake2b(blob).hexdigest() if records is None else records)
            event = desk.find("rows", self.id)
            if event is not None:
                return msgspec.convert(earlier_answer(event, request, desk.learner), Learned)
            check_free(desk, self.id, "learn", "prediction", "label")
        answer = Learned(self.id or uuid4().hex, "learned", desk.next_number(), desk.n_seen(len(self.rows)))
        payload = {
            "format": form,
            "rows": len(self.rows),
            "request": request,
            "answer": msgspec.to_builtins(answer),
        }
        desk.write("rows", answer.id, payload, blob, self.prepared)
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
        check_free(desk, self.id, "learn", "rows")
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
        desk.write("label", self.id, payload, encode(self.given_y), prepared)
        return answer


def prepare(operations: Sequence[Operation], learner: Learner, history: History) -> None:
    """Read and predict the rows of all operations at once; what is wrong with one is its own problem."""
    for one in operations:
        try:
            one.look_back(learner, history)
        except ProblemError as problem:
            one.problem = problem
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
