"""Estimators that have not been fitted, started with the first rows before shards are learned independently.

An estimator needs its classes, its number of features and the statistics it standardises by before copies of it can
learn different rows.
"""

from typing import Any

import numpy as np

from onepass.beliefs.choice import BELIEFS
from onepass.integrations.dask.rounds import NO_ROWS
from onepass.integrations.dask.shards import Batch, Shard, Tail

__all__ = ["start_estimator"]

_FIRST_ROWS = 100  # learned by the estimator before shards are, at least


def start_estimator(client: Any, model: Any, shards: list[Any]) -> tuple[Any, list[Any]]:
    """Let an unfitted estimator learn the first rows; returns it, and the shards without these rows.

    A model that needs no start is returned as it is.
    """
    if not hasattr(model, "__sklearn_is_fitted__") or model.__sklearn_is_fitted__():
        return model, shards
    from sklearn.base import clone, is_classifier

    n = max(_FIRST_ROWS, model.warm_up if model.standardize else 0)
    options = {}
    if is_classifier(model):
        labels = client.gather([client.submit(_labels, shard, pure=False) for shard in shards])
        options["classes"] = np.unique(np.concatenate(labels))
    left, shards = n, list(shards)
    first: list[Batch] = []
    for k, shard in enumerate(shards):
        taken = client.submit(_head, shard, left, pure=False).result()
        count = sum(len(y) for _, y in taken)
        shards[k] = client.submit(Tail, shard, count, pure=False) if count else shard
        first, left = first + taken, left - count
        if not left:
            break
    if left == n:
        raise ValueError(NO_ROWS)
    started = _started(clone(model), first, options)
    if model.covariance == "auto" and BELIEFS[started.covariance_].compresses:
        # What shards learn with it adds up only from a prior that has learned no rows.
        started = _started(clone(model).set_params(covariance="kronecker"), first, options)
    return started, shards


def _started(model: Any, first: list[Batch], options: dict[str, Any]) -> Any:
    for X, y in first:
        model.partial_fit(X, y, **options)
    return model


# Tasks, which run on the workers.


def _head(shard: Shard, n: int) -> list[Batch]:
    """The first ``n`` rows of a shard, or all if it has fewer."""
    taken: list[Batch] = []
    for X, y in shard:
        if len(y):
            taken.append((X[:n], y[:n]))
            n -= len(taken[-1][1])
        if not n:
            break
    return taken


def _labels(shard: Shard) -> Any:
    found = [np.unique(np.asarray(y)) for _, y in shard]
    return np.unique(np.concatenate(found)) if found else np.empty(0)
