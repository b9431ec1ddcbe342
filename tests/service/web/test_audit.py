"""The audit log: everything that changes the service, who did it and how it ended; no features and no secrets."""

import json
import logging
import os
import stat
from pathlib import Path

import pytest

from onepass.service.errors import ProblemError
from onepass.service.web.audit import AuditLog
from onepass.service.web.table import OPERATIONS
from onepass.service.web.tokens import ScopeName
from tests.service.web.conftest import Clock, Served


def test_what_changes_the_service_is_noted(served: Served) -> None:
    served.ask("PUT", "/v1/models/cars", json={"rows": [{"secret_feature": 12345}]})
    served.ask("DELETE", "/v1/models/cars")
    served.ask("DELETE", "/v1/models/price/predictions/p1", "learn")
    served.ask("DELETE", "/v1/models/none")
    token = served.ask("POST", "/v1/tokens", json={"name": "shop", "scope": "read"}).json()["token"]
    served.ask("DELETE", "/v1/tokens/shop")
    *changes, made, revoked = served.audited()
    noted = [(one["who"], one["action"], one.get("model"), one["status"]) for one in changes]
    assert noted == [
        ("admin", "create model", "cars", 201),
        ("admin", "delete model", "cars", 204),
        ("learn", "forget prediction", "price", 200),
        ("admin", "delete model", "none", 404),
    ]
    for one, action, status in ((made, "create token", 201), (revoked, "revoke token", 204)):
        del one["time"]
        expected = {"who": "admin", "action": action, "status": status, "token": "shop", "scope": "read"}
        assert one == expected  # and no model
    content = (served.folder / "audit.jsonl").read_text()
    for secret in (token, "secret_feature", "12345", *served.secrets.values()):
        assert secret not in content


def test_every_operation_that_changes_the_service_has_an_action() -> None:
    without = {one.name for one in OPERATIONS if one.method != "GET" and one.action is None}
    assert without == {"predict", "learn", "label", "decide", "reward", "explain", "arms", "begin_session"}


def test_rows_are_not_noted(served: Served) -> None:
    served.ask("POST", "/v1/models/price/predict", json={"x": {}})
    served.ask("POST", "/v1/models/price/learn", json={"x": {}, "y": 1})
    assert served.audited() == []


def test_a_change_that_fails_is_noted_as_such(served: Served) -> None:
    served.model.failure = RuntimeError("a bug")
    served.ask("POST", "/v1/models/price/promote")
    served.model.failure = ProblemError(507, "disk full", "no room")
    served.ask("POST", "/v1/models/price/promote")
    assert [one["status"] for one in served.audited()] == [500, 507]


def test_sessions_and_refusals_are_noted(served: Served) -> None:
    code = served.security.sessions.new_code()
    served.ask("POST", "/v1/session", None, json={"code": code})
    served.ask("POST", "/v1/session", None, json={"code": code})
    served.ask("GET", "/v1/models", None)
    begun, again, nobody = served.audited()
    assert (begun["who"], begun["action"], begun["status"]) == ("page", "begin session", 201)
    assert (again["who"], again["action"], again["status"], again["client"]) == (
        "unknown",
        "begin session",
        401,
        "127.0.0.1",
    )
    assert (nobody["action"], nobody["status"]) == ("not authenticated", 401)
    assert code not in (served.folder / "audit.jsonl").read_text()


@pytest.mark.parametrize(
    ("method", "path", "scope", "given", "expected"),
    [
        ("POST", "/v1/models/price/learn", "read", {"json": {"x": {}, "y": 1}}, ("learn", {"model": "price"})),
        ("POST", "/v1/models/price/predict", "read", {"json": {"id": "a", "x": {}}}, ("predict", {"model": "price"})),
        ("DELETE", "/v1/models/price", "learn", {}, ("delete model", {"model": "price"})),
        ("GET", "/v1/models/price/file", "learn", {}, ("download model", {"model": "price"})),
        ("GET", "/v1/tokens", "learn", {}, ("list tokens", {})),
        ("DELETE", "/v1/tokens/admin", "read", {}, ("revoke token", {"token": "admin"})),
    ],
)
def test_who_was_refused_for_a_small_scope_is_noted(
    method: str, path: str, scope: ScopeName, given: dict[str, object], expected: tuple[str, object], served: Served
) -> None:
    assert served.ask(method, path, scope, **given).status_code == 403
    (noted,) = served.audited()
    del noted["time"]
    action, about = expected
    assert noted == {"who": scope, "action": action, "status": 403, "client": "127.0.0.1", **about}  # type: ignore[dict-item]


def test_a_download_of_a_model_is_noted(served: Served) -> None:
    assert served.ask("GET", "/v1/models/price/file").status_code == 200
    (noted,) = served.audited()
    assert (noted["who"], noted["action"], noted["model"], noted["status"]) == ("admin", "download model", "price", 200)


def test_strangers_do_not_hide_the_refusals_of_others(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl", Clock())
    for _ in range(1000):
        log.refused("not authenticated", 401, "1.2.3.4")
    log.refused("learn", 403, "1.2.3.4", who="shop", model="price")
    last = json.loads((tmp_path / "audit.jsonl").read_text().splitlines()[-1])
    assert (last["who"], last.get("skipped", 0)) == ("shop", 0)


def test_strangers_can_not_fill_the_disk(tmp_path: Path) -> None:
    clock = Clock()
    log = AuditLog(tmp_path / "audit.jsonl", clock)
    for _ in range(1000):
        log.refused("not authenticated", 401, "1.2.3.4")
    clock.now += 1.0
    log.refused("not authenticated", 401, "1.2.3.4")
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert len(lines) == 101
    assert lines[-1]["skipped"] == 900


def test_a_log_that_can_not_be_written_stops_nothing(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    (served.folder / "audit.jsonl").mkdir()
    with caplog.at_level(logging.ERROR, "onepass.service"):
        assert served.ask("POST", "/v1/models/price/snapshot").status_code == 200
        assert served.ask("GET", "/v1/models", None).status_code == 401
    assert "audit log can't be written" in caplog.text
    assert '"action":"snapshot"' in caplog.text


@pytest.mark.skipif(os.name == "nt", reason="modes are of POSIX")
def test_only_the_service_reads_its_audit_log(tmp_path: Path) -> None:
    AuditLog(tmp_path / "audit.jsonl").changed("ann", "delete model", 204)
    assert stat.S_IMODE((tmp_path / "audit.jsonl").stat().st_mode) == 0o600
