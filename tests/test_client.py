"""The client of the service: what it sends, what it sends again, and what it says when the service refuses."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pandas as pd
import pytest

from onepass.client import Client, ServiceError
from onepass.service.settings import ServiceSettings
from onepass.service.state import ServiceState
from onepass.service.web.app import create_app
from onepass.service.web.security import Security
from tests.helpers.app_server import served
from tests.helpers.waiting import wait_until

ROWS = [{"km": km, "car": "ab"[km % 2], "price": 2.0 * km + km % 2} for km in range(40)]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client of a real service."""
    folder: Path = tmp_path_factory.mktemp("state")
    state = ServiceState(ServiceSettings(folder))
    app = create_app(state, Security(None), audit=folder / "audit.jsonl", max_body=2**20)
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


def test_numbers_that_are_none_are_refused_before_they_are_sent(real: Client) -> None:
    with pytest.raises(ValueError, match="JSON"):
        real.model("price").predict({"km": float("nan"), "car": "a"})
