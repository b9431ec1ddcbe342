"""The event log: append, read, snapshot, forget and check events in a database."""

import time as clocks
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from errno import ENODATA
from types import TracebackType
from typing import Any, Self

from onepass._validation import as_flag, as_nonnegative, as_seed
from onepass.events import snapshots, statements
from onepass.events.checking import problems
from onepass.events.database import Database
from onepass.events.errors import ConflictError, EventStoreError, damaged
from onepass.events.reading import LAST_POSSIBLE, event_rows, open_rows
from onepass.events.records import (
    Event,
    Remains,
    Snapshot,
    as_blob,
    as_name,
    as_time,
    checksum,
    decoded,
    encoded,
    remains_of,
)

__all__ = ["EventLog"]

_NO_PAYLOAD: Mapping[str, Any] = {}


class EventLog:
    """Durable events in named streams, wherever they are kept: `open_event_log` opens one.

    Raises
    ------
    EventStoreError
        If the store can't be opened, read or written: a full disk, a read-only folder, a lock held by another process,
        a lost connection, damage, a store of another version or of another program.

    Notes
    -----
    *Processes*: any number may use one store. Their appends take turns, and each sees the others' events with `events`.
    After a fork the child has to open the store again.

    *Threads* may share a store: each call, or each transaction until it ends, has the connection to itself. A thread
    that must never wait for another thread's transaction opens a second store on the same file or database; readers of
    one store don't wait for the writer of another.

    *Damage*: a changed event or snapshot is noticed by its checksum when it is read, a missing one by its number.
    `check` reads everything; run it on a store that may be damaged.
    """

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock

    @property
    def address(self) -> str:
        """Where the events are: an absolute path, or an address without its password."""
        return self._database.address

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.address!r})"

    def close(self) -> None:
        """Close the store; a second time does nothing."""
        self._database.close()

    def append(
        self,
        stream: str,
        kind: str,
        key: str,
        payload: Mapping[str, Any] = _NO_PAYLOAD,
        blob: bytes | bytearray | memoryview = b"",
        *,
        time: float | None = None,
    ) -> Event:
        """Append an event, which is durable on return; within a `transaction`, when that ends.

        If there is an event with the same stream, kind and key and the same content, it is returned, with its number
        and time, and nothing is written. Its number tells whether it is new. An event that was erased or forgotten
        can't be compared, and counts as the same.

        Parameters
        ----------
        stream, kind, key : the event's name
        payload : what JSON can hold: strings, finite numbers, True, False, None, and lists and dicts of them
        blob : bytes, e.g. of an array; they are stored unchanged
        time : when it happened; by default now, by the store's clock

        Raises
        ------
        ConflictError
            If the key exists with other content. A transaction continues if this is caught within it.

        Examples
        --------
        >>> import numpy as np, os, tempfile
        >>> from onepass.events import open_event_log
        >>> store = open_event_log(os.path.join(tempfile.mkdtemp(), "events.sqlite"))
        >>> store.append("shop", "choice", "a", {"arm": "red"}, np.array([0.1, 2.0]).tobytes()).number
        1
        >>> np.frombuffer(store.find("shop", "choice", "a").blob)
        array([0.1, 2. ])
        >>> store.append("shop", "choice", "a", {"arm": "blue"})
        Traceback (most recent call last):
        onepass.events.errors.ConflictError: key 'a' of kind 'choice' in stream 'shop' is already there ...
        >>> store.close()
        """
        name, (text, content), data = _event_name(stream, kind, key), encoded(payload), as_blob(blob, "blob")
        moment = as_time(self._clock() if time is None else time)
        with self._database.one_change():
            self._database.take_turn(name["stream"])
            present = self._found(name)
            if present is None:
                number = self._database.last(name["stream"]) + 1
                event = Event(number, name["stream"], name["kind"], name["key"], content, data, moment)
                self._insert(event, text)
                return event
        if not present.erased and (encoded(present.payload)[0] != text or present.blob != data):
            raise ConflictError(**name, number=present.number)
        return present

    def _insert(self, event: Event, payload: str) -> None:
        digest = _checksum(event, payload, event.blob)
        self._database.rows(statements.INSERT, {**event._asdict(), "payload": payload, "checksum": digest})

    def transaction(self) -> AbstractContextManager[None]:
        """A block whose appends and other changes are written together when it ends, or not at all if it raises.

        Many appends in one transaction wait for the disk only once. Events of an unfinished block are not durable yet:
        acknowledge them after it. A transaction within another is a part of it: if it raises, only that part is undone,
        and all is durable when the outer one ends. Other threads and processes wait meanwhile, so keep it short.

        Examples
        --------
        >>> import os, tempfile
        >>> from onepass.events import open_event_log
        >>> store = open_event_log(os.path.join(tempfile.mkdtemp(), "events.sqlite"))
        >>> with store.transaction():
        ...     for i in range(100):
        ...         _ = store.append("price", "label", str(i), {"y": i})
        >>> store.last("price")
        100
        >>> store.close()
        """
        return self._database.transaction()

    def find(self, stream: str, kind: str, key: str) -> Event | None:
        """The event of that name, or None."""
        return self._found(_event_name(stream, kind, key))

    def events(
        self, stream: str, after: int = 0, kinds: Collection[str] | None = None, *, until: int | None = None
    ) -> Iterator[Event]:
        """The events of a stream with numbers above ``after``, in their order.

        Events that are appended while they are read come at the end. Reading locks nothing.

        Parameters
        ----------
        stream : name of the stream
        after : number of the last event already known, e.g. `Snapshot.after`
        kinds : kinds of events wanted, by default all
        until : number of the last event wanted, by default the last one there is

        Raises
        ------
        EventStoreError
            If an event is damaged or missing, or if events after ``after`` were pruned.

        Examples
        --------
        >>> import os, tempfile
        >>> from onepass.events import open_event_log
        >>> store = open_event_log(os.path.join(tempfile.mkdtemp(), "events.sqlite"))
        >>> for key in "abcd":
        ...     _ = store.append("price", "label", key)
        >>> [event.key for event in store.events("price", after=1, until=3)]
        ['b', 'c']
        >>> store.close()
        """
        if isinstance(kinds, str):
            raise TypeError(f"kinds must be a list of kinds, got the string {kinds!r}")
        wanted = None if kinds is None else {as_name(kind, "kinds") for kind in kinds}
        name, after = {"stream": as_name(stream, "stream")}, as_seed(after, "after")
        pruned, last = self._database.number(statements.PRUNED, name), self._database.last(name["stream"])
        end = LAST_POSSIBLE if until is None else as_seed(until, "until")
        if after < min(pruned, end):
            raise EventStoreError(
                ENODATA,
                f"events 1 to {pruned} of stream {stream!r} were pruned; begin with a later snapshot",
                self.address,
            )
        if (known := max(after, until or 0)) > last:
            raise damaged(
                self.address, f"stream {stream!r} ends with event {last}, and those up to {known} are missing"
            )
        walk = self._walk(name["stream"], after, end, min(last, end))
        return (event for event in walk if wanted is None or event.kind in wanted)

    def _walk(self, stream: str, after: int, until: int, at_least: int) -> Iterator[Event]:
        missing = "event {} of stream {!r} is missing"
        for number, row in event_rows(self._database, stream, after, until):
            if number != after + 1:
                raise damaged(self.address, missing.format(after + 1, stream))
            after = number
            yield self._checked(row)
        if after < at_least:  # an index that is out of order ends early
            raise damaged(self.address, missing.format(after + 1, stream))

    def open_keys(self, stream: str, kind: str, without: str) -> Iterator[tuple[str, float]]:
        """Key and time of the events of one kind that wait for one of another kind with the same key.

        They come in the order of their numbers. An event that was erased or forgotten does not wait any more.

        Parameters
        ----------
        stream : name of the stream
        kind : kind of the events that wait
        without : kind of the events they wait for

        Examples
        --------
        >>> import os, tempfile
        >>> from onepass.events import open_event_log
        >>> store = open_event_log(os.path.join(tempfile.mkdtemp(), "events.sqlite"))
        >>> for kind, key in (("prediction", "a"), ("prediction", "b"), ("label", "b"), ("label", "c")):
        ...     _ = store.append("price", kind, key, time=0.0)
        >>> list(store.open_keys("price", "prediction", without="label"))
        [('a', 0.0)]
        >>> list(store.open_keys("price", "label", without="prediction"))
        [('c', 0.0)]
        >>> store.close()
        """
        stream, kind, without = as_name(stream, "stream"), as_name(kind, "kind"), as_name(without, "without")
        return open_rows(self._database, stream, kind, without)

    def last(self, stream: str) -> int:
        """Number of the last event of a stream, 0 if it has had none."""
        return self._database.last(as_name(stream, "stream"))

    def first(self, stream: str) -> int:
        """Number of the first event of a stream that was not pruned, or of the one to come."""
        return self._database.number(statements.PRUNED, {"stream": as_name(stream, "stream")}) + 1

    def wait(self, stream: str, after: int, timeout: float) -> bool:
        """Wait until a stream has an event above ``after``, from any process; False if there is none in time.

        PostgreSQL reports new events at once; a SQLite file is checked every 50 milliseconds. Other threads can use the
        store meanwhile.

        Examples
        --------
        >>> import os, tempfile
        >>> from onepass.events import open_event_log
        >>> store = open_event_log(os.path.join(tempfile.mkdtemp(), "events.sqlite"))
        >>> store.wait("price", after=0, timeout=0.01)
        False
        >>> _ = store.append("price", "label", "order 17", {"y": 0.1})
        >>> store.wait("price", after=0, timeout=0.01)
        True
        >>> store.close()
        """
        stream, after = as_name(stream, "stream"), as_seed(after, "after")
        deadline = clocks.monotonic() + as_nonnegative(timeout, "timeout")
        while True:
            heard = self._database.heard(stream)  # before the look, or an event in between is missed
            if self.last(stream) > after:
                return True
            if (left := deadline - clocks.monotonic()) <= 0:
                return False
            self._database.listen(stream, heard, left)

    def only_writer(self, name: str) -> AbstractContextManager[None]:
        """A block during which no other process can be the writer of that name, on any machine that uses the store.

        The name is free to choose, e.g. that of a model. The lock works only among processes that ask for it: `append`
        does not check it. It is released when its process ends, however that happens. On PostgreSQL it is also released
        when the connection is lost: the next call connects again and takes the lock again, or raises EventStoreError if
        another process has it. Events that others appended in between show in the number of the next event.

        Raises
        ------
        LockedError
            If another process is the writer; the message says which, if that is known.

        Examples
        --------
        >>> import os, tempfile
        >>> from onepass.events import open_event_log
        >>> store = open_event_log(os.path.join(tempfile.mkdtemp(), "events.sqlite"))
        >>> with store.only_writer("price"):
        ...     _ = store.append("price", "label", "order 17", {"y": 0.1})
        >>> store.close()
        """
        return self._database.only_writer(as_name(name, "name"))

    def streams(self) -> list[str]:
        """Names of all streams, sorted."""
        return self._database.streams()

    def save_snapshot(
        self, stream: str, after: int, content: bytes | bytearray | memoryview, *, pinned: bool = False
    ) -> None:
        """Save a snapshot: the state, such as a model, after one of the stream's events; durable on return.

        The last three snapshots are kept, and all that are pinned.

        A snapshot can't be saved for an event before the latest snapshot: going back to an earlier state is an event
        too.

        Parameters
        ----------
        stream : name of the stream
        after : number of the last event that ``content`` includes; 0 before the first
        content : e.g. a model as bytes
        pinned : whether to keep it until `delete_snapshot`, even if the events before it are pruned; a pinned one that
            is saved again for the same event stays pinned

        Examples
        --------
        >>> import os, tempfile
        >>> from onepass.events import open_event_log
        >>> store = open_event_log(os.path.join(tempfile.mkdtemp(), "events.sqlite"))
        >>> for i in range(3):
        ...     _ = store.append("sum", "number", str(i), {"x": 2.0})
        >>> store.save_snapshot("sum", 2, b"4.0")
        >>> snapshot = store.latest_snapshot("sum")
        >>> float(snapshot.content) + sum(event.payload["x"] for event in store.events("sum", snapshot.after))
        6.0
        >>> store.close()
        """
        stream, after, content = as_name(stream, "stream"), as_seed(after, "after"), as_blob(content, "content")
        snapshot = Snapshot(stream, after, content, as_time(self._clock()), as_flag(pinned, "pinned"))
        snapshots.save(self._database, snapshot)

    def latest_snapshot(self, stream: str) -> Snapshot | None:
        """The last snapshot of a stream, or None; if it is damaged, the one before is returned, with a warning."""
        return snapshots.sound_snapshot(self._database, as_name(stream, "stream"))

    def snapshot_before(self, stream: str, number: int) -> Snapshot | None:
        """The last undamaged snapshot at an event or before it, or None: used to go back to an earlier version.

        Examples
        --------
        >>> import os, tempfile
        >>> from onepass.events import open_event_log
        >>> store = open_event_log(os.path.join(tempfile.mkdtemp(), "events.sqlite"))
        >>> for i in range(5):
        ...     _ = store.append("sum", "number", str(i), {"x": 2.0})
        >>> store.save_snapshot("sum", 1, b"2.0", pinned=True)
        >>> store.save_snapshot("sum", 5, b"10.0")
        >>> snapshot = store.snapshot_before("sum", 3)
        >>> float(snapshot.content) + sum(event.payload["x"] for event in store.events("sum", snapshot.after, until=3))
        6.0
        >>> store.close()
        """
        return snapshots.sound_snapshot(self._database, as_name(stream, "stream"), as_seed(number, "number"))

    def delete_snapshot(self, stream: str, after: int) -> bool:
        """Delete the snapshot at an event, pinned or not, and return whether there was one.

        The snapshot with which a pruned stream begins can't be deleted: without it the stream can't be rebuilt.
        """
        return snapshots.delete(self._database, as_name(stream, "stream"), as_seed(after, "after"))

    def erase(self, stream: str, kind: str, key: str) -> bool:
        """Delete the blob of one event and keep its payload; returns whether there was such an event with a blob.

        On return the store no longer gives out the blob. This is as fast as an append, because its bytes may remain for
        a while: in SQLite they are overwritten in the file, but a copy is in the ``-wal`` file until that is emptied,
        by the next `forget` or `prune`, or when the last process closes the store. In PostgreSQL they remain until the
        server has vacuumed the table and used the space again.

        Examples
        --------
        >>> import os, tempfile
        >>> from onepass.events import open_event_log
        >>> store = open_event_log(os.path.join(tempfile.mkdtemp(), "events.sqlite"))
        >>> _ = store.append("price", "prediction", "order 17", {"mean": 2.5}, b"features")
        >>> store.erase("price", "prediction", "order 17")
        True
        >>> event = store.find("price", "prediction", "order 17")
        >>> event.erased, event.blob, event.payload
        (True, b'', {'mean': 2.5})
        >>> store.close()
        """
        name = _event_name(stream, kind, key)
        with self._database.one_change():
            self._database.take_turn(name["stream"])
            event = self._found(name)
            if event is None or event.erased:
                return False
            self._delete_content(event, encoded(event.payload)[0])
        return True

    def forget(self, stream: str, key: str) -> int:
        """Delete the content of all events with a key, and return how many there were.

        In SQLite the bytes are overwritten in the file and in its log; in PostgreSQL they stay until the server has
        vacuumed the table and used the space again, and in its archives. Number, kind, key and time stay, so that the
        same event again is still recognised. A model can't be rebuilt from events without content: save a snapshot
        first. Snapshots that were saved earlier may contain what they were made from; `prune` deletes them, and
        `delete_snapshot` those that are pinned.

        Examples
        --------
        >>> import os, tempfile
        >>> from onepass.events import open_event_log
        >>> store = open_event_log(os.path.join(tempfile.mkdtemp(), "events.sqlite"))
        >>> _ = store.append("price", "prediction", "order 17", {"name": "Ada"})
        >>> store.forget("price", "order 17")
        1
        >>> event = store.find("price", "prediction", "order 17")
        >>> event.forgotten, event.payload
        (True, {})
        >>> store.close()
        """
        name = {"stream": as_name(stream, "stream"), "key": as_name(key, "key")}
        with self._database.transaction():
            self._database.take_turn(name["stream"])
            found = [self._checked(row) for row in self._database.rows(statements.FIND_KEY, name)]
            for event in found:
                self._delete_content(event, None)
            self._database.erased()
        return len(found)

    def _delete_content(self, event: Event, kept: str | None) -> None:
        row = {"stream": event.stream, "number": event.number, "payload": kept}
        self._database.rows(statements.ERASE, {**row, "checksum": _checksum(event, kept, None)})

    def prune(self, stream: str, before: int) -> int:
        """Delete all events with numbers below ``before``, and the snapshots that need them, except pinned ones.

        Returns the number of events deleted. There must be an undamaged snapshot at the last of them or later, so the
        stream can still be rebuilt. Their numbers are not used again, but their keys are free: an event with the same
        key counts as new.
        """
        stream, number = as_name(stream, "stream"), as_seed(before, "before") - 1
        row = {"stream": stream, "number": number}
        with self._database.transaction():
            self._database.take_turn(stream)
            pruned = self._database.number(statements.PRUNED, row)
            if number <= pruned:
                return 0
            sound = (after for after, found in snapshots.snapshots(self._database, stream) if found is not None)
            if number > next(sound, 0):
                raise ValueError(
                    f"before must be at most one above the latest snapshot of {stream!r}, or the stream can't be "
                    f"rebuilt, got {before}; save a snapshot first"
                )
            self._database.rows(statements.DELETE_UP_TO, row)
            self._database.rows(statements.DELETE_SNAPSHOTS, row)
            self._database.rows(statements.SET_PRUNED, row)
            self._database.erased()
        return number - pruned

    def remains(self, stream: str, after: int) -> Iterator[Remains]:
        """What is left of the events with numbers above ``after``, in their order, also of damaged and missing ones.

        Examples
        --------
        >>> import os, tempfile
        >>> from onepass.events import open_event_log
        >>> store = open_event_log(os.path.join(tempfile.mkdtemp(), "events.sqlite"))
        >>> for key in "ab":
        ...     _ = store.append("price", "label", key, {"y": 0.1})
        >>> [(one.number, one.condition, one.key, one.payload) for one in store.remains("price", after=1)]
        [(2, 'whole', 'b', {'y': 0.1})]
        >>> store.close()
        """
        stream, after = as_name(stream, "stream"), as_seed(after, "after")
        last = self._database.last(stream)
        for number, row in event_rows(self._database, stream, after):
            yield from (Remains(missing, "missing") for missing in range(after + 1, number))
            yield remains_of(row)
            after = number
        yield from (Remains(missing, "missing") for missing in range(after + 1, last + 1))

    def give_up(self, stream: str, after: int) -> None:
        """Replace all events with numbers above ``after`` by empty ones of the kind ``lost``, whatever is left of them.

        It is meant for a stream that can't be rebuilt beyond ``after`` because an event is damaged or missing: then it
        can go on. Snapshots after that event, and damaged ones, are deleted. Numbers are not used again, but the keys
        are free. `remains` gives what is replaced: keep it first.

        Examples
        --------
        >>> import os, tempfile
        >>> from onepass.events import open_event_log
        >>> store = open_event_log(os.path.join(tempfile.mkdtemp(), "events.sqlite"))
        >>> for key in "abc":
        ...     _ = store.append("price", "label", key, {"y": 0.1})
        >>> store.give_up("price", after=1)
        >>> [(event.number, event.kind, event.forgotten) for event in store.events("price")]
        [(1, 'label', False), (2, 'lost', True), (3, 'lost', True)]
        >>> store.append("price", "label", "b", {"y": 0.2}).number
        4
        >>> store.close()
        """
        stream, after = as_name(stream, "stream"), as_seed(after, "after")
        moment = as_time(self._clock())
        with self._database.transaction():
            self._database.take_turn(stream)
            last, pruned = self._database.last(stream), self._database.number(statements.PRUNED, {"stream": stream})
            self._database.rows(statements.DELETE_AFTER, {"stream": stream, "number": after})
            for number in range(max(after, pruned) + 1, last + 1):
                event = Event(number, stream, "lost", f"lost\n{number}", {}, b"", moment)
                row = {**event._asdict(), "payload": None, "blob": None, "checksum": _checksum(event, None, None)}
                self._database.rows(statements.INSERT, row)
            snapshots.delete_unusable(self._database, stream, after)
            self._database.erased()

    def check(self) -> list[str]:
        """Read everything, and return what is wrong, one sentence each; an empty list if nothing is.

        Examples
        --------
        >>> import os, tempfile
        >>> from onepass.events import open_event_log
        >>> with open_event_log(os.path.join(tempfile.mkdtemp(), "events.sqlite")) as store:
        ...     store.check()
        []
        """
        return problems(self._database)

    def _found(self, name: Mapping[str, str]) -> Event | None:
        rows = self._database.rows(statements.FIND, name)
        return self._checked(rows[0]) if rows else None

    def _checked(self, row: tuple[Any, ...]) -> Event:
        event = decoded(row)
        if event is None:
            raise damaged(self.address, f"event {row[1]} of stream {row[0]!r} is not what was written")
        return event


def _event_name(stream: object, kind: object, key: object) -> dict[str, str]:
    return {"stream": as_name(stream, "stream"), "kind": as_name(kind, "kind"), "key": as_name(key, "key")}


def _checksum(event: Event, payload: str | None, blob: bytes | None) -> bytes:
    return checksum((event.stream, event.number, event.kind, event.key, event.time), payload, blob)
