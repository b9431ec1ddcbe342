"""What the events of one model have led to: the model, its candidate, and how well both predict.

A `ModelState` changes by events alone, one after the other, and every event says all that is needed: what was decided
when it was written is not decided again. The same events therefore give the same model, bit for bit, whenever and
wherever they are applied. It knows nothing about threads, files or HTTP.
"""

import json
import logging
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from io import BytesIO
from itertools import groupby
from typing import Any, NamedTuple, Protocol
from zipfile import ZipFile, ZipInfo

import msgspec
import pyarrow as pa

from onepass.estimators.rows import Rows, given_limits
from onepass.events import Event
from onepass.files.checkpoint import from_bytes
from onepass.service.errors import ProblemError
from onepass.service.scores import AlarmKind, ServedScores
from onepass.service.served import RowModel, Served, serve
from onepass.service.wire import RowsRequest

__all__ = ["History", "ModelState", "Prepared", "cant_be_learned", "read_inputs", "read_label", "table_bytes"]

_log = logging.getLogger(__name__)
_REFUSALS = 1000  # that are remembered


class Prepared(NamedTuple):
    """Rows of events with their targets, already read by a model, so that the writer need not read them again."""

    reader: RowModel
    rows: Rows


class PendingRow(NamedTuple):
    """One row that is to be learned, as it was sent."""

    event: Event
    x: Any
    key: str | None
    y: Any
    prepared: Prepared | None
    limits: list[float] | None = None
    """Those that its prediction was given, where intervals are tracked."""


class History(Protocol):
    """The past of a model, which some events refer to."""

    def find(self, kind: str, key: str) -> Event | None:
        """The event of this name, or None."""

    def at(self, version: int) -> "ModelState":
        """What the events up to a version had led to."""


