"""A model that can't be loaded because of one of its events: which one, the last good version, and the way back there.

A repair keeps everything up to the last good version. The events after it are written to a file and replaced by empty
ones, so that their ids are free and the rows can be sent again; then the model continues from the last good version, as
after a rollback.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from errno import ENOENT
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from onepass.events import Event, EventStoreError, Remains, Snapshot
from onepass.files.atomic import atomic_file
from onepass.files.lock import locked
from onepass.service.errors import reason_in_words
from onepass.service.journal import Journal, each_group, own_key, replay
from onepass.service.model_state import ModelState
from onepass.service.note import ServiceNote
from onepass.service.settings import SERVICE, ServiceSettings
from onepass.service.state import events_file, open_store

__all__ = [
    "BadEvent",
    "Repaired",
    "bad_event",
    "check_is_of_content",
    "find_bad_event",
    "repair_model",
    "sound_snapshots",
]


class BadEvent(NamedTuple):
    """The first event that a model can't be made from, and the model before it.

    Attributes
    ----------
    number, kind : of the event; the kind is "missing" if nothing is left of it
    reason : why, in words
    before : the last good version; None if there is none
    """

    number: int
    kind: str
    reason: str
    before: ModelState | None

    def __str__(self) -> str:
        return f"event {self.number} ({self.kind}) can't be replayed: {self.reason}"


class Repaired(NamedTuple):
    """What a repair has done.

    Attributes
    ----------
    event : because of which the model could not be loaded
    good : the version that was restored
    version : of the model now
    n_lost : how many events were lost
    file : lists them
    """

    event: BadEvent
    good: int
    version: int
    n_lost: int
    file: Path


def bad_event(journal: Journal) -> BadEvent | None:
    """Why a model can't be recovered, or None if it can be.

    Raises
    ------
    EventStoreError
        If the store can't be read at present, e.g. because the connection was lost.
    Exception
        If the model can't be recovered, although every one of its events can be replayed.
    """
    try:
        journal.recover()
    except Exception as error:
        return find_bad_event(journal, error)
    return None


def find_bad_event(journal: Journal, reason: Exception) -> BadEvent:
    """The event because of which a model can't be recovered, which has failed for a reason; raises as `bad_event`."""
    check_is_of_content(reason)
    for content, after in _beginnings(journal):
        try:
            _state(content)
        except Exception as error:  # the snapshot can't be read as a model: the one before may be
            check_is_of_content(error)
        else:
            found = _first_bad(journal, content, after)
            if found is None:
                raise reason
            return found
    raise AssertionError("a model can always begin with its first event")


def sound_snapshots(journal: Journal) -> Iterator[Snapshot]:
    """Sound snapshots of a stream, the latest first; an empty one ends an earlier model of the same name."""
    snapshot = journal.store.latest_snapshot(journal.stream)
    while snapshot is not None:
        yield snapshot
        snapshot = journal.store.snapshot_before(journal.stream, snapshot.after - 1) if snapshot.content else None


def _beginnings(journal: Journal) -> Iterator[tuple[bytes, int]]:
    """What a model may begin with, and the number of the event that it includes; empty: the next event creates it."""
    content = None
    for snapshot in sound_snapshots(journal):
        content = snapshot.content
        yield content, snapshot.after
    if content != b"":
        yield b"", journal.store.first(journal.stream) - 1


def _state(content: bytes) -> ModelState | None:
    return ModelState.from_content(content) if content else None


def _first_bad(journal: Journal, content: bytes, after: int) -> BadEvent | None:
    """The first event after a snapshot that can't be replayed; None if all of them can be."""

    def events(after: int, until: int | None = None) -> Iterator[Event]:
        return journal.store.events(journal.stream, after, until=until)

    whole = after
    try:
        for state in each_group(_state(content), events(after), journal):
            whole = state.version
    except Exception as error:
        check_is_of_content(error)
    if whole > after:
        good = replay(_state(content), events(after, whole), journal)
        assert good is not None
        content = good.content()
    for number in range(whole + 1, journal.store.last(journal.stream) + 1):  # a part of a group is a version too
        try:
            replay(_state(content), events(whole, number), journal)
        except Exception as error:
            check_is_of_content(error)
            before = replay(_state(content), events(whole, number - 1), journal)
            return BadEvent(number, _kind(journal, number), reason_in_words(error), before)
    return None


