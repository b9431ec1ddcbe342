"""An event store in a PostgreSQL database."""

import time as clocks
from collections.abc import Callable

from onepass._validation import as_positive, one_of
from onepass.events.database import DURABILITIES
from onepass.events.log import EventLog
from onepass.events.postgres.database import PostgresDatabase

__all__ = ["PostgresEventStore"]


class PostgresEventStore(EventLog):
    """Durable events in named streams, in the schema ``onepass`` of a PostgreSQL database.

    Parameters
    ----------
    address : e.g. ``postgresql://user@host:5432/name``; whatever libpq takes from a file of passwords or from the
        environment may be left out. The schema and its tables are created if there are none.
    durability : "full": what has been appended survives a power cut of the server. "relaxed": faster; a crash of the
        server may lose the last transactions, whole ones and never one from the middle
    timeout : seconds to wait for the server, and while others write to the same stream
    clock : gives the time of events for which the caller gives none
    read_only : whether the server refuses every change; then the tables must be there

    Raises
    ------
    EventStoreError
        Wherever the server can't be reached, refuses the user or the change, or has no sound event store of this
        version.

    Notes
    -----
    *Connections*: a store has one, and one more once it has waited for events. They have to be the server's own and not
    those of a pool that changes sessions between transactions. A lost connection raises in the call that needed it
    within a transaction, which then is written whole or not at all; the next call connects again.

    *Streams*: appends to one stream take turns, so that its numbers have no gaps; those to several streams don't wait
    for each other. Processes that write to the same streams in one transaction, but in another order, may block each
    other; the server then refuses one of them after a second.

    Everything else is documented in `EventLog`.
    """

    def __init__(
        self,
        address: str,
        *,
        durability: str = "full",
        timeout: float = 10.0,
        clock: Callable[[], float] = clocks.time,
        read_only: bool = False,
    ) -> None:
        one_of(durability, DURABILITIES, "durability")
        seconds = as_positive(timeout, "timeout")
        super().__init__(PostgresDatabase(address, durability, seconds, read_only=read_only), clock)
