"""``onepass serve``: serve models that predict and learn over HTTP."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from onepass._extras import require
from onepass.cli import options
from onepass.cli.config import config_option

__all__ = ["serve"]


def _named_file(value: Any) -> tuple[str, Path]:
    """A name and a file."""
    name, _, path = value.partition("=")
    if not name or not path:
        raise click.BadParameter(f"{value!r} is not a name and a file such as price=price.onepass.")
    if not Path(path).is_file():
        raise click.BadParameter(f"there is no file {path!r}.")
    return name, Path(path)


def _new_token(value: Any) -> tuple[str, str]:
    """A name and a scope."""
    name, _, scope = value.rpartition(":")
    if not name or scope not in ("read", "learn", "admin"):
        raise click.BadParameter(f"{value!r} is not a name and a scope such as shop:learn; scopes: read, learn, admin.")
    return name, scope


@click.command(
    cls=options.Command,
    short_help="Serve models that predict and learn over HTTP.",
    examples=(
        "onepass serve --data ./state",
        "onepass serve --data ./state --model price=price.onepass --port 9000",
        "onepass serve --data ./state --new-token shop:learn",
        "onepass serve --check ./state",
        "onepass serve --check backup.sqlite",
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
    "--keep-pending",
    type=options.duration,
    default="30d",
    show_default=True,
    metavar="TIME",
    help="How long a prediction with an id waits for its label.",
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
    metavar="NAME:SCOPE",
    help="Make a token for the service in --data, print it, and end. SCOPE is read, learn or admin. The service must "
    "not be running.",
)
@click.option(
    "--check",
    type=click.Path(exists=True, path_type=Path),
    metavar="DIR|FILE",
    help="Check the folder of a service, or a backup of its events.sqlite, for damage, and end; nothing is written. "
    "The exit code is 1 if anything is wrong.",
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
    new_token: tuple[str, str] | None,
    check: Path | None,
    export: Path | None,
    **given: Any,
) -> None:
    """Serve the models in DIR over HTTP: they predict, learn, wait for labels that come later, and explain.

    DIR may be empty or not exist yet. The address is printed and, if there is no token with the scope admin yet, a
    new one, which is not shown again. A link to a web page for watching the models is printed too; it signs in one
    browser once. Every event that the service has acknowledged is on the disk. SIGTERM and Ctrl-C stop the service once
    it has finished the requests in its queue.
    """
    if data is None and check is None:
        raise click.UsageError("--data DIR is needed: the folder in which the service keeps its models and events.")
    if sum(one is not None for one in (new_token, check, export)) > 1:
        raise click.UsageError("Only one of --new-token, --check and --export can be given.")
    with _told_in_a_sentence():
        if check is not None:
            _check(check)
        elif data is not None and new_token is not None:
            _print_new_token(data, *new_token)
        elif data is not None and export is not None:
            _export(data, export)
        elif data is not None:
            _run(data, dict(models), given)


@contextmanager
def _told_in_a_sentence() -> Iterator[None]:
    """Errors that a user can mend, also those of the service, without a traceback."""
    from onepass.cli.errors import user_errors

    require("serve", "'onepass serve'")
    from onepass.files.lock import LockedError
    from onepass.service.errors import ProblemError

    with user_errors():
        try:
            yield
        except LockedError as error:
            words = "a service is running there; stop that process first, or choose another --data or --events"
            raise ValueError(f"{error}: {words}") from None
        except ProblemError as problem:
            raise ValueError(problem.detail) from None


def _run(data: Path, models: dict[str, Path], given: dict[str, Any]) -> None:
    from onepass.service.settings import ServiceSettings
    from onepass.service.web.server import Listening, is_loopback, run_service

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
    own = {one.name for one in fields(Listening)} & given.keys()
    listening = Listening(needs_token=needs_token, **{name: given.pop(name) for name in own})
    run_service(ServiceSettings(data, **given), listening, models, lambda name, words: click.echo(f"{name}: {words}"))


def _check_models(models: dict[str, Path]) -> None:
    from onepass.service.web.bodies import from_text
    from onepass.service.web.models import ModelName

    for name in models:
        from_text(name, ModelName, "the name of --model")


def _check_events(events: str | None, *, follow: bool) -> None:
    if events is None:
        if follow:
            raise click.UsageError("--follow needs --events, the place where the service that learns keeps its events.")
        return
    is_server = events.startswith(("postgresql://", "postgres://"))
    if not is_server and ("://" in events or not Path(events).absolute().parent.is_dir()):
        words = "an address such as postgresql://host/database, or a file in an existing folder"
        raise click.UsageError(f"--events must be {words}, got {events!r}.")


def _print_new_token(data: Path, name: str, scope: Any) -> None:
    from onepass.service.web.server import new_token

    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    click.echo(f"token: {new_token(data, name, scope)}")


def _check(path: Path) -> None:
    from onepass.service.checking import check_state

    problems = check_state(path, click.echo)
    for problem in problems:
        click.echo(problem)
    if problems:
        click.get_current_context().exit(1)
    click.echo(f"{path} has no damage.")


def _export(data: Path, file: Path) -> None:
    from onepass.service.export import export_events

    if file.suffix.lower() != ".parquet":
        raise click.UsageError(f"--export writes Parquet, so the name must end in .parquet, got {str(file)!r}.")
    export_events(data, file)
    click.echo(f"events: {file}")
