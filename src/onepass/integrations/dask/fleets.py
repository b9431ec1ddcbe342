"""Fleets on a cluster: keys are divided among workers, and the rows of a key are sent to its worker.

Unlike in `onepass.integrations.dask.fitting` rows are sent and not beliefs, because a perceptron is no smaller than the
few rows that it learns.
"""

import copy
from collections.abc import Sequence
from typing import Any

import dask.dataframe as dd
import numpy as np

from onepass._validation import as_count
from onepass.integrations.dask.client import connected
from onepass.integrations.dask.shards import select_columns
from onepass.models.fleet import PerceptronFleet
from onepass.models.fleet.keys import as_keys, parts_of

__all__ = ["fit_fleet"]


def fit_fleet(
    fleet: PerceptronFleet,
    data: Any,
    key: str,
    target: str,
    *,
    features: Sequence[str] | None = None,
    client: Any = None,
    parts: int | None = None,
) -> PerceptronFleet:
    """Learn the rows of a Dask data frame, one perceptron per key; one worker learns all rows of a key, in order.

    The given fleet is not changed; the returned one is the same as if one process had learned all rows.

    Parameters
    ----------
    fleet : PerceptronFleet
    data : Dask data frame
    key, target : str
        Names of columns.
    features : list of str, optional
        Columns to learn from; all others by default.
    client : distributed.Client, optional
        As for `fit`.
    parts : int, optional
        Number of parts that the keys are divided into; by default one per thread of the cluster.

    Examples
    --------
    >>> import dask.dataframe as dd, pandas as pd
    >>> from distributed import Client
    >>> from onepass import PerceptronFleet
    >>> from onepass.distributed import fit_fleet
    >>> rows = pd.DataFrame({"shop": ["a", "b", "a"], "rain": [0.0, 1.0, 1.0], "sold": [3.0, 5.0, 4.0]})
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     data = dd.from_pandas(rows, npartitions=2)
    ...     fleet = fit_fleet(PerceptronFleet(1, "linear", noise=1.0), data, "shop", "sold", client=client)
    >>> fleet.n_seen
    3
    """
    if not isinstance(fleet, PerceptronFleet):
        raise TypeError(f"fleet must be a PerceptronFleet, got {type(fleet).__name__}")
    if not isinstance(data, dd.DataFrame):
        raise TypeError(f"data must be a Dask data frame, got {type(data).__name__}")
    if key == target:
        raise ValueError(f"key and target must be different columns, got {key!r} for both")
    names = [name for name in select_columns(list(data.columns), target, features) if name != key]
    select_columns(list(data.columns), key, None)  # raises an error if there is no such column
    with connected(client) as client:
        n = as_count(sum(client.nthreads().values()) if parts is None else parts, "parts")
        frames = client.compute(data[[key, *names, target]].to_delayed())
        cut = [client.submit(_cut_by_key, frame, key, names, target, n, pure=False) for frame in frames]
        learned = []
        for part, own in enumerate(fleet.split(n)):
            pieces = [client.submit(_item, one, part, pure=False) for one in cut]
            learned.append(client.submit(_learn_part, own, pieces, pure=False))
        joined, *others = client.gather(learned)
        assert isinstance(joined, PerceptronFleet)
        return joined.join(others)


# Tasks, which run on the workers.


def _cut_by_key(frame: Any, key: str, names: list[str], target: str, n_parts: int) -> list[Any]:
    """Cut a frame into the rows of each part of the keys."""
    keys = as_keys(frame[key].to_numpy(), len(frame))
    X, y, part_of = frame[names].to_numpy(np.float64), frame[target].to_numpy(np.float64), parts_of(keys, n_parts)
    given = np.asarray(keys)
    return [(given[own], X[own], y[own]) for own in (np.flatnonzero(part_of == part) for part in range(n_parts))]


def _item(parts: list[Any], number: int) -> Any:
    return parts[number]


def _learn_part(fleet: PerceptronFleet, pieces: list[Any]) -> PerceptronFleet:
    fleet = copy.deepcopy(fleet)
    for keys, X, y in pieces:
        if len(y):
            fleet.learn(X, y, keys=keys)
    return fleet
