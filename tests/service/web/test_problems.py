"""Everything that goes wrong is answered by problem details, and what is a bug is told to the log alone."""

import asyncio
import logging
from typing import Any

import pytest

from onepass.service.errors import ProblemError
from onepass.service.web.app import Application
from tests.service.web.conftest import Served

PROBLEM = "application/problem+json"


@pytest.mark.parametrize("path", ["/nothing", "/v1", "/v1/models/", "/v1/models/price/nothing", "/v1/models/a/b/c"])
def test_an_unknown_address_is_a_problem(served: Served, path: str) -> None:
    for scope in (None, "admin"):
        answer = served.ask("GET", path, scope)
        assert (answer.status_code, answer.headers["content-type"]) == (404, PROBLEM)
        assert answer.json()["title"] == "not found"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/models/price/predict", {"POST"}),
        ("PATCH", "/v1/models/price", {"GET", "HEAD", "PUT", "DELETE"}),
        ("POST", "/healthz", {"GET", "HEAD"}),
        ("POST", "/docs", {"GET", "HEAD"}),
        ("OPTIONS", "/v1/models", {"GET", "HEAD"}),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(served: Served, method: str, path: str, allowed: set[str]) -> None:
    answer = served.ask(method, path)
    assert (answer.status_code, answer.headers["content-type"]) == (405, PROBLEM)
    assert set(answer.headers["allow"].split(", ")) == allowed


@pytest.mark.parametrize(("seconds", "header"), [(0.2, "1"), (1.0, "1"), (2.1, "3"), (None, None)])
def test_a_refusal_of_the_model_reaches_the_client(served: Served, seconds: float | None, header: str | None) -> None:
    served.model.failure = ProblemError(429, "queue full", "try later", retry_after=seconds, more={"queue": 7})
    answer = served.ask("POST", "/v1/models/price/learn", json={"x": {}, "y": 1})
    assert (answer.status_code, answer.headers["content-type"]) == (429, PROBLEM)
    assert answer.json() == {"title": "queue full", "status": 429, "detail": "try later", "queue": 7}
    assert answer.headers.get("retry-after") == header


def test_a_bug_is_logged_and_its_traceback_stays_here(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    served.model.failure = RuntimeError("secret words")
    with caplog.at_level(logging.ERROR, "onepass.service"):
        answer = served.ask("POST", "/v1/models/price/predict", json={"x": {}})
    assert (answer.status_code, answer.headers["content-type"]) == (500, PROBLEM)
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text
    (record,) = caplog.records
    assert record.exc_info is not None
    assert "secret words" in str(record.exc_info[1])
    assert vars(record)["path"] == "/v1/models/price/predict"


def test_an_answer_that_has_begun_is_not_begun_again(served: Served) -> None:
    sent: list[Any] = []

    async def half(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("in the middle")

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError

    app = Application(served.app.services, half)
    scope = {"type": "http", "path": "/", "method": "GET", "headers": [(b"host", b"localhost")]}
    with pytest.raises(RuntimeError, match="in the middle"):
        asyncio.run(app(scope, receive, send))
    assert [one["type"] for one in sent] == ["http.response.start"]


def test_an_outage_is_logged_once_and_not_for_every_request(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    served.model.failure = ProblemError(507, "can't be stored", "nothing was learned: no space left")
    with caplog.at_level(logging.ERROR, "onepass.service"):
        for _ in range(3):
            assert served.ask("POST", "/v1/models/price/learn", json={"x": {}, "y": 1}).status_code == 507
    assert [one.getMessage() for one in caplog.records] == ["can't be stored: nothing was learned: no space left"]
