"""``onepass serve``: what it prints, what it refuses, and a whole life of the process."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from contextlib import closing, suppress
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any

import pytest

from onepass.events import EventStore
from onepass.files.lock import locked
from onepass.service.settings import ServiceSettings
from onepass.service.web.audit import verify_audit
from tests.cli.conftest import Run
from tests.helpers.service_process import serving
from tests.helpers.waiting import wait_until
from tests.service.running import regressor, served


@pytest.mark.skipif(os.name == "nt", reason="SIGTERM ends a process at once there")
def test_a_life(tmp_path: Path) -> None:
    data = tmp_path / "state"
    with serving("--data", data) as first:
        token = first.secret("token")
        assert list(first.facts) == ["token file", "address", "page file"]
        page, _, code = first.secret("page").partition("/#login=")
        assert token not in first.printed
        assert code not in first.printed
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
        started, stopped = map(json.loads, log.splitlines())
        assert [started["message"], stopped["message"]] == ["started", "stopped; all acknowledged events are saved"]
        lines = [json.loads(line) for line in (data / "audit.jsonl").read_text().splitlines()]
        assert (lines[0]["who"], lines[0]["action"]) == ("service start", "create token")
        assert started["audit"] == lines[1]["previous"]
        assert stopped["audit"] == verify_audit(data).head
        assert token not in log
        assert code not in log
    with serving("--data", data) as second:
        assert list(second.facts) == ["address", "page file"]
        assert second.secret("page").startswith(second.facts["address"])
        wait_until(lambda: second.ask("GET", "/readyz").status_code != 503, "the service to be ready")
        assert second.ask("GET", "/v1/models/price", token).json()["n_seen"] == 21
        second.process.send_signal(signal.SIGINT)
        assert second.process.wait(timeout=60) == 0


def modes(folder: Path) -> dict[str, int]:
    found = {}
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # a temporary file that the service has renamed since it was listed
            found[path.name] = stat.S_IMODE(path.stat().st_mode)
    return found


@pytest.mark.skipif(os.name == "nt", reason="modes are of POSIX")
def test_other_users_can_read_nothing_whatever_umask_and_folder(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    folder.chmod(0o777)
    with EventStore(folder / "events.sqlite"):  # of an earlier service
        pass
    for name in ("events.sqlite", "events.sqlite-tail", "mine.txt"):
        (folder / name).touch()
        (folder / name).chmod(0o644)
    with serving("--data", folder, umask=0) as first:
        token = first.secret("token")
        rows = [{"km": 1000.0 * i, "price": 100.0 - i} for i in range(20)]
        assert first.ask("PUT", "/v1/models/price", token, json={"rows": rows, "target": "price"}).status_code == 201
        assert first.ask("POST", "/v1/models/price/snapshot", token).status_code == 200
        found = modes(folder)
        code, log = first.end()
    found |= modes(folder)  # with what is written at the end
    assert code == 0
    assert found.pop("mine.txt") == 0o644
    assert set(found) >= {
        *("events.sqlite", "events.sqlite-wal", "events.sqlite-shm", "events.sqlite-tail", "tokens.json"),
        *("last-used.json", "audit.jsonl", "admin-token", "login-link", "service.lock"),
    }
    assert {name: mode for name, mode in found.items() if mode != 0o600} == {}
    messages = [one["message"] for one in map(json.loads, log.splitlines()) if one["level"] == "warning"]
    assert messages == [
        f"{folder}/events.sqlite had mode 0644, so other users could read it; it has 0600 now",
        f"{folder}/events.sqlite-tail had mode 0644, so other users could read it; it has 0600 now",
        f"other users can write to {folder} (mode 0777), and replace its files: chmod it to 0700",
    ]


@pytest.mark.skipif(os.name == "nt", reason="there are no such terminals")
def test_secrets_are_printed_at_a_terminal(tmp_path: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "onepass", "serve", "--port", "0", "--data", str(tmp_path / "state")]
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL) as process, os.fdopen(ours) as printed:
        os.close(theirs)
        facts = dict(printed.readline().strip().split(": ", 1) for _ in range(3))
        process.kill()
    assert list(facts) == ["token", "address", "page"]
    assert facts["token"].startswith("onepass_")
    assert facts["page"].startswith(f"{facts['address']}/#login=")
    assert not {"admin-token", "login-link"} & set(os.listdir(tmp_path / "state"))


def test_a_secret_that_can_not_be_written_is_told_in_a_sentence(run: Run, tmp_path: Path) -> None:
    (tmp_path / "admin-token").mkdir()
    done = run("serve", "--data", tmp_path, "--port", 0)
    assert done.code == 1
    assert "onepass_" not in done.out + done.err
    assert "the token can't be written to" in done.err
    assert "make another one with 'onepass admin token new DIR NAME --scope admin'" in done.err


def test_without_tokens_the_page_is_no_secret(tmp_path: Path) -> None:
    with serving("--data", tmp_path, "--no-auth") as first:
        assert first.facts["page"] == f"{first.facts['address']}/"
        assert list(first.facts) == ["address", "page"]


@pytest.mark.skipif(os.name == "nt", reason="SIGTERM ends a process at once there")
def test_a_token_for_one_model_learns_nothing_of_others_from_a_running_service(run: Run, tmp_path: Path) -> None:
    made = run(
        "admin", "token", "new", tmp_path, "shop", "--scope", "learn", "--models", "stock,price", "--expires", "90d"
    )
    shop = made.out.strip()
    with serving("--data", tmp_path) as first:
        rows = [{"km": 1000.0 * i, "price": 100.0 - i} for i in range(20)]
        for name in ("price", "salaries"):
            described = {"rows": rows, "target": "price"}
            assert first.ask("PUT", f"/v1/models/{name}", first.secret("token"), json=described).status_code == 201
        answers = [first.ask("GET", path, shop) for path in ("/v1/models", "/metrics", "/v1/models/stock")]
        assert [answer.status_code for answer in answers] == [200, 200, 404]
        assert [answer.text for answer in answers if "salaries" in answer.text] == []
        assert first.ask("GET", "/v1/models/salaries", shop).status_code == 403
        assert first.ask("GET", "/v1/models/price", shop).status_code == 200
        first.end()
    listed = run("admin", "token", "list", tmp_path).out
    head, admin, row = [re.split(r"  +", line) for line in listed.splitlines()]
    assert head == ["name", "scope", "models", "created", "expires", "last used"]
    assert (admin[:3], admin[4]) == (["admin", "admin", "all"], "never")
    assert row[:3] == ["shop", "learn", "price,stock"]
    created, expires, used = map(datetime.fromisoformat, row[3:])
    assert abs((expires - created).total_seconds() - 90 * 86400) <= 1
    assert 0 <= (used - created).total_seconds() < 600


def test_there_is_always_a_token_with_the_scope_admin(run: Run, tmp_path: Path) -> None:
    assert run("admin", "token", "new", tmp_path, "admin", "--scope", "learn").code == 0
    with serving("--data", tmp_path) as first:
        found = first.ask("GET", "/v1/tokens", first.secret("token")).json()["tokens"]
    assert {one["name"]: one["scope"] for one in found} == {"admin": "learn", "admin-2": "admin"}


def test_a_folder_has_one_service(run: Run, tmp_path: Path) -> None:
    with locked(tmp_path / "service"):
        done = run("serve", "--data", tmp_path, "--port", 0)
    assert (done.code, done.out) == (1, "")
    assert re.match(r"onepass: .*service\.lock is held by process \d+.*; stop that process first", done.err)


def test_a_folder_whose_events_are_gone_is_refused_in_a_sentence(run: Run, tmp_path: Path) -> None:
    with EventStore(tmp_path / "events.sqlite") as store:
        store.append("model/m", "create", "first")
    (tmp_path / "events.sqlite").unlink()
    done = run("serve", "--data", tmp_path, "--port", 0)
    assert done.code == 1
    assert "events.sqlite: the file is missing, and it had events, as can be seen from events.sqlite-tail" in done.err
    assert not (tmp_path / "events.sqlite").exists()


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
        ((), "Missing option '--data'"),
        (("--model", "price"), "not a name and a file"),
        (("--model", "price=missing.onepass"), "there is no file 'missing.onepass'"),
        (("--data", "state", "--follow"), "--follow needs --events"),
        (("--data", "state", "--events", "mysql://host/a"), "--events must be an address such as postgresql://"),
        (("--data", "state", "--events", "nowhere/events.sqlite"), "a file in an existing folder"),
        (("--durability", "none"), "durability"),
        (("--keep-pending", "soon"), "not a time"),
        (("--rate-limit", "0"), "rate-limit"),
        (("--port", "70000"), "port"),
        (("--header-timeout", "0s"), "leaves no time at all"),
        (("--max-header", "10"), "max-header"),
        (("--proxy", "my-proxy"), "'my-proxy' is not an address or network such as 10.0.0.5"),
    ],
)
def test_wrong_options_are_usage_errors(run: Run, tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    done = run("serve", *(["--data", tmp_path] if arguments else []), *arguments)
    assert done.code == 2
    assert words in done.err


@pytest.mark.skipif(os.name == "nt", reason="needs limits of POSIX")
def test_more_connections_than_open_files_are_refused(tmp_path: Path) -> None:
    command = f"{sys.executable} -m onepass serve --data state --port 0 --max-connections 300"
    limited = ["sh", "-c", f"ulimit -Sn 200; ulimit -Hn 350; exec {command}"]
    done = subprocess.run(limited, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert done.stderr == (
        "onepass: --max-connections 300 needs 400 open files, and this process may have 350; choose 250 or fewer, or "
        "raise `ulimit -Hn`.\n"
    )


@pytest.mark.skipif(os.name == "nt", reason="needs limits of POSIX")
def test_more_models_than_open_files_are_refused(tmp_path: Path) -> None:
    with served(tmp_path / "state") as service:
        for i in range(4):
            service.ask(service.state.create(f"m{i}", regressor()))
    command = f"{sys.executable} -m onepass serve --data state --port 0 --max-connections 240"
    limited = ["sh", "-c", f"ulimit -Sn 200; ulimit -Hn 350; exec {command}"]
    done = subprocess.run(limited, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert done.stderr == (
        "onepass: 4 models need more open files than this process may have, which is enough for 3; raise `ulimit -Hn`, "
        "or allow fewer connections.\n"
    )


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


def test_a_missing_extra_is_told_in_a_sentence(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = run("serve", "--data", tmp_path)
    assert (done.code, done.err) == (1, "onepass: 'onepass serve' needs uvicorn: pip install 'onepass-learn[serve]'.\n")


def test_the_help_waits_for_no_library() -> None:
    code = (
        "import sys\nfrom onepass.cli.main import main\n"
        "try:\n    main(['serve', '--help'])\nexcept SystemExit:\n"
        "    print(sorted({'numpy', 'uvicorn', 'starlette', 'msgspec'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_what_the_command_takes_reaches_the_service(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from onepass._limits import LOOPBACK, ConnectionLimits
    from onepass.service.web import server

    asked: list[Any] = []
    monkeypatch.setattr(server, "run_service", lambda *arguments: asked.append(arguments[:3]))
    file = tmp_path / "price.onepass"
    file.write_bytes(b"")
    given = "--queue 7 --deadline 2s --max-body 99 --keep-pending 1h --keep-events 2d --rate-limit 5 --follow --port 1 "
    given += "--events postgresql://host/events --expire-overdue "
    given += "--max-header 999 --header-timeout 1s --body-timeout 2s --idle-timeout 3s "
    given += "--max-connections 50 --max-connections-per-peer 5 --proxy 10.0.0.5 --proxy fd00::/8"
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
        expire_overdue=True,
        keep_events=172800.0,
        rate_limit=5.0,
    )
    limits = ConnectionLimits(
        max_header=999,
        header_timeout=1.0,
        body_timeout=2.0,
        idle_timeout=3.0,
        max_connections=50,
        max_connections_per_peer=5,
        proxies=(*LOOPBACK, IPv4Network("10.0.0.5"), IPv6Network("fd00::/8")),
    )
    assert listening == server.Listening(port=1, allow_hosts=("a",), needs_token=False, limits=limits)
    assert imports == {"price": file}
    assert (defaults, usual, none) == (ServiceSettings(tmp_path), server.Listening(), {})
