"""What the events of one model have led to: the model, a candidate beside it, and how well both predict.

A `Learner` changes by events alone, one after the other, and every event says all that is needed: what was decided when
it was written is not decided again. The same events therefore give the same model, bit for bit, whenever and wherever
they are applied. It knows nothing about threads, files or HTTP.
"""

import json
import logging
from collections.abc import Callable
from io import BytesIO
from typing import Any, NamedTuple, Protocol
from zipfile import ZipFile, ZipInfo

import msgspec
import pyarrow as pa

from onepass._typing import FloatArray
from onepass.files.checkpoint import from_bytes
from onepass.files.events import Event
from onepass.service.errors import ProblemError
from onepass.service.scores import Scores
from onepass.service.served import BanditModel, RowModel, RowNumbers, Served, serve
from onepass.service.served.bandit import CHANGES
from onepass.service.served.values import raise_first

__all__ = ["History", "Learner", "Prepared", "read_inputs", "table_bytes"]

_log = logging.getLogger(__name__)


class Prepared(NamedTuple):
    """Rows of an event, already read by a model: the same model need not read them again."""

    reader: RowModel
    rows: RowNumbers
    y: FloatArray


class History(Protocol):
    """The past of a model, which some events refer to."""

    def find(self, kind: str, key: str) -> Event | None:
        """The event of this name, or None."""

    def at(self, version: int) -> "Learner":
        """What the events up to a version had led to."""


