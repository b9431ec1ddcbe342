"""Shards that can't be read or learned are named."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pytest

from onepass import BayesianPerceptron, PerceptronFleet, distributed
from tests.helpers.dask_rows import D, frame, parquet, rows


def test_bad_input_is_refused_with_the_shard_it_is_in(client: Any, tmp_path: Path) -> None:
    X, y = rows()
    y[3000] = 7.0
    prior = BayesianPerceptron(D)
    data = da.from_array(X, chunks=(1000, D)), da.from_array(y, chunks=1000)
    with pytest.raises(ValueError, match="shard 3, after 0 rows: y must hold labels 0 and 1"):
        distributed.fit(prior, data, client=client)
    with pytest.raises(ValueError, match="shape"):
        distributed.fit(prior, (data[0], data[1][:5]), client=client)
    with pytest.raises(TypeError, match="a list of files, got list \\(empty\\)"):
        distributed.fit(prior, [], client=client)
    with pytest.raises(TypeError, match="Dask data frame"):
        distributed.fit(prior, X, client=client)
    with pytest.raises(TypeError, match=r"distributed\.Client, got str"):
        distributed.fit(prior, data, client="tcp://localhost")
    with pytest.raises(ValueError, match="rounds must be"):
        distributed.fit(prior, data, client=client, rounds=0)
    table = dd.from_pandas(frame(), npartitions=2)
    with pytest.raises(ValueError, match="target must be the name"):
        distributed.fit(prior, table, client=client)
    with pytest.raises(ValueError, match="no column 'z'; the columns are 'a', 'b', 'c', 'y'"):
        distributed.fit(prior, table, "z", client=client)
    paths = parquet(tmp_path, 2)
    frame()[["a", "b", "y"]].to_parquet(paths[1])
    with pytest.raises(ValueError, match=r"part-1\.parquet has no column 'c'"):
        distributed.fit(prior, paths, "y", client=client)
    with pytest.raises(ValueError, match="target must be the name"):
        distributed.fit(prior, paths, client=client)
    with pytest.raises(ValueError, match="forgetting"):
        distributed.fit(BayesianPerceptron(D, forgetting=0.9), paths[:1], "y", client=client)
    with pytest.raises(TypeError, match=r"prior must be one of .* got PerceptronFleet"):
        distributed.evaluate(PerceptronFleet(D), data, client=client)
    with pytest.raises(TypeError, match="Dask array"):
        distributed.predict(prior, X)


def unreadable(path: str) -> Iterator[tuple[Any, Any]]:
    yield np.zeros((1, D)), np.array([bytes([255]).decode()])


def test_an_error_that_takes_more_than_a_text_is_told_with_its_shard(client: Any) -> None:
    with pytest.raises(ValueError, match=r"shard 0, after 0 rows: .*invalid start byte"):
        distributed.fit(BayesianPerceptron(D), ["any"], read=unreadable, keep=False, client=client)
