"""Check the folder of a service that is not running, or a backup: whether every model can be recovered, and is right.

Nothing is written next to what is checked, not even a lock, so it may be on a read-only disk: a copy is checked.
"""

import shlex
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import ENOENT
from pathlib import Path

from onepass.events import Event, EventLog, EventStore, EventStoreError, is_address, store_at
from onepass.files.lock import LockedError, check_unlocked
from onepass.service.errors import ProblemError, reason_in_words
from onepass.service.journal import Journal, replay
from onepass.service.model_state import ModelState
from onepass.service.note import ServiceNote
from onepass.service.repair import BadEvent, check_is_of_content, find_bad_event, sound_snapshots
from onepass.service.settings import SERVICE
from onepass.service.state import EVENTS

__all__ = ["check_state", "replayed"]

_SUFFIXES = ("-wal", "-tail")  # endings of the files that belong to an event store


def check_state(place: Path | str, tell: Callable[[str], None] = lambda words: None) -> list[str]:
    """What is wrong with a state folder, a backup of its events or a database, one sentence each; empty if nothing is.

    The event store is checked as a whole. Every model is recovered from its latest snapshot and made once more from
    its events alone: both must be the same, byte for byte. Where events were deleted, it is made from the earliest
    snapshot after which nothing is missing. Of a model that can't be recovered the first bad event is named, and the
    last good version, which `onepass.service.repair.repair_model` restores.

    Parameters
    ----------
    place : the folder that ``onepass serve --data`` was given, a copy of its ``events.sqlite`` under any name, or the
        address of the PostgreSQL database that ``--events`` was given
    tell : is called with a sentence for each sound model, which says from where on its events were replayed, and why

    Examples
    --------
    >>> import tempfile
    >>> check_state(Path(tempfile.mkdtemp()))
    ["The event store can't be read: there is no events.sqlite in this folder, so nothing was ever served from it."]
    """
    try:
        with _opened(place) as store:
            return _problems(store, _repair_command(place), tell)
    except LockedError as error:
        return [
            f"The {'database' if is_address(place) else 'folder'} is in use, stop the service first: {error.holds}."
        ]
    except EventStoreError as error:
        return [f"The event store can't be read: {error.strerror}."]
    except OSError as error:
        return [f"It can't be read: {error.strerror}, {error.filename}."]


@contextmanager
def _opened(place: Path | str) -> Iterator[EventLog]:
    """The event store at a place, which nothing is written to: a copy of a file, or a database without a learner."""
    if is_address(place):
        with store_at(place)(place, durability="relaxed", read_only=True) as shared, shared.only_writer(SERVICE):
            yield shared
        return
    file = Path(place) / EVENTS if Path(place).is_dir() else Path(place)
    if not file.is_file():
        why = ServiceNote(Path(place)).why_missing(file)
        never = f"there is no {EVENTS} in this folder, so nothing was ever served from it"
        raise EventStoreError(ENOENT, f"{EVENTS}: {why}" if why else never)
    with tempfile.TemporaryDirectory() as folder, EventStore(_copied(file, Path(folder))) as store:
        yield store


def _copied(file: Path, folder: Path) -> Path:
    """A copy of an event store that was not changed meanwhile."""
    files = [file, *(file.with_name(file.name + ending) for ending in _SUFFIXES)]

    def seen() -> list[tuple[int, int]]:
        check_unlocked(file.with_name(SERVICE))
        return [(one.stat().st_size, one.stat().st_mtime_ns) for one in files if one.exists()]

    before = seen()
    for one in filter(Path.exists, files):
        shutil.copyfile(one, folder / one.name)  # without its mode: the copy can be written
    if seen() != before:
        raise LockedError(f"{file} has changed while it was copied")
    return folder / file.name


def _repair_command(place: Path | str) -> str:
    """The command that repairs a model there, but for the name; an address may have a password, which is not shown."""
    if is_address(place):
        return "onepass admin repair --events URL DIR"
    return f"onepass admin repair {shlex.quote(str(place)) if Path(place).is_dir() else 'DIR'}"


def _problems(store: EventLog, repair: str, tell: Callable[[str], None]) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of damaged snapshots, which the store's own check names
        found = [f"The event store is damaged: {text}." for text in store.check()]
        for name in Journal.names(store):
            found += _in_model(Journal(store, name), repair, tell)
        return found


def _in_model(journal: Journal, repair: str, tell: Callable[[str], None]) -> list[str]:
    name = f"The model {journal.name!r}"
    try:
        recovered, begin = journal.recover()
    except Exception as reason:
        try:
            bad = find_bad_event(journal, reason)
        except Exception as error:  # although each of the events can be replayed
            check_is_of_content(error)
            return [f"{name} can't be recovered: {reason_in_words(error)}."]
        return [f"{name} can't be recovered: {bad}. {_way_back(bad, f'{repair} {journal.name}')}"]
    try:  # without a snapshot it was made from its events alone already
        again, since = _made_again(journal) if begin else (recovered, "its beginning")
    except Exception as error:
        return [f"The events of the model {journal.name!r} can't be replayed: {reason_in_words(error)}."]
    if again.content() != recovered.content():
        return [f"{name} differs from what its events give: its snapshot is wrong."]
    tell(f"{name} is right: its events were replayed from {since}, up to event {recovered.version}.")
    return []


def _made_again(journal: Journal) -> tuple[ModelState, str]:
    """The model from as many of its events as there are, and from where on in words."""
    try:
        return replayed(journal), "its beginning"
    except ProblemError as problem:  # pruned or deleted on request, which is not damage
        missing = problem
    for snapshot in reversed([one for one in sound_snapshots(journal) if one.content]):
        try:
            state = ModelState.from_content(snapshot.content)
            replay(state, journal.store.events(journal.stream, snapshot.after), journal)
        except ProblemError as problem:
            missing = problem
        else:
            return state, f"the snapshot after event {snapshot.after} on, because {_why(journal)}"
    raise missing


def _way_back(bad: BadEvent, repair: str) -> str:
    if bad.before is None:
        return "No version of it can be restored: restore a backup, or delete the model and make it anew."
    return f"The last good version is {bad.before.version}: restore a backup, or return to it by '{repair}'."


def _why(journal: Journal) -> str:
    first = journal.store.first(journal.stream)
    if next(journal.store.events(journal.stream, first - 1, ["lost"]), None) is not None:
        return "earlier events were lost before the model was repaired"
    begins = next(journal.store.events(journal.stream, first - 1), None)
    if begins is None or begins.kind != "create":
        return f"the events up to {first - 1} were deleted for their age"
    return "the content of earlier events was deleted on request"


def replayed(journal: Journal) -> ModelState:
    """What the events of a model lead to, from the one that created it on and without any snapshot.

    Raises
    ------
    ProblemError
        If events were deleted that would be needed.
    """
    return _FromTheBeginning(journal).at(None)


class _FromTheBeginning:
    """The past of a model as its events alone tell it."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def find(self, kind: str, key: str) -> Event | None:
        return self._journal.find(kind, key)

    def at(self, version: int | None) -> ModelState:
        journal = self._journal
        events = journal.store.events(journal.stream, journal.store.first(journal.stream) - 1, until=version)
        state = replay(None, events, self)
        if state is None:
            raise ProblemError(410, "content deleted", f"the events of {journal.name} were deleted")
        return state
