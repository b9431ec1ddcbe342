"""Rows for tests on a cluster, in every form in which they may come."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from onepass import BayesianPerceptron
from onepass.merging import Rounds

__all__ = ["D", "N", "close", "frame", "in_one_process", "parquet", "rows"]

N, D = 4000, 3


def rows() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    return X, (X @ [1.0, -2.0, 0.5] + rng.logistic(size=N) > 0).astype(float)


def frame() -> pd.DataFrame:
    X, y = rows()
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)


def in_one_process(prior: Any, shards: int, rounds: int) -> Any:
    X, y = rows()
    pieces = list(zip(np.array_split(X, shards), np.array_split(y, shards), strict=True))
    steps = Rounds(prior, shards)
    for _ in range(rounds):
        steps.take([start and start.learn(*piece) for start, piece in zip(steps.starts(), pieces, strict=True)])
    return steps.merged()


def parquet(folder: Path, parts: int = 4) -> list[Path]:
    paths = []
    for k, piece in enumerate(np.array_split(np.arange(N), parts)):
        paths.append(folder / f"part-{k}.parquet")
        frame().iloc[piece].to_parquet(paths[-1])
    return paths


def close(one: BayesianPerceptron, other: BayesianPerceptron) -> None:
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-9)
    np.testing.assert_allclose(one.cov, other.cov, rtol=1e-9, atol=1e-12)
    assert one.n_seen == other.n_seen
    assert one.log_evidence == pytest.approx(other.log_evidence)
