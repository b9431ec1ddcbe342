"""Learning on a cluster: rows stay on their workers, and only beliefs are sent.

Every partition, chunk or file is a shard. In each round a worker learns its shards from the merged belief without their
own contribution (see `onepass.merging`). What is sent between workers is one `onepass.merging.Site` per shard, that is
what the shard contributes; sites are summed along a tree. All of it is ordinary Dask tasks whose results depend only on
their inputs and are added in a fixed order. So when a worker dies, Dask runs its tasks again elsewhere, and the result
is the same, bit for bit on machines of the same kind.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from onepass._validation import as_count
from onepass.integrations.dask.client import Progress, connected, progress_report
from onepass.integrations.dask.rounds import NO_ROWS, count_rows, learn_in_rounds
from onepass.integrations.dask.shards import DataSource, Read
from onepass.integrations.dask.starting import start_estimator
from onepass.merging import Merging

__all__ = ["fit"]


def fit(
    model: Any,
    data: Any,
    target: str | None = None,
    *,
    features: Sequence[str] | None = None,
    client: Any = None,
    rounds: int = 2,
    read: Read | None = None,
    keep: bool = True,
    progress: Progress | bool = False,
) -> Any:
    """Learn all rows on a Dask cluster, and return the learned model; the given model, the prior, is not changed.

    Parameters
    ----------
    model : perceptron, network or estimator
        As for `onepass.merge`. An estimator that has not been fitted is started with the first rows.
    data : Dask data frame, pair of Dask arrays, or list of files
        Every partition, chunk of rows or file is a shard. Files are Parquet, or whatever ``read`` reads, at paths that
        the workers can open.
    target : str, optional
        Name of the target's column, for data frames and Parquet files.
    features : list of str, optional
        Columns to learn from; all others by default, in the order of the (first) file.
    client : distributed.Client, optional
        By default the current one; if there is none, processes are started on this machine for the length of the call.
    rounds : int
        How often each shard is learned. One round is exact for linear outputs with fixed noise. After two, a perceptron
        is as close to one that learned all rows in sequence as to one with another order; networks need more.
    read : function, optional
        Turns the name of a file into batches ``(X, y)``. It runs on the workers.
    keep : bool
        Keep files in the workers' memory between rounds, as data frames and arrays always are, or read them again.
    progress : bool or function
        True draws a bar; a function is called with the number of shards learned so far and the total.

    Examples
    --------
    >>> import dask.array as da, numpy as np, onepass
    >>> from distributed import Client
    >>> from onepass.distributed import fit
    >>> X, w = np.random.default_rng(0).normal(size=(2000, 3)), [1.0, -2.0, 0.5]
    >>> prior = onepass.BayesianPerceptron(3, "linear", noise=1.0)
    >>> data = da.from_array(X, chunks=(500, 3)), da.from_array(X @ w, chunks=500)
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     model = fit(prior, data, client=client)
    >>> bool(np.allclose(model.mean, prior.learn(X, X @ w).mean)), model.n_seen
    (True, 2000)
    """
    as_count(rounds, "rounds")
    source = DataSource(data, target, features, read, keep)
    with ExitStack() as stack:
        client = stack.enter_context(connected(client))
        prior, shards = start_estimator(client, model, source.shards(client))
        report = stack.enter_context(progress_report(progress, rounds * len(shards)))
        merging, total = learn_in_rounds(client, prior, shards, rounds, report)
        if prior is model and not client.submit(count_rows, total, pure=False).result():
            raise ValueError(NO_ROWS)
        return client.submit(Merging.merged, merging, total, pure=False).result()
