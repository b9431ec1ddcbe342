"""The events of one model: written before they count, found again by their keys, and replayed after a crash.

Everything that is needed to go on is in the event store: the latest snapshot, the events after it, and which
predictions still wait for their labels.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from errno import EAGAIN
from itertools import groupby, islice
from typing import Any

from onepass.events import Event, EventLog, EventStoreError
from onepass.service.errors import ProblemError
from onepass.service.model_state import History, ModelState, Prepared

__all__ = ["Journal", "each_group", "own_key", "replay", "stream_of"]

_log = logging.getLogger(__name__)
_PREFIX = "model/"
_DELETED = b""  # content of the snapshot of a deleted model


def stream_of(name: str) -> str:
    """Name of the stream of a model."""
    return _PREFIX + name


def own_key(kind: str, number: int) -> str:
    """Key of an event that no client has named: ids of clients have no control characters, so none can mean it."""
    return f"{kind}\n{number}"


class Journal:
    """The stream of one model in an event store.

    Parameters
    ----------
    store : used by one thread alone
    name : of the model

    Attributes
    ----------
    pending : time of each prediction that waits for its label, by id, the oldest first
    waiting : time of each label that waits for its prediction
    """

    def __init__(self, store: EventLog, name: str) -> None:
        self.store = store
        self.name = name
        self.stream: str = stream_of(name)
        self.pending: dict[str, float] = {}
        self.waiting: dict[str, float] = {}
        self.last: int = 0
        """Number of the last event."""
        self._held = ExitStack()

    def lock(self) -> None:
        """Be the only one who writes events of this model, until `close`.

        The writing connection has the lock, so without the lock nothing can be written.
        """
        self._held.enter_context(self.store.only_writer(self.stream))

    def close(self) -> None:
        """Give back the lock, and close the store."""
        try:
            self._held.close()
        finally:
            self.store.close()

    @staticmethod
    def names(store: EventLog) -> list[str]:
        """Names of all models in a store, without those that were deleted."""
        found = [stream.removeprefix(_PREFIX) for stream in store.streams() if stream.startswith(_PREFIX)]
        return [name for name in found if Journal(store, name)._may_exist()]

    def exists(self) -> bool:
        """Whether there is a model of this name."""
        snapshot = self.store.latest_snapshot(self.stream)
        after = 0 if snapshot is None else snapshot.after
        if snapshot is not None and snapshot.content != _DELETED:
            return True
        return self.store.last(self.stream) > after

    def _may_exist(self) -> bool:
        """Whether there is a model of this name, or what is left of one: recovering it says what is wrong."""
        try:
            return self.exists()
        except EventStoreError:
            return True

    # Reading.

    def find(self, kind: str, key: str) -> Event | None:
        """The event of this name, or None."""
        return self.store.find(self.stream, kind, key)

    def recover(self) -> tuple[ModelState, int]:
        """What the events have led to, and the number of the last event in the snapshot it began with."""
        state, begin = self._replayed(None)
        self.last = state.version
        predictions = self.store.open_keys(self.stream, "prediction", "label")
        pruned = self.store.first(self.stream) > 1
        self.pending = {key: time for key, time in predictions if not pruned or self._lacks_target(key)}
        labels = self.store.open_keys(self.stream, "label", "prediction")
        self.waiting = {key: time for key, time in labels if self._waits(key)}
        return state, begin

    def _lacks_target(self, key: str) -> bool:
        """Whether a prediction waits for its label; otherwise the label had come before, and is pruned."""
        prediction = self._read("prediction", key)
        return prediction is not None and "y" not in prediction.payload

    def _waits(self, key: str) -> bool:
        """Whether a label without prediction waits for it; otherwise the prediction was there and is pruned."""
        label = self._read("label", key)
        return label is not None and label.payload["answer"]["status"] == "waiting"

    def _read(self, kind: str, key: str) -> Event | None:
        """The event of this name; None also if it is damaged, because an old event must not stop the whole model."""
        try:
            return self.find(kind, key)
        except EventStoreError as error:
            if not error.is_of_content:
                raise
            _log.warning(
                "model %s: the %s %r can't be read and no longer waits: %s", self.name, kind, key, error.strerror
            )
            return None

    def at(self, version: int) -> ModelState:
        """What the events up to a version had led to."""
        state, _ = self._replayed(version)
        if state.version != version:
            raise ProblemError(404, "no such version", f"the last version of {self.name} is {state.version}")
        return state

    def _replayed(self, until: int | None) -> tuple[ModelState, int]:
        store, stream = self.store, self.stream
        snapshot = store.latest_snapshot(stream) if until is None else store.snapshot_before(stream, until)
        state, after = None, store.first(stream) - 1
        if snapshot is not None:
            after = snapshot.after
            state = None if snapshot.content == _DELETED else ModelState.from_content(snapshot.content)
        elif until is not None and until <= after:
            raise ProblemError(410, "content deleted", f"the versions of {self.name} up to {after} were deleted")
        if until is not None and after < min(until, store.first(stream) - 1):  # a pinned snapshot outlives its events
            gone = f"the events of {self.name} up to {store.first(stream) - 1} were deleted"
            raise ProblemError(410, "content deleted", f"{gone}, and version {until} can't be made without them")
        state = replay(state, store.events(stream, after, until=until), self)
        if state is None:
            raise ProblemError(404, "no such model", f"there is no model {self.name!r} at this version")
        return state, after

    def follow(self, state: ModelState) -> None:
        """Apply what others have written since; after an error the state may be anything, and has to be recovered."""
        replay(state, self.store.events(self.stream, state.version), self)
        self.last = state.version

    # Writing.

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Events that are written together, or not at all: then numbers are free again."""
        last = self.last
        try:
            with self.store.transaction():
                yield
        except BaseException:
            self.last = last
            raise

    def append(self, kind: str, key: str, payload: Mapping[str, Any], blob: bytes = b"") -> Event:
        """Write an event; it counts once its transaction has ended."""
        event = self.store.append(self.stream, kind, key, payload, blob)
        if self.last and event.number != self.last + 1:  # the model does not know what others have written
            raise EventStoreError(EAGAIN, f"another process writes events of {self.name!r}", self.store.address)
        self.last = event.number
        return event

    def note(self, event: Event) -> None:
        """Keep account of a durable event: which predictions and labels wait."""
        if event.kind == "prediction" and "y" not in event.payload:
            self.pending[event.key] = event.time
        elif event.kind == "prediction":
            self.waiting.pop(event.key, None)
        elif event.kind == "label" and event.payload["answer"]["status"] == "waiting":
            self.waiting[event.key] = event.time
        elif event.kind == "label":
            self.pending.pop(event.key, None)

    def save(self, state: ModelState, *, pinned: bool = False) -> None:
        """Save a snapshot: recovery begins there."""
        self.store.save_snapshot(self.stream, state.version, state.content(), pinned=pinned)

    def expire(self, older_than: float, most: int = 1000) -> int:
        """Delete the features of predictions that no label has come for, and labels without prediction."""
        found = 0
        for kind, waiting in (("prediction", self.pending), ("label", self.waiting)):
            late = [key for key, since in islice(waiting.items(), most) if since < older_than]
            if not late:
                continue
            with self.store.transaction():
                for key in late:
                    self.store.erase(self.stream, kind, key)  # the answer stays
            for key in late:
                del waiting[key]
            found += len(late)
        return found

    def forget(self, key: str, state: ModelState) -> int:
        """Delete everything that was kept under an id; the model keeps what it has learned from it."""
        self.save(state)  # without their content, the events before it can't be replayed
        found = self.store.forget(self.stream, key)
        if state.champion.n_pending is not None:  # contexts of decisions that waited are in earlier snapshots
            self._delete_snapshots(state.version - 1)
        self.pending.pop(key, None)
        self.waiting.pop(key, None)
        return found

    def prune(self, state: ModelState, older_than: float) -> int:
        """Delete old events; their keys can be used again."""
        before = 0
        for event in self.store.events(self.stream, self.store.first(self.stream) - 1):
            if event.time >= older_than or event.key in self.pending or event.key in self.waiting:
                break
            before = event.number + 1
        if not before:
            return 0
        self.save(state)  # also labels that came after an earlier snapshot may need their old predictions
        return self.store.prune(self.stream, before)

    def delete(self) -> None:
        """Delete the model and all its events; a new model of this name begins with the next number."""
        with self.store.transaction():
            last = self.store.last(self.stream)
            self.store.save_snapshot(self.stream, last, _DELETED)
            self.store.prune(self.stream, last + 1)
            self._delete_snapshots(last - 1)
        self.pending.clear()
        self.waiting.clear()

    def _delete_snapshots(self, until: int) -> None:
        """Delete the snapshots that are at a version or before it, also pinned ones."""
        while (earlier := self.store.snapshot_before(self.stream, until)) is not None:
            if not self.store.delete_snapshot(self.stream, earlier.after):
                return  # a pruned stream begins with it


def replay(state: ModelState | None, events: Iterator[Event], history: History) -> ModelState | None:
    """Apply events, in the groups in which they were written; where there is none, the first creates it."""
    last = state
    for last in each_group(state, events, history):  # noqa: B007 - the last one is wanted
        pass
    return last


def each_group(state: ModelState | None, events: Iterator[Event], history: History) -> Iterator[ModelState]:
    """The state after each group of events: the same object, updated."""
    for _, group in groupby(events, lambda event: event.payload.get("group", -event.number)):
        pairs: list[tuple[Event, Prepared | None]] = [(event, None) for event in group]
        if state is None:
            state = _begun(pairs.pop(0)[0])
        state.apply(pairs, history)
        yield state


def _begun(event: Event) -> ModelState:
    if event.kind != "create" or not event.blob:
        raise ProblemError(410, "content deleted", "the first events were deleted; the versions before are gone")
    return ModelState.created(event)
