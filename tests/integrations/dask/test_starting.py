"""Estimators that are started on a cluster, from its first rows."""

import copy
from collections.abc import Iterator
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pytest

import onepass
from onepass import distributed
from tests.helpers.dask_rows import D, N, frame, rows


def test_estimators_are_started_and_learn_on_a_cluster(client: Any) -> None:
    data, inputs, y = dd.from_pandas(frame(), npartitions=4), frame()[["a", "b"]], frame()["y"]
    estimator = onepass.BayesianPerceptronClassifier(standardize=True)
    learned = distributed.fit(estimator, data, "y", client=client, features=["a", "b"])
    assert learned.n_seen_ == N
    assert learned.feature_names_in_.tolist() == ["a", "b"]
    whole = copy.deepcopy(estimator).fit(inputs, y)
    np.testing.assert_allclose(learned.coef_, whole.coef_, atol=0.02)
    assert not hasattr(estimator, "classes_")
    labels = distributed.predict(learned, data, "y", features=["a", "b"])
    np.testing.assert_array_equal(labels["predict"].compute(), learned.predict(inputs))
    shares = distributed.predict(learned, data, features=["a", "b"], method="predict_proba")
    assert list(shares.columns) == ["0.0", "1.0"]
    np.testing.assert_allclose(shares.compute(), learned.predict_proba(inputs))


def in_tens(path: str) -> Iterator[tuple[Any, Any]]:
    X, y = rows()
    for begin in range(2000 * int(path), 2000 * int(path) + 2000, 10):
        yield X[begin : begin + 10], y[begin : begin + 10]


@pytest.mark.parametrize("members", [1, 2])
def test_an_estimator_is_started_with_enough_rows_of_small_batches(client: Any, members: int) -> None:
    model = onepass.BayesianMLPClassifier((4,), members=members, warm_up=150)
    learned = distributed.fit(model, ["0", "1"], read=in_tens, client=client, rounds=1)
    assert learned.n_seen_ == N
    assert learned.score(*rows()) > 0.7


def test_an_estimator_is_started_with_the_rows_of_several_small_shards(client: Any) -> None:
    X, y = rows()
    data = da.from_array(X[:400], chunks=(40, D)), da.from_array(y[:400], chunks=40)
    model = onepass.BayesianPerceptronRegressor(noise=0.25, standardize=True)
    whole = onepass.BayesianPerceptronRegressor(noise=0.25, standardize=True).fit(X[:400], y[:400])
    learned = distributed.fit(model, data, client=client, rounds=1)
    np.testing.assert_allclose(learned.coef_, whole.coef_, rtol=1e-8)
    assert learned.n_seen_ == 400
