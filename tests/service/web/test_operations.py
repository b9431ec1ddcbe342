"""Every operation against the stand-in: what is asked arrives, what is answered comes back in the same form."""

import asyncio
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from onepass.service.errors import ProblemError
from onepass.service.served.base import raise_first
from onepass.service.web.bodies import ARROW, BYTES, LINES
from onepass.service.wire import ArmsRequest, DecideRequest, Declared, LearnRequest, PredictRequest
from tests.service.web.conftest import Served

X = {"km": 1.0, "age": 2.0}


def stream(**columns: Any) -> bytes:
    batch = pa.RecordBatch.from_pydict(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def test_the_models_are_started_and_stopped_with_the_application(served: Served) -> None:
    sent: list[str] = []
    asked = iter(["lifespan.startup", "lifespan.shutdown"])

    async def receive() -> Any:
        if sent:
            assert served.state.events == ["started"]
        return {"type": next(asked)}

    async def send(message: Any) -> None:
        sent.append(message["type"])

    asyncio.run(served.app({"type": "lifespan", "state": {}}, receive, send))
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert served.state.events == ["started", "stopped"]


def test_a_row_is_predicted(served: Served) -> None:
    answer = served.ask("POST", "/v1/models/price/predict", "read", json={"x": X, "level": 0.5})
    assert answer.json() == {"version": 3, "mean": 3.0}
    assert served.model.asked == [PredictRequest(X, level=0.5)]  # type: ignore[arg-type]


def test_a_prediction_that_is_kept_needs_the_scope_of_those_who_learn(served: Served) -> None:
    body = {"x": X, "id": "a"}
    refused = served.ask("POST", "/v1/models/price/predict", "read", json=body)
    assert (refused.status_code, refused.json()["scope"]) == (403, "learn")
    lines = json.dumps({"x": X}) + "\n" + json.dumps(body)
    headers = {"Content-Type": LINES}
    assert served.ask("POST", "/v1/models/price/predict", "read", content=lines, headers=headers).status_code == 403
    assert served.model.asked == []
    assert served.ask("POST", "/v1/models/price/predict", "learn", json=body).json()["id"] == "a"


def test_lines_are_answered_line_by_line_and_a_wrong_one_does_not_spoil_the_others(served: Served) -> None:
    lines = "\n".join(json.dumps({"x": {"km": value}}) for value in (1, "far", 3))
    answer = served.ask("POST", "/v1/models/price/predict", content=lines, headers={"Content-Type": LINES})
    assert answer.headers["content-type"] == LINES
    first, second, third = map(json.loads, answer.text.splitlines())
    assert (first["mean"], third["mean"]) == (1.0, 3.0)
    assert (second["status"], second["field"]) == (422, "x.km")


def test_an_arrow_stream_is_answered_by_an_arrow_stream(served: Served) -> None:
    answer = served.ask(
        "POST", "/v1/models/price/predict?level=0.8", content=stream(km=[1.0, 2.0]), headers={"Content-Type": ARROW}
    )
    assert answer.headers["content-type"] == ARROW
    table = pa.ipc.open_stream(answer.content).read_all()
    assert table.to_pydict() == {"mean": [2.0, 3.0], "label": ["yes", "yes"], "version": [3, 3]}
    ((rows, level),) = served.model.asked
    assert level == 0.8
    assert rows.table.to_pydict() == {"km": [1.0, 2.0]}


def test_batches_are_learned_as_one_event_with_a_name(served: Served) -> None:
    lines = json.dumps({"x": X, "y": 1}) + "\n" + json.dumps({"x": X, "y": None, "key": "k"}) + "\n"
    done = served.ask("POST", "/v1/models/price/learn?id=monday", content=lines, headers={"Content-Type": LINES})
    assert done.json() == {"id": "monday", "status": "learned", "version": 4, "n_seen": 5}
    done = served.ask("POST", "/v1/models/price/learn", content=stream(km=[1.0]), headers={"Content-Type": ARROW})
    assert done.json()["id"] == "made"
    (lines_seen, name), (table_seen, no_name) = served.model.asked
    assert lines_seen.records == [{"x": X, "y": 1}, {"x": X, "y": None, "key": "k"}]
    assert (name, no_name, table_seen.table.num_rows) == ("monday", None, 1)


def test_a_bad_row_among_lines_is_named_by_its_line(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(rows: Any, id: str | None = None) -> Any:
        raise_first({1: ProblemError(422, "bad value", "km is 'far', not a number", field="x.km")})

    monkeypatch.setattr(served.model, "learn_rows", refuse)
    line = json.dumps({"x": X, "y": 1})
    given: dict[str, Any] = {"content": f"{line}\n\n{line}\n", "headers": {"Content-Type": LINES}}
    found = served.ask("POST", "/v1/models/price/learn", **given).json()
    assert (found["detail"], found["field"], found["line"]) == ("line 3: km is 'far', not a number", "x.km", 3)
    assert "row" not in found
    given = {"content": stream(km=[1.0]), "headers": {"Content-Type": ARROW}}
    found = served.ask("POST", "/v1/models/price/learn", **given).json()
    assert (found["detail"], found["field"], found["row"]) == ("row 2: km is 'far', not a number", "x.km", 2)


def test_a_row_of_a_batch_can_t_have_an_id_of_its_own(served: Served) -> None:
    lines = json.dumps({"x": X, "y": 1}) + "\n" + json.dumps({"x": X, "y": 1, "id": "b"})
    found = served.ask("POST", "/v1/models/price/learn", content=lines, headers={"Content-Type": LINES}).json()
    assert (found["status"], found["field"], found["line"]) == (422, "id", 2)
    assert served.model.asked == []


def test_labels_decisions_rewards_and_explanations_arrive(served: Served) -> None:
    ask = served.ask
    assert ask("POST", "/v1/models/price/learn", "learn", json={"x": X, "y": 2}).json()["status"] == "learned"
    assert ask("POST", "/v1/models/price/label", "learn", json={"id": "a", "y": "yes"}).json()["status"] == "waiting"
    assert ask("POST", "/v1/models/price/decide", "learn", json={"context": [1], "n": 2}).json()["arm"] == "red"
    assert ask("POST", "/v1/models/price/reward", "learn", json={"id": "a", "reward": 1}).json()["id"] == "a"
    assert ask("POST", "/v1/models/price/explain", "read", json={"x": X}).json()["unit"] == "price"
    learned, _, decided, _, _ = served.model.asked
    assert learned == LearnRequest(X, 2)  # type: ignore[arg-type]
    assert decided == DecideRequest([1.0], n=2)


def test_lines_of_labels_have_an_answer_each(served: Served) -> None:
    lines = '{"id": "a", "y": 1}\n{"id": "b", "y": 2}'
    answer = served.ask("POST", "/v1/models/price/label", content=lines, headers={"Content-Type": LINES})
    first, second = map(json.loads, answer.text.splitlines())
    assert first == {"title": "too late", "status": 409, "detail": "line 1: it has expired", "line": 1}
    assert second["id"] == "b"


def test_models_are_made_of_descriptions_and_of_files(served: Served) -> None:
    made = served.ask("PUT", "/v1/models/cars", json={"rows": [{"a": 1}], "target": "a"})
    assert (made.status_code, made.json()["n_seen"]) == (201, 3)
    again = served.ask("PUT", "/v1/models/cars", content=b"\x00\xff", headers={"Content-Type": BYTES})
    assert again.status_code == 200
    assert served.state.created == [Declared(rows=[{"a": 1}], target="a"), b"\x00\xff"]
    assert [one["name"] for one in served.ask("GET", "/v1/models", "read").json()["models"]] == ["cars", "price"]
    assert served.ask("DELETE", "/v1/models/cars").status_code == 204
    assert served.ask("GET", "/v1/models/cars").status_code == 404


def test_a_list_of_models_is_cut_as_asked(served: Served) -> None:
    for name in ("cars", "Carts", "trips"):
        served.ask("PUT", f"/v1/models/{name}", json={"rows": [{"a": 1}], "target": "a"})
    answer = served.ask("GET", "/v1/models?search=CAR%20table&sort=-name&limit=1&offset=1", "read").json()
    assert [one["name"] for one in answer["models"]] == ["cars"]
    assert (answer["found"], answer["all"]) == (2, 4)
    for query, field in (("sort=size", "sort"), ("only=all", "only"), ("limit=0", "limit"), ("offset=-1", "offset")):
        refused = served.ask("GET", f"/v1/models?{query}", "read")
        assert (refused.status_code, refused.json()["field"]) == (422, field)


@pytest.mark.parametrize("name", ["-a", "a b", "a" * 65, ".hidden", "ä"])
def test_a_wrong_name_makes_no_model(served: Served, name: str) -> None:
    refused = served.ask("PUT", f"/v1/models/{name}", json={"rows": []})
    assert (refused.status_code, refused.json()["field"]) == (422, "name")
    assert served.state.created == []


def test_a_path_in_a_name_reaches_nothing(served: Served) -> None:
    for name in ("..%2F..%2Fetc%2Fpasswd", "../../etc/passwd", "%2e%2e/x"):
        assert served.ask("GET", f"/v1/models/{name}/file").status_code == 404


def test_models_are_looked_at_and_changed(served: Served) -> None:
    ask = served.ask
    assert ask("GET", "/v1/models/price", "read").json() == {
        "name": "price",
        "kind": "table",
        "n_seen": 3,
        "version": 3,
    }
    assert ask("GET", "/v1/models/price/metrics", "read").json()["nothing"] is None
    assert ask("GET", "/v1/models/price/weights", "read").json() == {"weights": {"km": [1.0, 2.0]}}
    assert ask("GET", "/v1/models/price/file", "learn").status_code == 403
    file = ask("GET", "/v1/models/price/file")
    assert (file.content, file.headers["content-disposition"]) == (
        b"the model",
        'attachment; filename="price.onepass"',
    )
    assert ask("POST", "/v1/models/price/snapshot").json() == {"version": 3}
    assert ask("POST", "/v1/models/price/rollback", json={"version": 2}).status_code == 200
    assert ask("PUT", "/v1/models/price/shadow", content=b"file", headers={"Content-Type": BYTES}).status_code == 200
    assert ask("DELETE", "/v1/models/price/shadow").status_code == 204
    assert ask("POST", "/v1/models/price/promote").status_code == 200
    forgotten = ask("DELETE", "/v1/models/price/predictions/sale%2F1", "learn")
    assert forgotten.json() == {"id": "sale/1", "forgotten": 1}
    assert served.model.asked[2:] == [b"file", "drop", "promote", "sale/1"]


def test_a_get_can_be_asked_for_its_headers_alone(served: Served) -> None:
    answer = served.ask("HEAD", "/v1/models")
    assert (answer.status_code, int(answer.headers["content-length"]) > 0) == (200, True)


def test_probes_are_open_and_readiness_waits_for_the_models(served: Served) -> None:
    assert served.ask("GET", "/healthz?from=probe", None).json() == {"status": "ok"}
    assert served.ask("GET", "/readyz", None).json() == {"status": "ready"}
    served.state.is_ready = False
    waiting = served.ask("GET", "/readyz", None)
    assert (waiting.status_code, waiting.headers["retry-after"]) == (503, "1")
    assert served.ask("GET", "/healthz", None).status_code == 200


def test_a_service_with_a_model_that_can_not_be_written_is_not_ready(served: Served) -> None:
    served.model.why_not_writable = "the connection to the server was lost"
    found = served.ask("GET", "/readyz", None)
    assert (found.status_code, found.headers["retry-after"], found.json()["title"]) == (503, "5", "not writable")
    assert "price" not in found.text  # as in the next test
    assert found.json()["detail"].startswith("1 model predicts but can't learn now")
    served.model.why_not_writable = None
    assert served.ask("GET", "/readyz", None).status_code == 200


def test_readiness_tells_damage_from_loading(served: Served) -> None:
    """Waiting helps against the one, and not against the other."""
    served.state.is_ready, served.state.broken = False, {"old": "event 7 is not what was written"}
    damaged = served.ask("GET", "/readyz", None)
    assert (damaged.status_code, damaged.json()["title"]) == (503, "damaged")
    assert damaged.json()["detail"].startswith("1 model can't be loaded")
    assert "retry-after" not in damaged.headers
    assert "old" not in damaged.text  # the probe needs no token, and names of models are for those who have one


def test_numbers_of_numpy_can_be_written(served: Served) -> None:
    served.model.metrics = lambda: {"a": np.float32(0.5), "b": np.arange(2)}  # type: ignore[method-assign]
    assert served.ask("GET", "/v1/models/price/metrics").json() == {"a": 0.5, "b": [0, 1]}


def test_the_list_of_models_tells_which_are_not_there_and_why(served: Served) -> None:
    served.state.replaying, served.state.broken = ["late"], {"old": "its last event is cut"}
    found = served.ask("GET", "/v1/models", "read").json()
    assert [one["name"] for one in found["models"]] == ["price"]
    assert (found["replaying"], found["broken"]) == (["late"], {"old": "its last event is cut"})


def test_arms_are_compared_and_who_waits_is_listed(served: Served) -> None:
    found = served.ask("POST", "/v1/models/price/arms", "read", json={"context": [1.0]}).json()
    assert found["arms"] == [{"arm": "red", "mean": 0.5, "std": 0.1, "propensity": 1.0}]
    waiting = served.ask("GET", "/v1/models/price/waiting", "read").json()
    assert waiting == {"pending": [{"id": "sale-1", "since": 5.0}], "waiting": []}
    assert served.model.asked == [ArmsRequest([1.0]), "waiting"]
