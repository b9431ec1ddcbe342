"""Test-then-train evaluation on a cluster: every row is predicted before it is learned."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from onepass._validation import as_count
from onepass.integrations.dask.client import connected, placements, send
from onepass.integrations.dask.models import log_evidence
from onepass.integrations.dask.rounds import NO_ROWS, ROWS_AT_ONCE, replace_sites
from onepass.integrations.dask.scoring import Tally
from onepass.integrations.dask.shards import DataSource, Read, Shard, batches_of_at_most
from onepass.integrations.dask.starting import start_estimator
from onepass.merging import Merging, Site

__all__ = ["Evaluation", "evaluate"]


@dataclass(frozen=True)
class Evaluation:
    """How well rows were predicted before they were learned: see `evaluate`."""

    rows: int
    """Number of rows that were scored."""
    log_loss: float
    """Mean of the negative log predictive densities; for labels and classes the log-loss."""
    rmse: float
    """Root mean square of target minus predicted mean; for labels, of label minus probability."""
    accuracy: float
    """Share of rows whose label or class was predicted as the most probable; NaN for numbers."""
    coverage: float
    """Share of targets in their central 95 % interval; NaN for labels, classes and counts."""
    model: Any
    """The merged model, which has learned all rows."""


def evaluate(
    model: Any,
    data: Any,
    target: str | None = None,
    *,
    features: Sequence[str] | None = None,
    client: Any = None,
    stages: int = 10,
    read: Read | None = None,
) -> Evaluation:
    """Evaluate a model on a cluster, test-then-train: every row is predicted before it is learned.

    The rows of every shard (partition, chunk or file) are cut into ``stages`` parts. In the first stage the first parts
    of all shards are predicted and learned in parallel, row by row, starting from the given model, and merged; the
    second stage continues with the second parts from the merged model, and so on. So the model that predicts a row has
    learned all parts of earlier stages, of all shards, and the rows before it in its own part. The more stages, the
    closer this is to one long sequence, and the more often models are merged.

    Parameters
    ----------
    model : perceptron, network or estimator
        The prior, which is not changed. An estimator that has not been fitted is started with the first rows, which are
        not scored.
    data, target, features, client, read :
        As for `fit`.
    stages : int
        Number of parts that every shard is cut into.
    """
    as_count(stages, "stages")
    source = DataSource(data, target, features, read)
    with connected(client) as client:
        model, shards = start_estimator(client, model, source.shards(client))
        current = send(client, model)
        tallies = []
        for stage in range(stages):
            merging = client.submit(Merging, current, pure=False)
            parts = [
                client.submit(_test_then_train, merging, current, shard, stage, stages, pure=False, **place)
                for shard, place in zip(shards, placements(client, shards), strict=True)
            ]
            tallies += [client.submit(_first, part, pure=False) for part in parts]
            learned = [client.submit(_second, part, pure=False) for part in parts]
            nothing = client.submit(Merging.nothing, merging, pure=False)
            _, total = replace_sites(client, merging, ([nothing] * len(shards), nothing), learned)
            current = client.submit(Merging.merged, merging, total, pure=False)
        scores = reduce(Tally.merge, client.gather(tallies))
        if not scores.rows:
            raise ValueError(NO_ROWS)
        return Evaluation(scores.rows, **scores.values(), model=current.result())


# Tasks, which run on the workers.


def _test_then_train(merging: Merging, model: Any, shard: Shard, stage: int, stages: int) -> tuple[Any, Site]:
    """Predict and learn one part of a shard; returns its scores, and the site."""
    start, model = model, copy.deepcopy(model)
    rows = sum(len(y) for _, y in shard)
    begin, end = rows * stage // stages, rows * (stage + 1) // stages
    tally, at = Tally.of(model), 0
    for X, y in batches_of_at_most(ROWS_AT_ONCE, shard):
        cut = slice(max(begin - at, 0), max(end - at, 0))
        at += len(y)
        part = np.asarray(y[cut])
        if len(part):
            tally.update(model, model.predict_then_learn(X[cut], part), part)
    tally.log_evidence = log_evidence(model) - log_evidence(start)
    return tally, merging.site(start, model)


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]
