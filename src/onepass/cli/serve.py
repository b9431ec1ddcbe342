"""``onepass serve``: serve models that predict and learn over HTTP."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from onepass._extras import require
from onepass._limits import LOOPBACK, ConnectionLimits
from onepass.cli import options
from onepass.cli.config import config_option

__all__ = ["check_events", "check_model_names", "serve", "service_errors"]


def _named_file(value: Any) -> tuple[str, Path]:
    """A name and a file."""
    name, _, path = value.partition("=")
    if not name or not path:
        raise click.BadParameter(f"{value!r} is not a name and a file such as price=price.onepass.")
    if not Path(path).is_file():
        raise click.BadParameter(f"there is no file {path!r}.")
    return name, Path(path)


def _time_limit(value: Any) -> float:
    """A time, in seconds."""
    seconds = options.duration(value)
    if not seconds:
        raise click.BadParameter(f"{value!r} leaves no time at all; give a time such as 10s or 5m.")
    return seconds


def _network(value: Any) -> Any:
    """An address, or a network."""
    import ipaddress

    try:
        return ipaddress.ip_network(value, strict=False)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not an address or network such as 10.0.0.5 or 10.0.0.0/8.") from None


@click.command(
    cls=options.Command,
    short_help="Serve models that predict and learn over HTTP.",
    examples=(
        "onepass serve --data ./state",
        "onepass serve --data ./state --model price=price.onepass --port 9000",
        "onepass serve --data ./state --events postgresql://host/database",
        "onepass serve --data ./state --expire-overdue",
    ),
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    required=True,
    help="Folder in which the service keeps its models and events; created if it does not exist.",
)
@click.option(
    "--model",
    "models",
    type=_named_file,
    multiple=True,
    metavar="NAME=FILE",
    help="Serve the model in FILE as NAME, unless DIR already has a model of that name; may be repeated.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="Port to listen on; 0 for any free one.",
)
@click.option(
    "--allow-host",
    "allow_hosts",
    multiple=True,
    metavar="NAME",
    help="A host name in requests to accept, besides the names of this machine; may be repeated.",
)
@click.option(
    "--events",
    metavar="URL",
    help="Keep events in PostgreSQL instead of a file in DIR, such as postgresql://host/database.",
)
@click.option(
    "--follow", is_flag=True, help="Only predict, with the models that another service with the same --events learns."
)
@click.option(
    "--durability",
    type=click.Choice(["full", "relaxed"]),
    default="full",
    show_default=True,
    help="'full' answers when the event is on the disk. 'relaxed' answers before: a power failure may lose the last "
    "seconds, a crash of the process nothing.",
)
@click.option(
    "--queue",
    type=click.IntRange(min=1),
    default=4096,
    show_default=True,
    help="How many requests may wait to be learned, per model; more are refused with status 429.",
)
@click.option(
    "--deadline",
    type=options.duration,
    default="10s",
    show_default=True,
    metavar="TIME",
    help="How long a request may wait in the queue; then it is refused with status 503.",
)
@click.option(
    "--max-body",
    type=click.IntRange(min=1),
    default=32 * 2**20,
    show_default=True,
    metavar="BYTES",
    help="Largest size of a request, including an uploaded model.",
)
@click.option(
    "--max-header",
    type=click.IntRange(min=256),
    default=ConnectionLimits.max_header,
    show_default=True,
    metavar="BYTES",
    help="Largest size of a request's first line and headers; more is refused with status 431.",
)
@click.option(
    "--header-timeout",
    type=_time_limit,
    default=f"{ConnectionLimits.header_timeout:g}s",
    show_default=True,
    metavar="TIME",
    help="How long a client may take to send the headers of a request; then it is refused with status 408.",
)
@click.option(
    "--body-timeout",
    type=_time_limit,
    default=f"{ConnectionLimits.body_timeout:g}s",
    show_default=True,
    metavar="TIME",
    help="How long a client may take to send the body of a request; then it is refused with status 408.",
)
@click.option(
    "--idle-timeout",
    type=_time_limit,
    default=f"{ConnectionLimits.idle_timeout:g}s",
    show_default=True,
    metavar="TIME",
    help="How long a connection stays open without a request, or without reading an answer.",
)
@click.option(
    "--max-connections",
    type=click.IntRange(min=1),
    default=ConnectionLimits.max_connections,
    show_default=True,
    metavar="N",
    help="How many connections may be open. For one more, the one that has waited longest for its client is closed; if "
    "all are being answered, it is refused with status 503.",
)
@click.option(
    "--max-connections-per-peer",
    type=click.IntRange(min=1),
    default=ConnectionLimits.max_connections_per_peer,
    show_default=True,
    metavar="N",
    help="The same for connections from one address (IPv6: one /64 network). This machine and --proxy are exempt.",
)
@click.option(
    "--proxy",
    "proxies",
    type=_network,
    multiple=True,
    metavar="ADDRESS",
    help="Address or network of a reverse proxy on another machine, which makes connections for many clients and whose "
    "X-Forwarded-For is trusted; may be repeated.",
)
@click.option(
    "--keep-pending",
    type=options.duration,
    default="30d",
    show_default=True,
    metavar="TIME",
    help="How long a prediction with an id waits for its label.",
)
@click.option(
    "--expire-overdue",
    is_flag=True,
    help="Confirm that the clock is right: delete what has waited longer than --keep-pending, although the service was "
    "not running for some of that time. Without it, a long pause or a jump of the clock deletes nothing at once.",
)
@click.option(
    "--keep-events",
    type=options.duration,
    metavar="TIME",
    help="How long events and their ids are kept after they are learned; forever by default.",
)
@click.option(
    "--rate-limit",
    type=click.FloatRange(min=0.0, min_open=True),
    metavar="N",
    help="Most requests per second for each token; no limit by default.",
)
@click.option(
    "--no-auth", is_flag=True, help="Require no token; only for a service that can be reached from this machine only."
)
@click.option("--log-requests", is_flag=True, help="Log every request.")
@config_option
def serve(data: Path, models: tuple[tuple[str, Path], ...], **given: Any) -> None:
    """Serve the models in DIR over HTTP: they predict, learn, wait for labels that come later, and explain.

    DIR may be empty or not exist yet. Other users can't read what the service writes there. The address is printed
    and, if there is no token with the scope admin yet, a new one, which is not shown again. A link to a web page for
    watching the models is printed too; it signs in one browser once. If the output is not a terminal but a log, token
    and link go to the files admin-token and login-link in DIR instead. Every event that the service has acknowledged is
    on the disk. SIGTERM and Ctrl-C stop the service once it has finished the requests in its queue.

    'onepass admin' makes tokens, checks and repairs the folder, and exports its events.
    """
    with service_errors():
        _run(data, dict(models), given)


@contextmanager
def service_errors(requests: str | None = None) -> Iterator[None]:
    """Errors that a user can mend, also those of the service, without a traceback; new files are for one user alone.

    Parameters
    ----------
    requests : what to ask of a service that runs instead of using the command
    """
    from onepass.cli.errors import user_errors

    require("serve", "'onepass serve'")
    from onepass.files.lock import LockedError
    from onepass.files.private import private_files
    from onepass.service.errors import ProblemError

    with user_errors(), private_files():
        try:
            yield
        except LockedError as error:
            other = f"while it runs, {requests}" if requests else "choose another folder or database"
            words = f"a service is running there; stop that process first, or {other}"
            raise ValueError(f"{error.holds}: {words}") from None
        except ProblemError as problem:
            raise ValueError(problem.detail) from None


def _run(data: Path, models: dict[str, Path], given: dict[str, Any]) -> None:
    from onepass.service.settings import ServiceSettings
    from onepass.service.web.server import Announcer, Listening, is_loopback, run_service

    check_model_names(models)
    check_events(given["events"], follow=given["follow"])
    host = given["host"]
    needs_token = not given.pop("no_auth")
    if not is_loopback(host):
        if not needs_token:
            raise click.UsageError(
                f"--no-auth can't be used with --host {host}, which other machines can reach; leave one of them out."
            )
        words = f"--host {host}: requests are not encrypted; put a proxy with TLS in front of the service."
        click.echo(words, err=True)
    given["proxies"] = (*LOOPBACK, *given["proxies"])
    limits = ConnectionLimits(**_taken(ConnectionLimits, given))
    listening = Listening(needs_token=needs_token, limits=limits, **_taken(Listening, given))
    announcer = Announcer(
        lambda name, words: click.echo(f"{name}: {words}"), secrets=None if sys.stdout.isatty() else data
    )
    run_service(ServiceSettings(data, **given), listening, models, announcer)


def _taken(record: type, given: dict[str, Any]) -> dict[str, Any]:
    """The values of a record's fields, which are no longer among those given."""
    return {one.name: given.pop(one.name) for one in fields(record) if one.name in given}


def check_model_names(models: Iterable[str], option: str = "--model") -> None:
    """Refuse names that no model can have."""
    from onepass.service.web.bodies import from_text
    from onepass.service.wire import ModelName

    for name in models:
        from_text(name, ModelName, f"the name of {option}")


def check_events(events: str | None, *, follow: bool) -> None:
    """Refuse what is not a place for events; a service that follows another needs one."""
    if events is None:
        if follow:
            raise click.UsageError("--follow needs --events, the place where the service that learns keeps its events.")
        return
    from onepass.events import is_address

    if not is_address(events) and ("://" in events or not Path(events).absolute().parent.is_dir()):
        words = "an address such as postgresql://host/database, or a file in an existing folder"
        raise click.UsageError(f"--events must be {words}, got {events!r}.")
