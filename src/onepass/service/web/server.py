"""The process of a service: a socket, the models, the application, and an end that loses nothing."""

import asyncio
import gc
import ipaddress
import logging
import signal
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from errno import EACCES, EADDRINUSE
from pathlib import Path

import threadpoolctl
import uvicorn

from onepass.files.lock import locked
from onepass.service.errors import ProblemError
from onepass.service.settings import ServiceSettings
from onepass.service.state import ServiceState
from onepass.service.web.app import create_app, running
from onepass.service.web.logs import set_up_logs
from onepass.service.web.security import LOOPBACK_HOSTS, Security
from onepass.service.web.tokens import ScopeName, Tokens

__all__ = ["Listening", "is_loopback", "new_token", "run_service"]

_log = logging.getLogger("onepass.service")
_TOKENS, _AUDIT = "tokens.json", "audit.jsonl"
_GRACE = 30  # seconds that open requests have at the end

Announce = Callable[[str, str], None]
"""Tells the user a named fact."""


@dataclass(frozen=True)
class Listening:
    """How the service is reached.

    Parameters
    ----------
    host, port : that it listens on; port 0: any that is free
    allow_hosts : names by which it may be called, besides those of this machine
    needs_token : whether a token is needed
    log_requests : whether every request is logged
    """

    host: str = "127.0.0.1"
    port: int = 8080
    allow_hosts: tuple[str, ...] = ()
    needs_token: bool = True
    log_requests: bool = False


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def new_token(data: Path, name: str, scope: ScopeName) -> str:
    """Make a token for a service that does not run."""
    with locked(data / "service"):
        return Tokens(data / _TOKENS).create(name, scope)


def run_service(
    settings: ServiceSettings, listening: Listening, imports: Mapping[str, Path], announce: Announce
) -> None:
    """Serve until the process is asked to end; then finish what is queued, and save snapshots.

    Parameters
    ----------
    settings : of the models
    listening : how they are reached
    imports : model files to begin with, by the names of models that may be there already
    announce : tells where the service is, and secrets that nobody else will hear
    """
    with (
        _bound(listening) as listener,
        threadpoolctl.threadpool_limits(1),  # a model has one thread; more would only wait for each other
        asyncio.Runner(loop_factory=_loop_factory()) as runner,
    ):
        runner.run(_serve(settings, listening, imports, announce, listener))


async def _serve(
    settings: ServiceSettings,
    listening: Listening,
    imports: Mapping[str, Path],
    announce: Announce,
    listener: socket.socket,
) -> None:
    state = ServiceState(settings)
    async with running(state):
        set_up_logs()
        for name, path in imports.items():
            try:
                await state.import_file(name, path)
            except ProblemError as problem:
                raise ValueError(f"--model {name}={path}: {problem.detail}") from None
        port = listener.getsockname()[1]
        security = _security(settings, listening, port, announce)
        app = create_app(
            state,
            security,
            audit=settings.data / _AUDIT,
            max_body=settings.max_body,
            log_requests=listening.log_requests,
        )
        announce("address", _address(listening.host, port))
        code = f"#login={security.sessions.new_code()}" if listening.needs_token else ""
        announce("page", f"{_address(_reachable(listening.host), port)}/{code}")
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                lifespan="off",  # the models are started above, where a failure is told in one sentence
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=_GRACE,
                limit_concurrency=1000,  # below the number of files that a process may usually open
                h11_max_incomplete_event_size=2**16,
                ws_max_size=2**20,
            )
        )
        _end_by_signals(server)
        gc.collect()
        gc.freeze()  # what is there now stays; looking at it again would only cost time
        _log.info("started", extra={"address": _address(listening.host, port)})
        await server.serve(sockets=[listener])
    _log.info("stopped; all acknowledged events are saved")


def _security(settings: ServiceSettings, listening: Listening, port: int, announce: Announce) -> Security:
    tokens = Tokens(settings.data / _TOKENS) if listening.needs_token else None
    if tokens is not None and not tokens.has_admin:
        announce("token", tokens.create(tokens.free_name("admin"), "admin"))
    is_known = is_loopback(listening.host) or bool(listening.allow_hosts)
    hosts = LOOPBACK_HOSTS | {listening.host.lower(), *listening.allow_hosts} if is_known else None
    return Security(tokens, hosts=hosts, rate_limit=settings.rate_limit, cookie=f"onepass_session_{port}")


def _end_by_signals(server: uvicorn.Server) -> None:
    """End with code 0 when asked to: the server raises signals again after it has ended, and then finds these."""

    def end(signum: int, frame: object) -> None:
        server.should_exit = True

    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, end)


def _bound(listening: Listening) -> socket.socket:
    host, port = listening.host.strip("[]"), listening.port
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except socket.gaierror as error:
        raise ValueError(f"--host {host} is not an address of this machine: {error.strerror}") from None
    except OSError as error:
        reasons = {
            EADDRINUSE: "another process uses this port; choose another --port",
            EACCES: "only an administrator may use this port; choose a --port above 1023",
        }
        reason = reasons.get(error.errno or 0, error.strerror)
        raise ValueError(f"can't listen on {_address(host, port)}: {reason}") from None


def _address(host: str, port: int) -> str:
    name = host.strip("[]")
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def _reachable(host: str) -> str:
    """A host that a browser on this machine can open."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host.strip("[]"), host)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # it is not there for Windows
        return None
    return uvloop.new_event_loop
