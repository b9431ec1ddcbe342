"""``onepass playground`` as a process: its address, its end, and what it says where it can't start."""

import signal
import socket
import subprocess
import sys
from urllib.request import urlopen

import pytest
from click.testing import CliRunner
from websockets.sync.client import connect

from onepass.cli import playground
from onepass.cli.main import onepass
from tests.helpers.commands import COMMAND, read_until, started
from tests.helpers.waiting import wait_until


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_its_address_serves_the_page_and_ends_quietly(ending: signal.Signals) -> None:
    with started([*COMMAND, "playground", "--port", "0", "--no-open"]) as process:
        said = read_until(process.stdout, "/playground\n")
        address = said.strip().removeprefix("address: ")
        assert address.startswith("http://127.0.0.1:")
        with urlopen(address, timeout=60) as found:
            assert b"onepass playground" in found.read()
        with connect(f"{address.replace('http', 'ws')}/socket") as page:  # which is open when it ends
            page.send('{"scene": "curve", "id": 1}')
            assert '"id":1' in str(page.recv(60))
            process.send_signal(ending)
            assert process.wait(60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.mark.parametrize("opens", [True, False])
def test_the_page_is_opened_in_the_browser_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch, opens: bool) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("uvicorn.Server.run", lambda self, sockets: [one.close() for one in sockets])
    done = CliRunner().invoke(onepass, ["playground", "--port", "0", "--open" if opens else "--no-open"])
    assert done.exit_code == 0, done.output
    if opens:
        wait_until(lambda: bool(opened), "the browser to be opened")
    assert [f"address: {address}\n" for address in opened] == ([done.output] if opens else [])


def test_a_taken_port_is_an_error_where_it_was_asked_for_and_else_another_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = CliRunner().invoke(onepass, ["playground", "--port", str(port), "--no-open"])
        assert done.exit_code == 1
        assert f"port {port} can't be used: Address already in use; choose another one." in done.output
        monkeypatch.setattr(playground, "_PORT", port)
        with playground._listen(None) as listener:
            assert listener.getsockname()[1] not in (0, port)


@pytest.mark.parametrize("missing", ["uvicorn", "starlette", "msgspec"])
def test_without_the_extra_it_says_what_to_install(missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; from onepass.cli.main import main; main(['playground'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == f"onepass: 'onepass playground' needs {missing}: pip install 'onepass-learn[serve]'.\n"
