"""``onepass serve``: what it prints, what it refuses, and a whole life of the process."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

from onepass.files.lock import locked
from onepass.service.web.tokens import Tokens
from tests.cli.conftest import Run


class Process:
    """A service in a process of its own, and what it has printed."""

    def __init__(self, *arguments: object) -> None:
        command = [sys.executable, "-m", "onepass", "serve", "--port", "0", *map(str, arguments)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.facts: dict[str, str] = {}
        assert self.process.stdout is not None
        while "page" not in self.facts and (line := self.process.stdout.readline()):
            name, _, words = line.strip().partition(": ")
            self.facts[name] = words

    def ask(self, method: str, path: str, token: str | None = None, **given: Any) -> httpx.Response:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.request(method, self.facts["address"] + path, headers=headers, timeout=30, **given)

    def end(self) -> tuple[int, str]:
        """The exit code after a polite request, and the log."""
        self.process.send_signal(signal.SIGTERM)
        _, log = self.process.communicate(timeout=60)
        return self.process.returncode, log


@contextmanager
def serving(*arguments: object) -> Iterator[Process]:
    found = Process(*arguments)
    try:
        yield found
    finally:
        if found.process.poll() is None:
            found.process.kill()
        found.process.communicate()


@pytest.mark.skipif(os.name == "nt", reason="SIGTERM ends a process at once there")
def test_a_life(tmp_path: Path) -> None:
    data = tmp_path / "state"
    with serving("--data", data) as first:
        token = first.facts["token"]
        assert list(first.facts) == ["token", "address", "page"]
        page, _, code = first.facts["page"].partition("/#login=")
        assert page == first.facts["address"]
        assert first.ask("GET", "/readyz").status_code == 200
        assert first.ask("GET", "/v1/models").status_code == 401
        assert "server" not in first.ask("GET", "/healthz").headers
        rows = [{"km": 1000 * i, "brand": "ab"[i % 2], "price": 100.0 - i} for i in range(20)]
        made = first.ask("PUT", "/v1/models/price", token, json={"rows": rows, "target": "price", "learn": True})
        assert made.status_code == 201
        learned = first.ask("POST", "/v1/models/price/learn", token, json={"x": {"km": 10, "brand": "a"}, "y": 99.0})
        assert learned.json()["n_seen"] == 21
        assert first.ask("POST", "/v1/session", json={"code": code}).status_code == 201
        code_of_end, log = first.end()
        assert code_of_end == 0
        messages = [json.loads(line)["message"] for line in log.splitlines()]
        assert messages == ["started", "stopped; all acknowledged events are saved"]
        assert token not in log
        assert code not in log
    with serving("--data", data) as second:
        assert list(second.facts) == ["address", "page"]
        deadline = time.monotonic() + 30
        while second.ask("GET", "/readyz").status_code == 503 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert second.ask("GET", "/v1/models/price", token).json()["n_seen"] == 21
        second.process.send_signal(signal.SIGINT)
        assert second.process.wait(timeout=60) == 0


def test_there_is_always_a_token_with_the_scope_admin(run: Run, tmp_path: Path) -> None:
    assert run("serve", "--data", tmp_path, "--new-token", "admin:learn").code == 0
    with serving("--data", tmp_path) as first:
        found = first.ask("GET", "/v1/tokens", first.facts["token"]).json()["tokens"]
    assert {one["name"]: one["scope"] for one in found} == {"admin": "learn", "admin-2": "admin"}


def test_a_folder_has_one_service(run: Run, tmp_path: Path) -> None:
    with locked(tmp_path / "service"):
        done = run("serve", "--data", tmp_path, "--port", 0)
    assert (done.code, done.out) == (1, "")
    assert re.match(r"onepass: .* is being written by process \d+.*; stop that process first", done.err)


def test_a_port_that_is_taken_is_told_in_a_sentence(run: Run, tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        done = run("serve", "--data", tmp_path, "--port", port)
    assert done.code == 1
    assert done.err == (
        f"onepass: can't listen on http://127.0.0.1:{port}: another process uses this port; choose another --port.\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_host_that_is_none_is_told_in_a_sentence(run: Run, tmp_path: Path) -> None:
    done = run("serve", "--data", tmp_path, "--host", "no.such.host.invalid")
    assert done.code == 1
    assert "--host no.such.host.invalid is not an address of this machine" in done.err


def test_without_tokens_it_listens_to_this_machine_alone(run: Run, tmp_path: Path) -> None:
    done = run("serve", "--data", tmp_path, "--no-auth", "--host", "0.0.0.0")
    assert (done.code, "--no-auth can't be used with --host" in done.err) == (2, True)


def test_listening_to_others_is_warned_about(run: Run, tmp_path: Path) -> None:
    with locked(tmp_path / "service"):
        done = run("serve", "--data", tmp_path, "--host", "0.0.0.0", "--port", 0)
    assert "requests are not encrypted" in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--data DIR is needed"),
        (("--model", "price"), "not a name and a file"),
        (("--model", "price=missing.onepass"), "there is no file 'missing.onepass'"),
        (("--data", "state", "--follow"), "--follow needs --events"),
        (("--data", "state", "--events", "mysql://host/a"), "--events must be an address such as postgresql://"),
        (("--data", "state", "--events", "nowhere/events.sqlite"), "a file in an existing folder"),
        (("--new-token", "shop"), "not a name and a scope"),
        (("--new-token", "shop:all"), "not a name and a scope"),
        (("--durability", "none"), "durability"),
        (("--keep-pending", "soon"), "not a time"),
        (("--rate-limit", "0"), "rate-limit"),
        (("--port", "70000"), "port"),
    ],
)
def test_wrong_options_are_usage_errors(run: Run, tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    done = run("serve", *(["--data", tmp_path] if arguments else []), *arguments)
    assert done.code == 2
    assert words in done.err


def test_a_new_token_is_printed_for_a_service_that_does_not_run(run: Run, tmp_path: Path) -> None:
    done = run("serve", "--data", tmp_path, "--new-token", "shop:learn")
    assert (done.code, done.err) == (0, "")
    found = Tokens(tmp_path / "tokens.json").find(done.out.removeprefix("token: ").strip().encode())
    assert found is not None
    assert (found.name, found.scope) == ("shop", "learn")
    again = run("serve", "--data", tmp_path, "--new-token", "shop:learn")
    assert (again.code, again.err) == (1, "onepass: there is a token 'shop' already; revoke it first.\n")
    with locked(tmp_path / "service"):
        assert run("serve", "--data", tmp_path, "--new-token", "other:read").code == 1
    assert run("serve", "--data", tmp_path / "new", "--new-token", "a:read").code == 0  # made, as by a start


def test_a_model_that_can_not_be_served_is_refused_by_its_name_or_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "bad.onepass"
    file.write_bytes(b"nothing")
    begin = ("serve", "--data", tmp_path / "state", "--port", 0, "--model")
    done = run(*begin, f"my price={file}")
    assert done.code == 1
    assert "the name of --model must be up to 64 letters" in done.err
    done = run(*begin, f"price={file}")
    assert done.code == 1
    assert done.err.startswith(f"onepass: --model price={file}: ")


@pytest.mark.parametrize(("problems", "code"), [([], 0), (["price: snapshot 3 is damaged", "no tokens"], 1)])
def test_a_folder_is_checked(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problems: list[str], code: int
) -> None:
    checking = ModuleType("onepass.service.checking")
    vars(checking)["check_state"] = lambda path, tell: problems if path == tmp_path else ["another folder"]
    monkeypatch.setitem(sys.modules, checking.__name__, checking)
    done = run("serve", "--check", tmp_path)
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
    assert run("serve", "--check", file).out == f"The model 'price' is right.\n{file} has no damage.\n"


def test_events_are_exported_to_parquet_only(run: Run, tmp_path: Path) -> None:
    done = run("serve", "--data", tmp_path, "--export", tmp_path / "events.csv")
    assert done.code == 2
    assert "the name must end in .parquet, got" in done.err
    assert list(tmp_path.iterdir()) == []


def test_events_are_exported(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export, asked = ModuleType("onepass.service.export"), []
    vars(export)["export_events"] = lambda path, file: asked.append((path, file))
    monkeypatch.setitem(sys.modules, export.__name__, export)
    assert run("serve", "--data", tmp_path, "--export", tmp_path / "events.parquet").code == 0
    assert asked == [(tmp_path, tmp_path / "events.parquet")]


def test_a_missing_extra_is_told_in_a_sentence(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = run("serve", "--data", tmp_path)
    assert (done.code, done.err) == (1, "onepass: 'onepass serve' needs uvicorn: pip install 'onepass[serve]'.\n")


def test_the_help_waits_for_no_library() -> None:
    code = (
        "import sys\nfrom onepass.cli.main import main\n"
        "try:\n    main(['serve', '--help'])\nexcept SystemExit:\n"
        "    print(sorted({'numpy', 'uvicorn', 'starlette', 'msgspec'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_what_the_command_takes_reaches_the_service(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from onepass.service.settings import ServiceSettings
    from onepass.service.web import server

    asked: list[Any] = []
    monkeypatch.setattr(server, "run_service", lambda *arguments: asked.append(arguments[:3]))
    file = tmp_path / "price.onepass"
    file.write_bytes(b"")
    given = "--queue 7 --deadline 2s --max-body 99 --keep-pending 1h --keep-events 2d --rate-limit 5 --follow --port 1 "
    given += "--events postgresql://host/events"
    run("serve", "--data", tmp_path, "--model", f"price={file}", "--allow-host", "a", "--no-auth", *given.split())
    run("serve", "--data", tmp_path)
    (settings, listening, imports), (defaults, usual, none) = asked
    assert settings == ServiceSettings(
        tmp_path,
        events="postgresql://host/events",
        follow=True,
        queue=7,
        deadline=2.0,
        max_body=99,
        keep_pending=3600.0,
        keep_events=172800.0,
        rate_limit=5.0,
    )
    assert listening == server.Listening(port=1, allow_hosts=("a",), needs_token=False)
    assert imports == {"price": file}
    assert (defaults, usual, none) == (ServiceSettings(tmp_path), server.Listening(), {})
