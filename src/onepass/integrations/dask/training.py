"""From files to one model on a cluster: every file is a shard, read, encoded and learned where the workers are.

The twin of `onepass.tables.training` for Dask. The first rows are learned here, so that the estimator knows its
classes; what the workers could not learn of a file they tell along with the scheduler's events.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from logging import CRITICAL
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import dask

from onepass.integrations.dask.distributed import Batch, Client, fit, get_worker
from onepass.tables.inputs import Inputs
from onepass.tables.model import TabularModel
from onepass.tables.readers.batches import row_blocks
from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.registry import open_source
from onepass.tables.rows import Reject, Rows

__all__ = ["Rejected", "cluster", "spread"]

_HEAD = 100  # rows that the estimator is started with
_TOLD = 10_000  # rejects of a file that are told one by one
_BYTES = 10  # of memory that a byte of a file may take once it is read and encoded


class Rejected(NamedTuple):
    """What could not be learned of a file: how many records, and the first of them."""

    file: str
    total: int
    rejects: tuple[Reject, ...]


@contextmanager
def cluster(workers: int | None, scheduler: str | None) -> Iterator[Client]:
    """Reach a scheduler, or have processes on this machine for as long as it takes."""
    if scheduler is not None:
        try:
            client = Client(scheduler, timeout="10s")
        except (OSError, ValueError) as error:
            raise StreamError(f"there is no scheduler at {scheduler} ({error})") from None
    else:
        # Whatever goes wrong is told by us; what processes say while they end is no concern of the user's.
        quiet = {"logging.distributed": "critical"}
        with dask.config.set(quiet):
            client = Client(n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=CRITICAL)
    with client:
        yield client


def spread(
    model: TabularModel, inputs: Inputs, client: Client, rounds: int, listen: Callable[[int, int], None]
) -> list[Rejected]:
    """Learn all files into a model that has learned nothing yet; what was rejected, by file.

    Parameters
    ----------
    model : TabularModel
    inputs : the files, where the workers see them too
    client : of the cluster
    rounds : how often each file is learned, see `onepass.integrations.dask.distributed.fit`
    listen : is told how many shards of all were learned
    """
    walks = ((file, rows) for file in inputs.files for rows in _blocks(model, file, inputs.delimiter))
    first, rows = next(((file, rows) for file, rows in walks if len(rows.y)), (None, None))
    if first is None or rows is None:
        raise StreamError("there is no row to learn")
    X, y = rows.X[:_HEAD], rows.y[:_HEAD]
    topics = {file: f"onepass-{uuid4().hex}" for file in inputs.files}
    reader = _Reader(copy.deepcopy(model), inputs.delimiter, first, len(y), topics)
    model.learn(Rows(X, y, (), len(y)))
    size = sum(Path(file).stat().st_size for file in inputs.files)
    some = client.scheduler_info()["workers"].values()  # newer ones list only a few
    memory = len(client.nthreads()) * min(worker["memory_limit"] for worker in some)
    found = fit(
        model.estimator,
        list(inputs.files),
        client=client,
        rounds=rounds,
        read=reader,
        keep=_BYTES * size < memory,
        progress=listen,
    )
    model.estimator, model.n_rows = found, found.n_seen_
    rejected = [_told(client, file, topic) for file, topic in topics.items()]
    model.n_rejected = sum(one.total for one in rejected)
    return rejected


def _told(client: Client, file: str, topic: str) -> Rejected:
    """What a worker said of a file; it may have been read again, to the same end."""
    _, event = client.get_events(topic)[-1]
    return Rejected(file, event["total"], tuple(Reject(*one) for one in event["rejects"]))


def _blocks(model: TabularModel, file: str, delimiter: str | None) -> Iterator[Rows]:
    batches = open_source(file, delimiter).batches(model.types(target=True), 0)
    return (model.rows(block.batches) for block in row_blocks(batches, model.rows_per_block, aligned=True))


@dataclass(frozen=True)
class _Reader:
    """Reads and encodes a file on a worker, and tells what of it can't be learned."""

    model: TabularModel  # before its first row
    delimiter: str | None
    head_file: str
    head_rows: int  # of that file, learned already
    topics: dict[str, str]  # under which what is wrong with a file is told

    def __call__(self, path: str) -> Iterator[Batch]:
        left = self.head_rows if path == self.head_file else 0
        rejects: list[Reject] = []
        for rows in _blocks(self.model, path, self.delimiter):
            rejects += rows.rejects
            if len(rows.y) > left:
                yield rows.X[left:], rows.y[left:]
            left = max(left - len(rows.y), 0)
        told = [tuple(one) for one in rejects[:_TOLD]]
        get_worker().log_event(self.topics[path], {"total": len(rejects), "rejects": told})
