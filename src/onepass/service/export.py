"""All events of a service as one Parquet table, for tools that know nothing of it.

Events are read and written in batches, so that memory stays the same however many there are. A service may go on
meanwhile: what it writes after a model's events were read is not in the table.
"""

import json
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from onepass.decisions.stored import change_of
from onepass.events import Event, EventLog, EventStore
from onepass.files.atomic import atomic_file
from onepass.service.journal import Journal
from onepass.service.note import ServiceNote
from onepass.service.state import EVENTS

__all__ = ["export_events"]

_AT_ONCE = 1000  # events in memory
_FILES = ("create", "shadow")  # events with a model file, which is not a row
_SCHEMA = pa.schema(
    [
        ("number", pa.int64()),
        ("model", pa.string()),
        ("kind", pa.string()),
        ("key", pa.string()),
        ("time", pa.timestamp("us", tz="UTC")),
        ("payload", pa.string()),
        ("row", pa.string()),
    ]
)


def export_events(path: Path, file: Path, model: str | None = None) -> int:
    """Write the events of all models, or of one, into a Parquet file, and return how many there were.

    Its columns are ``number`` (of the event, which is the model's version after it), ``model``, ``kind``, ``key`` (the
    id that a client has given), ``time``, ``payload`` (what was answered) and ``row`` (what was sent), both as JSON.
    What was deleted on request is null. The file is written whole or not at all.

    Parameters
    ----------
    path : the folder that ``onepass serve --data`` was given
    file : the Parquet file, which is replaced
    model : name of the model, by default all

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with EventStore(folder / "events.sqlite") as store:
    ...     _ = Journal(store, "price").append("learn", "order 17", {"y": 2.5}, b'{"x":{"km":3.0}}')
    >>> export_events(folder, folder / "events.parquet")
    1
    >>> pq.read_table(folder / "events.parquet").select(["model", "kind", "key", "row"]).to_pylist()
    [{'model': 'price', 'kind': 'learn', 'key': 'order 17', 'row': '{"x":{"km":3.0}}'}]
    """
    ServiceNote(path).check_file(path / EVENTS)
    if not (path / EVENTS).is_file():
        raise FileNotFoundError(2, f"there is no {EVENTS} in this folder: nothing was ever served from it", str(path))
    with EventStore(path / EVENTS) as store:
        names = Journal.names(store)
        if model is not None and model not in names:
            raise ValueError(f"there is no model {model!r}; there are {', '.join(map(repr, names)) or 'none'}")
        with atomic_file(file) as out, pq.ParquetWriter(out, _SCHEMA) as writer:
            return sum(_written(writer, store, name) for name in names if model in (None, name))


def _written(writer: pq.ParquetWriter, store: EventLog, model: str) -> int:
    stream, count = Journal(store, model).stream, 0
    events = store.events(stream, store.first(stream) - 1)
    while some := list(islice(events, _AT_ONCE)):
        writer.write_batch(_table(model, some))
        count += len(some)
    return count


def _table(model: str, events: list[Event]) -> pa.RecordBatch:
    columns = [
        [event.number for event in events],
        [model] * len(events),
        [event.kind for event in events],
        [event.key for event in events],
        [round(event.time * 1e6) for event in events],
        [None if event.forgotten else json.dumps(event.payload) for event in events],
        [_row(event) for event in events],
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def _row(event: Event) -> str | None:
    """What was sent, as JSON: a row, a target, several rows, or the contexts of a bandit."""
    if not event.blob or event.kind in _FILES:
        return None
    if event.payload.get("shape") is not None:
        context = change_of(event).context
        return None if context is None else json.dumps(context.tolist())
    if event.payload.get("format") == "arrow":
        return json.dumps(pa.ipc.open_stream(event.blob).read_all().to_pylist(), default=str)  # dates as text
    return event.blob.decode()
