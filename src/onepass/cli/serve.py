"""``onepass serve``: serve models that predict and learn over HTTP."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import click

from onepass._extras import require
from onepass._limits import LOOPBACK, SCOPES, ConnectionLimits
from onepass.cli import options
from onepass.cli.config import config_option
from onepass.cli.console import counted

__all__ = ["serve"]


def _named_file(value: Any) -> tuple[str, Path]:
    """A name and a file."""
    name, _, path = value.partition("=")
    if not name or not path:
        raise click.BadParameter(f"{value!r} is not a name and a file such as price=price.onepass.")
    if not Path(path).is_file():
        raise click.BadParameter(f"there is no file {path!r}.")
    return name, Path(path)


class _NewToken(NamedTuple):
    """A token to make."""

    name: str
    scope: Any
    models: tuple[str, ...] | None


def _new_token(value: Any) -> _NewToken:
    """A name, a scope, and the models that the token is for."""
    name, _, rest = value.rpartition(":")
    scope, at, models = rest.partition("@")
    if not name or scope not in SCOPES:
        scopes = ", ".join(SCOPES)
        raise click.BadParameter(f"{value!r} is not a name and a scope such as shop:learn; scopes: {scopes}.")
    named = tuple(models.split(",")) if at else None
    if named is not None and not all(named):
        raise click.BadParameter(f"{value!r} lacks the name of a model; it should be such as shop:learn@price,stock.")
    return _NewToken(name, scope, named)


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


def _checked_place(value: Any) -> Path | str:
    """A folder, a file or the address of a database."""
    from onepass.events import is_address

    if is_address(value):
        return value
    if str(value).startswith("--"):
        raise click.BadParameter(f"the folder itself is needed, not {str(value)!r}, such as --check ./state.")
    if not Path(value).exists():
        raise click.BadParameter(f"there is no folder or file {str(value)!r}.")
    return Path(value)


@click.command(
    cls=options.Command,
    short_help="Serve models that predict and learn over HTTP.",
    examples=(
        "onepass serve --data ./state",
        "onepass serve --data ./state --model price=price.onepass --port 9000",
        "onepass serve --data ./state --new-token shop:learn",
        "onepass serve --data ./state --expire-overdue",
        "onepass serve --data ./state --new-token shop:learn@price,stock --expires 90d",
        "onepass serve --data ./state --list-tokens",
        "onepass serve --check ./state",
        "onepass serve --verify-audit ./state",
        "onepass serve --check backup.sqlite",
        "onepass serve --data ./state --repair price",
        "onepass serve --data ./state --export events.parquet",
    ),
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
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
@click.option(
    "--new-token",
    type=_new_token,
    metavar="NAME:SCOPE[@MODEL,...]",
    help="Make a token for the service in --data, print it, and end; if the output is not a terminal, it is the token "
    f"alone. SCOPE is {', '.join(SCOPES[:-1])} or {SCOPES[-1]}. With @ the token is for these models only, and does "
    "not show that there are others. The service must not be running; one that runs does it at POST /v1/tokens.",
)
@click.option(
    "--expires",
    type=options.duration,
    metavar="TIME",
    help="After which time the token of --new-token is no longer valid; it is valid forever by default.",
)
@click.option(
    "--list-tokens",
    is_flag=True,
    help="List the tokens of the service in --data: scope, models, when each was made, expires and was last used; and "
    "end. The service may be running; then the last use may be a minute old.",
)
@click.option(
    "--revoke-token",
    metavar="NAME",
    help="Make a token of the service in --data invalid, and end. The service must not be running; one that runs does "
    "it at DELETE /v1/tokens/NAME.",
)
@click.option(
    "--check",
    type=_checked_place,
    metavar="DIR|FILE|URL",
    help="Check the folder of a service, a backup of its events.sqlite, or the database of --events for damage, and "
    "end; nothing is written. For a model that can't be loaded it names the event and the last good version. The exit "
    "code is 1 if anything is wrong.",
)
@click.option(
    "--repair",
    metavar="MODEL",
    help="Restore the last good version of a model in --data (and --events) that can't be loaded, list the events that "
    "are lost in a file in DIR, and end. The service must not be running.",
)
@click.option(
    "--verify-audit",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Check that no line of the audit log in the folder of a service was changed, removed or added, and end. The "
    "exit code is 1 if one was. The service may be running.",
)
@click.option(
    "--export",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.parquet",
    help="Write all events in --data to a Parquet file, whose name must end in .parquet, and end.",
)
@config_option
def serve(
    data: Path | None,
    models: tuple[tuple[str, Path], ...],
    new_token: _NewToken | None,
    expires: float | None,
    list_tokens: bool,
    revoke_token: str | None,
    check: Path | str | None,
    repair: str | None,
    verify_audit: Path | None,
    export: Path | None,
    **given: Any,
) -> None:
    """Serve the models in DIR over HTTP: they predict, learn, wait for labels that come later, and explain.

    DIR may be empty or not exist yet. Other users can't read what the service writes there. The address is printed
    and, if there is no token with the scope admin yet, a new one, which is not shown again. A link to a web page for
    watching the models is printed too; it signs in one browser once. If the output is not a terminal but a log, token
    and link go to the files admin-token and login-link in DIR instead. Every event that the service has acknowledged is
    on the disk. SIGTERM and Ctrl-C stop the service once it has finished the requests in its queue.
    """
    if data is None and check is None and verify_audit is None:
        raise click.UsageError("--data DIR is needed: the folder in which the service keeps its models and events.")
    actions = (new_token, list_tokens, revoke_token, check, repair, verify_audit, export)
    if sum(one not in (None, False) for one in actions) > 1:
        names = "--new-token, --list-tokens, --revoke-token, --check, --repair, --verify-audit and --export"
        raise click.UsageError(f"Only one of {names} can be given.")
    if expires is not None and new_token is None:
        raise click.UsageError("--expires needs --new-token, the token that it is about.")
    from onepass.files.private import private_files

    requests = None  # that do the same while the service runs
    if new_token is not None:
        requests = "POST /v1/tokens makes a token"
    elif revoke_token is not None:
        requests = f"DELETE /v1/tokens/{revoke_token} revokes it"
    with _service_errors(requests), private_files():
        if check is not None:
            _check(check)
        elif verify_audit is not None:
            _verify_audit(verify_audit)
        elif data is not None and new_token is not None:
            _print_new_token(data, new_token, expires)
        elif data is not None and list_tokens:
            _print_tokens(data)
        elif data is not None and revoke_token is not None:
            _revoke_token(data, revoke_token)
        elif data is not None and repair is not None:
            _repair(data, given["events"], repair)
        elif data is not None and export is not None:
            _export(data, export)
        elif data is not None:
            _run(data, dict(models), given)


@contextmanager
def _service_errors(requests: str | None) -> Iterator[None]:
    """Errors that a user can mend, also those of the service, without a traceback.

    Parameters
    ----------
    requests : what to ask of a service that runs instead of using the command
    """
    from onepass.cli.errors import user_errors

    require("serve", "'onepass serve'")
    from onepass.files.lock import LockedError
    from onepass.service.errors import ProblemError

    with user_errors():
        try:
            yield
        except LockedError as error:
            other = f"while it runs, {requests}" if requests else "choose another --data or --events"
            words = f"a service is running there; stop that process first, or {other}"
            raise ValueError(f"{error.holds}: {words}") from None
        except ProblemError as problem:
            raise ValueError(problem.detail) from None


def _run(data: Path, models: dict[str, Path], given: dict[str, Any]) -> None:
    from onepass.service.settings import ServiceSettings
    from onepass.service.web.server import Announcer, Listening, is_loopback, run_service

    _check_models(models)
    _check_events(given["events"], follow=given["follow"])
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


def _check_models(models: Iterable[str], option: str = "--model") -> None:
    from onepass.service.web.bodies import from_text
    from onepass.service.wire import ModelName

    for name in models:
        from_text(name, ModelName, f"the name of {option}")


def _check_events(events: str | None, *, follow: bool) -> None:
    if events is None:
        if follow:
            raise click.UsageError("--follow needs --events, the place where the service that learns keeps its events.")
        return
    from onepass.events import is_address

    if not is_address(events) and ("://" in events or not Path(events).absolute().parent.is_dir()):
        words = "an address such as postgresql://host/database, or a file in an existing folder"
        raise click.UsageError(f"--events must be {words}, got {events!r}.")


def _check_folder(data: Path) -> None:
    if not data.is_dir():
        raise click.UsageError(f"--data must be the folder of a service, got {str(data)!r}, which does not exist.")


def _print_new_token(data: Path, token: _NewToken, seconds: float | None) -> None:
    from onepass.service.web.server import new_token

    _check_models(token.models or (), "a model of --new-token")
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    expires = None if seconds is None else datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=seconds)
    secret = new_token(data, token.name, token.scope, models=token.models, expires=expires)
    click.echo(f"token: {secret}" if sys.stdout.isatty() else secret)


def _print_tokens(data: Path) -> None:
    from onepass.service.web.server import open_tokens

    _check_folder(data)
    tokens = open_tokens(data)
    rows = [("name", "scope", "models", "created", "expires", "last used")]
    for one in tokens.all():
        models = "all" if one.models is None else ",".join(sorted(one.models))
        used = tokens.last_used(one)
        rows.append((one.name, one.scope, models, _date(one.created), _date(one.expires), _date(used)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def _date(moment: datetime | None) -> str:
    from onepass.service.utc import utc_text

    return "never" if moment is None else utc_text(moment)


def _revoke_token(data: Path, name: str) -> None:
    from onepass.service.web.server import revoke_token

    _check_folder(data)
    revoke_token(data, name)
    click.echo(f"revoked: {name}")


def _verify_audit(folder: Path) -> None:
    from onepass.service.web.audit import verify_audit

    found = verify_audit(folder)
    if not found.files:
        raise ValueError(f"there is no audit log in {folder}")
    for words in (*found.notes, *found.problems):
        click.echo(f"{words}.")
    if found.problems:
        click.get_current_context().exit(1)
    lines, files = counted(found.lines, "line"), counted(found.files, "file")
    unfinished = f", and {'one' if found.unfinished == 1 else found.unfinished} unfinished" if found.unfinished else ""
    click.echo(f"{lines} in {files}, each of which follows from the one before it{unfinished}.")
    click.echo(f"last hash: {found.head}")


def _check(place: Path | str) -> None:
    from onepass.service.checking import check_state

    problems = check_state(place, click.echo)
    for problem in problems:
        click.echo(problem)
    if problems:
        click.get_current_context().exit(1)
    what = "The database" if isinstance(place, str) else place  # an address may have a password
    click.echo(f"{what} has no damage.")


def _repair(data: Path, events: str | None, name: str) -> None:
    from onepass.service.repair import repair_model
    from onepass.service.settings import ServiceSettings
    from onepass.service.web.audit import COMMAND_LINE, AuditLog

    _check_events(events, follow=False)
    _check_folder(data)
    found = repair_model(
        ServiceSettings(data, events=events),
        name,
        lambda done: AuditLog(data).changed(
            COMMAND_LINE, "repair", 200, model=name, version=done.good, lost=done.n_lost
        ),
    )
    if found is None:
        click.echo(f"{name} can be loaded; nothing was changed.")
        return
    click.echo(f"{name} could not be loaded: {found.event}.")
    click.echo(f"restored: version {found.good}, as version {found.version}")
    click.echo(f"lost: {found.n_lost} event{'' if found.n_lost == 1 else 's'}, listed in {found.file}")


def _export(data: Path, file: Path) -> None:
    from onepass.service.export import export_events

    if file.suffix.lower() != ".parquet":
        raise click.UsageError(f"--export writes Parquet, so the name must end in .parquet, got {str(file)!r}.")
    export_events(data, file)
    click.echo(f"events: {file}")
