"""Connections within limits: what a hostile client can't do, and what every other client still can."""

import asyncio
import dataclasses
import http.client
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, cast

import pytest
import uvicorn
from starlette.types import Message, Receive, Scope, Send
from websockets.sync.client import connect

from onepass._limits import ConnectionLimits
from onepass.service.state import ServiceState
from onepass.service.web.connections import Connections
from onepass.service.web.prometheus import Metrics
from tests.helpers.waiting import wait_until
from tests.service.web.double import StateDouble

LIMITS = ConnectionLimits(
    max_header=1000, header_timeout=0.4, body_timeout=0.4, idle_timeout=0.4, max_connections=8, proxies=()
)
PATIENT = dataclasses.replace(LIMITS, header_timeout=60.0, body_timeout=60.0, idle_timeout=60.0)
"""For tests in which nothing is to come too late, however busy the machine is."""
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
SLOW = b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n"
HALF = b"GET / HTTP/1.1\r\nHost: a\r\nX-A: "


class Application:
    """Answers with the size of the body; some addresses do it slowly, at once, or at length."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.ends: list[str] = []  # the last message of each request that was read to its end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await _echo(receive, send)
            return
        size = 0
        if scope["path"] != "/at-once":
            message: Message = {"more_body": True}
            while message.get("more_body"):
                message = await receive()
                size += len(message.get("body", b""))
            self.ends.append(message["type"])
        while scope["path"] == "/slow" and not self.release.is_set():
            await asyncio.sleep(0.01)
        body = bytes(30_000_000) if scope["path"] == "/long" else b"%d" % size
        headers = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


async def _echo(receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})


class Host:
    """A server with small limits."""

    def __init__(self, port: int, connections: Connections, app: Application, thread: threading.Thread) -> None:
        self.port, self.connections, self.app, self.thread = port, connections, app, thread

    def connect(self, sent: bytes = b"") -> socket.socket:
        found = socket.create_connection(("127.0.0.1", self.port), timeout=120)
        found.sendall(sent)
        return found

    def answers(self) -> bool:
        """Whether somebody else gets an answer."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)) as connection:
            connection.request("GET", "/")
            return connection.getresponse().status == 200

    def wait_until(self, condition: Callable[[], bool]) -> None:
        wait_until(condition, "the server to get there")


@contextmanager
def hosting(limits: ConnectionLimits) -> Iterator[Host]:
    app, connections = Application(), Connections(limits)
    server = uvicorn.Server(connections.configure(app, log_config=None, lifespan="off", timeout_graceful_shutdown=5))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield Host(listener.getsockname()[1], connections, app, thread)
        finally:
            app.release.set()
            server.should_exit = True
            thread.join()
    assert len(connections) == 0
    assert not connections._per_peer


@pytest.fixture
def host() -> Iterator[Host]:
    with hosting(LIMITS) as found:
        yield found


@pytest.fixture
def patient() -> Iterator[Host]:
    with hosting(PATIENT) as found:
        yield found


def until_closed(connection: socket.socket) -> bytes:
    """Everything that comes until the server ends the connection."""
    found = b""
    try:
        while piece := connection.recv(2**16):
            found += piece
    except ConnectionResetError:
        pass
    return found


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


def header(size: int) -> bytes:
    """A request without body of exactly so many bytes."""
    start = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX: "
    return start + b"x" * (size - len(start) - 4) + b"\r\n\r\n"


@pytest.mark.parametrize("start", [HALF, b"GET /"])
@pytest.mark.parametrize("piece", [100, 200_000])
def test_a_header_without_end_is_refused(patient: Host, start: bytes, piece: int) -> None:
    with patient.connect(start) as connection:
        try:
            for _ in range(20):
                connection.sendall(b"x" * piece)
        except ConnectionError:
            pass
        answer = until_closed(connection)
    assert status_of(answer) == 431
    problem = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert (problem["title"], problem["limit"]) == ("header too large", 1000)
    assert patient.connections.refused == {"header too large": 1}
    assert patient.answers()


@pytest.mark.parametrize(("size", "status"), [(1000, 200), (1001, 431)])
@pytest.mark.parametrize("piece", [10_000, 7])
def test_the_limit_of_a_header_is_exact(patient: Host, size: int, status: int, piece: int) -> None:
    sent = header(size)
    with patient.connect() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for begin in range(0, size, piece):
            connection.sendall(sent[begin : begin + piece])
        assert status_of(until_closed(connection)) == status


