"""Rounds of learning go on when a worker dies."""

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from onepass import BayesianPerceptron, distributed
from tests.helpers.dask_rows import D, parquet


def read_and_count(path: str) -> Iterator[tuple[Any, Any]]:
    """Read a shard in two batches, and leave a file beside it that says so."""
    part = pd.read_parquet(path)
    tempfile.mkstemp(suffix=".read", dir=Path(path).parent)
    for half in (part.iloc[: len(part) // 2], part.iloc[len(part) // 2 :]):
        yield half[["a", "b", "c"]], half["y"]


def test_a_worker_killed_in_mid_round_costs_a_retry_and_not_a_bit(client: Any, tmp_path: Path) -> None:
    prior, paths = BayesianPerceptron(D), parquet(tmp_path, 8)
    options: dict[str, Any] = {"client": client, "read": read_and_count, "rounds": 2}
    undisturbed = distributed.fit(prior, paths, **options)
    n_read = len(list(tmp_path.glob("*.read")))
    killed: list[int] = []

    def kill(done: int, _: int) -> None:
        if done == 9 and not killed:  # the first shard of round two
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    survived = distributed.fit(prior, paths, progress=kill, **options)
    assert killed
    assert len(list(tmp_path.glob("*.read"))) > 2 * n_read  # what the killed worker kept was read again
    np.testing.assert_array_equal(survived.mean, undisturbed.mean)
    np.testing.assert_array_equal(survived.cov, undisturbed.cov)
    assert survived.log_evidence == undisturbed.log_evidence
