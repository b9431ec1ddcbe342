"""The audit log: everything that changes the service, who did it and how it ended; no features and no secrets."""

import hashlib
import json
import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from onepass._limits import ScopeName
from onepass.service.errors import ProblemError
from onepass.service.web.audit import AUDIT, AuditLog, audit_files, verify_audit
from onepass.service.web.table import OPERATIONS
from onepass.service.web.tokens import Tokens
from tests.service.web.conftest import Clock, Served


def test_what_changes_the_service_is_noted(served: Served) -> None:
    served.ask("PUT", "/v1/models/cars", json={"rows": [{"secret_feature": 12345}]})
    served.ask("DELETE", "/v1/models/cars")
    served.ask("DELETE", "/v1/models/price/predictions/p1", "learn")
    served.ask("DELETE", "/v1/models/none")
    asked = {"name": "shop", "scope": "read", "expires": "2100-01-31T00:00:00Z"}
    token = served.ask("POST", "/v1/tokens", json=asked).json()["token"]
    served.ask("DELETE", "/v1/tokens/shop")
    *changes, made, revoked = served.audited()
    noted = [(one["who"], one["action"], one.get("model"), one["status"]) for one in changes]
    assert noted == [
        ("admin", "create model", "cars", 201),
        ("admin", "delete model", "cars", 204),
        ("learn", "delete prediction", "price", 200),
        ("admin", "delete model", "none", 404),
    ]
    for one, action, status in ((made, "create token", 201), (revoked, "revoke token", 204)):
        del one["time"], one["previous"]
        expected = {"who": "admin", "action": action, "status": status, "token": "shop", "scope": "read"}
        assert one == expected | {"expires": "2100-01-31T00:00:00Z", "client": "127.0.0.1"}  # and no model
    content = (served.folder / "audit.jsonl").read_text()
    for secret in (token, "secret_feature", "12345", *served.secrets.values()):
        assert secret not in content


def test_every_operation_that_changes_the_service_has_an_action() -> None:
    without = {one.name for one in OPERATIONS if one.method != "GET" and one.action is None}
    assert without == {"predict", "forecast", "learn", "label", "decide", "reward", "explain", "arms", "begin_session"}


def test_the_chain_goes_on_after_a_line_longer_than_what_is_read_at_once(tmp_path: Path) -> None:
    AuditLog(tmp_path).changed("ann", "delete model", 204, model="price")
    AuditLog(tmp_path).changed("ann", "create token", 201, token="shop", models=[f"{i:064}" for i in range(5000)])
    AuditLog(tmp_path).changed("ann", "delete model", 204, model="price")
    found = verify_audit(tmp_path)
    assert (found.lines, found.problems, found.head) == (3, [], AuditLog(tmp_path).head)


def test_a_token_is_for_a_thousand_models_at_most(served: Served) -> None:
    models = [f"m{i}" for i in range(1001)]
    assert (
        served.ask("POST", "/v1/tokens", json={"name": "a", "scope": "read", "models": models[:-1]}).status_code == 201
    )
    refused = served.ask("POST", "/v1/tokens", json={"name": "b", "scope": "read", "models": models})
    assert (refused.status_code, refused.json()["field"]) == (422, "models")
    with pytest.raises(ProblemError, match="a token can be for at most 1,000 models, got 1,001"):
        Tokens(served.folder / "tokens.json").create("b", "read", models=models)


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
    assert begun["client"] == "127.0.0.1"
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
    del noted["time"], noted["previous"]
    action, about = expected
    assert noted == {"who": scope, "action": action, "status": 403, "client": "127.0.0.1", **about}  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("headers", "title"), [({}, "header missing"), ({"Sec-Fetch-Site": "cross-site"}, "foreign page")]
)
def test_whose_session_a_foreign_page_has_used_is_noted(served: Served, headers: dict[str, str], title: str) -> None:
    begun = served.ask("POST", "/v1/session", None, json={"token": served.secrets["learn"]})
    cookie = {"Cookie": begun.headers["set-cookie"].partition(";")[0]}
    assert served.ask("DELETE", "/v1/models/price", None, headers=cookie | headers).status_code == 403
    noted = served.audited()[-1]
    assert (noted["who"], noted["action"], noted["model"]) == ("learn", title, "price")


