"""The socket and the routes, by Starlette's own client: limits, bursts, strangers."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from onepass.service.playground import application, endpoint, routes
from onepass.service.playground.session import Session
from tests.helpers.waiting import wait_until

SOCKET = "ws://127.0.0.1/playground/socket"


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(application(), base_url="http://127.0.0.1") as client:
        yield client


def test_a_request_is_answered_and_so_is_a_wrong_one(client: TestClient) -> None:
    with client.websocket_connect(SOCKET) as socket:
        socket.send_text('{"scene": "curve", "id": 1, "points": [[0, 1]]}')
        assert socket.receive_json()["view"]["n_seen"] == 1
        for wrong in ("nonsense", "x" * 100_000, '{"scene": "curve", "id": 2, "noise": -1}'):
            socket.send_text(wrong)
            assert "error" in socket.receive_json()
        socket.send_bytes(b"\xff\xfe")
        assert "error" in socket.receive_json()
        socket.send_text('{"scene": "curve", "id": 3, "points": [[0, 1], [1, 0]]}')
        answer = socket.receive_json()
        assert (answer["id"], answer["view"]["n_seen"]) == (3, 2)
        assert answer["view"]["says"].startswith("Point 2 at")  # the first one was not learned again


def test_of_a_burst_only_the_newest_is_answered(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    arrived, go_on = threading.Event(), threading.Event()
    answered: list[str | bytes] = []

    def slowly(_: Session, message: str | bytes) -> str:
        answered.append(message)
        arrived.set()
        assert go_on.wait(60)
        return str(message)

    put: list[str | bytes] = []

    class Watched(endpoint._Newest):
        def put(self, message: str | bytes) -> None:
            super().put(message)
            put.append(message)

    monkeypatch.setattr(endpoint, "_Newest", Watched)
    monkeypatch.setattr(Session, "answer", slowly)
    with client.websocket_connect(SOCKET) as socket:
        socket.send_text("0")
        assert arrived.wait(60)
        for number in range(1, 50):
            socket.send_text(str(number))
        wait_until(lambda: len(put) == 50, "all messages to arrive")
        go_on.set()
        assert [socket.receive_text(), socket.receive_text()] == ["0", "49"]
    assert answered == ["0", "49"]


def test_the_loop_is_free_while_a_request_is_computed(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(Session, "answer", lambda self, message: str(go_on.wait(60)))
    with client.websocket_connect(SOCKET) as socket:
        socket.send_text("long")
        assert client.get("/playground").status_code == 200
        go_on.set()
        assert socket.receive_text() == "True"


def test_a_flood_is_cut_off_and_what_comes_in_time_is_not(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [7.0]
    monkeypatch.setattr(endpoint, "monotonic", lambda: now[0])
    monkeypatch.setattr(endpoint, "MAX_RATE", 2)
    with client.websocket_connect(SOCKET) as socket:
        for now[0] in (7.0, 7.9, 8.0, 8.5):
            socket.send_text("x")
            assert "error" in socket.receive_json()
        socket.send_text("x")
        with pytest.raises(WebSocketDisconnect) as closed:
            socket.receive_text()
    assert closed.value.code == 1008


def test_pages_beyond_the_limit_are_asked_to_come_back(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "MAX_SOCKETS", 1)
    with client.websocket_connect(SOCKET) as first:
        with client.websocket_connect(SOCKET) as second, pytest.raises(WebSocketDisconnect) as closed:
            second.receive_text()
        assert closed.value.code == 1013
        first.send_text('{"scene": "curve"}')
        assert "view" in first.receive_json()
    with client.websocket_connect(SOCKET) as third:  # the place is free again
        third.send_text('{"scene": "curve"}')
        assert "view" in third.receive_json()


@pytest.mark.parametrize(
    ("headers", "welcome"),
    [
        ({}, True),
        ({"origin": "http://127.0.0.1"}, True),
        ({"origin": "https://example.org"}, False),
        ({"origin": "null"}, False),
        ({"origin": "http://127.0.0.1:9999"}, False),
    ],
)
def test_only_its_own_page_may_use_the_socket(client: TestClient, headers: dict[str, str], welcome: bool) -> None:
    if welcome:
        with client.websocket_connect(SOCKET, headers=headers) as socket:
            socket.send_text('{"scene": "curve"}')
            assert "view" in socket.receive_json()
        return
    with pytest.raises(WebSocketDisconnect), client.websocket_connect(SOCKET, headers=headers):
        pass


def test_the_page_leads_to_others_where_there_are_some(client: TestClient) -> None:
    assert 'href="./">Models' not in client.get("/playground").text
    with TestClient(Starlette(routes=routes()), base_url="http://127.0.0.1") as service:
        assert 'href="./">Models' in service.get("/playground").text


def test_the_page_comes_with_a_strict_policy_and_its_files_are_there(client: TestClient) -> None:
    page = client.get("/playground")
    assert page.headers["content-security-policy"].startswith("default-src 'self';")
    assert "unsafe" not in page.headers["content-security-policy"]
    for path, kind in {
        "static/js/main.js": "text/javascript",
        "static/playground.css": "text/css",
        "../look/icon.svg": "image/svg+xml",
        "../look/theme.css": "text/css",
        "scenes.json": "application/json",
    }.items():
        found = client.get(f"/playground/{path}")
        assert found.status_code == 200
        assert found.headers["content-type"].startswith(kind)
        assert found.headers["x-content-type-options"] == "nosniff"
        assert found.headers["cache-control"] == "no-cache"
    assert client.get("/").url.path == "/playground"


@pytest.mark.parametrize("path", ["static/../web.py", "static/%2e%2e/web.py", "static/js/missing.js", "static/"])
def test_nothing_but_its_files_is_served(client: TestClient, path: str) -> None:
    assert client.get(f"/playground/{path}").status_code == 404


def test_another_name_of_this_machine_is_refused(client: TestClient) -> None:
    assert client.get("/playground", headers={"host": "evil.example"}).status_code == 400


def test_the_routes_fit_into_any_application() -> None:
    application: Any = Starlette(routes=[Mount("/tools", routes=routes())])
    with TestClient(application) as client:
        assert client.get("/tools/playground").status_code == 200
        assert json.loads(client.get("/tools/playground/scenes.json").text)[0]["scene"] == "curve"
        with client.websocket_connect("/tools/playground/socket") as socket:
            socket.send_text('{"scene": "bandit"}')
            assert "view" in socket.receive_json()
