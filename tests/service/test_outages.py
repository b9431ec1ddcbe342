"""A database that is away for a while: requests may be sent again, the log has two lines, and nothing is lost."""

import asyncio
import logging
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from onepass.client import Client
from onepass.service.errors import ProblemError
from onepass.service.host import HostedModel
from onepass.service.journal import Journal
from onepass.service.operations import Decide
from onepass.service.outages import Outage
from onepass.service.settings import ServiceSettings
from onepass.service.state import EVENTS, ServiceState
from onepass.service.web.app import create_app
from onepass.service.web.audit import AuditLog
from onepass.service.web.security import Security
from onepass.service.wire import DecideRequest, LearnRequest
from tests.helpers.app_server import served as served_app
from tests.helpers.postgres_server import PostgresServer
from tests.helpers.waiting import wait_until
from tests.service.running import Running, four_models, opened, regressor, served

ROW: Any = [1.0, 2.0]


def lines(caplog: pytest.LogCaptureFixture, what: str) -> list[str]:
    """What the log says about something."""
    return [one.getMessage() for one in caplog.records if one.getMessage().startswith(what)]


def test_an_outage_has_two_lines_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    seconds = [0.0]
    outage = Outage("model m", lambda: seconds[0])
    outage.ended()
    outage.failed("gone", 2)
    outage.failed("still gone", 300)
    assert outage.reason == "still gone"
    seconds[0] = 12.34
    outage.ended()
    assert outage.reason is None
    assert lines(caplog, "model m") == [
        "model m: an outage begins: gone",
        "model m: the outage ended after 12.3 s; 302 requests were refused",
    ]
    outage.failed("once more", 1)
    outage.ended()
    assert lines(caplog, "model m")[-1].endswith("; 1 request was refused")


