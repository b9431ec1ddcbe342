"""Rows on a cluster of two processes, learned as one process would."""

from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pytest

import onepass
from onepass import BayesianNetwork, BayesianPerceptron, PerceptronFleet, distributed
from tests.helpers.dask_rows import D, N, close, frame, in_one_process, parquet, rows


def test_frames_arrays_and_files_all_give_what_one_process_would(client: Any, tmp_path: Path) -> None:
    prior = BayesianPerceptron(D)
    wanted = in_one_process(prior, 4, 2)
    X, y = rows()
    seen: list[tuple[int, int]] = []
    arrays = da.from_array(X, chunks=(N // 4, 2)), da.from_array(y, chunks=N // 2)
    close(distributed.fit(prior, arrays, client=client, progress=lambda *at: seen.append(at)), wanted)
    assert seen == [(done, 8) for done in range(1, 9)]
    close(distributed.fit(prior, dd.from_pandas(frame(), npartitions=4), "y", client=client), wanted)
    close(distributed.fit(prior, parquet(tmp_path), "y", client=client, progress=True), wanted)
    close(distributed.fit(prior, [str(p) for p in parquet(tmp_path)], "y", client=client, keep=False), wanted)
    assert prior.n_seen == 0


@pytest.mark.slow
def test_networks_learn_on_a_cluster(client: Any) -> None:
    X, y = rows()
    data = dd.from_pandas(frame(), npartitions=4)
    net = distributed.fit(BayesianNetwork(D, hidden=(5,), observation="bernoulli"), data, "y", client=client)
    assert net.n_seen == N
    assert np.mean((net.predict(X).mean > 0.5) == y) > 0.75


def test_networks_with_kronecker_beliefs_learn_on_a_cluster(client: Any) -> None:
    X, y = rows()
    prior = BayesianNetwork(D, hidden=(5,), observation="bernoulli", covariance="kronecker").learn(X[:200], y[:200])
    net = distributed.fit(prior, (da.from_array(X, chunks=(1000, D)), da.from_array(y, chunks=1000)), client=client)
    assert net.n_seen == N + 200
    np.testing.assert_allclose(net.mean, in_one_process(prior, 4, 2).mean, rtol=1e-6)


def test_empty_shards_say_nothing(client: Any) -> None:
    parts = [frame().iloc[:2000], frame().iloc[:0], frame().iloc[2000:]]
    data = dd.concat([dd.from_pandas(part, npartitions=1, sort=False) for part in parts])
    model = distributed.fit(BayesianPerceptron(D), data, "y", client=client)
    close(model, in_one_process(BayesianPerceptron(D), 2, 2))
    regressor = onepass.BayesianPerceptronRegressor(standardize=False).fit(frame()[["a", "b", "c"]], frame()["y"])
    for one in (model, regressor):
        assert len(distributed.predict(one, data, "y").compute(scheduler="sync")) == N


def test_arguments_are_refused_by_name_before_anything_is_learned(client: Any) -> None:
    table = dd.from_pandas(frame().assign(shop=1), npartitions=2)
    prior, fleet = BayesianPerceptron(D), PerceptronFleet(2)
    with pytest.raises(ValueError, match="'y' is the target, and can't be one of the features"):
        distributed.fit(prior, table, "y", features=["a", "b", "y"], client=client)
    with pytest.raises(TypeError, match="features must be a list of names, got the string 'abc'"):
        distributed.fit(prior, table, "y", features="abc", client=client)
    with pytest.raises(TypeError, match="fleet must be a PerceptronFleet, got BayesianPerceptron"):
        distributed.fit_fleet(prior, table, "shop", "y", client=client)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="parts must be"):
        distributed.fit_fleet(fleet, table, "shop", "y", features=["a", "b"], parts=0, client=client)
    with pytest.raises(ValueError, match="key and target must be different columns, got 'y'"):
        distributed.fit_fleet(fleet, table, "y", "y", client=client)
    empty = dd.from_pandas(frame().iloc[:0], npartitions=1)
    for call in (distributed.fit, distributed.evaluate):
        with pytest.raises(ValueError, match="data has no rows"):
            call(prior, empty, "y", client=client)
