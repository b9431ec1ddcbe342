"""From files to one model on a cluster: every file is a shard, read, encoded and learned where the workers are.

The twin of `onepass.training` for `onepass.distributed`. The first rows are learned here, so that the estimator knows
its classes; what the workers could not learn of a file they tell along with the scheduler's events.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from logging import CRITICAL
from pathlib import Path

import dask

from onepass.distributed import Batch, Client, fit, get_worker
from onepass.stream import StreamError, blocks, open_source
from onepass.tabular import Reject, Rows, TabularModel
from onepass.training import Inputs

__all__ = ["cluster", "spread"]

_TOPIC = "onepass-rejects"
_HEAD = 100  # rows that the estimator is started with
_TOLD = 10_000  # rejects of a file that are told one by one
_BYTES = 10  # of memory that a byte of a file may take once it is read and encoded


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
) -> list[tuple[str, tuple[Reject, ...]]]:
    """Learn all files into a model that has learned nothing yet; what was rejected, by file.

    Parameters
    ----------
    model : TabularModel
    inputs : the files, where the workers see them too
    client : of the cluster
    rounds : how often each file is learned, see `onepass.distributed.fit`
    listen : is told how many shards of all were learned
    """
    walks = ((file, rows) for file in inputs.files for rows in _blocks(model, file, inputs.delimiter))
    first, rows = next(((file, rows) for file, rows in walks if len(rows.y)), (None, None))
    if first is None or rows is None:
        raise StreamError("there is no row to learn")
    X, y = rows.X[:_HEAD], rows.y[:_HEAD]
    reader = _Reader(copy.deepcopy(model), inputs.delimiter, first, len(y))
    model.learn(Rows(X, y, (), len(y)))
    size = sum(Path(file).stat().st_size for file in inputs.files)
    memory = sum(worker["memory_limit"] for worker in client.scheduler_info(n_workers=-1)["workers"].values())
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
    told = {event["file"]: event for _, event in client.get_events(_TOPIC)}  # a file may have been read again
    model.n_rejected = sum(event["count"] for event in told.values())
    return [(file, tuple(Reject(*one) for one in told[file]["rejects"])) for file in inputs.files if file in told]


def _blocks(model: TabularModel, file: str, delimiter: str | None) -> Iterator[Rows]:
    pieces = open_source(file, delimiter).pieces(model.types(target=True), 0)
    return (model.rows(block.pieces) for block in blocks(pieces, model.block, aligned=True))


@dataclass(frozen=True)
class _Reader:
    """Reads and encodes a file on a worker, and tells what of it can't be learned."""

    model: TabularModel  # before its first row
    delimiter: str | None
    head_file: str
    head_rows: int  # of that file, learned already

    def __call__(self, path: str) -> Iterator[Batch]:
        left = self.head_rows if path == self.head_file else 0
        rejects: list[Reject] = []
        for rows in _blocks(self.model, path, self.delimiter):
            rejects += rows.rejects
            if len(rows.y) > left:
                yield rows.X[left:], rows.y[left:]
            left = max(left - len(rows.y), 0)
        told = [tuple(one) for one in rejects[:_TOLD]]
        get_worker().log_event(_TOPIC, {"file": path, "count": len(rejects), "rejects": told})
