"""Targets that are absurdly far from what is predicted: refused before they are events, unless they are meant."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from onepass import BayesianPerceptron, BayesianPerceptronRegressor, PerceptronFleet
from onepass.files.checkpoint import to_bytes
from onepass.service.errors import ProblemError
from onepass.service.rows import Rows
from onepass.service.wire import Declared, LabelRequest, LearnRequest, PredictRequest
from tests.service.running import Running, crashed_copy, served

ABSURD = 1e12
DECLARED = Declared(columns=[{"name": "km", "mean": 0.0, "std": 1.0}], target={"name": "y", "mean": 30.0, "std": 5.0})


def typical(n: int, seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [{"x": {"km": float(km)}, "y": 30.0 + float(noise)} for km, noise in rng.normal(size=(n, 2))]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """A model that has learned forty rows with targets of about 30."""
    with served(tmp_path / "state") as running:
        running.ask(running.state.create("price", DECLARED))
        running.ask(running.model("price").learn_rows(Rows(records=typical(40))))
        yield running


def refused(running: Running, question: Any, field: str = "y") -> ProblemError:
    before = running.model("price").status()
    with pytest.raises(ProblemError) as caught:
        running.ask(question)
    assert running.model("price").status() == before  # no event, nothing learned
    problem = caught.value
    assert (problem.status, problem.title, problem.field) == (422, "far target", field)
    assert problem.more["mean"] == pytest.approx(30.0, abs=3.0)
    assert 0.3 < problem.more["std"] < 5.0
    assert problem.more["deviations"] > problem.more["max_deviations"] == 10_000.0
    return problem


def test_a_row_is_refused_unless_it_is_accepted(running: Running) -> None:
    price = running.model("price")
    problem = refused(running, price.learn(LearnRequest({"km": 0.0}, ABSURD, id="a")))
    assert 'send it again with "accept": true' in problem.detail
    assert "1000000000000" in problem.detail
    learned = running.ask(price.learn(LearnRequest({"km": 0.0}, ABSURD, id="a", accept=True)))
    assert learned.n_seen == 41
    again = running.ask(price.learn(LearnRequest({"km": 0.0}, ABSURD, id="a")))  # which was learned, however far it is
    assert again == learned
    assert running.ask(price.learn(LearnRequest({"km": 0.0}, 30.0))).n_seen == 42


def test_others_that_share_the_transaction_are_learned(running: Running) -> None:
    price = running.model("price")

    async def all_at_once() -> list[Any]:
        targets = (30.0, ABSURD, 31.0, -ABSURD)
        asked = (price.learn(LearnRequest({"km": 0.1}, y)) for y in targets)
        return await asyncio.gather(*asked, return_exceptions=True)

    found = running.ask(all_at_once())
    assert [isinstance(one, ProblemError) for one in found] == [False, True, False, True]
    assert price.status()["n_seen"] == 42


@pytest.mark.parametrize("form", ["lines", "arrow"])
def test_a_batch_is_refused_by_its_first_far_row(running: Running, form: str) -> None:
    price, records = running.model("price"), typical(5, seed=1)
    records[3]["y"] = ABSURD
    batch = pa.RecordBatch.from_pylist([{**one["x"], "y": one["y"]} for one in records])
    rows = Rows(records=records) if form == "lines" else Rows(table=batch)
    problem = refused(running, price.learn_rows(rows, "b"))
    assert problem.place == ("row", 4)
    assert "?accept=true" in problem.detail
    learned = running.ask(price.learn_rows(rows, "b", accept=True))
    assert learned.n_seen == 45
    assert running.ask(price.learn_rows(rows, "b")) == learned


def test_a_label_is_refused_and_its_prediction_waits_on(running: Running) -> None:
    price = running.model("price")
    running.ask(price.predict(PredictRequest({"km": 0.0}, id="p")))
    refused(running, price.label(LabelRequest("p", ABSURD)))
    assert price.status()["pending"] == 1
    assert running.ask(price.label(LabelRequest("p", 30.0))).status == "learned"
    running.ask(price.predict(PredictRequest({"km": 0.0}, id="q")))
    assert running.ask(price.label(LabelRequest("q", ABSURD, accept=True))).status == "learned"


def test_a_label_that_came_first_is_judged_when_its_prediction_comes(running: Running) -> None:
    price = running.model("price")
    for id, accept in (("early", False), ("meant", True)):
        assert running.ask(price.label(LabelRequest(id, ABSURD, accept=accept))).status == "waiting"
    problem = refused(running, price.predict(PredictRequest({"km": 0.0}, id="early")), field="id")
    assert problem.detail.startswith("the label that came first for 'early' is ")
    assert "another id" in problem.detail
    assert running.ask(price.predict(PredictRequest({"km": 0.0}, id="meant"))).learned


def test_what_was_accepted_is_replayed_without_a_question(running: Running, tmp_path: Path) -> None:
    running.ask(running.model("price").learn(LearnRequest({"km": 0.0}, ABSURD, accept=True)))
    copy = crashed_copy(running.folder, tmp_path / "copy")
    with served(copy, max_deviations=1.0) as again:
        assert again.files() == running.files()
        assert again.model("price").status()["n_seen"] == 41


def test_a_model_begins_with_targets_of_any_size(tmp_path: Path) -> None:
    with served(tmp_path / "state") as running:
        running.ask(running.state.create("new", DECLARED))
        model = running.model("new")
        for i in range(30):
            running.ask(model.learn(LearnRequest({"km": 0.1 * i}, 1e7 + 1e5 * (i % 7))))
        with pytest.raises(ProblemError, match="far target"):
            running.ask(model.learn(LearnRequest({"km": 0.0}, 1e15)))


def test_the_service_may_have_another_limit_or_none(tmp_path: Path) -> None:
    for limit, is_learned in ((3.0, False), (float("inf"), True)):
        with served(tmp_path / f"{limit}", max_deviations=limit) as running:
            running.ask(running.state.create("price", DECLARED))
            running.ask(running.model("price").learn_rows(Rows(records=typical(40))))
            asked = running.model("price").learn(LearnRequest({"km": 0.0}, ABSURD if is_learned else 60.0))
            if is_learned:
                assert running.ask(asked).status == "learned"
            else:
                with pytest.raises(ProblemError, match="at most 3 are accepted"):
                    running.ask(asked)


def _models() -> dict[str, Any]:
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(50, 2)), 3e4 + rng.normal(size=50)
    return {
        "estimator": BayesianPerceptronRegressor(standardize=True).fit(X, y),
        "perceptron": BayesianPerceptron(2, "linear", noise="learn").learn(X, y - 3e4),
        "fleet": PerceptronFleet(2, "linear", noise=1.0).learn(["a"] * 50, X, y - 3e4),
    }


@pytest.mark.parametrize("kind", ["estimator", "perceptron", "fleet"])
def test_every_kind_of_model_refuses(tmp_path: Path, kind: str) -> None:
    with served(tmp_path / "state") as running:
        running.ask(running.state.create("m", to_bytes(_models()[kind])))
        model, key = running.model("m"), "a" if kind == "fleet" else None
        usual = 3e4 if kind == "estimator" else 0.0
        assert running.ask(model.learn(LearnRequest([0.0, 0.0], usual, key=key))).n_seen == 51
        with pytest.raises(ProblemError, match="far target"):
            running.ask(model.learn(LearnRequest([0.0, 0.0], ABSURD, key=key)))
        if kind == "fleet":
            assert running.ask(model.learn(LearnRequest([0.0, 0.0], ABSURD, key="new"))).n_seen == 52