def _kind(journal: Journal, number: int) -> str:
    found = next(journal.store.remains(journal.stream, number - 1))
    return found.kind if isinstance(found.kind, str) else found.condition


def check_is_of_content(error: Exception) -> None:
    """Raise an error again that says nothing about the events: it may not come the next time."""
    if isinstance(error, MemoryError) or (isinstance(error, EventStoreError) and not error.is_of_content):
        raise error


def repair_model(
    settings: ServiceSettings, name: str, note: Callable[[Repaired], None] = lambda done: None
) -> Repaired | None:
    """Restore the last good version of a model that can't be loaded; None if it can be, and nothing was changed.

    What is lost is written to a file in the folder of the service first: a line of JSON per event, with its number,
    kind, id, time and what is left of its content. Their ids can be used again. The service must not be running.

    Parameters
    ----------
    settings : of the service
    name : of the model
    note : writes down what was done, before a service can start again

    Raises
    ------
    ValueError
        If there is no such model, or no version of it can be restored; nothing was changed.
    EventStoreError
        If there is no file of events; none is created.
    LockedError
        If a service is running.
    """
    with ExitStack() as held:
        held.enter_context(locked(settings.data / SERVICE))
        _check_file(settings)
        store = held.enter_context(open_store(settings))
        if settings.is_shared_learner:
            held.enter_context(store.only_writer(SERVICE))
        names = Journal.names(store)
        if name not in names:
            raise ValueError(f"there is no model {name!r}; there are {', '.join(map(repr, names)) or 'none'}")
        journal = Journal(store, name)
        bad = bad_event(journal)
        if bad is None:
            return None
        if bad.before is None:
            words = "no version of it can be restored; restore a backup, or delete the model and make it anew"
            raise ValueError(f"{bad}, and so {words}")
        done = _repaired(journal, bad, bad.before, _free_name(settings.data, f"lost-{name}-{bad.number}"))
        note(done)
        return done


def _check_file(settings: ServiceSettings) -> None:
    """Raise if there is no file of events, which opening it would create."""
    file = events_file(settings)
    if file is None:
        return
    ServiceNote(settings.data).check_file(file)
    if not file.is_file():
        words = "there is no such file of events, so there is no model to repair; correct --data or --events"
        raise EventStoreError(ENOENT, words, str(file.absolute()))


def _free_name(folder: Path, stem: str) -> Path:
    """Name of a file that an earlier repair has not used: the same event number can be bad more than once."""
    names = (f"{stem}.jsonl" if i == 1 else f"{stem}-{i}.jsonl" for i in count(1))
    return next(path for path in map(folder.joinpath, names) if not path.exists())


def _repaired(journal: Journal, bad: BadEvent, before: ModelState, file: Path) -> Repaired:
    good, stream = before.version, journal.stream
    with journal.transaction():
        n_lost = _write_down(journal.store.remains(stream, good), file)
        journal.store.give_up(stream, good)
        number = journal.store.last(stream) + 1
        event = journal.append("rollback", own_key("rollback", number), {"to": good, "lost": n_lost})
        state = before.back_to(before, event.number)
        journal.save(state)
        if journal.recover()[0].content() != state.content():
            raise AssertionError("a model that was repaired must be recovered as it was saved")
    return Repaired(bad, good, event.number, n_lost, file)


def _write_down(lost: Iterator[Remains], file: Path) -> int:
    n_lost = 0
    with atomic_file(file) as out:
        for one in lost:
            out.write(json.dumps(_listed(one)).encode() + b"\n")
            n_lost += 1
    return n_lost


def _listed(one: Remains) -> dict[str, Any]:
    """What is left of an event as JSON; bytes that can't be read as JSON are in base64."""
    found = {"number": one.number, "condition": one.condition, "kind": one.kind, "id": one.key, "time": one.time}
    found = {key: _readable(value) for key, value in found.items()}
    if one.payload is not None:
        found["payload"] = _readable(one.payload)
    if one.blob:
        try:
            found["content"] = json.loads(one.blob)
        except ValueError:
            found["content_base64"] = b64encode(one.blob).decode() if isinstance(one.blob, bytes) else str(one.blob)
    return found


def _readable(value: Any) -> Any:
    return b64encode(value).decode() if isinstance(value, bytes) else value