def test_bodies_may_be_larger_than_headers(patient: Host) -> None:
    pieces = [b"x" * size for size in (1, 3000, 1, 999)]
    with closing(http.client.HTTPConnection("127.0.0.1", patient.port, timeout=120)) as connection:
        for body, size in ((b"x" * 900, 900), (b"x" * 5000, 5000), (b"x" * 500_000, 500_000), (iter(pieces), 4001)):
            connection.request("POST", "/", body)  # pieces are sent as chunks
            assert connection.getresponse().read() == b"%d" % size


@pytest.mark.parametrize("endless", [b"0\r\nX: ", b"5;x="])
def test_what_follows_a_body_is_limited_like_a_header(patient: Host, endless: bytes) -> None:
    with patient.connect(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n" + endless) as connection:
        connection.sendall(b"x" * 5000)
        assert status_of(until_closed(connection)) == 431
    assert patient.answers()


@pytest.mark.parametrize("sent", [HALF, b"G", b"\r\n"])
def test_a_header_must_come_in_time(host: Host, sent: bytes) -> None:
    with host.connect(sent) as connection:
        answer = until_closed(connection)
    assert status_of(answer) == 408
    assert b"--header-timeout" in answer


def test_a_trickle_of_header_does_not_gain_time(host: Host) -> None:
    with host.connect(HALF) as connection:
        for _ in range(200):  # four seconds, ten times as long as allowed
            time.sleep(0.02)
            try:
                connection.sendall(b"x")
            except ConnectionError:
                break
        else:
            pytest.fail("the connection is still open")
    assert host.connections.refused == {"header too slow": 1}


def test_a_second_header_must_come_in_time_too() -> None:
    with hosting(dataclasses.replace(LIMITS, idle_timeout=60.0)) as host, host.connect(GET) as connection:
        assert status_of(connection.recv(2**16)) == 200
        connection.sendall(HALF)
        assert status_of(until_closed(connection)) == 408


@pytest.mark.parametrize("first", [b"", GET])
def test_a_connection_without_request_is_closed(host: Host, first: bytes) -> None:
    with host.connect(first) as connection:
        assert status_of(until_closed(connection)) == (200 if first else 0)
    assert not host.connections.refused


def test_a_body_must_come_in_time(host: Host) -> None:
    with host.connect(b"POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nx") as connection:
        answer = until_closed(connection)
    assert status_of(answer) == 408
    assert b"--body-timeout" in answer
    assert answer.count(b"HTTP/1.1") == 1
    host.wait_until(lambda: host.app.ends == ["http.disconnect"])


def test_a_body_that_nobody_reads_must_come_in_time_too(host: Host) -> None:
    with host.connect(b"POST /at-once HTTP/1.1\r\nContent-Length: 1000\r\n\r\n") as connection:
        assert status_of(connection.recv(2**16)) == 200
        for _ in range(200):
            time.sleep(0.02)
            try:
                connection.sendall(b"x")
            except ConnectionError:
                break
        else:
            pytest.fail("the connection is still open")


def test_an_answer_must_be_read_in_time(host: Host) -> None:
    with host.connect(b"GET /long HTTP/1.1\r\nHost: a\r\n\r\n"):
        host.wait_until(lambda: host.connections.refused["answer not read"] == 1)


def test_an_answer_may_take_its_time(host: Host) -> None:
    with host.connect(SLOW) as connection:
        time.sleep(4 * LIMITS.idle_timeout)
        host.app.release.set()
        assert status_of(connection.recv(2**16)) == 200


def test_requests_one_behind_the_other_are_answered_in_turn(host: Host) -> None:
    with host.connect(GET * 10 + SLOW + GET) as connection:
        time.sleep(4 * LIMITS.idle_timeout)
        host.app.release.set()
        assert until_closed(connection).count(b"HTTP/1.1 200") == 12
    with host.connect(SLOW + GET * 1000) as connection:
        until_closed(connection)
    assert host.connections.refused == {"bad request": 1}


def test_a_request_that_is_none_is_refused(patient: Host) -> None:
    with patient.connect(b"\x16\x03\x01 hello\r\n\r\n") as connection:
        assert status_of(until_closed(connection)) == 400


@pytest.mark.parametrize("sent", [b"", HALF, b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n", GET])
def test_those_that_wait_longest_make_room(sent: bytes) -> None:
    with hosting(PATIENT) as host:
        held = [host.connect(sent) for _ in range(8)]
        host.wait_until(lambda: len(host.connections) == 8)
        for one in held:
            if sent == GET:
                assert status_of(one.recv(2**16)) == 200
        for _ in range(3):
            assert host.answers()
        assert host.connections.refused == {"displaced": 1}  # each normal client leaves its place to the next
        assert until_closed(held[0]) == b""
        held[-1].sendall(b"x\r\n\r\n" if sent == HALF else b"123456789" if b"POST" in sent else GET)
        assert status_of(held[-1].recv(2**16)) == 200
        for one in held:
            one.close()


def test_an_answer_that_is_still_being_read_makes_room_only_if_nothing_else_can() -> None:
    with (
        hosting(dataclasses.replace(PATIENT, max_connections=2)) as host,
        host.connect(b"GET /long HTTP/1.1\r\nHost: a\r\n\r\n") as reader,
    ):
        host.wait_until(lambda: host.app.ends == ["http.request"])
        reader.recv(1)  # the whole answer has been handed over, and most of it waits in the buffer
        idle = host.connect()
        host.wait_until(lambda: len(host.connections) == 2)
        assert host.answers()
        assert until_closed(idle) == b""
        assert host.connections.refused == {"displaced": 1}
        host.wait_until(lambda: len(host.connections) == 1)
        others = [host.connect(b"GET /long HTTP/1.1\r\nHost: a\r\n\r\n")]
        host.wait_until(lambda: len(host.app.ends) == 3)
        others[0].recv(1)
        assert host.answers()  # nobody else waits for a client, so the oldest unread answer goes
        assert host.connections.refused == {"displaced": 2}
        assert len(until_closed(reader)) < 30_000_000
        for one in (idle, *others):
            one.close()


def test_what_is_being_answered_does_not_make_room(patient: Host) -> None:
    busy = [patient.connect(SLOW) for _ in range(8)]
    patient.wait_until(lambda: len(patient.app.ends) == 8)
    with patient.connect() as one_more:
        answer = until_closed(one_more)
    assert status_of(answer) == 503
    assert b"8 connections are being answered" in answer
    assert b"(--max-connections)" in answer
    patient.app.release.set()
    for one in busy:
        assert status_of(one.recv(2**16)) == 200
        one.close()


def test_one_peer_can_not_take_all_places() -> None:
    with hosting(dataclasses.replace(PATIENT, max_connections_per_peer=2)) as host:
        busy = [host.connect(SLOW) for _ in range(2)]
        host.wait_until(lambda: len(host.app.ends) == 2)
        with host.connect() as one_more:
            assert b"2 connections from your address are being answered" in until_closed(one_more)
        with closing(socket.create_connection(("127.0.0.1", host.port), 120, ("127.0.0.2", 0))) as neighbour:
            neighbour.sendall(GET)
            assert status_of(neighbour.recv(2**16)) == 200
        host.app.release.set()
        for one in busy:
            one.close()


def test_a_proxy_may_take_all_places() -> None:
    limits = dataclasses.replace(PATIENT, max_connections_per_peer=2, proxies=ConnectionLimits().proxies)
    with hosting(limits) as host:
        busy = [host.connect(SLOW) for _ in range(5)]
        host.wait_until(lambda: len(host.app.ends) == 5)
        assert host.answers()
        for one in busy:
            one.close()


def test_a_socket_stays_open_and_counts() -> None:
    with hosting(dataclasses.replace(LIMITS, header_timeout=60.0)) as host:
        with connect(f"ws://127.0.0.1:{host.port}/") as live:
            time.sleep(4 * LIMITS.idle_timeout)
            assert len(host.connections) == 1
            held = [host.connect(HALF) for _ in range(7)]
            host.wait_until(lambda: len(host.connections) == 8)
            assert host.answers()
            live.send("still here")
            assert live.recv() == "still here"
            for one in held:
                one.close()
        host.wait_until(lambda: len(host.connections) == 0)


def test_refusals_are_logged_once_in_a_while(
    host: Host, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("onepass.service"), "propagate", True)
    caplog.set_level("WARNING", "onepass.service")

    def reasons() -> list[Any]:
        # Other servers may be running; and if another test has set up the logs, pytest listens at this logger and at
        # the root, and sees each record twice.
        own = {id(one): one for one in caplog.records if one.thread == host.thread.ident}
        return [vars(one)["reasons"] for one in own.values() if one.getMessage() == "connections refused"]

    for _ in range(3):
        with host.connect(HALF) as connection:
            until_closed(connection)
    host.wait_until(lambda: bool(reasons()))
    assert reasons() == [{"header too slow": 1}]


def test_connections_are_among_the_metrics(host: Host) -> None:
    with host.connect(HALF) as connection:
        until_closed(connection)
    host.wait_until(lambda: len(host.connections) == 0)
    metrics = Metrics(cast(ServiceState, StateDouble()), host.connections).text(lambda name: True)
    assert b"onepass_connections 0.0" in metrics
    assert b'onepass_refused_connections_total{reason="header too slow"} 1.0' in metrics