def test_a_model_that_can_not_be_read_again_has_one_traceback_per_outage(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onepass.service.writer._ATTEMPTS", 0.0)

    def fail(journal: Journal) -> None:
        raise RuntimeError("a bug")

    def look_again(model: HostedModel) -> None:
        model._writer._is_sound = False
        model._writer._try_to_restore()
        for _ in range(3):
            model._writer._keep_house()

    with served(tmp_path) as running:
        running.ask(running.state.create("m", regressor()))
        model = running.model("m")
        with monkeypatch.context() as patched:
            patched.setattr(Journal, "recover", fail)
            running.call("m", look_again)
            assert model.why_not_writable == "it can't be read again: a bug"
        assert caplog.text.count("Traceback") == 1
        assert running.ask(model.learn(LearnRequest(ROW, 1.0))).status == "learned"
        assert model.why_not_writable is None


def test_a_locked_file_is_a_reason_to_try_again_and_the_writer_finds_out_by_itself_that_it_is_free(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onepass.service.writer._ATTEMPTS", 0.0)
    with served(tmp_path) as running, closing(sqlite3.connect(tmp_path / EVENTS, isolation_level=None)) as other:
        begin(running)
        for name in ("m", "bandit"):
            opened(running.model(name).journal.store).execute("PRAGMA busy_timeout = 0")
        other.execute("BEGIN IMMEDIATE")
        for i in range(20):
            for problem in (refused(running, i), refused_decision(running, i)):
                assert (problem.status, problem.title, problem.retry_after) == (503, "store not available", 5.0)
        assert "locked" in str(running.model("m").why_not_writable)
        other.execute("ROLLBACK")
        wait_until(lambda: not any(model.why_not_writable for model in running.state.models()), "the outage to end")
        assert running.ask(running.model("m").learn(LearnRequest(ROW, 1.0, id="0"))).n_seen == 5
    for name in ("m", "bandit"):
        first, last = lines(caplog, f"model {name}:")
        assert "an outage begins: another process kept the file locked" in first
        assert last.endswith("; 20 requests were refused")
    assert "Traceback" not in caplog.text


def begin(running: Running) -> None:
    """A model of rows and a bandit that have learned something."""
    running.ask(running.state.create("m", regressor()))
    running.ask(running.state.create("bandit", four_models()["bandit"]))
    running.ask(running.model("m").learn(LearnRequest(ROW, 1.0, id="first")))
    running.ask(running.model("bandit").carry_out(Decide(DecideRequest(ROW, id="first"))))


def refused(running: Running, i: int) -> ProblemError:
    with pytest.raises(ProblemError) as caught:
        running.ask(running.model("m").learn(LearnRequest(ROW, 1.0, id=str(i))))
    return caught.value


def refused_decision(running: Running, i: int) -> ProblemError:
    with pytest.raises(ProblemError) as caught:
        running.ask(running.model("bandit").carry_out(Decide(DecideRequest(ROW, id=str(i)))))
    return caught.value


@pytest.fixture
def events(server: PostgresServer) -> str:
    server.execute("DROP DATABASE IF EXISTS outages WITH (FORCE)")
    server.execute("CREATE DATABASE outages")
    return server.address(database="outages")


def take_away(server: PostgresServer) -> None:
    """End all connections, and allow none."""
    server.execute("ALTER DATABASE outages ALLOW_CONNECTIONS false")
    server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'outages'")


def give_back(server: PostgresServer) -> None:
    server.execute("ALTER DATABASE outages ALLOW_CONNECTIONS true")


def test_a_database_that_is_away_is_a_reason_to_try_again(
    server: PostgresServer,
    events: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("onepass.service.writer._ATTEMPTS", 0.0)
    monkeypatch.setattr("onepass.service.state._FOLLOWING", 0.01)
    with caplog.at_level(logging.WARNING, "onepass.service"), served(tmp_path, events=events) as running:
        begin(running)
        take_away(server)
        for i in range(20):
            for problem in (refused(running, i), refused_decision(running, i)):
                assert (problem.status, problem.title, problem.retry_after) == (503, "store not available", 5.0)
        with pytest.raises(ProblemError) as caught:
            running.ask(running.state.create("new", regressor()))
        assert caught.value.status == 503
        running.ask(asyncio.sleep(0.2))  # several looks at the lock
        give_back(server)
        wait_until(lambda: not any(model.why_not_writable for model in running.state.models()), "the outage to end")
        running.ask(running.state.create("new", regressor()))
        assert running.ask(running.model("m").learn(LearnRequest(ROW, 1.0, id="0"))).n_seen == 5
        assert running.ask(running.model("bandit").carry_out(Decide(DecideRequest(ROW, id="0")))).id == "0"
        wait_until(lambda: running.ask(asyncio.sleep(0.05, len(lines(caplog, "the lock")) == 2)), "the lock to be back")
    endings = {"model m": "20 requests were", "model bandit": "20 requests were", "the lock": "0 requests were"}
    for what, words in {**endings, "creating and deleting models": "1 request was"}.items():
        first, last = lines(caplog, what)
        assert "an outage begins: " in first
        assert last.endswith(f"; {words} refused")
    assert "Traceback" not in caplog.text


def test_a_client_gets_over_an_outage_which_the_probe_shows(
    server: PostgresServer, events: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onepass.service.writer.RETRY_AFTER", 0.5)
    state = ServiceState(ServiceSettings(tmp_path, events=events))
    app = create_app(state, Security(None), audit=AuditLog(tmp_path), max_body=2**20)
    with served_app(app) as address, Client(address) as client:
        wait_until(lambda: state.is_ready, "the service to be ready")
        model = client.create("m", regressor())
        model.predict(ROW, id="kept")
        take_away(server)
        answer = httpx.post(f"{address}/v1/models/m/learn", json={"x": ROW, "y": 1.0})
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
        probe = httpx.get(f"{address}/readyz")
        assert (probe.status_code, probe.json()["title"]) == (503, "not writable")
        assert httpx.get(f"{address}/healthz").status_code == 200
        assert model.predict(ROW).version == 2
        back = threading.Timer(0.5, give_back, [server])
        back.start()
        learned: Any = model.learn(ROW, 2.0, id="row")
        (labelled,) = model.label_many({"kept": 3.0})
        back.join()
        assert (learned.n_seen, labelled.status) == (4, "learned")
        assert httpx.get(f"{address}/readyz").status_code == 200
