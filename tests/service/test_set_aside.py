"""One absurd target: it is counted and told, and predictions stay what they were."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from onepass import BayesianMLPRegressor, BayesianPerceptron, BayesianPerceptronRegressor, PerceptronFleet
from onepass.files.checkpoint import to_bytes
from onepass.service.operations import Decide
from onepass.service.served.bandit import BanditModel
from onepass.service.wire import (
    DecideRequest,
    Declared,
    LabelRequest,
    LearnRequest,
    PredictRequest,
    RewardRequest,
    RollbackRequest,
    RowsRequest,
)
from tests.service.running import Running, crashed_copy, served

ABSURD = 1e12
N_ROWS = 120
COLUMNS = [{"name": "km", "mean": 0.0, "std": 1.0}]
TARGET = {"name": "y", "mean": 30.0, "std": 5.0}
KINDS = ["table", "network", "outliers", "estimator", "mlp", "perceptron", "fleet"]


def typical(n: int, seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [{"x": {"km": float(km)}, "y": 30.0 + float(noise)} for km, noise in rng.normal(size=(n, 2))]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """A model that has learned forty rows with targets of about 30."""
    with served(tmp_path / "state") as running:
        running.ask(running.state.create("price", Declared(columns=COLUMNS, target=TARGET)))
        running.ask(running.model("price").learn_rows(RowsRequest(records=typical(40))))
        yield running


def create(running: Running, kind: str) -> None:
    """A model "m" of a kind, with all defaults, that has learned more rows than a warm-up has."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(N_ROWS, 1))
    y = 30.0 + X[:, 0] + rng.uniform(-1.0, 1.0, size=N_ROWS)
    if kind in ("table", "network", "outliers"):
        known: dict[str, dict[str, Any]] = {"table": {}, "network": {"hidden": [10]}, "outliers": {"outliers": 0.05}}
        running.ask(running.state.create("m", Declared(columns=COLUMNS, target=TARGET, options=known[kind])))
        records = [{"x": {"km": float(km)}, "y": float(target)} for km, target in zip(X[:, 0], y, strict=True)]
        running.ask(running.model("m").learn_rows(RowsRequest(records=records)))
        return
    made: dict[str, Callable[[], Any]] = {
        "estimator": lambda: BayesianPerceptronRegressor().fit(X, y),
        "mlp": lambda: BayesianMLPRegressor((10,)).fit(X, y),
        "perceptron": lambda: BayesianPerceptron(1, "linear", noise="learn").learn(X, y - 30.0),
        "fleet": lambda: PerceptronFleet(1, "linear", noise="learn").learn(X, y - 30.0, keys=["a"] * N_ROWS),
    }
    running.ask(running.state.create("m", to_bytes(made[kind]())))


def prediction(running: Running, kind: str) -> Any:
    table = kind in ("table", "network", "outliers")
    request = PredictRequest({"km": 0.5} if table else [0.5], key="a" if kind == "fleet" else None)
    return running.ask(running.model("m").predict(request))


@pytest.mark.parametrize("kind", KINDS)
def test_one_absurd_target_is_counted_and_changes_nothing(tmp_path: Path, kind: str) -> None:
    with served(tmp_path / "state") as running:
        create(running, kind)
        model, before = running.model("m"), prediction(running, kind)
        row: Any = {"km": 0.0} if kind in ("table", "network", "outliers") else [0.0]
        learned = running.ask(model.learn(LearnRequest(row, ABSURD, key="a" if kind == "fleet" else None)))
        assert (learned.status, learned.n_seen) == ("learned", N_ROWS + 1)
        after = prediction(running, kind)
        assert abs(after.mean - before.mean) < before.std
        assert after.std < 2.0 * before.std
        aside = 0 if kind == "outliers" else 1  # a model that doubts every target needs no such rule
        assert model.status()["n_set_aside"] == model.metrics()["n_set_aside"] == aside
        assert model.counters["set_aside"] == aside
        alarms = model.metrics()["alarms"]
        assert (alarms["set_aside"], alarms["outliers"]) == (aside, 1 - aside)
        (alarm,) = alarms["last"]
        assert (alarm["kind"], alarm["target"]) == ("set aside" if aside else "outlier", "1e+12")
        assert alarm["version"] == learned.version
        assert model.status()["alarms"] == 1
        again = crashed_copy(running.folder, tmp_path / "copy")
        with served(again) as replayed:
            assert replayed.files() == running.files()
            assert replayed.model("m").metrics() == model.metrics()


