"""Training a model of tables on a cluster: every file is a shard, read, encoded and learned on a worker.

The counterpart of `onepass.tables.training` for Dask. The first rows are learned in this process, so that the estimator
knows its classes before copies of it learn the files. Workers report the records of a file that can't be learned as
events of the scheduler.
"""

import copy
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from logging import CRITICAL
from typing import NamedTuple
from uuid import uuid4

import dask
from distributed import Client, get_worker

from onepass.estimators.rows import Rows
from onepass.integrations.dask.fitting import fit
from onepass.integrations.dask.shards import Batch
from onepass.tables.inputs import Inputs
from onepass.tables.model import TabularModel
from onepass.tables.readers.batches import row_blocks
from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.options import ReadOptions
from onepass.tables.readers.paths import size_of
from onepass.tables.readers.registry import open_source
from onepass.tables.readers.source import Source
from onepass.tables.rejects import Reject

__all__ = ["Rejected", "cluster", "fit_files"]

_FIRST_ROWS = 100  # learned in this process before the files are
_MOST_REJECTS = 10_000  # of a file that are reported one by one
_MEMORY_PER_BYTE = 10  # bytes of memory for a byte of a file, at most, once it is read and encoded


class Rejected(NamedTuple):
    """The records of a file that were not learned: how many could not be, the first of them, and those left out."""

    file: str
    total: int
    rejects: tuple[Reject, ...]
    left_out: int = 0  # by the condition on rows
    unreadable: str = ""  # see `Source`


@contextmanager
def cluster(workers: int | None, scheduler: str | None) -> Iterator[Client]:
    """Connect to the scheduler at an address, or else start processes on this machine for the length of the block."""
    if scheduler is not None:
        try:
            client = Client(scheduler, timeout="10s")
        except (OSError, ValueError) as error:
            raise StreamError(f"no Dask scheduler answers at {scheduler} ({error})") from None
    else:
        # Errors reach the user as exceptions; the log messages of processes that end would only repeat them.
        quiet = {"logging.distributed": "critical"}
        with dask.config.set(quiet):
            client = Client(n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=CRITICAL)
    with client:
        yield client


def fit_files(
    model: TabularModel, inputs: Inputs, client: Client, rounds: int, progress: Callable[[int, int], None]
) -> list[Rejected]:
    """Learn all files into a model that has learned nothing yet; returns the rejected records per file.

    Parameters
    ----------
    model : TabularModel
    inputs : the files, at paths that the workers can open
    client : of the cluster
    rounds : how often each file is learned, see `onepass.integrations.dask.fitting.fit`
    progress : called with the number of shards learned so far and the total

    Raises
    ------
    StreamError
        If rows of the model have weights or keys, which workers don't take along.
    """
    time = None if model.time is None else model.time.name
    for column, what in ((model.weight, "weights"), (model.by, "a model per key"), (time, "rows in time")):
        if column is not None:
            raise StreamError(f"{what} (column {column!r}) can be learned only by one process, not on a cluster")
    model.end_comparison()
    reader = _learn_first_rows(model, inputs)
    learned = fit(
        model.estimator,
        list(inputs.files),
        client=client,
        rounds=rounds,
        read=reader,
        keep=_fit_in_memory(inputs, client),
        progress=progress,
    )
    model.estimator, model.n_rows = learned, learned.n_seen_
    rejected = [_reported(client, file, topic) for file, topic in reader.topics.items()]
    model.n_rejected = sum(one.total for one in rejected)
    return rejected


def _learn_first_rows(model: TabularModel, inputs: Inputs) -> "_Reader":
    """Learn the first rows; returns the reader that skips them."""
    batches = ((file, rows) for file in inputs.files for rows in _batches(model, open_source(file, inputs.reading)))
    first, rows = next(((file, rows) for file, rows in batches if len(rows.y)), (None, None))
    if first is None or rows is None:
        raise StreamError("there is no row to learn")
    if model.estimator.covariance == "auto" and model.belief_type.compresses:  # see `start_estimator`
        model.estimator.set_params(covariance="kronecker" if model.is_network else "diagonal")
    X, y = rows.X[:_FIRST_ROWS], rows.y[:_FIRST_ROWS]
    topics = {file: f"onepass-{uuid4().hex}" for file in inputs.files}
    reader = _Reader(copy.deepcopy(model), inputs.reading, first, len(y), topics)
    model.learn(Rows(X, y))
    return reader


def _fit_in_memory(inputs: Inputs, client: Client) -> bool:
    """Whether the encoded files fit the memory of all workers together."""
    size = sum(map(size_of, inputs.files))
    some = client.scheduler_info()["workers"].values()  # recent versions of Dask list only a few
    memory = len(client.nthreads()) * min(worker["memory_limit"] for worker in some)
    return bool(_MEMORY_PER_BYTE * size < memory)


def _reported(client: Client, file: str, topic: str) -> Rejected:
    """Collect what a worker reported of a file; if it was read several times, all reports are equal."""
    _, event = client.get_events(topic)[-1]
    return Rejected(file, event["total"], tuple(pickle.loads(event["rejects"])), *event["filter"])


def _batches(model: TabularModel, source: Source) -> Iterator[Rows]:
    batches = source.batches(model.types(target=True), 0)
    return (model.rows(block.batches) for block in row_blocks(batches, model.rows_per_block, aligned=True))


@dataclass(frozen=True)
class _Reader:
    """Reads and encodes a file on a worker, and reports the records that can't be learned."""

    model: TabularModel  # before its first row
    reading: ReadOptions
    first_file: str
    first_rows: int  # of that file, which are learned already
    topics: dict[str, str]  # by file, of the events that report its rejected records

    def __call__(self, path: str) -> Iterator[Batch]:
        left = self.first_rows if path == self.first_file else 0
        rejects: list[Reject] = []
        source = open_source(path, self.reading)
        for rows in _batches(self.model, source):
            rejects += rows.rejects
            if len(rows.y) > left:
                yield rows.X[left:], rows.y[left:]
            left = max(left - len(rows.y), 0)
        first = pickle.dumps(rejects[:_MOST_REJECTS])  # an event holds plain data only
        found = {"total": len(rejects), "rejects": first, "filter": (source.left_out, source.unreadable)}
        get_worker().log_event(self.topics[path], found)
