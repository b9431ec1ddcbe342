"""A durable store of events, in one SQLite file or in a PostgreSQL database: what was acknowledged is on the disk.

A model that learns in production must neither lose a row nor learn it twice. So everything that it learns is first
stored here, as an event of a named stream, and only then learned. After a crash the latest snapshot of the model and
the events after it give the same model again, bit for bit. The store knows nothing about models; what an event means is
up to the program that writes it.

An event is identified by its stream, its kind and its key, e.g. ``("price", "label", "order 17")``. Appending the same
event again returns the first one and writes nothing, so a request whose answer got lost can safely be repeated. A label
may come before the prediction it belongs to. Events of a stream are numbered 1, 2, 3 and so on in the order in which
they became durable. A number is never used again, so a missing event is noticed.

The content of an event has two parts. The *payload* is JSON: small, readable by any tool, and exact, since a float is
written with as many digits as give the same float again. The *blob* is bytes as they are, for arrays: float64
numbers take 8 bytes each by ``array.tobytes()``, where JSON takes about 19. Neither runs code when it is read. Every
event and every snapshot has a checksum, verified whenever it is read.
"""

from onepass.events.errors import ConflictError, EventStoreError
from onepass.events.log import EventLog
from onepass.events.opening import is_address, open_event_log, store_at
from onepass.events.records import Event, Remains, Snapshot
from onepass.events.sqlite import EventStore

__all__ = [
    "ConflictError",
    "Event",
    "EventLog",
    "EventStore",
    "EventStoreError",
    "Remains",
    "Snapshot",
    "is_address",
    "open_event_log",
    "store_at",
]
