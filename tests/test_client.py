"""The client of the service: what it sends, what it sends again, and what it says when the service refuses."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest

from onepass.client import Client, ServiceError
from onepass.files.checkpoint import from_bytes
from onepass.service.settings import ServiceSettings
from onepass.service.state import ServiceState
from onepass.service.web.app import create_app
from onepass.service.web.audit import AuditLog
from onepass.service.web.security import Security
from tests.helpers.app_server import served
from tests.helpers.waiting import wait_until

ROWS = [{"km": km, "car": "ab"[km % 2], "price": 2.0 * km + km % 2} for km in range(40)]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of a real service."""
    folder: Path = tmp_path_factory.mktemp("state")
    state = ServiceState(ServiceSettings(folder))
    app = create_app(state, Security(None), audit=AuditLog(folder), max_body=2**20)
    with served(app) as address, Client(address) as found:
        wait_until(lambda: state.is_ready, "the service to be ready")
        found.create("price", {"rows": ROWS, "target": "price", "learn": True})
        yield found


class Answers:
    """Answers in turn; an exception is raised."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers, self.requests = list(answers), list[httpx.Request]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Client, Answers, list[float]]]:
    """A client that is answered as told, and the pauses that it makes."""

    def make(*answers: httpx.Response | Exception, timeout: float = 30.0) -> tuple[Client, Answers, list[float]]:
        pauses: list[float] = []
        clock = iter(range(1000))
        monkeypatch.setattr("onepass.client.time.sleep", pauses.append)
        monkeypatch.setattr("onepass.client.time.monotonic", lambda: float(next(clock)))
        found, script = Client("http://service", "secret", timeout=timeout), Answers(*answers)
        found._http.close()
        found._http = httpx.Client(transport=httpx.MockTransport(script), base_url="http://service")
        return found, script, pauses

    return make


def test_rows_in_one_batch_are_learned_as_one_and_predicted_as_the_table_has_them(real: Client) -> None:
    price = real.model("price")
    before = price.status()["n_seen"]
    more = pd.DataFrame(ROWS[:3])
    assert price.learn_rows(more, id="batch").n_seen == before + 3
    assert price.learn_rows(more, id="batch").n_seen == before + 3  # once
    pairs = [({"km": 1, "car": "b"}, 3.0), ({"km": 2, "car": "a"}, 4.0)]
    assert price.learn_rows(pairs).n_seen == before + 5
    found = price.predict_rows(more.drop(columns="price")).to_pydict()
    alone = [price.predict({"km": row["km"], "car": row["car"]}).mean for row in ROWS[:3]]
    assert found["mean"] == pytest.approx(alone)


def test_a_refusal_names_what_was_wrong_and_where(real: Client) -> None:
    with pytest.raises(ServiceError, match="there is no column 'kms'") as refused:
        real.model("price").predict({"kms": 1.0})
    assert (refused.value.status, refused.value.field) == (422, "x.kms")
    with pytest.raises(ServiceError, match="there is no column 'kms'"):
        real.model("price").predict_rows([{**ROWS[0], "kms": 1.0}])
    with pytest.raises(ServiceError, match="there is no model 'nobody'"):
        real.model("nobody").status()


def test_a_request_whose_answer_got_lost_is_sent_again_with_the_same_id(
    told: Callable[..., tuple[Client, Answers, list[float]]],
) -> None:
    learned = {"id": "a", "status": "learned", "version": 2, "n_seen": 1}
    lost, busy = httpx.ReadError("lost"), httpx.Response(503, headers={"Retry-After": "3"})
    client, script, pauses = told(lost, busy, httpx.Response(200, json=learned))
    assert client.model("price").learn([1.0], 2.0).n_seen == 1
    assert len({json.loads(request.content)["id"] for request in script.requests}) == 1
    assert len(script.requests) == 3
    assert pauses[1] >= 3.0  # as the service has asked for


def test_labels_that_can_not_be_stored_now_are_sent_again(
    told: Callable[..., tuple[Client, Answers, list[float]]],
) -> None:
    learned = {"id": "a", "status": "learned", "version": 2, "n_seen": 1}
    away = {"title": "store not available", "status": 503, "detail": "line 2: nothing was learned", "line": 2}
    bad = {"title": "bad value", "status": 422, "detail": "line 3: y is not a number", "line": 3}
    halves = ([learned, away, bad], [learned, {**learned, "id": "b"}, bad])
    client, script, pauses = told(*[httpx.Response(200, text="\n".join(map(json.dumps, one))) for one in halves])
    first, second, third = client.model("price").label_many({"a": 1.0, "b": 2.0, "c": "far"})
    assert [one.status for one in (first, second, third)] == ["learned", "learned", 422]
    assert script.requests[0].content == script.requests[1].content
    assert len(pauses) == 1


def test_the_client_gives_up_when_its_time_is_over(told: Callable[..., tuple[Client, Answers, list[float]]]) -> None:
    problem = {"title": "too many requests", "detail": "try again later", "status": 429}
    client, script, _ = told(*[httpx.Response(429, json=problem) for _ in range(50)], timeout=5.0)
    with pytest.raises(ServiceError, match="too many requests"):
        client.model("price").label("a", 1.0)
    assert 1 < len(script.requests) < 10
    client, _, _ = told(*[httpx.ConnectError("refused") for _ in range(50)], timeout=5.0)
    with pytest.raises(ServiceError, match="not reached"):
        client.models()


def test_other_refusals_are_not_repeated(told: Callable[..., tuple[Client, Answers, list[float]]]) -> None:
    client, script, _ = told(httpx.Response(502, text="<html>a proxy</html>"))
    with pytest.raises(ServiceError, match="unexpected answer: <html>"):
        client.model("price").predict([1.0])
    assert len(script.requests) == 1


def test_lists_of_mappings_and_of_values_are_rows_too(real: Client) -> None:
    price = real.model("price")
    rows: list[dict[str, Any]] = [{"km": 3, "car": "b"}, {"km": np.int64(4), "car": None}, {"km": 5.5, "car": pd.NA}]
    found = price.predict_rows(rows)
    assert found.to_pydict()["mean"] == pytest.approx([price.predict(row).mean for row in rows])
    names = [column["name"] for column in price.status()["schema"]["columns"]]
    assert price.predict_rows([[row[name] for name in names] for row in rows]).equals(found)
    frame = pd.DataFrame(ROWS).drop(columns="price")
    assert price.predict_rows(frame[frame["km"] > 37]).num_rows == 2  # whatever its index is
    before = price.status()["n_seen"]
    assert price.learn_rows([{**row, "price": 6.0} for row in rows]).n_seen == before + 3
    for wrong in ("km", [1.0], [], {"km": [1.0]}):
        with pytest.raises(TypeError, match="rows must be a data frame"):
            price.predict_rows(wrong)
    with pytest.raises(TypeError, match="pairs"):
        price.learn_rows([[1.0, "a", 2.0]])
    with pytest.raises(ValueError, match=r"row 0 has 9 values, but the model has .* columns: "):
        price.predict_rows([[1.0] * 9])


def test_values_of_python_numpy_and_pandas_are_sent_as_json(
    told: Callable[..., tuple[Client, Answers, list[float]]],
) -> None:
    x: Any = pd.Series(
        {
            "a": np.float32(0.5),
            "b": float("nan"),
            "c": pd.NaT,
            "d": date(2030, 1, 31),
            "e": pd.Timestamp("2030-01-31 12:00"),
            "f": np.datetime64("2030-01-31"),
            "g": np.bool_(True),
            "h": Decimal("1.5"),
        }
    )
    learned = {"id": "a", "status": "learned", "version": 2, "n_seen": 1}
    client, script, _ = told(httpx.Response(200, json=learned))
    client.model("price").learn(x, np.int8(3))
    sent = json.loads(script.requests[0].content)
    moment = {"d": "2030-01-31", "e": "2030-01-31T12:00:00", "f": "2030-01-31"}
    assert sent["x"] == {"a": 0.5, "b": None, "c": None, **moment, "g": True, "h": 1.5}
    assert sent["y"] == 3


def test_what_can_not_be_sent_is_refused_by_the_name_of_its_column(real: Client) -> None:
    price = real.model("price")
    for send in (price.predict, lambda x: price.predict_rows([x]), lambda x: price.learn_rows([(x, 1.0)])):
        with pytest.raises(ValueError, match="km is infinite"):
            send({"km": float("inf"), "car": "a"})
        with pytest.raises(TypeError, match="km must be a number, string"):
            send({"km": {1}, "car": "a"})
    with pytest.raises(ValueError, match="km has infinite numbers"):
        price.predict_rows(pd.DataFrame({"km": [np.inf], "car": ["a"]}))
    with pytest.raises(TypeError, match="km must have values of one kind"):
        price.predict_rows([{"km": 1}, {"km": "far"}])


def test_a_model_is_saved_taken_back_compared_and_deleted(real: Client) -> None:
    short = real.create("short", {"rows": ROWS, "target": "price", "learn": True})
    begun = short.status()["n_seen"]
    version = short.snapshot()
    short.predict({"km": 1, "car": "b"}, id="a/b 1")
    assert [one["id"] for one in short.waiting()["pending"]] == ["a/b 1"]
    known, unknown = short.label_many([("a/b 1", np.float64(3.0)), ("nobody", 1.0)])
    assert (known.status, unknown.status) == ("learned", "waiting")
    assert short.forget("a/b 1") > 0
    assert all(one["std"] > 0.0 for one in short.weights()["price"])
    assert short.rollback(version) == short.status()["version"] > version
    assert short.status()["n_seen"] == begun
    assert from_bytes(short.file()).n_rows == begun
    short.set_shadow(short.file())
    short.drop_shadow()
    short.set_shadow({"rows": ROWS[:20], "target": "price", "learn": True})
    assert short.promote() == short.status()["version"]
    assert short.status()["n_seen"] == 20
    short.predict({"km": 1, "car": "b"}, id="late")
    for pairs in ({"late": 3.0}, pd.Series({"late": 3.0})):  # the second time: the same answer
        assert [one.status for one in short.label_many(pairs)] == ["learned"]
    (refused,) = short.label_many([("a/b 1", "x")])
    assert isinstance(refused, ServiceError)
    real.delete("short")
    assert "short" not in {one["name"] for one in real.models()}


@pytest.mark.parametrize("address", ["127.0.0.1:8080", "service", "ftp://service", "http://", "http://a:b:c", ""])
def test_an_address_that_is_none_is_refused_at_once(address: str) -> None:
    with pytest.raises(
        ValueError, match=r"address must be an http or https address such as 'http://127\.0\.0\.1:8080'"
    ):
        Client(address)


def test_what_can_not_succeed_is_not_sent_again(told: Callable[..., tuple[Client, Answers, list[float]]]) -> None:
    client, script, pauses = told(httpx.LocalProtocolError("Illegal header value"), httpx.Response(200, json={}))
    with pytest.raises(ServiceError, match=r"not reached: .*Illegal header value"):
        client.models()
    assert (len(script.requests), pauses) == (1, [])


def test_tokens_are_made_listed_and_revoked(told: Callable[..., tuple[Client, Answers, list[float]]]) -> None:
    listed = [{"name": "shop", "scope": "learn", "created": "2030-01-31"}]
    made = {"name": "shop", "scope": "learn", "token": "onepass_x"}
    client, script, _ = told(
        httpx.Response(201, json=made), httpx.Response(200, json={"tokens": listed}), httpx.Response(204)
    )
    until = datetime(2030, 1, 1, tzinfo=UTC)
    assert client.create_token("shop", "learn", models=["price"], expires=until) == "onepass_x"
    assert json.loads(script.requests[0].content) == {
        "name": "shop",
        "scope": "learn",
        "models": ["price"],
        "expires": "2030-01-01T00:00:00+00:00",
    }
    assert client.tokens() == listed
    client.revoke_token("shop")
    asked = [(request.method, request.url.path) for request in script.requests]
    assert asked == [("POST", "/v1/tokens"), ("GET", "/v1/tokens"), ("DELETE", "/v1/tokens/shop")]


def test_a_prediction_has_the_names_of_the_library(real: Client) -> None:
    price = real.model("price")
    own = from_bytes(price.file()).predict_dist([{"km": 3.5, "car": "b"}])
    found = price.predict({"km": 3.5, "car": "b"}, level=(0.95, 0.5))
    for name in ("mean", "std", "var", "epistemic", "aleatoric"):
        assert getattr(found, name) == pytest.approx(getattr(own, name)[0], rel=1e-12)
    for level in (0.5, 0.95):
        assert found.interval(level) == pytest.approx([end[0] for end in own.interval(level)], rel=1e-12)
    with pytest.raises(ValueError, match=r"passed to predict \(0.95, 0.5\), got 0.8"):
        found.interval(0.8)
