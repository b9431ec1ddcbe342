"""Logs: a JSON object per line for machines, a sentence without control characters for people."""

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from onepass.service.state import ServiceState
from onepass.service.web.app import create_app
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


def test_people_get_a_sentence_and_no_control_characters() -> None:
    stream = Terminal()
    set_up_logs(stream)
    logging.getLogger("onepass.service").info("request", extra={"path": "/a\x1b[31m\nb", "who": None})
    (line,) = stream.getvalue().splitlines()
    assert line.endswith(r"info: request path=/a\x1b[31m\nb")


@pytest.mark.parametrize("log_requests", [False, True])
def test_requests_are_logged_if_asked_for(tmp_path: Path, log_requests: bool) -> None:
    stream = io.StringIO()
    set_up_logs(stream)
    served = Served(tmp_path)
    served.app = create_app(
        cast(ServiceState, served.state),
        served.security,
        audit=tmp_path / "audit.jsonl",
        max_body=1000,
        log_requests=log_requests,
    )
    served.ask("GET", "/v1/models", "read")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert len(lines) == log_requests
    if log_requests:
        assert (lines[0]["path"], lines[0]["status"], lines[0]["who"]) == ("/v1/models", 200, "read")
        assert served.secrets["read"] not in stream.getvalue()
