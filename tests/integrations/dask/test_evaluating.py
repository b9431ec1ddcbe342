"""Rows predicted before they are learned, on a cluster."""

import copy
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client

import onepass
from onepass import BayesianPerceptron, distributed
from tests.helpers.dask_rows import D, N, close, rows


def test_evaluation_predicts_every_row_before_it_is_learned(client: Any) -> None:
    """With one stage it is what every shard would find alone; with more it comes closer to one sequence."""
    X, y = rows()
    data = da.from_array(X, chunks=(N // 4, D)), da.from_array(y, chunks=N // 4)
    prior = BayesianPerceptron(D)
    alone = [copy.deepcopy(prior) for _ in range(4)]
    pieces = list(zip(np.array_split(X, 4), np.array_split(y, 4), strict=True))
    means = np.concatenate([model.predict_then_learn(*piece).mean for model, piece in zip(alone, pieces, strict=True)])
    one = distributed.evaluate(prior, data, client=client, stages=1)
    assert one.rows == N
    assert one.log_loss == pytest.approx(-sum(model.log_evidence for model in alone) / N)
    assert one.rmse == pytest.approx(np.sqrt(np.mean((means - y) ** 2)))
    assert one.accuracy == pytest.approx(np.mean((means > 0.5) == y))
    assert np.isnan(one.coverage)
    close(one.model, onepass.merge(prior, alone))
    five = distributed.evaluate(prior, data, client=client, stages=5)
    sequence = -copy.deepcopy(prior).learn(X, y).log_evidence / N
    assert abs(five.log_loss - sequence) < 0.8 * abs(one.log_loss - sequence)


def test_estimators_are_evaluated_as_the_models_they_hold(client: Any) -> None:
    X, y = rows()
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    labels = np.where(y > 0, "yes", "no")
    classes = np.array(["low", "mid", "top"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    for target, model, accuracy in (
        (labels, onepass.BayesianPerceptronClassifier(), 0.7),
        (classes, onepass.BayesianPerceptronClassifier(standardize=False), 0.8),
        (classes, onepass.BayesianMLPClassifier((4,)), 0.8),
    ):
        data = dd.from_pandas(table.assign(y=target), npartitions=3)
        found = distributed.evaluate(model, data, "y", client=client, stages=3)
        assert found.rows == N - 100  # those that it is started with
        assert found.accuracy > accuracy
        assert found.log_loss < 0.6
        assert found.model.n_seen_ == N
        assert set(found.model.classes_) == set(target)
        assert not hasattr(model, "classes_")
    # Scored by hand, with one shard and one stage.
    model = onepass.BayesianPerceptronClassifier(standardize=False).partial_fit(table[:100], labels[:100])
    found = distributed.evaluate(
        model, dd.from_pandas(table[100:].assign(y=labels[100:]), npartitions=1), "y", client=client, stages=1
    )
    yes = copy.deepcopy(model).predict_then_learn(table[100:], labels[100:]).mean[:, 1]
    truth = labels[100:] == "yes"
    assert found.rmse == pytest.approx(np.sqrt(np.mean((yes - truth) ** 2)))
    assert found.accuracy == pytest.approx(np.mean((yes > 0.5) == truth))
    assert found.log_loss == pytest.approx(-np.log(np.where(truth, yes, 1 - yes)).mean())
    numbers = 100.0 + 10.0 * X[:, 0] + np.random.default_rng(1).normal(size=N)
    data = dd.from_pandas(table.assign(y=numbers), npartitions=3)
    found = distributed.evaluate(
        onepass.BayesianPerceptronRegressor(standardize=True), data, "y", client=client, stages=3
    )
    assert found.coverage == pytest.approx(0.95, abs=0.02)
    assert found.rmse == pytest.approx(1.0, abs=0.05)


def test_numbers_are_evaluated_by_their_coverage() -> None:
    X, _ = rows()
    y = X[:, 0] + np.random.default_rng(1).normal(size=N)
    data = da.from_array(X, chunks=(N // 2, D)), da.from_array(y, chunks=N // 2)
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0"):  # taken as the current one
        found = distributed.evaluate(BayesianPerceptron(D, "linear", noise=1.0), data, stages=2)
    assert found.coverage == pytest.approx(0.95, abs=0.015)
    assert found.rmse == pytest.approx(1.0, abs=0.05)
    assert np.isnan(found.accuracy)
