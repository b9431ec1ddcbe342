"""``onepass history``: list the runs in which a model has learned."""

from pathlib import Path

import click

from onepass.cli import options
from onepass.cli.console import Console, counted

__all__ = ["history"]

_SHOWN = 20  # names of files of one run


@click.command(
    cls=options.Command,
    short_help="List the runs in which a model has learned.",
    examples=("onepass history price.onepass", "onepass history price.onepass --json"),
)
@options.model_argument
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines, for programs.")
def history(model: Path, as_json: bool) -> None:
    """List the runs in which MODEL has learned: when each ended, its files, the rows learned and rejected.

    Files are recognised by their content: 'onepass learn' leaves out those that are listed here. With --json each file
    has its size in bytes, the number of its rows and the SHA-256 of the part that was learned.
    """
    from onepass.cli.errors import user_errors
    from onepass.cli.paths import load_model, load_series, series_command_of

    with Console(as_json=as_json) as console, user_errors():
        unit = "row" if series_command_of(model) is None else "value"
        history = load_model(model).history if unit == "row" else load_series(model).history
        if history.forgotten:
            console.aside(f"{counted(history.forgotten, 'file')} of earlier runs are not kept any more")
        if not history.runs:
            console.aside(f"{model} lists no runs: it was not learned from files")
        for number, run in enumerate(history.runs, 1):
            names = [file.name for file in run.files]
            shown = ", ".join(names[:_SHOWN]) + (f", ... ({len(names):,} files)" if len(names) > _SHOWN else "")
            words = [
                run.when,
                counted(run.rows, unit) + (f" in {run.passes} passes" if run.passes > 1 else ""),
                f"{run.rejected:,} rejected",
                f"from {shown or 'standard input'}",
            ]
            files = [
                {"name": file.name, "bytes": file.size, "rows": file.rows, "sha256": file.digest} for file in run.files
            ]
            numbers = {"when": run.when or None, "rows": run.rows, "rejected": run.rejected, "passes": run.passes}
            console.fact(f"run {number}", ", ".join(words), "run", **numbers, files=files)
