"""``onepass admin``: tokens, checks, repairs, the audit log and exports of a service's folder."""

import hashlib
import json
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from onepass.files.lock import locked
from onepass.service.journal import Journal, own_key
from onepass.service.settings import ServiceSettings
from onepass.service.state import open_store
from onepass.service.web.tokens import Tokens
from tests.cli.conftest import Run
from tests.service.running import regressor


@pytest.mark.skipif(os.name == "nt", reason="modes are of POSIX")
def test_files_that_the_command_makes_are_for_one_user(run: Run, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert run("admin", "token", "new", tmp_path, "shop", "--scope", "learn").code == 0
    finally:
        assert os.umask(before) == 0
    modes = {one.name: one.stat().st_mode & 0o777 for one in tmp_path.rglob("*")}
    assert modes == {"tokens.json": 0o600, "audit.jsonl": 0o600}


def test_tokens_are_listed_and_revoked_by_the_command_and_that_is_noted(run: Run, tmp_path: Path) -> None:
    for token in (("admin", "--scope", "admin"), ("shop", "--scope", "learn", "--models", "price")):
        assert run("admin", "token", "new", tmp_path, *token).code == 0
    assert run("admin", "token", "revoke", tmp_path, "shop").out == "revoked: shop\n"
    with locked(tmp_path / "service"):  # while a service runs
        listed = run("admin", "token", "list", tmp_path)
        assert [line.split()[0] for line in listed.out.splitlines()] == ["name", "admin"]
        refused = run("admin", "token", "revoke", tmp_path, "admin")
        assert (refused.code, "while it runs, DELETE /v1/tokens/admin revokes it" in refused.err) == (1, True)
    again = run("admin", "token", "revoke", tmp_path, "shop")
    assert (again.code, again.err) == (1, "onepass: there is no token 'shop'.\n")
    noted = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [(one["who"], one["action"], one["token"], one.get("models")) for one in noted] == [
        ("command line", "create token", "admin", None),
        ("command line", "create token", "shop", ["price"]),
        ("command line", "revoke token", "shop", ["price"]),
    ]


def test_the_audit_log_is_verified(run: Run, tmp_path: Path) -> None:
    for token in (("a", "--scope", "admin"), ("b", "--scope", "learn"), ("c", "--scope", "read")):
        run("admin", "token", "new", tmp_path, *token)
    log = tmp_path / "audit.jsonl"
    done = run("admin", "verify-audit", tmp_path)
    head = hashlib.sha256(log.read_bytes().splitlines()[-1]).hexdigest()
    assert done.code == 0
    assert done.out == f"3 lines in 1 file, each of which follows from the one before it.\nlast hash: {head}\n"
    whole = log.read_bytes()
    log.write_bytes(whole + b'{"time":"20')
    done = run("admin", "verify-audit", tmp_path)
    assert done.code == 0
    assert "3 lines in 1 file, each of which follows from the one before it, and one unfinished.\n" in done.out
    log.write_bytes(whole + b"junk\n")
    assert run("admin", "verify-audit", tmp_path).code == 1
    log.write_bytes(whole)
    log.write_text(log.read_text().replace('"token":"b"', '"token":"x"'))
    done = run("admin", "verify-audit", tmp_path)
    assert done.code == 1
    words = "does not follow from the line before it: lines were changed, removed or added"
    assert done.out == f"audit.jsonl, line 3 {words}.\n"


def test_a_folder_without_an_audit_log_can_not_be_verified(run: Run, tmp_path: Path) -> None:
    done = run("admin", "verify-audit", tmp_path)
    assert (done.code, done.out, done.err) == (1, "", f"onepass: there is no audit log in {tmp_path}.\n")


def test_a_new_token_is_printed_for_a_service_that_does_not_run(run: Run, tmp_path: Path) -> None:
    done = run("admin", "token", "new", tmp_path, "shop", "--scope", "learn")
    assert (done.code, done.err) == (0, "")
    found = Tokens(tmp_path / "tokens.json").find(done.out.strip().encode())  # alone, so that it can be piped
    assert found is not None
    assert (found.name, found.scope) == ("shop", "learn")
    again = run("admin", "token", "new", tmp_path, "shop", "--scope", "learn")
    assert (again.code, again.err) == (1, "onepass: there is a token 'shop' already; revoke it first.\n")
    with locked(tmp_path / "service"):
        refused = run("admin", "token", "new", tmp_path, "other", "--scope", "read")
        assert (refused.code, "or while it runs, POST /v1/tokens makes a token" in refused.err) == (1, True)
    wrong = run("admin", "token", "new", tmp_path, "b", "--scope", "read", "--models", "my price")
    assert (wrong.code, "the name of a model of --models must be up to 64 letters" in wrong.err) == (1, True)
    none = run("admin", "token", "new", tmp_path, "b", "--scope", "read", "--expires", "0s")
    assert (none.code, "expires must be in the future" in none.err) == (1, True)


@pytest.mark.parametrize(
    "command",
    [
        ("token", "new", "shop", "--scope", "learn"),
        ("token", "list"),
        ("token", "revoke", "shop"),
        ("repair", "m"),
        ("verify-audit",),
        ("export-events", "a.parquet"),
    ],
)
def test_a_folder_that_does_not_exist_is_a_usage_error(run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    group = command[: 2 if command[0] == "token" else 1]
    done = run("admin", *group, tmp_path / "nowhere", *command[len(group) :])
    assert done.code == 2
    assert "nowhere' does not exist" in done.err
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("token", "new", ".", "shop"), "Missing option '--scope'"),
        (("token", "new", ".", "shop", "--scope", "all"), "'all' is not one of"),
        (("token", "new", ".", "shop", "--scope", "read", "--expires", "soon"), "not a time"),
        (("token", "new", ".", "--scope", "read"), "Missing argument 'NAME'"),
        (("check",), "Missing argument 'DIR|FILE|URL'"),
        (("repair", "."), "Missing argument 'MODEL'"),
    ],
)
def test_usage_errors_of_admin(run: Run, arguments: tuple[str, ...], words: str) -> None:
    done = run("admin", *arguments)
    assert done.code == 2
    assert words in done.err