def test_a_download_of_a_model_is_noted(served: Served) -> None:
    assert served.ask("GET", "/v1/models/price/file").status_code == 200
    (noted,) = served.audited()
    assert (noted["who"], noted["action"], noted["model"], noted["status"]) == ("admin", "download model", "price", 200)


def test_strangers_do_not_hide_the_refusals_of_others(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, clock=Clock())
    for _ in range(1000):
        log.refused("not authenticated", 401, "1.2.3.4")
    log.refused("learn", 403, "1.2.3.4", who="shop", model="price")
    last = json.loads((tmp_path / "audit.jsonl").read_text().splitlines()[-1])
    assert (last["who"], last.get("skipped", 0)) == ("shop", 0)


def test_strangers_can_not_fill_the_disk(tmp_path: Path) -> None:
    clock = Clock()
    log = AuditLog(tmp_path, clock=clock)
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
    AuditLog(tmp_path).changed("ann", "delete model", 204)
    assert stat.S_IMODE((tmp_path / "audit.jsonl").stat().st_mode) == 0o600


def test_the_version_that_a_model_goes_back_to_is_noted(served: Served) -> None:
    served.ask("POST", "/v1/models/price/rollback", json={"version": 5})
    served.model.failure = ProblemError(404, "no such version", "there is none")
    served.ask("POST", "/v1/models/price/rollback", json={"version": 7})
    noted = [(one["action"], one["model"], one["version"], one["status"]) for one in served.audited()]
    assert noted == [("rollback", "price", 5, 200), ("rollback", "price", 7, 404)]


# The chain.


