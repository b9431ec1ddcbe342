"""Dask with two processes; one cluster serves all tests of this module."""

import copy
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from numpy.typing import NDArray

import onepass
from onepass import BayesianNetwork, BayesianPerceptron, PerceptronFleet, distributed
from onepass.merging import Rounds

N, D = 4000, 3


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


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


def test_predictions_are_lazy_and_like_the_models_own() -> None:
    X, y = rows()
    model = BayesianPerceptron(D).learn(X, y)
    wanted = model.predict(X)
    lazy = distributed.predict(model, da.from_array(X, chunks=(1500, 2)))
    assert isinstance(lazy.mean, da.Array)
    for part, other in zip(lazy, wanted, strict=True):
        np.testing.assert_allclose(part.compute(scheduler="sync"), other, rtol=1e-12)
    table = distributed.predict(model, dd.from_pandas(frame(), npartitions=3), "y")
    assert isinstance(table, dd.DataFrame)
    computed = table.compute(scheduler="sync")
    assert list(computed.columns) == list(wanted._fields)
    np.testing.assert_allclose(computed["var"], wanted.var, rtol=1e-12)
    assert computed.index.equals(frame().index)
    classes = BayesianNetwork(D, hidden=(), n_outputs=3, observation="categorical")
    means = distributed.predict(classes, da.from_array(X, chunks=(1500, 3)))
    np.testing.assert_allclose(means.compute(scheduler="sync"), classes.predict(X).mean)
    regressor = onepass.BayesianPerceptronRegressor(standardize=False).fit(X, y)
    flat = distributed.predict(regressor, da.from_array(X, chunks=(1500, 3)))
    np.testing.assert_allclose(flat.compute(scheduler="sync"), regressor.predict(X))


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


def test_a_fleet_learns_by_key_as_one_process_would(client: Any) -> None:
    table = frame().assign(shop=np.random.default_rng(3).integers(50, size=N).astype(str))
    before = PerceptronFleet(D).learn(table[["a", "b", "c"]][:500], table["y"][:500], keys=table["shop"][:500])
    data = dd.from_pandas(table[500:], npartitions=4)
    fleet = distributed.fit_fleet(before, data, "shop", "y", client=client)
    whole = copy.deepcopy(before).learn(table[["a", "b", "c"]][500:], table["y"][500:], keys=table["shop"][500:])
    assert len(fleet) == len(whole) == 50
    for key in whole.keys():  # noqa: SIM118 (it is no dictionary)
        close(fleet.perceptron(key), whole.perceptron(key))
    assert before.perceptron("7").n_seen < fleet.perceptron("7").n_seen
    with pytest.raises(ValueError, match="no column 'user'"):
        distributed.fit_fleet(before, data, "user", "y", client=client)
    with pytest.raises(TypeError, match="must be a Dask data frame"):
        distributed.fit_fleet(before, table, "shop", "y", client=client)


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


def test_empty_shards_say_nothing(client: Any) -> None:
    parts = [frame().iloc[:2000], frame().iloc[:0], frame().iloc[2000:]]
    data = dd.concat([dd.from_pandas(part, npartitions=1, sort=False) for part in parts])
    model = distributed.fit(BayesianPerceptron(D), data, "y", client=client)
    close(model, in_one_process(BayesianPerceptron(D), 2, 2))
    regressor = onepass.BayesianPerceptronRegressor(standardize=False).fit(frame()[["a", "b", "c"]], frame()["y"])
    for one in (model, regressor):
        assert len(distributed.predict(one, data, "y").compute(scheduler="sync")) == N


def test_without_dask_one_line_says_what_to_install() -> None:
    code = "import sys; sys.modules['dask'] = None; import onepass.distributed"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MissingExtraError: onepass.distributed needs dask: pip install 'onepass-learn[dask]'" in out.stderr


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


def unreadable(path: str) -> Iterator[tuple[Any, Any]]:
    yield np.zeros((1, D)), np.array([bytes([255]).decode()])


def test_an_error_that_takes_more_than_a_text_is_told_with_its_shard(client: Any) -> None:
    with pytest.raises(ValueError, match=r"shard 0, after 0 rows: .*invalid start byte"):
        distributed.fit(BayesianPerceptron(D), ["any"], read=unreadable, keep=False, client=client)


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
