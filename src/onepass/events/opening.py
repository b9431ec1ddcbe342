"""Where events are kept is a matter of one argument."""

import os
import time as clocks
from collections.abc import Callable
from importlib.metadata import EntryPoint
from typing import Any, TypeGuard

from onepass._plugins import plugins
from onepass.events.log import EventLog
from onepass.events.sqlite import EventStore

__all__ = ["is_address", "open_event_log", "store_at"]

_STORES = {
    "postgres": "onepass.events.postgres:PostgresEventStore",
    "postgresql": "onepass.events.postgres:PostgresEventStore",
}
"""The event log at an address, by its scheme; imported once it is asked for, since not everybody has what it needs."""


def _stores() -> dict[str, EntryPoint]:
    return {name: EntryPoint(name, where, "onepass.stores") for name, where in _STORES.items()} | plugins("stores")


def is_address(target: object) -> TypeGuard[str]:
    """Whether events are kept by a server, and not in a file.

    Examples
    --------
    >>> from onepass.events import is_address
    >>> is_address("postgresql://host/name"), is_address("events.sqlite")
    (True, False)
    """
    return isinstance(target, str) and "://" in target and target.partition("://")[0] in _stores()


def store_at(address: str) -> Callable[..., EventLog]:
    """The class of the event log at an address, which takes all that `open_event_log` does, and ``read_only``."""
    found: Callable[..., EventLog] = _stores()[address.partition("://")[0]].load()
    return found


def open_event_log(
    target: str | os.PathLike[str],
    *,
    durability: str = "full",
    timeout: float = 10.0,
    clock: Callable[[], float] = clocks.time,
) -> EventLog:
    """The event log in a SQLite file or in a PostgreSQL database.

    Parameters
    ----------
    target : path of a file, which is created if there is none, or the address of a database on a server, such as
        ``postgresql://user@host:5432/name``, in which the schema ``onepass`` is created if there is none. That needs
        ``pip install 'onepass-learn[postgres]'``.
    durability : "full": what has been appended survives a power cut. "relaxed": faster; a power cut may lose the last
        transactions, whole ones and never one from the middle
    timeout : seconds to wait while another process writes, and for the server
    clock : gives the time of events for which the caller gives none

    Examples
    --------
    >>> import os, tempfile
    >>> from onepass.events import open_event_log
    >>> with open_event_log(os.path.join(tempfile.mkdtemp(), "events.sqlite")) as log:
    ...     log.append("price", "label", "order 17", {"y": 0.1}).number
    1
    """
    given: dict[str, Any] = {"durability": durability, "timeout": timeout, "clock": clock}
    return store_at(target)(target, **given) if is_address(target) else EventStore(target, **given)
