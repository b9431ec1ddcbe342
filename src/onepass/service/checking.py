"""Check the folder of a service that is not running: whether every model can be recovered, and is what was learned.

Nothing in the folder is changed: a copy is checked.
"""

import shutil
import tempfile
import warnings
from pathlib import Path

from onepass.files.events import Event, EventStore, EventStoreError
from onepass.files.lock import LockedError, locked
from onepass.service.errors import ProblemError
from onepass.service.journal import Journal, replay
from onepass.service.learner import Learner
from onepass.service.state import EVENTS

__all__ = ["check_state", "replayed"]


def check_state(path: Path) -> list[str]:
    """What is wrong with a state folder, one sentence each; an empty list if nothing is.

    The event store is checked as a whole. Every model is recovered from its latest snapshot and, where all its events
    are still there, made from them alone: both must be the same, byte for byte.

    Parameters
    ----------
    path : the folder that ``onepass serve --data`` was given

    Examples
    --------
    >>> import tempfile
    >>> check_state(Path(tempfile.mkdtemp()))
    ['There is no events.sqlite in this folder: nothing was ever served from it.']
    """
    if not (path / EVENTS).is_file():
        return [f"There is no {EVENTS} in this folder: nothing was ever served from it."]
    try:
        with locked(path / "service"), tempfile.TemporaryDirectory() as copy:
            for file in path.glob(f"{EVENTS}*"):
                if not file.name.endswith("-shm"):
                    shutil.copy(file, copy)
            return _problems(Path(copy) / EVENTS)
    except LockedError as error:
        return [f"The folder is in use, stop the service first: {error}."]
    except OSError as error:
        return [f"The folder can't be read: {error.strerror}, {error.filename}."]


def _problems(file: Path) -> list[str]:
    try:
        with EventStore(file) as store, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of damaged snapshots, which the store's own check names
            found = [f"The event store is damaged: {text}." for text in store.check()]
            for name in Journal.names(store):
                found += _in_model(Journal(store, name))
            return found
    except EventStoreError as error:
        return [f"The event store can't be read: {error.strerror}."]


def _in_model(journal: Journal) -> list[str]:
    try:
        recovered, begin = journal.recover()
    except Exception as error:  # whatever it is, it is what the service would meet
        return [f"The model {journal.name!r} can't be recovered: {_words(error)}."]
    if not begin:  # it was made from the events alone already
        return []
    try:
        whole = replayed(journal)
    except ProblemError:  # pruned or deleted on request, which is no damage
        return []
    except Exception as error:
        return [f"The events of the model {journal.name!r} can't be replayed: {_words(error)}."]
    if whole.content() != recovered.content():
        return [f"The model {journal.name!r} differs from what its events give: its snapshot is wrong."]
    return []


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