@pytest.mark.parametrize("more", [{}, {"hidden": [8]}])
def test_one_absurd_reward_is_counted_and_changes_nothing(tmp_path: Path, more: dict[str, Any]) -> None:
    described = {"arms": ["red", "blue"], "n_features": 1, "observation": "gaussian", "policy": "greedy", **more}
    rng = np.random.default_rng(3)
    with served(tmp_path / "state") as running:
        running.ask(running.state.create("b", Declared(bandit=described)))
        model = running.model("b")
        for _ in range(150):
            choice = running.ask(model.carry_out(Decide(DecideRequest([float(rng.normal())]))))
            running.ask(model.reward(RewardRequest(choice.id, float(rng.normal(scale=0.3)))))

        def expected() -> Any:
            bandit = model._state.champion
            assert isinstance(bandit, BanditModel)
            return bandit.model.predict([0.0])

        before = expected()
        choice = running.ask(model.carry_out(Decide(DecideRequest([0.0]))))
        assert running.ask(model.reward(RewardRequest(choice.id, ABSURD))).n_seen == 151
        assert np.abs(expected().reward_mean - before.reward_mean).max() < 0.3
        assert model.status()["n_set_aside"] == model.metrics()["n_set_aside"] == 1
        assert model.counters["set_aside"] == 1.0
        with served(crashed_copy(running.folder, tmp_path / "copy")) as replayed:
            assert replayed.files() == running.files()


def test_others_that_share_the_transaction_are_learned(running: Running) -> None:
    price = running.model("price")

    async def all_at_once() -> list[Any]:
        asked = (price.learn(LearnRequest({"km": 0.1}, y)) for y in (30.0, ABSURD, 31.0, -ABSURD))
        return list(await asyncio.gather(*asked))

    assert {one.status for one in running.ask(all_at_once())} == {"learned"}
    assert (price.status()["n_seen"], price.status()["n_set_aside"]) == (44, 2)
    assert [one["target"] for one in price.metrics()["alarms"]["last"]] == ["1e+12", "-1e+12"]


@pytest.mark.parametrize("form", ["lines", "arrow"])
def test_a_batch_is_learned_without_its_absurd_row(running: Running, form: str) -> None:
    price, records = running.model("price"), typical(5, seed=1)
    records[3]["y"] = ABSURD
    batch = pa.RecordBatch.from_pylist([{**one["x"], "y": one["y"]} for one in records])
    rows = RowsRequest(records=records) if form == "lines" else RowsRequest(table=batch)
    assert running.ask(price.learn_rows(rows, "b")).n_seen == 45
    assert price.status()["n_set_aside"] == 1
    assert running.ask(price.predict(PredictRequest({"km": 0.0}))).mean == pytest.approx(30.0, abs=1.0)


def test_a_label_that_is_absurd_is_counted_early_or_late(running: Running) -> None:
    price = running.model("price")
    running.ask(price.predict(PredictRequest({"km": 0.0}, id="p")))
    assert running.ask(price.label(LabelRequest("p", ABSURD))).status == "learned"
    assert running.ask(price.label(LabelRequest("early", ABSURD))).status == "waiting"
    assert running.ask(price.predict(PredictRequest({"km": 0.0}, id="early"))).learned
    assert price.status()["n_set_aside"] == 2
    assert running.ask(price.predict(PredictRequest({"km": 0.0}))).mean == pytest.approx(30.0, abs=1.0)


def test_what_was_set_aside_is_kept_by_snapshots_and_taken_back_by_a_rollback(running: Running, tmp_path: Path) -> None:
    price = running.model("price")
    version = price.status()["version"]
    running.ask(price.learn(LearnRequest({"km": 0.0}, ABSURD)))
    content = price._state.content()
    assert type(price._state).from_content(content).content() == content
    running.ask(price.rollback(RollbackRequest(version)))
    assert (price.status()["n_set_aside"], price.status()["alarms"]) == (0, 0)
    assert price.counters["set_aside"] == 1.0  # a counter never goes down


def test_a_model_begins_with_targets_of_any_size_and_follows_other_units(tmp_path: Path) -> None:
    with served(tmp_path / "state") as running:
        running.ask(running.state.create("new", Declared(columns=COLUMNS, target=TARGET)))
        model = running.model("new")
        for i in range(40):
            running.ask(model.learn(LearnRequest({"km": 0.1 * (i % 9)}, 1e7 + 1e5 * (i % 7))))
        assert model.status()["n_set_aside"] == 0
        for i in range(80):
            running.ask(model.learn(LearnRequest({"km": 0.1 * (i % 9)}, 1e13 + 1e11 * (i % 7))))
        assert model.status()["n_set_aside"] == 12
        found = running.ask(model.predict(PredictRequest({"km": 0.4})))
        assert found.mean == pytest.approx(1e13, rel=0.1)
