"""The process of a service: a socket, the models, the application, and an end that loses nothing."""

import asyncio
import gc
import ipaddress
import logging
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from errno import EACCES, EADDRINUSE
from pathlib import Path

import threadpoolctl
import uvicorn

from onepass._limits import ConnectionLimits, ScopeName
from onepass.files.atomic import write_atomically
from onepass.files.lock import locked
from onepass.files.private import close_to_others
from onepass.service.errors import ProblemError
from onepass.service.settings import SERVICE, ServiceSettings
from onepass.service.state import EVENTS, ServiceState
from onepass.service.web.access import about_token
from onepass.service.web.app import create_app, running
from onepass.service.web.audit import COMMAND_LINE, AuditLog, audit_files
from onepass.service.web.connections import Connections
from onepass.service.web.logs import set_up_logs
from onepass.service.web.security import LOOPBACK_HOSTS, Security
from onepass.service.web.tokens import LAST_USED, Tokens

__all__ = ["Announcer", "Listening", "is_loopback", "new_token", "open_tokens", "revoke_token", "run_service"]

_log = logging.getLogger("onepass.service")
_TOKENS, _ADMIN_TOKEN, _LOGIN_LINK = "tokens.json", "admin-token", "login-link"
_OTHER_FILES = 100  # that may be open besides those of connections and models: of the service, the log and libraries
_FILES_PER_MODEL = 3  # its events, their log, and the note about their end
_OPEN_MAX = 10_240  # open files that macOS allows, which names infinity as its hard limit
_GRACE = 30  # seconds that open requests have at the end
_SAVING = 60.0  # seconds between two writes of when tokens were last used


@dataclass(frozen=True)
class Announcer:
    """Tells the user where the service is, and secrets that are not given again.

    Parameters
    ----------
    say : prints a named fact
    secrets : folder for files with secrets, of which only the names are printed, because what is printed ends up in a
        log; None: somebody reads what is printed, so secrets are printed too
    """

    say: Callable[[str, str], None]
    secrets: Path | None = None

    def secret(self, name: str, words: str, file: str) -> None:
        """Print a secret, or write it to a file that only the user of this process can read."""
        if self.secrets is None:
            self.say(name, words)
            return
        path = (self.secrets / file).absolute()
        try:
            write_atomically(path, f"{words}\n".encode(), mode=0o600)
        except OSError as error:
            raise ValueError(f"the {name} can't be written to {path}: {error.strerror}") from None
        self.say(f"{name} file", str(path))


@dataclass(frozen=True)
class Listening:
    """How the service is reached.

    Parameters
    ----------
    host, port : that it listens on; port 0: any that is free
    allow_hosts : names by which it may be called, besides those of this machine
    needs_token : whether a token is needed
    log_requests : whether every request is logged
    limits : of its connections
    """

    host: str = "127.0.0.1"
    port: int = 8080
    allow_hosts: tuple[str, ...] = ()
    needs_token: bool = True
    log_requests: bool = False
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)


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


def open_tokens(data: Path) -> Tokens:
    """The tokens of a service, as they are in its folder; it may be running."""
    return Tokens(data / _TOKENS)


def new_token(
    data: Path, name: str, scope: ScopeName, *, models: Iterable[str] | None = None, expires: datetime | None = None
) -> str:
    """Make a token for a service that does not run."""
    with locked(data / SERVICE):
        secret = open_tokens(data).create(name, scope, models=models, expires=expires)
        AuditLog(data).changed(COMMAND_LINE, "create token", 201, **about_token(name, scope, models, expires))
        return secret


def revoke_token(data: Path, name: str) -> None:
    """Revoke a token of a service that does not run."""
    with locked(data / SERVICE):
        token = open_tokens(data).revoke(name)
        about = about_token(name, token.scope, token.models, token.expires)
        AuditLog(data).changed(COMMAND_LINE, "revoke token", 204, **about)


def run_service(
    settings: ServiceSettings, listening: Listening, imports: Mapping[str, Path], announcer: Announcer
) -> None:
    """Serve until the process is asked to end; then finish what is queued, and save snapshots.

    Parameters
    ----------
    settings : of the models
    listening : how they are reached
    imports : model files to begin with, by the names of models that may be there already
    announcer : tells where the service is, and secrets
    """
    settings = replace(settings, max_models=_room_for_models(listening.limits.max_connections))
    with (
        _bound(listening) as listener,
        threadpoolctl.threadpool_limits(1),  # a model has one thread; more would only wait for each other
        asyncio.Runner(loop_factory=_loop_factory()) as runner,
    ):
        runner.run(_serve(settings, listening, imports, announcer, listener))


