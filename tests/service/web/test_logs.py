"""Logs: a JSON object per line for machines, a sentence without control characters for people."""

import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import cast

import pytest

from onepass.service.state import ServiceState
from onepass.service.web.app import create_app
from onepass.service.web.audit import AuditLog
from onepass.service.web.logs import set_up_logs
from tests.service.web.conftest import Served

NAMES = ("onepass.service", "uvicorn.error")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _same_loggers_after() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in NAMES]
    before = [(one.handlers, one.propagate, one.level) for one in loggers]
    yield
    for one, (handlers, propagate, level) in zip(loggers, before, strict=True):
        one.handlers, one.propagate = handlers, propagate
        one.setLevel(level)


def test_machines_get_a_json_object_per_line() -> None:
    stream = io.StringIO()
    set_up_logs(stream)
    logging.getLogger("onepass.service.any").info("started %d", 1, extra={"port": 8080})
    try:
        raise ValueError("lost\nlines")
    except ValueError:
        logging.getLogger("onepass.service").exception("failed")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert (first["level"], first["message"], first["port"]) == ("info", "started 1", 8080)
    assert "lost\nlines" in second["traceback"]


def test_warnings_that_any_client_can_cause_are_not_logged() -> None:
    stream = io.StringIO()
    set_up_logs(stream)
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    logging.getLogger("uvicorn.error").error("a bug")
    (line,) = stream.getvalue().splitlines()
    assert json.loads(line)["message"] == "a bug"


def test_people_get_a_sentence_and_no_control_characters() -> None:
    stream = Terminal()
    set_up_logs(stream)
    logging.getLogger("onepass.service").info("request", extra={"path": "/a\x1b[31m\nb", "who": None})
    (line,) = stream.getvalue().splitlines()
    assert line.endswith(r"info: request path=/a\x1b[31m\nb")


def logged(served: Served, paths: list[str], log_requests: bool = True) -> str:
    """What is logged of requests to an application that logs them, or not."""
    stream = io.StringIO()
    set_up_logs(stream)
    state, audit = cast(ServiceState, served.state), AuditLog(served.folder)
    served.app = create_app(state, served.security, audit=audit, max_body=1000, log_requests=log_requests)
    for path in paths:
        served.ask("GET", path, "read")
    return stream.getvalue()


@pytest.mark.parametrize("log_requests", [False, True])
def test_requests_are_logged_if_asked_for(served: Served, log_requests: bool) -> None:
    text = logged(served, ["/v1/models"], log_requests)
    lines = [json.loads(line) for line in text.splitlines()]
    assert len(lines) == log_requests
    if log_requests:
        assert (lines[0]["path"], lines[0]["status"], lines[0]["who"]) == ("/v1/models", 200, "read")
        assert served.secrets["read"] not in text


def test_who_asks_too_often_is_logged_by_name(make: Callable[..., Served]) -> None:
    lines = [json.loads(line) for line in logged(make(rate_limit=1.0), ["/v1/models"] * 2).splitlines()]
    assert [(line["status"], line["who"]) for line in lines] == [(200, "read"), (429, "read")]
