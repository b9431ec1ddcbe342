"""Check the folder of a service that is not running, or a backup: whether every model can be recovered, and is right.

Nothing is written beside what is checked, not even a lock, so it may be on a read-only disk: a copy is checked.
"""

import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from onepass.files.events import Event, EventStore, EventStoreError, Snapshot
from onepass.files.lock import LockedError, check_unlocked
from onepass.service.errors import ProblemError
from onepass.service.journal import Journal, replay
from onepass.service.learner import Learner
from onepass.service.state import EVENTS

__all__ = ["check_state", "replayed"]

_BESIDE = ("-wal", "-tail")  # endings of the files that belong to an event store


def check_state(path: Path, tell: Callable[[str], None] = lambda words: None) -> list[str]:
    """What is wrong with a state folder or a backup of its events, one sentence each; an empty list if nothing is.

    The event store is checked as a whole. Every model is recovered from its latest snapshot and made once more from
    its events alone: both must be the same, byte for byte. Where events were deleted, it is made from the earliest
    snapshot after which nothing is missing.

    Parameters
    ----------
    path : the folder that ``onepass serve --data`` was given, or a copy of its ``events.sqlite`` under any name
    tell : is told in a sentence, for each sound model, from where on its events were replayed, and why

    Examples
    --------
    >>> import tempfile
    >>> check_state(Path(tempfile.mkdtemp()))
    ['There is no events.sqlite in this folder: nothing was ever served from it.']
    """
    file = path / EVENTS if path.is_dir() else path
    if not file.is_file():
        return [f"There is no {EVENTS} in this folder: nothing was ever served from it."]
    try:
        with tempfile.TemporaryDirectory() as folder:
            return _problems(_copied(file, Path(folder)), tell)
    except LockedError as error:
        return [f"The folder is in use, stop the service first: {error}."]
    except OSError as error:
        return [f"It can't be read: {error.strerror}, {error.filename}."]


def _copied(file: Path, folder: Path) -> Path:
    """A copy of an event store that nobody has changed meanwhile."""
    beside = [file, *(file.with_name(file.name + ending) for ending in _BESIDE)]

    def seen() -> list[tuple[int, int]]:
        check_unlocked(file.with_name("service"))
        return [(one.stat().st_size, one.stat().st_mtime_ns) for one in beside if one.exists()]

    before = seen()
    for one in filter(Path.exists, beside):
        shutil.copyfile(one, folder / one.name)  # without its mode: the copy can be written
    if seen() != before:
        raise LockedError(f"{file} has changed while it was copied")
    return folder / file.name


def _problems(file: Path, tell: Callable[[str], None]) -> list[str]:
    try:
        with EventStore(file) as store, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of damaged snapshots, which the store's own check names
            found = [f"The event store is damaged: {text}." for text in store.check()]
            for name in Journal.names(store):
                found += _in_model(Journal(store, name), tell)
            return found
    except EventStoreError as error:
        return [f"The event store can't be read: {error.strerror}."]


def _in_model(journal: Journal, tell: Callable[[str], None]) -> list[str]:
    name = f"The model {journal.name!r}"
    try:
        recovered, begin = journal.recover()
    except Exception as error:  # whatever it is, it is what the service would meet
        return [f"{name} can't be recovered: {_words(error)}."]
    try:  # without a snapshot it was made from its events alone already
        again, since = _made_again(journal) if begin else (recovered, "its beginning")
    except Exception as error:
        return [f"The events of the model {journal.name!r} can't be replayed: {_words(error)}."]
    if again.content() != recovered.content():
        return [f"{name} differs from what its events give: its snapshot is wrong."]
    tell(f"{name} is right: its events were replayed from {since}, up to event {recovered.version}.")
    return []


def _made_again(journal: Journal) -> tuple[Learner, str]:
    """The model from as many of its events as there are, and from where on in words."""
    try:
        return replayed(journal), "its beginning"
    except ProblemError as problem:  # pruned or deleted on request, which is no damage
        missing = problem
    for snapshot in reversed(list(_snapshots(journal))):
        try:
            learner = Learner.from_content(snapshot.content)
            replay(learner, journal.store.events(journal.stream, snapshot.after), journal)
        except ProblemError as problem:
            missing = problem
        else:
            return learner, f"the snapshot after event {snapshot.after} on, because {_why(journal)}"
    raise missing


def _why(journal: Journal) -> str:
    first = journal.store.first(journal.stream)
    begins = next(journal.store.events(journal.stream, first - 1), None)
    if begins is None or begins.kind != "create":
        return f"the events up to {first - 1} were deleted for their age"
    return "the content of earlier events was deleted on request"


def _snapshots(journal: Journal) -> Iterator[Snapshot]:
    """Sound snapshots of a model, the latest first."""
    snapshot = journal.store.latest_snapshot(journal.stream)
    while snapshot is not None and snapshot.content:  # an empty one ends an earlier model of this name
        yield snapshot
        snapshot = journal.store.snapshot_before(journal.stream, snapshot.after - 1)


def replayed(journal: Journal) -> Learner:
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

    def at(self, version: int | None) -> Learner:
        journal = self._journal
        events = journal.store.events(journal.stream, journal.store.first(journal.stream) - 1, until=version)
        learner = replay(None, events, self)
        if learner is None:
            raise ProblemError(410, "content deleted", f"the events of {journal.name} were deleted")
        return learner


def _words(error: Exception) -> str:
    return str(error.strerror if isinstance(error, EventStoreError) else error)