def filled(folder: Path, lines: int = 12, largest: int = 500) -> list[Path]:
    """The files of a log with some lines, three per file, written by two processes one after the other."""
    for half in range(2):
        log = AuditLog(folder, largest=largest)
        for number in range(lines // 2):
            log.changed("ann", "delete model", 204, model=f"model-{half}-{number}")
    return audit_files(folder)


def test_each_line_has_the_hash_of_the_line_before_it_across_files(tmp_path: Path) -> None:
    files = filled(tmp_path)
    assert [file.name for file in files] == [f"audit-00000{number}.jsonl" for number in range(1, 5)]
    AuditLog(tmp_path).changed("ann", "delete model", 204)
    lines = [line for file in audit_files(tmp_path) for line in file.read_bytes().splitlines()]
    before = ["0" * 64, *(hashlib.sha256(line).hexdigest() for line in lines)]
    assert [json.loads(line)["previous"] for line in lines] == before[:-1]
    assert AuditLog(tmp_path).head == before[-1]
    assert verify_audit(tmp_path) == (13, 0, 5, before[-1], [], [])


def changed_line(files: list[Path]) -> None:
    files[1].write_bytes(files[1].read_bytes().replace(b"204", b"404", 1))


def removed_line(files: list[Path]) -> None:
    files[1].write_bytes(b"".join(files[1].read_bytes().splitlines(keepends=True)[1:]))


def added_line(files: list[Path]) -> None:
    first, *rest = files[1].read_bytes().splitlines(keepends=True)
    files[1].write_bytes(first + first + b"".join(rest))


def swapped_lines(files: list[Path]) -> None:
    files[1].write_bytes(b"".join(reversed(files[1].read_bytes().splitlines(keepends=True))))


def unreadable_line(files: list[Path]) -> None:
    files[1].write_bytes(b"?" + files[1].read_bytes())


def removed_file(files: list[Path]) -> None:
    files[1].unlink()


def added_rubbish(files: list[Path]) -> None:
    files[-1].write_bytes(files[-1].read_bytes() + b"junk\n")


def added_rubbish_without_an_end(files: list[Path]) -> None:
    files[-1].write_bytes(files[-1].read_bytes() + b"junk")


def added_empty_line(files: list[Path]) -> None:
    files[-1].write_bytes(files[-1].read_bytes() + b"\n")


def added_beginning_of_a_line(files: list[Path]) -> None:
    files[-1].write_bytes(files[-1].read_bytes() + b'{"time":"203\n')


@pytest.mark.parametrize(
    "tamper", [added_rubbish, added_rubbish_without_an_end, added_empty_line, added_beginning_of_a_line]
)
def test_what_was_added_at_the_end_is_found(tmp_path: Path, tamper: Callable[[list[Path]], None]) -> None:
    tamper(filled(tmp_path))
    (problem,) = verify_audit(tmp_path).problems
    assert problem.startswith("audit-000004.jsonl, line 4 is ")
    assert problem.endswith(": it was changed or added")


@pytest.mark.parametrize(
    "tamper", [changed_line, removed_line, added_line, swapped_lines, unreadable_line, removed_file]
)
def test_what_was_tampered_with_is_found(tmp_path: Path, tamper: Callable[[list[Path]], None]) -> None:
    tamper(filled(tmp_path))
    problems = verify_audit(tmp_path).problems
    assert problems
    assert "does not follow from the line before it: lines were changed, removed or added" in problems[-1]
    assert problems[-1].startswith(("audit-000002.jsonl, line", "audit-000003.jsonl, line 1 "))


def test_the_chain_goes_on_where_it_was_broken_and_the_break_stays_visible(tmp_path: Path) -> None:
    changed_line(filled(tmp_path))
    AuditLog(tmp_path).changed("ann", "delete model", 204)
    assert len(verify_audit(tmp_path).problems) == 1


def test_a_missing_end_is_seen_by_the_last_hash(tmp_path: Path) -> None:
    *_, last = filled(tmp_path)
    head = verify_audit(tmp_path).head
    last.write_bytes(b"".join(last.read_bytes().splitlines(keepends=True)[:-1]))
    found = verify_audit(tmp_path)
    assert (found.problems, found.head == head) == ([], False)


def test_files_that_were_archived_are_no_damage(tmp_path: Path) -> None:
    filled(tmp_path)[0].unlink()
    found = verify_audit(tmp_path)
    assert found.problems == []
    (note,) = found.notes
    assert note.startswith("audit-000002.jsonl, line 1 is the first, and follows a line with the hash ")
    AuditLog(tmp_path, largest=1).changed("ann", "delete model", 204)
    assert audit_files(tmp_path)[-1].name == "audit-000005.jsonl"  # a name is not used again


def test_a_line_that_a_crash_has_cut_is_told_and_is_no_damage(tmp_path: Path) -> None:
    AuditLog(tmp_path).changed("ann", "delete model", 204)
    with (tmp_path / AUDIT).open("ab") as file:
        file.write(b'{"time":"203')
    told = ["audit.jsonl, line 2 is unfinished, as after a crash of the machine"]
    found = verify_audit(tmp_path)
    assert (found.lines, found.unfinished, found.problems, found.notes) == (1, 1, [], told)
    for _ in range(2):
        AuditLog(tmp_path).changed("ann", "delete model", 204)
    found = verify_audit(tmp_path)
    assert (found.lines, found.unfinished, found.problems, found.notes) == (3, 1, [], told)


def test_a_line_that_did_not_fit_on_the_disk_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = AuditLog(tmp_path)
    log.changed("ann", "delete model", 204)
    write = os.write
    with monkeypatch.context() as full, caplog.at_level(logging.ERROR, "onepass.service"):
        full.setattr(os, "write", lambda handle, content: write(handle, content[:20]))
        log.changed("ann", "promote", 200)
    assert '"action":"promote"' in caplog.text
    log.changed("ann", "snapshot", 200)
    found = verify_audit(tmp_path)
    assert (found.lines, found.problems, found.notes) == (2, [], [])


def test_a_file_that_can_not_be_renamed_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Path, to: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "rename", refused)
    assert [file.name for file in filled(tmp_path)] == [AUDIT]
    assert verify_audit(tmp_path).problems == []


def test_no_log_is_no_damage(tmp_path: Path) -> None:
    assert verify_audit(tmp_path) == (0, 0, 0, "0" * 64, [], [])
