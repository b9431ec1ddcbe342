"""Bandits in an event store: every decision, reward and change is stored before it takes effect.

A bandit in a store is its latest snapshot and the changes since, applied again in their order. A process that is killed
at any moment therefore neither loses a reward that was accepted nor learns one twice, and several processes can use one
bandit: each applies what the others have written before it writes something itself.
"""

from collections.abc import Callable
from contextlib import suppress
from errno import EINVAL
from time import monotonic
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from onepass.decisions.arms.table import Arms
from onepass.decisions.bandit import ContextualBandit, Plan
from onepass.decisions.changes import Change
from onepass.decisions.choice import Pending
from onepass.decisions.request import request_digest
from onepass.events import Event, EventLog, EventStoreError, Snapshot
from onepass.files.checkpoint import from_bytes, to_bytes

__all__ = [
    "StoredBandit",
    "change_of",
    "data_of",
    "find_decision",
    "open_bandit",
    "repeated_decision",
    "request_difference",
]

T = TypeVar("T")
_SNAPSHOT_EVERY = 1000  # changes: applying so many again takes well below a second for most models
_SNAPSHOT_SECONDS = 0.05  # of applying changes again, for which opening a bandit has to wait


def open_bandit(store: EventLog, name: str, make: Callable[[], ContextualBandit] | None = None) -> "StoredBandit":
    """Open the bandit with this name in an event store, or put a new one there.

    Parameters
    ----------
    store : EventStore, or any other EventLog
        It may also have other bandits, and other kinds of events.
    name : str
        Name of the bandit, and of its stream of events.
    make : callable, optional
        Makes the bandit if the store has none with this name; without it that is an error.

    Returns
    -------
    StoredBandit
        What `~ContextualBandit.choose`, `~ContextualBandit.reward` and its other methods do is durable when they
        return. It can be used as long as the store is open.

    Examples
    --------
    >>> import os, tempfile
    >>> from onepass.decisions import ContextualBandit, open_bandit
    >>> from onepass.events import EventStore
    >>> path = os.path.join(tempfile.mkdtemp(), "decisions.sqlite")
    >>> with EventStore(path) as store:
    ...     bandit = open_bandit(store, "headline", lambda: ContextualBandit(["a", "b"], n_features=1))
    ...     first = bandit.choose([1.0]).id
    >>> with EventStore(path) as store:  # in another process, days later
    ...     bandit = open_bandit(store, "headline")
    ...     bandit.pending, bandit.reward(first, 1.0)
    (('0',), True)
    """
    if not isinstance(store, EventLog):
        raise TypeError(f"store must be an EventStore, such as EventStore('decisions.sqlite'), got {store!r}")
    snapshot = store.latest_snapshot(name)
    if snapshot is None:
        with store.transaction():  # no other process may make it meanwhile
            snapshot = store.latest_snapshot(name)
            if snapshot is None:
                _check_unused(store, name)
                store.save_snapshot(name, 0, to_bytes(_made(store, name, make)))
        snapshot = snapshot or store.latest_snapshot(name)
        assert snapshot is not None
    return StoredBandit(store, name, snapshot)


def find_decision(store: EventLog, name: str, decision_id: str) -> Pending | None:
    """A decision as the bandit of this name made it, whether it still waits for a reward or not; None if there is none.

    It lets a client that lost the answer retry without a second decision.
    """
    event = store.find(name, "decision", decision_id)
    return None if event is None or event.forgotten else Pending.of(change_of(event))


def repeated_decision(event: Event, context: ArrayLike, n: int, arms: Arms | None) -> Pending | None:
    """The decision in an event, if this is the request that it was made for; None if it was another."""
    return Pending.of(change_of(event)) if event.payload["request"] == request_digest(context, n, arms) else None


def request_difference(event: Event, context: ArrayLike, n: int) -> str:
    """In what a request differs from the one that the decision in an event was made for, in words."""
    made = Pending.of(change_of(event))
    before = np.ravel(made.context)
    if not np.array_equal(before, np.ravel(np.asarray(context, dtype=float))):
        return f"in another context, {', '.join(f'{value:g}' for value in before)}"
    if len(made.arms) != n:
        return f"of {len(made.arms)} arm{'s' * (len(made.arms) > 1)}, not of {n}"
    return "among other arms"