class ModelState:
    """A model in production, with its candidate and scores.

    Attributes
    ----------
    champion : the model that answers
    scores : how well it does
    candidate : one that learns the same rows in its shadow, or None
    version : number of the last event that was applied
    origin : time and content's digest of the event that created it
    n_refused : rows that the model could not learn although they were sound, e.g. by overflow
    refusals : why, by the number of the event, for clients that send them again; the last ones
    """

    def __init__(self, champion: Served, scores: Any, version: int, origin: dict[str, Any]) -> None:
        self.champion: Served = champion
        self.version: int = version
        self.origin = origin
        self.candidate: Served | None = None
        self.scores = scores
        self.candidate_scores: Any = None
        self.n_refused: int = 0
        self.refusals: dict[int, str] = {}

    @classmethod
    def created(cls, event: Event) -> "ModelState":
        """The state after the event that created it."""
        origin = {"time": event.time, "digest": event.payload["request"], "version": event.number}
        champion = serve(from_bytes(event.blob))
        return cls(champion, champion.new_scores(event.payload["metrics"]), event.number, origin)

    def apply(self, events: Sequence[tuple[Event, Prepared | None]], history: History) -> dict[int, ProblemError]:
        """Let the events of one group happen; returns why rows could not be learned, by the number of their event.

        Rows of single requests that were written together are learned together, which takes a fraction of the time.
        Events say to which group they belong, so that they are learned in the same way whenever they are replayed.
        """
        problems: dict[int, ProblemError] = {}
        for event, _ in events:
            if event.forgotten:  # it is unknown whether anything was learned from it
                raise _lost(event)
        loud = [pair for pair in events if not _is_quiet(pair[0])]
        for is_row, run in groupby(loud, lambda pair: pair[0].kind in self.champion.rows):
            if is_row:
                problems |= self._learn_together([_pending_row(event, prepared, history) for event, prepared in run])
            else:
                for event, prepared in run:
                    problems |= self._happen(event, prepared, history)
        if events:
            self.version = events[-1][0].number
        return problems

    def _happen(self, event: Event, prepared: Prepared | None, history: History) -> dict[int, ProblemError]:
        if event.kind == "rows":
            return self._learn_batch(event, prepared)
        if event.kind in self.champion.changes:
            return self._change(event)
        getattr(self, f"_apply_{event.kind}")(event, history)
        return {}

    def _change(self, event: Event) -> dict[int, ProblemError]:
        """Let a change of a bandit happen, and count it."""
        try:
            self.champion.apply(event)
        except ValueError as error:
            return self._refused(self.champion, event, 1, error)
        self.scores.note(event)
        return {}

    # Rows.

    def _learn_together(self, pending: list[PendingRow]) -> dict[int, ProblemError]:
        """Learn rows at once or, if that fails, one by one, so that a bad one costs itself alone."""
        problems: dict[int, ProblemError] = {}
        for model, scores in self._models():
            given = pending if model is self.champion else [row._replace(limits=None) for row in pending]
            ready, taken, bad = _read_pending(model, given)
            for event, problem in bad:  # it may be another model than that which the rows were sent to
                problems |= self._refused(model, event, 1, problem)
            if not taken:
                continue
            try:
                self._update(model, scores, ready, taken)
            except (ValueError, ArithmeticError):
                for i, event in enumerate(taken):
                    problems |= self._try(model, scores, ready.at([i]), event)
        return problems

    def _learn_batch(self, event: Event, prepared: Prepared | None) -> dict[int, ProblemError]:
        """Learn the rows of one event: all of them, or none."""
        problems: dict[int, ProblemError] = {}
        for model, scores in self._models():
            known = prepared is not None and prepared.reader is model
            try:
                ready = prepared.rows if known and prepared is not None else _read_batch(model, event)
            except ProblemError as problem:
                problems |= self._refused(model, event, event.payload["rows"], problem)
            else:
                problems |= self._try(model, scores, ready, event)
        return problems

    def _try(self, model: RowModel, scores: ServedScores, ready: Rows, event: Event) -> dict[int, ProblemError]:
        """Learn rows of one event; a model that can't is left as it was."""
        try:
            self._update(model, scores, ready, [event])
        except (ValueError, ArithmeticError) as error:
            return self._refused(model, event, len(ready.y), error)
        return {}

    def _refused(self, model: Served, event: Event, n_rows: int, error: Exception) -> dict[int, ProblemError]:
        """The problem for the sender of rows that can't be learned; none if only the candidate can't learn them."""
        if model is not self.champion:
            return {}
        self.n_refused += n_rows
        self.refusals[event.number] = str(error)
        if len(self.refusals) > _REFUSALS:
            del self.refusals[next(iter(self.refusals))]
        _log.warning("event %d of %d rows can't be learned: %s", event.number, n_rows, error)
        return {event.number: cant_be_learned(event.number, str(error))}

    def _update(self, model: RowModel, scores: ServedScores, ready: Rows, events: list[Event]) -> None:
        """Have a model learn rows and score what it had predicted; a model that can't is left as it was."""
        try:
            predicted = model.learn(ready)
        finally:
            model.close_block()
        scores.update(model.scored(ready.y, predicted))
        kind: AlarmKind = "outlier" if model.expects_outliers else "set aside"
        scores.watch(predicted, events, lambda row: model.target_text(float(ready.y[row])), kind)

    def _models(self) -> list[tuple[RowModel, ServedScores]]:
        pairs = ((self.champion, self.scores), (self.candidate, self.candidate_scores))
        return [(one.as_rows("rows with targets"), scores) for one, scores in pairs if one is not None]

    # What is done to the model as a whole.

    def _apply_create(self, event: Event, history: History) -> None:
        """The model was deleted, and another one made under its name: nothing leads from the one to the other."""
        raise ProblemError(410, "content deleted", f"event {event.number} creates another model of this name")

    def back_to(self, earlier: "ModelState", version: int) -> "ModelState":
        """What this state is once it has gone back to an earlier one, as a version of its own."""
        found = copy(self)
        found._take_models(earlier)
        found.version = version
        return found

    def _apply_rollback(self, event: Event, history: History) -> None:
        self._take_models(history.at(event.payload["to"]))

    def _take_models(self, earlier: "ModelState") -> None:
        self.champion, self.scores = earlier.champion, earlier.scores
        self.candidate, self.candidate_scores = earlier.candidate, earlier.candidate_scores

    def _apply_shadow(self, event: Event, history: History) -> None:
        self.candidate = serve(from_bytes(event.blob))
        self.candidate_scores = self.candidate.new_scores(event.payload["metrics"])

    def _apply_drop(self, event: Event, history: History) -> None:
        self.candidate = self.candidate_scores = None

    def _apply_promote(self, event: Event, history: History) -> None:
        assert self.candidate is not None
        assert self.candidate_scores is not None
        self.champion, self.scores = self.candidate, self.candidate_scores
        self.candidate = self.candidate_scores = None

    # Snapshots.

    def content(self) -> bytes:
        """All of it as bytes: an archive with a description and the models, the same bytes for the same content."""
        buffer = BytesIO()
        described = {
            "version": self.version,
            "origin": self.origin,
            "n_refused": self.n_refused,
            "refusals": list(self.refusals.items()),
            "scores": self.scores.state(),
            "candidate_scores": None if self.candidate_scores is None else self.candidate_scores.state(),
        }
        with ZipFile(buffer, "w") as archive:
            archive.writestr(ZipInfo("state.json"), json.dumps(described, sort_keys=True))
            archive.writestr(ZipInfo("champion"), self.champion.content())
            if self.candidate is not None:
                archive.writestr(ZipInfo("candidate"), self.candidate.content())
        return buffer.getvalue()

    @classmethod
    def from_content(cls, content: bytes) -> "ModelState":
        """Make the state that `content` described."""
        with ZipFile(BytesIO(content)) as archive:
            described = json.loads(archive.read("state.json"))
            champion = serve(from_bytes(archive.read("champion")))
            state = cls(champion, _scores_of(champion, described["scores"]), described["version"], described["origin"])
            if "candidate" in archive.namelist():
                state.candidate = serve(from_bytes(archive.read("candidate")))
        state.n_refused, state.refusals = described["n_refused"], dict(described["refusals"])
        if state.candidate is not None:
            state.candidate_scores = _scores_of(state.candidate, described["candidate_scores"])
        return state