@pytest.mark.parametrize(("problems", "code"), [([], 0), (["price: snapshot 3 is damaged", "no tokens"], 1)])
def test_a_folder_is_checked(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problems: list[str], code: int
) -> None:
    checking = ModuleType("onepass.service.checking")
    vars(checking)["check_state"] = lambda path, tell: problems if path == tmp_path else ["another folder"]
    monkeypatch.setitem(sys.modules, checking.__name__, checking)
    done = run("admin", "check", tmp_path)
    assert done.code == code
    assert done.out.splitlines() == (problems or [f"{tmp_path} has no damage."])


def test_a_check_tells_what_was_checked_also_of_a_file(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checking = ModuleType("onepass.service.checking")
    vars(checking)["check_state"] = lambda path, tell: tell("The model 'price' is right.") or []
    monkeypatch.setitem(sys.modules, checking.__name__, checking)
    file = tmp_path / "backup.sqlite"
    file.write_bytes(b"")
    assert run("admin", "check", file).out == f"The model 'price' is right.\n{file} has no damage.\n"


def test_a_check_needs_a_folder_a_file_or_an_address(run: Run, tmp_path: Path) -> None:
    done = run("admin", "check", tmp_path / "nowhere")
    assert done.code == 2
    assert "there is no folder or file" in done.err
    done = run("admin", "check", "postgresql://me:secret@127.0.0.1:1/name")
    assert done.code == 1
    assert done.out.startswith("The event store can't be read: ")
    assert "secret" not in done.out + done.err


def with_a_bad_event(folder: Path) -> None:
    """A folder whose model m can't be loaded: its last event goes back to a version that never was."""
    settings = ServiceSettings(folder)
    with open_store(settings) as store:
        journal = Journal(store, "m")
        journal.append("create", own_key("create", 1), {"request": "", "metrics": []}, regressor())
        journal.append("rollback", own_key("rollback", 2), {"to": 9})


def test_a_model_that_does_not_load_is_repaired(run: Run, tmp_path: Path) -> None:
    with_a_bad_event(tmp_path)
    checked = run("admin", "check", tmp_path)
    assert checked.code == 1
    assert "The model 'm' can't be recovered: event 2 (rollback) can't be replayed: " in checked.out
    repair = f"restore a backup, or return to it by 'onepass admin repair {tmp_path} m'."
    assert f"The last good version is 1: {repair}" in checked.out
    file = tmp_path / "lost-m-2.jsonl"
    done = run("admin", "repair", tmp_path, "m")
    assert done.code == 0
    first, *rest = done.out.splitlines()
    assert first.startswith("m could not be loaded: event 2 (rollback) can't be replayed: ")
    assert rest == ["restored: version 1, as version 3", f"lost: 1 event, listed in {file}"]
    assert json.loads(file.read_text())["payload"] == {"to": 9}
    noted = json.loads((tmp_path / "audit.jsonl").read_text())
    assert (noted["who"], noted["action"], noted["model"], noted["version"], noted["lost"]) == (
        "command line",
        "repair",
        "m",
        1,
        1,
    )
    assert run("admin", "check", tmp_path).code == 0
    assert run("admin", "repair", tmp_path, "m").out == "m can be loaded; nothing was changed.\n"


def test_a_repair_needs_a_model_that_is_there_and_a_service_that_is_stopped(run: Run, tmp_path: Path) -> None:
    with_a_bad_event(tmp_path)
    done = run("admin", "repair", tmp_path, "price")
    assert (done.code, done.err) == (1, "onepass: there is no model 'price'; there are 'm'.\n")
    with locked(tmp_path / "service"):
        done = run("admin", "repair", tmp_path, "m")
    assert (done.code, "stop that process first" in done.err) == (1, True)
    done = run("admin", "repair", tmp_path / "nowhere", "m")
    assert (done.code, "does not exist" in done.err) == (2, True)


def test_events_are_exported_to_parquet_only(run: Run, tmp_path: Path) -> None:
    done = run("admin", "export-events", tmp_path, tmp_path / "events.csv")
    assert done.code == 2
    assert "the name must end in .parquet, got" in done.err
    assert list(tmp_path.iterdir()) == []


def test_events_are_exported(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export, asked = ModuleType("onepass.service.export"), []
    vars(export)["export_events"] = lambda path, file: asked.append((path, file))
    monkeypatch.setitem(sys.modules, export.__name__, export)
    assert run("admin", "export-events", tmp_path, tmp_path / "events.parquet").code == 0
    assert asked == [(tmp_path, tmp_path / "events.parquet")]