def _check_unused(store: EventLog, name: str) -> None:
    """Refuse a stream whose events a new bandit can't go on from."""
    if store.last(name):
        raise EventStoreError(
            EINVAL,
            f"the stream {name!r} has events but no sound snapshot of a bandit that they belong to",
            store.address,
        )


def _made(store: EventLog, name: str, make: Callable[[], ContextualBandit] | None) -> ContextualBandit:
    if make is not None:
        return make()
    there = ", ".join(map(repr, store.streams())) or "nothing"
    raise ValueError(f"there is no bandit {name!r} in {store.address}, which has {there}; pass make to put one there")


class StoredBandit(ContextualBandit):
    """A bandit whose changes are in an event store before they are applied.

    Parameters
    ----------
    store : where its changes are
    stream : with this name
    snapshot : to begin with

    Raises
    ------
    EventStoreError
        If a change was interrupted before it was applied: open the bandit again.
    """

    _is_kept = True

    def __init__(self, store: EventLog, stream: str, snapshot: Snapshot) -> None:
        begin = monotonic()
        bandit = from_bytes(snapshot.content)
        if not isinstance(bandit, ContextualBandit):
            raise ValueError(f"{stream!r} in {store.address} is a {type(bandit).__name__}, not a bandit")
        vars(self).update(vars(bandit))
        self._store, self._stream = store, stream
        self._at = self._snapshot_at = snapshot.after  # the last event that was applied, and that of the last snapshot
        self._replaying = 0.0  # seconds spent on events since the last snapshot
        self._patience = max(_SNAPSHOT_SECONDS, monotonic() - begin)  # seconds of replaying, then there is a snapshot
        self._is_sound = True  # whether it is what the events up to `_at` have led to
        self._catch_up()

    def __reduce__(self) -> Any:
        return ContextualBandit.from_state, self.export_state()

    def _carry_out(self, plan: Callable[[], Plan[T]]) -> T:
        """Apply what others have written meanwhile, plan changes, append them, and apply them."""
        if not self._is_sound:
            raise self._refusal("a change was interrupted before it was applied; open the bandit again")
        with self._store.transaction():
            self._catch_up()
            answer, changes = plan()
            last = self._at
            for change in changes:
                key = change.key or f"{change.kind} {last + 1}"  # not the number alone, which ids of decisions are
                last = self._store.append(self._stream, change.kind, key, *data_of(change)).number
        self._at, self._is_sound = last, not changes
        try:
            for change in changes:
                self.apply(change)
        except ValueError:  # it comes again whenever the change is applied: the bandit is what the store says
            self._note_applied()
            raise
        if changes:
            self._note_applied()
        return answer

    def _catch_up(self) -> None:
        """Apply what has been written since; what could not be learned then can't be now."""
        begin = monotonic()
        for event in self._store.events(self._stream, self._at):
            if event.forgotten:
                raise self._refusal(f"event {event.number} was forgotten, and no snapshot includes what came of it")
            change = change_of(event)
            self._is_sound = False
            with suppress(ValueError):
                self.apply(change)
            self.close_block()
            self._at, self._is_sound = event.number, True
        self._replaying += monotonic() - begin

    def _note_applied(self) -> None:
        """Save a snapshot every now and then."""
        self.close_block()
        self._is_sound = True
        if self._at - self._snapshot_at < _SNAPSHOT_EVERY and self._replaying <= self._patience:
            return
        content = to_bytes(self)
        with suppress(EventStoreError), self._store.transaction():  # what was written counts without it
            if self._store.last(self._stream) > self._at:  # others have gone on, and may have saved a later one
                return
            self._store.save_snapshot(self._stream, self._at, content)
            self._snapshot_at, self._replaying = self._at, 0.0

    def _refusal(self, reason: str) -> EventStoreError:
        return EventStoreError(EINVAL, f"the bandit {self._stream!r} can't go on: {reason}", self._store.address)


def data_of(change: Change) -> tuple[dict[str, object], bytes]:
    """What an event has of a change: its payload, and the context as bytes."""
    if change.context is None:
        return {**change.data, "shape": None}, b""
    return {**change.data, "shape": list(change.context.shape)}, np.ascontiguousarray(change.context).tobytes()


def change_of(event: Event) -> Change:
    """The change in an event."""
    data = dict(event.payload)
    shape = data.pop("shape")
    context = None if shape is None else np.frombuffer(event.blob, dtype="<f8").reshape(shape)
    return Change(event.kind, data, context, event.key)