def _scores_of(model: Served, state: dict[str, Any]) -> Any:
    return model.new_scores(state["metrics"]).restore(state)


def cant_be_learned(number: int, reason: str) -> ProblemError:
    """The problem for the sender of rows that the model could not learn."""
    return ProblemError(422, "can't be learned", reason, more={"version": number})


def read_inputs(event: Event) -> tuple[Any, str | None]:
    """The row in an event, and the key of a fleet."""
    if not event.blob:
        raise _lost(event)
    found = msgspec.json.decode(event.blob)
    return found["x"], found.get("key")


def read_label(event: Event) -> Any:
    """The target in the event of a label."""
    if event.erased:
        raise _lost(event)
    return msgspec.json.decode(event.blob)


def table_bytes(table: Any) -> bytes:
    """An Arrow batch as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_batch(table)
    return bytes(sink.getvalue())


def _is_quiet(event: Event) -> bool:
    """Whether an event leaves the model as it is: a prediction that waits for its label, or the other way round."""
    if event.kind == "prediction":
        return "y" not in event.payload
    return event.kind == "label" and event.payload["answer"]["status"] == "waiting"


def _pending_row(event: Event, prepared: Prepared | None, history: History) -> PendingRow:
    """The row that an event has; that of a label is in its prediction."""
    if event.kind != "label":
        return PendingRow(event, *read_inputs(event), event.payload["y"], prepared)
    prediction = history.find("prediction", event.key)
    if prediction is None:
        raise _lost(event)
    limits = prediction.payload.get("limits")
    return PendingRow(event, *read_inputs(prediction), read_label(event), prepared, limits)


def _read_pending(
    model: RowModel, pending: list[PendingRow]
) -> tuple[Rows, list[Event], list[tuple[Event, ProblemError]]]:
    """Rows that a model can read, with their events, and the others, with what is wrong with them."""
    prepared = [row.prepared for row in pending if row.prepared is not None]
    if len(prepared) == len(pending) and all(one.reader is model for one in prepared):
        return Rows.joined([one.rows for one in prepared]), [row.event for row in pending], []
    rows, bad = model.read([row.x for row in pending], [row.key for row in pending])
    rows = replace(rows, limits=given_limits([(row.limits, 1) for row in pending]))
    y, bad_targets = model.read_targets([row.y for row in pending])
    bad = {**bad_targets, **bad}
    good = [i for i in range(len(pending)) if i not in bad]
    wrong = [(pending[i].event, problem) for i, problem in sorted(bad.items())]
    return replace(rows, y=y).at(good), [pending[i].event for i in good], wrong


def _read_batch(model: RowModel, event: Event) -> Rows:
    """All rows of an event."""
    if not event.blob:
        raise _lost(event)
    if event.payload["format"] == "arrow":
        asked = RowsRequest(table=pa.ipc.open_stream(event.blob).read_next_batch())
    else:
        asked = RowsRequest(records=msgspec.json.decode(event.blob))
    return model.read_all(asked, learn=True)


def _lost(event: Event) -> ProblemError:
    return ProblemError(
        410,
        "content deleted",
        f"the content of event {event.number} was deleted, and no snapshot includes what came of it",
    )
