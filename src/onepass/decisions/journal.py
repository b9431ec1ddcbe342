"""Bandits that survive: every decision, reward and change is in an event store before it counts.

A bandit in a store is its latest snapshot and the changes since, applied again in their order. A process that is killed
at any moment therefore neither loses a reward that was accepted nor learns one twice, and several processes can use one
bandit: each applies what the others have written before it writes something itself.
"""

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from onepass.decisions.bandit import ContextualBandit
from onepass.decisions.changes import Change
from onepass.files.checkpoint import from_bytes, to_bytes
from onepass.files.events import Event, EventStore, EventStoreError

__all__ = ["open_bandit"]

_SNAPSHOT_EVERY = 1000  # changes: applying so many again takes well below a second for most models


def open_bandit(store: EventStore, name: str, make: Callable[[], ContextualBandit] | None = None) -> ContextualBandit:
    """Open the bandit of this name in an event store, or put a new one there.

    Parameters
    ----------
    store : EventStore
        Bandits of other names, and other kinds of events, may be in it too.
    name : str
        Of the bandit, and of its stream of events.
    make : callable, optional
        Makes the bandit if the store has none of this name; without it that is an error.

    Returns
    -------
    ContextualBandit
        What `~ContextualBandit.choose`, `~ContextualBandit.reward` and its other methods do is durable when they
        return. It is of use as long as the store is open.

    Examples
    --------
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "decisions.sqlite")
    >>> with EventStore(path) as store:
    ...     bandit = open_bandit(store, "headline", lambda: ContextualBandit(["a", "b"], n_features=1))
    ...     first = bandit.choose([1.0]).id
    >>> with EventStore(path) as store:  # in another process, days later
    ...     bandit = open_bandit(store, "headline")
    ...     bandit.pending, bandit.reward(first, 1.0)
    (('0',), True)
    """
    snapshot = store.latest_snapshot(name)
    if snapshot is None:
        with store.transaction():  # nobody else may make it meanwhile
            snapshot = store.latest_snapshot(name)
            if snapshot is None:
                store.save_snapshot(name, 0, to_bytes(_made(store, name, make)))
        snapshot = snapshot or store.latest_snapshot(name)
        assert snapshot is not None
    bandit = from_bytes(snapshot.content)
    if not isinstance(bandit, ContextualBandit):
        raise TypeError(f"{name!r} in {store.path} is a {type(bandit).__name__}, not a bandit")
    journal = _StoredJournal(store, name, bandit, snapshot.after)
    journal.catch_up(bandit.replay)
    bandit.keep_in(journal)
    return bandit


def _made(store: EventStore, name: str, make: Callable[[], ContextualBandit] | None) -> ContextualBandit:
    if make is not None:
        return make()
    there = ", ".join(map(repr, store.streams())) or "nothing"
    raise ValueError(f"there is no bandit {name!r} in {store.path}, which has {there}; pass make to put one there")


class _StoredJournal:
    """The stream of a bandit's changes in a store."""

    def __init__(self, store: EventStore, stream: str, bandit: ContextualBandit, at: int) -> None:
        self._store, self._stream, self._bandit = store, stream, bandit
        self._at = self._snapshot_at = at  # number of the last event that was applied, and of the last snapshot

    def catch_up(self, replay: Callable[[Change], None]) -> None:
        """Replay what has been written since."""
        for event in self._store.events(self._stream, self._at):
            replay(_change_of(event))
            self._at = event.number

    def write(self, make: Callable[[], list[Change]], replay: Callable[[Change], None]) -> list[Change]:
        """Replay what others have written meanwhile, make changes, and return them once they are written."""
        with self._store.transaction():
            self.catch_up(replay)
            changes, last = make(), self._at
            for change in changes:
                context = b"" if change.context is None else np.ascontiguousarray(change.context).tobytes()
                key = change.key or str(last + 1)  # its own number, which no other event has
                last = self._store.append(self._stream, change.kind, key, _data_of(change), context).number
        self._at = last
        return changes

    def applied(self) -> None:
        """Save a snapshot every now and then."""
        if self._at - self._snapshot_at >= _SNAPSHOT_EVERY:
            with suppress(EventStoreError):  # what was written counts without it, and the next change tries again
                self._store.save_snapshot(self._stream, self._at, to_bytes(self._bandit))
                self._snapshot_at = self._at


def _data_of(change: Change) -> dict[str, object]:
    shape = None if change.context is None else list(change.context.shape)
    return {**change.data, "shape": shape}


def _change_of(event: Event) -> Change:
    data = dict(event.payload)
    shape = data.pop("shape")
    context = None if shape is None else np.frombuffer(event.blob, dtype="<f8").reshape(shape)
    return Change(event.kind, data, context, event.key)
