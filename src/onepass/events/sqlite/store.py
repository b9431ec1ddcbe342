"""An event store in one SQLite file."""

import os
import time as clocks
from collections.abc import Callable

from onepass._validation import as_positive, one_of
from onepass.events.database import DURABILITIES
from onepass.events.log import EventLog
from onepass.events.sqlite.database import SQLiteDatabase

__all__ = ["EventStore"]


class EventStore(EventLog):
    """Durable events in named streams, in one SQLite file.

    Parameters
    ----------
    path : path of the file, which is created if there is none; next to it are ``-wal`` and ``-shm``, which SQLite
        keeps while it is open, and ``-tail``, by which a loss at the end is noticed
    durability : "full": what has been appended survives a power cut. "relaxed": several times faster; a power cut or a
        crash of the operating system may lose the last transactions, whole ones and never one from the middle. A
        process that is killed loses nothing either way.
    timeout : seconds to wait while another process writes
    clock : gives the time of events for which the caller gives none

    Raises
    ------
    EventStoreError
        Wherever the file can't be opened, read or written: a full disk, a read-only folder, a lock that others keep, a
        damaged file, one of a newer version or of another program.

    Notes
    -----
    The file has to be on a local disk. `check` also looks at the indexes by which keys are found. Everything
    else is documented in `EventLog`.

    Examples
    --------
    >>> import os, tempfile
    >>> from onepass.events import EventStore
    >>> path = os.path.join(tempfile.mkdtemp(), "events.sqlite")
    >>> with EventStore(path, clock=lambda: 0.0) as store:
    ...     event = store.append("price", "label", "order 17", {"y": 0.1})
    ...     again = store.append("price", "label", "order 17", {"y": 0.1})
    >>> event.number, again == event
    (1, True)
    >>> with EventStore(path) as store:
    ...     [(event.number, event.payload) for event in store.events("price")]
    [(1, {'y': 0.1})]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: str = "full",
        timeout: float = 10.0,
        clock: Callable[[], float] = clocks.time,
    ) -> None:
        one_of(durability, DURABILITIES, "durability")
        super().__init__(SQLiteDatabase(path, durability, as_positive(timeout, "timeout")), clock)

    @property
    def path(self) -> str:
        """Absolute path of the file."""
        return self.address
