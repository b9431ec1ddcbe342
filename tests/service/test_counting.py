"""What is counted of a model: every row that was answered or learned here, and nothing that ever goes down."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from onepass.files.checkpoint import from_bytes
from onepass.service.counting import UpAndDown
from onepass.service.host import HostedModel
from onepass.service.operations import Decide
from onepass.service.wire import (
    DecideRequest,
    LabelRequest,
    LearnRequest,
    PredictRequest,
    RewardRequest,
    RollbackRequest,
    RowsRequest,
)
from tests.service.running import Running, four_models, outcome, regressor, served

X: dict[str, Any] = {"a": 1.0, "b": -0.5}
GENERATOR = np.random.default_rng(5)
ROWS = [({"a": a, "b": b}, a - b) for a, b in GENERATOR.normal(size=(20, 2)).tolist()]


def make(running: Running, name: str) -> HostedModel:
    running.ask(running.state.create(name, four_models()[name]))
    return running.model(name)


def learn(running: Running, model: HostedModel, rows: list[Any]) -> None:
    for x, y in rows:
        running.ask(model.learn(LearnRequest(x, y)))


def test_every_row_that_is_answered_with_a_prediction_is_counted_and_no_other(tmp_path: Path) -> None:
    with served(tmp_path) as running:
        model = make(running, "number")
        assert model.counters["predicted"] == 0.0
        running.ask(model.predict(PredictRequest(X)))
        running.ask(model.predict(PredictRequest(X, id="kept")))
        batch = pa.RecordBatch.from_pydict({"a": [1.0] * 20, "b": [0.0] * 20})
        running.ask(model.predict_rows(RowsRequest(table=batch)))
        assert model.counters["predicted"] == 22.0
        for refused in (PredictRequest({"c": 1.0}), PredictRequest({"c": 1.0}, id="bad")):
            assert running.ask(outcome(model.predict(refused))) == 422
        assert running.ask(outcome(model.predict_rows(RowsRequest(records=[{"x": {"c": 1.0}}])))) == 422
        assert model.counters["predicted"] == 22.0


def test_rows_learned_by_this_process_are_counted_and_a_rollback_takes_none_back(tmp_path: Path) -> None:
    with served(tmp_path) as running:
        model = make(running, "number")
        assert (model.counters["learned"], model.counters["rows"]) == (0.0, 30.0)
        begin = model.status()["version"]
        learn(running, model, ROWS[:5])
        before, sums = model.counters, model.score_sums
        assert (before["learned"], before["rows"]) == (5.0, 35.0)
        running.ask(model.rollback(RollbackRequest(begin + 2)))
        after = model.counters
        assert (after["learned"], after["rows"]) == (5.0, 32.0)
        assert after["scored"] == before["scored"]
        assert model.score_sums == sums
        learn(running, model, ROWS[5:6])
        running.ask(model.rollback(RollbackRequest(begin + 5)))  # forward, to what was rolled back: nothing is learned
        assert (model.counters["learned"], model.counters["rows"]) == (6.0, 35.0)
    with served(tmp_path) as running:
        model = running.model("number")
        assert (model.counters["learned"], model.counters["rows"]) == (0.0, 35.0)


def total(sums: UpAndDown) -> float:
    return sums.up - sums.down


@pytest.mark.parametrize("name", ["number", "class"])
def test_scores_of_any_stretch_are_differences_of_counters(tmp_path: Path, name: str) -> None:
    """The oracle is the report of a second service, that only sees the second half."""
    rows = [(x, y if name == "number" else ("red", "green")[y > 0]) for x, y in ROWS]
    with served(tmp_path / "all") as running:
        model = make(running, name)
        learn(running, model, rows[:12])
        before, sums, half = model.counters, model.score_sums, running.ask(model.file())
        learn(running, model, rows[12:])
        after, sums_after = model.counters, model.score_sums
    with served(tmp_path / "half") as running:
        running.ask(running.state.create(name, half))
        other = running.model(name)
        learn(running, other, rows[12:])
        report = other.metrics()
    assert after["scored"] - before["scored"] == 8.0
    means = [metric for metric in report["metrics"] if metric["name"] in report["over_time"]]
    assert list(sums_after) == [metric["name"] for metric in means]
    assert set(sums_after) > ({"accuracy", "log_loss"} if name == "class" else {"rmse", "coverage_95"})
    for metric in means:
        value = report["scores"][metric["name"]]
        mean = value**2 if metric["is_root"] else value
        change = total(sums_after[metric["name"]]) - total(sums[metric["name"]])
        assert change == pytest.approx(8.0 * mean), metric


def test_a_sum_that_falls_never_lowers_a_counter(tmp_path: Path) -> None:
    with served(tmp_path) as running:
        model, seen = make(running, "number"), []
        for x, y in [*ROWS, (X, 50.0), *ROWS]:  # numbers that fit exactly, but for one
            running.ask(model.learn(LearnRequest(x, y)))
            seen.append(model.score_sums["log_likelihood"])
        assert seen[-1].up > 0.0
        assert seen[-1].down > 0.0
        for counter in (seen_up := [one.up for one in seen], [one.down for one in seen]):
            assert counter == sorted(counter)
        assert len(set(seen_up)) > 10
        assert total(seen[-1]) == pytest.approx(41.0 * model.metrics()["scores"]["log_likelihood"])


def test_the_shadow_is_scored_on_its_own_while_there_is_one(tmp_path: Path) -> None:
    with served(tmp_path) as running:
        model = make(running, "number")
        learn(running, model, ROWS[:3])
        assert "shadow_scored" not in model.counters
        running.ask(model.set_shadow(four_models()["number"]))
        learn(running, model, ROWS[3:7])
        found = model.counters
        assert (found["scored"], found["shadow_scored"]) == (7.0, 4.0)
        mean = total(model.shadow_score_sums["log_likelihood"]) / found["shadow_scored"]
        assert mean == pytest.approx(model.metrics()["shadow"]["scores"]["log_likelihood"])
        running.ask(model.promote())
        learn(running, model, ROWS[7:9])
        found = model.counters
        assert (found["scored"], found["learned"]) == (9.0, 9.0)
        assert "shadow_scored" not in found
        assert model.shadow_score_sums == {}
        running.ask(model.set_shadow(four_models()["number"]))
        learn(running, model, ROWS[9:10])
        assert model.counters["shadow_scored"] == 5.0


def test_what_a_bandit_does_is_counted_and_how_long_rewards_take(tmp_path: Path) -> None:
    with served(tmp_path) as running:
        bandit = make(running, "bandit")
        for i in range(3):
            running.ask(bandit.carry_out(Decide(DecideRequest([1.0, 0.0], id=f"visit {i}"))))
        for _ in range(2):  # again: the same answer, counted once
            running.ask(bandit.carry_out(Decide(DecideRequest([1.0, 0.0], id="visit 0"))))
            running.ask(bandit.reward(RewardRequest("visit 0", 1.0)))
        running.ask(bandit.reward(RewardRequest("visit 1", 0.0)))
        found, lag = bandit.counters, bandit.durations["label_lag"]
        names = ("decisions", "scored", "learned", "rows", "decisions_waiting")
        assert [found[name] for name in names] == [3.0, 2.0, 2.0, 2.0, 1.0]
        assert bandit.score_sums == {"reward": UpAndDown(1.0, 0.0)}
        assert lag.count == 2
        assert 0.0 < lag.sum < 60.0


def test_how_long_labels_take_is_counted_once_for_each(tmp_path: Path) -> None:
    with served(tmp_path) as running:
        model = make(running, "number")
        running.ask(model.predict(PredictRequest(X, id="a")))
        assert (model.counters["predictions_waiting"], model.counters["labels_waiting"]) == (1.0, 0.0)
        for id in ("a", "a", "nobody"):
            running.ask(model.label(LabelRequest(id, 1.0)))
        assert (model.counters["predictions_waiting"], model.counters["labels_waiting"]) == (0.0, 1.0)
        assert model.durations["label_lag"].count == 1


def test_rows_that_follow_a_failure_of_the_store_are_counted(tmp_path: Path) -> None:
    with served(tmp_path) as running:
        running.ask(running.state.create("m", regressor()))
        model = running.model("m")
        running.ask(model.learn(LearnRequest([1.0, 2.0], 3.0)))
        model._writer._is_sound = False  # made from its events again, before the next row
        running.ask(model.learn(LearnRequest([1.0, 2.0], 4.0)))
        assert model.counters["learned"] == 2.0
        assert from_bytes(running.ask(model.file())).n_seen_ == 5


def test_rows_are_counted_before_a_copy_for_predictions_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(tmp_path) as running:
        model = make(running, "number")
        monkeypatch.setattr(model._writer._copying, "allows", lambda: False)
        monkeypatch.setattr(model._writer._copying, "pause", lambda: 60.0)
        learn(running, model, ROWS[:2])
        assert (model.counters["learned"], model.counters["rows"]) == (2.0, 32.0)