async def _serve(
    settings: ServiceSettings,
    listening: Listening,
    imports: Mapping[str, Path],
    announcer: Announcer,
    listener: socket.socket,
) -> None:
    state = ServiceState(settings)
    was_open = close_to_others(settings.data, _own_files(settings.data))  # SQLite gives its log the mode of the file
    async with running(state):
        set_up_logs()
        for words in was_open:
            _log.warning(words)
        for name, path in imports.items():
            try:
                await state.import_file(name, path)
            except ProblemError as problem:
                raise ValueError(f"--model {name}={path}: {problem.detail}") from None
        port = listener.getsockname()[1]
        audit = AuditLog(settings.data)
        security = _security(settings, listening, port, audit, announcer)
        connections = Connections(listening.limits)
        app = create_app(
            state,
            security,
            connections=connections,
            audit=audit,
            max_body=settings.max_body,
            log_requests=listening.log_requests,
        )
        announcer.say("address", _address(listening.host, port))
        page = f"{_address(_reachable(listening.host), port)}/"
        if security.tokens is None:
            announcer.say("page", page)
        else:
            announcer.secret("page", f"{page}#login={security.sessions.new_code()}", _LOGIN_LINK)
        server = uvicorn.Server(
            connections.configure(
                app,
                lifespan="off",  # the models are started above, where a failure is reported in one sentence
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_GRACE,
                ws_max_size=2**20,
            )
        )
        _end_by_signals(server)
        gc.collect()
        gc.freeze()  # what is there now stays; looking at it again would only cost time
        _log.info("started", extra={"address": _address(listening.host, port), "audit": _head(audit)})
        async with _saving_use(security.tokens):
            await server.serve(sockets=[listener])
    _log.info("stopped; all acknowledged events are saved", extra={"audit": _head(audit)})


def _own_files(data: Path) -> list[Path]:
    """Files that services in this folder have written."""
    names = (_TOKENS, LAST_USED, _ADMIN_TOKEN, _LOGIN_LINK)
    return [*sorted(data.glob(f"{EVENTS}*")), *audit_files(data), *(data / name for name in names)]


def _head(audit: AuditLog) -> str | None:
    """The hash of the last line, by which it can be seen later that the end of the log is missing."""
    with suppress(OSError):
        return audit.head
    return None


@asynccontextmanager
async def _saving_use(tokens: Tokens | None) -> AsyncIterator[None]:
    """Write down when tokens were last used, from time to time and at the end."""
    if tokens is None:
        yield
        return

    async def save() -> None:
        while True:
            await asyncio.sleep(_SAVING)
            await asyncio.to_thread(tokens.save_used)

    task = asyncio.create_task(save())
    try:
        yield
    finally:
        task.cancel()
        tokens.save_used()


def _security(
    settings: ServiceSettings, listening: Listening, port: int, audit: AuditLog, announcer: Announcer
) -> Security:
    tokens = open_tokens(settings.data) if listening.needs_token else None
    if tokens is not None and not tokens.has_admin:
        name = tokens.free_name("admin")
        secret = tokens.create(name, "admin")
        audit.changed("service start", "create token", 201, **about_token(name, "admin", None, None))
        try:
            announcer.secret("token", secret, _ADMIN_TOKEN)
        except ValueError as error:
            words = "nobody knows it now, so make another one with 'onepass admin token new DIR NAME --scope admin'"
            raise ValueError(f"{error}; {words}") from None
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


def _room_for_models(connections: int) -> int | None:
    """How many models the process can have next to its connections, with as many open files as it may have.

    None if there is no limit of open files.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return None
    needed, unlimited = connections + _OTHER_FILES, resource.RLIM_INFINITY
    allowed, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (hard, max(needed, _OPEN_MAX)):
        if allowed != unlimited and (limit == unlimited or limit > allowed):
            with suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
                allowed = limit
    if allowed == unlimited:
        return None
    if allowed < needed:
        needs = f"--max-connections {connections} needs {needed} open files, and this process may have {allowed}"
        raise ValueError(f"{needs}; choose {max(allowed - _OTHER_FILES, 1)} or fewer, or raise `ulimit -Hn`")
    return (allowed - needed) // _FILES_PER_MODEL


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