class Learner:
    """A model in production, and what is beside it.

    Attributes
    ----------
    champion : the model that answers
    candidate : one that learns the same rows in its shadow, or None
    version : number of the last event that was applied
    origin : time and content's digest of the event that created it
    n_refused : rows that the model could not learn although they were sound, e.g. by overflow
    """

    def __init__(self, champion: Served, version: int, origin: dict[str, Any]) -> None:
        self.champion, self.version, self.origin = champion, version, origin
        self.candidate: Served | None = None
        self.scores = _scores_of(champion)
        self.candidate_scores: Scores | None = None
        self.n_refused = 0

    @classmethod
    def created(cls, event: Event) -> "Learner":
        """The learner after the event that created it."""
        origin = {"time": event.time, "digest": event.payload["request"], "version": event.number}
        return cls(serve(from_bytes(event.blob)), event.number, origin)

    def apply(self, event: Event, history: History, prepared: Prepared | None = None) -> ProblemError | None:
        """Let an event happen; returns why its rows could not be learned, if they could not."""
        if isinstance(self.champion, BanditModel) and event.kind in CHANGES:
            self.champion.replay(event)
            problem = None
        else:
            problem = getattr(self, f"_apply_{event.kind}")(event, history, prepared)
        self.version = event.number
        return problem

    # Rows.

    def _apply_learn(self, event: Event, history: History, prepared: Prepared | None) -> ProblemError | None:
        x, key = read_inputs(event)
        return self._learn(event, [x], [key], [event.payload["y"]], prepared)

    def _apply_prediction(self, event: Event, history: History, prepared: Prepared | None) -> ProblemError | None:
        if "y" not in event.payload:  # it waits for its label
            return None
        x, key = read_inputs(event)
        return self._learn(event, [x], [key], [event.payload["y"]], prepared)

    def _apply_label(self, event: Event, history: History, prepared: Prepared | None) -> ProblemError | None:
        if event.payload["answer"]["status"] != "learned":
            return None
        prediction = history.find("prediction", event.key)
        if prediction is None or not prediction.blob:
            raise _lost(event)
        x, key = read_inputs(prediction)
        return self._learn(event, [x], [key], [event.payload["y"]], prepared)

    def _apply_rows(self, event: Event, history: History, prepared: Prepared | None) -> ProblemError | None:
        if not event.blob:
            raise _lost(event)
        if event.payload["format"] == "arrow":
            table = pa.ipc.open_stream(event.blob).read_next_batch()
            return self._learn_table(event, table, prepared)
        records = msgspec.json.decode(event.blob)
        keys = [record.get("key") for record in records]
        return self._learn(event, [one["x"] for one in records], keys, [one["y"] for one in records], prepared)

    def _learn(
        self, event: Event, xs: list[Any], keys: list[Any], ys: list[Any], prepared: Prepared | None
    ) -> ProblemError | None:
        def read(model: RowModel) -> tuple[RowNumbers, FloatArray]:
            rows, bad = model.read(xs, keys)
            y, bad_targets = model.read_targets(ys)
            raise_first({**bad_targets, **bad})
            return rows, y

        return self._learn_as_read(event, read, len(ys), prepared)

    def _learn_table(self, event: Event, table: Any, prepared: Prepared | None) -> ProblemError | None:
        def read(model: RowModel) -> tuple[RowNumbers, FloatArray]:
            rows, y = model.read_table(table, learn=True)
            assert y is not None
            return rows, y

        return self._learn_as_read(event, read, table.num_rows, prepared)

    def _learn_as_read(
        self,
        event: Event,
        read: Callable[[RowModel], tuple[RowNumbers, FloatArray]],
        n_rows: int,
        prepared: Prepared | None,
    ) -> ProblemError | None:
        """Have champion and candidate learn rows, each as it reads them itself; what the champion can't is a problem.

        It may be another one than that which read the rows when they came, with other columns.
        """
        found = None
        for model, scores in self._models():
            try:
                known = prepared is not None and prepared.reader is model
                rows, y = prepared[1:] if known and prepared is not None else read(model)
                self._teach(model, scores, event, rows, y)
            except (ProblemError, ValueError, ArithmeticError) as error:
                if model is self.champion:
                    found = self._refused(event, n_rows, error)
        return found

    def _refused(self, event: Event, n_rows: int, error: Exception) -> ProblemError:
        self.n_refused += n_rows
        _log.warning("event %d of %d rows can't be learned: %s", event.number, n_rows, error)
        return ProblemError(422, "can't be learned", str(error), more={"version": event.number})

    def _teach(self, model: RowModel, scores: Scores, event: Event, rows: RowNumbers, y: FloatArray) -> None:
        """Have a model learn rows and score what it had predicted; a model that can't is left as it was."""
        try:
            predicted = model.learn(rows, y)
        finally:
            model.close_block()
        scores.update(model.scored(y, predicted))
        scores.watch(predicted, event.number, event.time, lambda row: model.target_text(float(y[row])))

    def _models(self) -> list[tuple[RowModel, Scores]]:
        pairs = ((self.champion, self.scores), (self.candidate, self.candidate_scores))
        return [(one, scores) for one, scores in pairs if isinstance(one, RowModel) and scores is not None]

    # What is done to the model as a whole.

    def _apply_rollback(self, event: Event, history: History, prepared: Prepared | None) -> None:
        earlier = history.at(event.payload["to"])
        self.champion, self.scores = earlier.champion, earlier.scores
        self.candidate, self.candidate_scores = earlier.candidate, earlier.candidate_scores

    def _apply_shadow(self, event: Event, history: History, prepared: Prepared | None) -> None:
        self.candidate = serve(from_bytes(event.blob))
        self.candidate_scores = _scores_of(self.candidate)

    def _apply_drop(self, event: Event, history: History, prepared: Prepared | None) -> None:
        self.candidate = self.candidate_scores = None

    def _apply_promote(self, event: Event, history: History, prepared: Prepared | None) -> None:
        assert self.candidate is not None
        self.champion, self.scores = self.candidate, self.candidate_scores
        self.candidate = self.candidate_scores = None

    # Snapshots.

    def content(self) -> bytes:
        """All of it as bytes: an archive with the state and the models, the same bytes for the same content."""
        buffer = BytesIO()
        state = {
            "version": self.version,
            "origin": self.origin,
            "n_refused": self.n_refused,
            "scores": None if self.scores is None else self.scores.state(),
            "candidate_scores": None if self.candidate_scores is None else self.candidate_scores.state(),
        }
        with ZipFile(buffer, "w") as archive:
            archive.writestr(ZipInfo("state.json"), json.dumps(state, sort_keys=True))
            archive.writestr(ZipInfo("champion"), self.champion.content())
            if self.candidate is not None:
                archive.writestr(ZipInfo("candidate"), self.candidate.content())
        return buffer.getvalue()

    @classmethod
    def from_content(cls, content: bytes) -> "Learner":
        """Make the learner that `content` described."""
        with ZipFile(BytesIO(content)) as archive:
            state = json.loads(archive.read("state.json"))
            learner = cls(serve(from_bytes(archive.read("champion"))), state["version"], state["origin"])
            if "candidate" in archive.namelist():
                learner.candidate = serve(from_bytes(archive.read("candidate")))
        learner.n_refused = state["n_refused"]
        learner.scores = _scores_of(learner.champion, state["scores"])
        if learner.candidate is not None:
            learner.candidate_scores = _scores_of(learner.candidate, state["candidate_scores"])
        return learner


def read_inputs(event: Event) -> tuple[Any, str | None]:
    """The row in an event, and the key of a fleet."""
    if not event.blob:
        raise _lost(event)
    found = msgspec.json.decode(event.blob)
    return found["x"], found.get("key")


def table_bytes(table: Any) -> bytes:
    """An Arrow batch as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_batch(table)
    return bytes(sink.getvalue())


def _scores_of(model: Served, state: dict[str, Any] | None = None) -> Scores | None:
    if not isinstance(model, RowModel):
        return None
    return Scores(model.task) if state is None else Scores.from_state(model.task, state)


def _lost(event: Event) -> ProblemError:
    return ProblemError(
        410,
        "content deleted",
        f"the content of event {event.number} was deleted, and no snapshot includes what came of it",
    )
