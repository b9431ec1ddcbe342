"""``onepass admin``: look after the folder of a service: its tokens, its events, its audit log."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from onepass._limits import SCOPES, ScopeName
from onepass.cli import options
from onepass.cli.console import counted
from onepass.cli.serve import check_events, check_model_names, service_errors

__all__ = ["admin"]

folder = click.argument("data", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))


def _checked_place(value: Any) -> Path | str:
    """A folder, a file or the address of a database."""
    from onepass.events import is_address

    if is_address(value):
        return value
    if not Path(value).exists():
        raise click.BadParameter(f"there is no folder or file {str(value)!r}.")
    return Path(value)


@click.group(short_help="Look after a service: tokens, checks, repairs.")
def admin() -> None:
    """Look after the folder DIR of a service: tokens, checks, repairs, and its events as a table."""


@admin.group(short_help="Make, list and revoke tokens.")
def token() -> None:
    """Make, list and revoke the tokens of a service; one that runs does the same at /v1/tokens."""


@token.command(
    cls=options.Command,
    examples=(
        "onepass admin token new ./state shop --scope learn",
        "onepass admin token new ./state shop --scope learn --models price,stock --expires 90d",
    ),
)
@folder
@click.argument("name")
@click.option("--scope", type=click.Choice(SCOPES), required=True, help="What the token may do.")
@click.option(
    "--models",
    type=options.names,
    metavar="A,B,...",
    help="The token is for these models only, and does not show that there are others; by default it is for all.",
)
@click.option(
    "--expires",
    type=options.duration,
    metavar="TIME",
    help="After which time the token is no longer valid; it is valid forever by default.",
)
def new(data: Path, name: str, scope: ScopeName, models: tuple[str, ...] | None, expires: float | None) -> None:
    """Make a token for the service in DIR and print it; if the output is not a terminal, the token alone.

    The service must not be running; one that runs does it at POST /v1/tokens. The folder must exist: a first start of
    the service makes it, or mkdir.
    """
    with service_errors("POST /v1/tokens makes a token"):
        from onepass.service.web.server import new_token

        check_model_names(models or (), "a model of --models")
        until = None if expires is None else datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=expires)
        secret = new_token(data, name, scope, models=models, expires=until)
        click.echo(f"token: {secret}" if sys.stdout.isatty() else secret)


@token.command("list", cls=options.Command, examples=("onepass admin token list ./state",))
@folder
def list_(data: Path) -> None:
    """List the tokens of the service in DIR: scope, models, when each was made, expires and was last used.

    The service may be running; then the last use may be a minute old.
    """
    with service_errors():
        from onepass.service.web.server import open_tokens

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


@token.command(cls=options.Command, examples=("onepass admin token revoke ./state shop",))
@folder
@click.argument("name")
def revoke(data: Path, name: str) -> None:
    """Make a token of the service in DIR invalid.

    The service must not be running; one that runs does it at DELETE /v1/tokens/NAME.
    """
    with service_errors(f"DELETE /v1/tokens/{name} revokes it"):
        from onepass.service.web.server import revoke_token

        revoke_token(data, name)
        click.echo(f"revoked: {name}")


@admin.command(
    cls=options.Command,
    short_help="Check for damage.",
    examples=(
        "onepass admin check ./state",
        "onepass admin check backup.sqlite",
        "onepass admin check postgresql://host/database",
    ),
)
@click.argument("place", metavar="DIR|FILE|URL", type=_checked_place)
def check(place: Path | str) -> None:
    """Check the folder of a service, a backup of its events.sqlite, or the database of --events for damage.

    Nothing is written. For a model that can't be loaded it names the event and the last good version. The exit code is
    1 if anything is wrong.
    """
    with service_errors():
        from onepass.service.checking import check_state

        problems = check_state(place, click.echo)
        for problem in problems:
            click.echo(problem)
        if problems:
            click.get_current_context().exit(1)
        what = "The database" if isinstance(place, str) else place  # an address may have a password
        click.echo(f"{what} has no damage.")


@admin.command(
    cls=options.Command,
    short_help="Restore a model that can't be loaded.",
    examples=(
        "onepass admin repair ./state price",
        "onepass admin repair ./state price --events postgresql://host/database",
    ),
)
@folder
@click.argument("model")
@click.option("--events", metavar="URL", help="The database in which the service keeps its events, if it has one.")
def repair(data: Path, model: str, events: str | None) -> None:
    """Restore the last good version of a model that can't be loaded, and list the lost events in a file in DIR.

    The service must not be running.
    """
    with service_errors():
        from onepass.service.repair import repair_model
        from onepass.service.settings import ServiceSettings
        from onepass.service.web.audit import COMMAND_LINE, AuditLog

        check_events(events, follow=False)
        found = repair_model(
            ServiceSettings(data, events=events),
            model,
            lambda done: AuditLog(data).changed(
                COMMAND_LINE, "repair", 200, model=model, version=done.good, lost=done.n_lost
            ),
        )
        if found is None:
            click.echo(f"{model} can be loaded; nothing was changed.")
            return
        click.echo(f"{model} could not be loaded: {found.event}.")
        click.echo(f"restored: version {found.good}, as version {found.version}")
        click.echo(f"lost: {found.n_lost} event{'' if found.n_lost == 1 else 's'}, listed in {found.file}")


@admin.command(
    "verify-audit",
    cls=options.Command,
    short_help="Check the audit log.",
    examples=("onepass admin verify-audit ./state",),
)
@folder
def verify_audit(data: Path) -> None:
    """Check that no line of the audit log in DIR was changed, removed or added.

    The exit code is 1 if one was. The service may be running.
    """
    with service_errors():
        from onepass.service.web.audit import verify_audit

        found = verify_audit(data)
        if not found.files:
            raise ValueError(f"there is no audit log in {data}")
        for words in (*found.notes, *found.problems):
            click.echo(f"{words}.")
        if found.problems:
            click.get_current_context().exit(1)
        lines, files = counted(found.lines, "line"), counted(found.files, "file")
        unfinished = (
            f", and {'one' if found.unfinished == 1 else found.unfinished} unfinished" if found.unfinished else ""
        )
        click.echo(f"{lines} in {files}, each of which follows from the one before it{unfinished}.")
        click.echo(f"last hash: {found.head}")


@admin.command(
    "export-events",
    cls=options.Command,
    short_help="Write all events to a Parquet file.",
    examples=("onepass admin export-events ./state events.parquet",),
)
@folder
@click.argument("file", metavar="FILE.parquet", type=click.Path(dir_okay=False, path_type=Path))
def export_events(data: Path, file: Path) -> None:
    """Write all events in DIR to a Parquet file, whose name must end in .parquet."""
    if file.suffix.lower() != ".parquet":
        raise click.UsageError(f"Events are written as Parquet, so the name must end in .parquet, got {str(file)!r}.")
    with service_errors():
        from onepass.service.export import export_events

        export_events(data, file)
        click.echo(f"events: {file}")
