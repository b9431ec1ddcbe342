"""Events as a Parquet table: all of them, as they were sent, and without what was deleted."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onepass.service import export
from onepass.service.export import export_events
from onepass.service.operations import Decide
from onepass.service.wire import DecideRequest, LabelRequest, LearnRequest, PredictRequest, RewardRequest, RowsRequest
from tests.service.running import four_models, served

X: dict[str, Any] = {"a": 1.0, "b": -0.5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with events of every kind."""
    place = tmp_path_factory.mktemp("export") / "state"
    with served(place) as running:
        for name, content in four_models().items():
            running.ask(running.state.create(name, content))
        model, bandit = running.model("number"), running.model("bandit")
        running.ask(model.learn(LearnRequest(X, 2.0, id="row")))
        running.ask(model.predict(PredictRequest(X, id="order")))
        running.ask(model.label(LabelRequest("order", 3.0)))
        running.ask(model.learn_rows(RowsRequest(records=[{"x": X, "y": 1.0}, {"x": X, "y": 2.0}]), "two"))
        table = pa.RecordBatch.from_pydict({"a": [0.5], "b": [1.5], "number": [2.5]})
        running.ask(model.learn_rows(RowsRequest(table=table), "arrow"))
        running.ask(model.learn(LearnRequest(X, 4.0, id="secret")))
        running.ask(model.forget("secret"))
        running.ask(bandit.carry_out(Decide(DecideRequest([0.25, 4.0], id="choice"))))
        running.ask(bandit.reward(RewardRequest("choice", 1.0)))
    return place


def by_key(path: Path, model: str) -> dict[tuple[str, str], dict[str, Any]]:
    """The rows of a model in the table, by kind and key."""
    rows = pq.read_table(path).to_pylist()
    return {(row["kind"], row["key"]): row for row in rows if row["model"] == model}


def test_all_events_are_there_as_they_were_sent(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "events.parquet"
    assert export_events(folder, file) == 4 + 6 + 2
    found = by_key(file, "number")
    assert [row["number"] for row in found.values()] == list(range(1, 8))
    assert json.loads(found["learn", "row"]["row"])["x"] == X
    assert json.loads(found["prediction", "order"]["row"]) == {"x": X}
    assert json.loads(found["prediction", "order"]["payload"])["answer"]["id"] == "order"
    assert json.loads(found["label", "order"]["row"]) == 3.0
    assert [one["y"] for one in json.loads(found["rows", "two"]["row"])] == [1.0, 2.0]
    assert json.loads(found["rows", "arrow"]["row"]) == [{"a": 0.5, "b": 1.5, "number": 2.5}]
    assert found["learn", "secret"]["payload"] is None
    assert found["learn", "secret"]["row"] is None
    assert found["create", "create\n1"]["row"] is None
    assert found["learn", "row"]["time"].utcoffset().total_seconds() == 0
    bandit = by_key(file, "bandit")
    assert json.loads(bandit["decision", "choice"]["row"]) == [0.25, 4.0]


def test_one_model_in_small_batches(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, small = tmp_path / "whole.parquet", tmp_path / "small.parquet"
    assert export_events(folder, whole, "number") == 7
    monkeypatch.setattr(export, "_AT_ONCE", 2)
    assert export_events(folder, small, "number") == 7
    assert pq.read_table(small) == pq.read_table(whole)
    assert pq.ParquetFile(small).num_row_groups == 4
    assert set(by_key(whole, "bandit")) == set()


def test_what_is_not_there_is_named_and_no_file_is_left(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no model 'price'; there are 'bandit', 'class', 'keyed', 'number'"):
        export_events(folder, tmp_path / "events.parquet", "price")
    with pytest.raises(FileNotFoundError, match=r"there is no events\.sqlite"):
        export_events(tmp_path, tmp_path / "events.parquet")
    assert list(tmp_path.iterdir()) == []


def test_events_can_be_exported_while_they_are_written(folder: Path, tmp_path: Path) -> None:
    with served(folder) as running:
        before = export_events(folder, tmp_path / "events.parquet", "class")
        running.ask(running.model("class").learn(LearnRequest(X, "red")))
        assert export_events(folder, tmp_path / "events.parquet", "class") == before + 1
