"""``onepass reproduce``: run the paper's experiments, write figures, numbers and a report, and print the tables."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onepass._extras import require
from onepass.paper import NAMES, load

if TYPE_CHECKING:
    from rich.console import Console

    from onepass.reports.html import Section

__all__ = ["reproduce"]


@click.command()
@click.argument("experiment", type=click.Choice(["all", *NAMES]), default="all")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reproduction"),
    show_default=True,
    help="Folder for the figures, results.json and report.html.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the random numbers; the same seed gives the same results.",
)
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="Number of random trials; the paper has 50.",
)
def reproduce(experiment: str, out: Path, seed: int, trials: int) -> None:
    """Re-run every experiment, figure and number of the paper.

    Writes the figures as PNG and SVG, every number to results.json, and a report to report.html, one file that opens
    offline.
    """
    require("plots", "'onepass reproduce'")
    with _writable(out):
        _reproduce(experiment, out, seed, trials)


def _reproduce(asked: str, out: Path, seed: int, trials: int) -> None:
    # Heavy imports are here, so that help and usage errors are answered at once.
    from functools import partial
    from time import perf_counter

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from onepass.files.atomic import write_atomically
    from onepass.paper.base import Outcome
    from onepass.paper.reproduction import Run, publish

    begin = perf_counter()
    outcomes: dict[str, Outcome] = {}
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        for name in NAMES if asked == "all" else (asked,):
            experiment = load(name)
            task = progress.add_task(experiment.title, total=experiment.steps(trials))
            outcomes[name] = experiment.run(seed, trials, partial(progress.advance, task))
        task = progress.add_task("Figures and report", total=1)
        publication = publish(outcomes, Run(asked, seed, trials, perf_counter() - begin))
        progress.advance(task)
    # Written last and atomically: an interruption before leaves nothing, one during leaves only whole files.
    for name, content in publication.files.items():
        write_atomically(out / name, content)
    for section in publication.sections:
        _show(section, Console())
    click.echo(f"Report: {out / 'report.html'}")


@contextmanager
def _writable(folder: Path) -> Iterator[None]:
    """Check that the folder can be written before the work begins; remove it again if the work fails."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise click.ClickException(f"cannot write to --out {folder}: {error.strerror}.") from None
    try:
        yield
    except BaseException:
        for path in missing:
            if not any(path.iterdir()):
                path.rmdir()
        raise


def _show(section: "Section", console: "Console") -> None:
    """Print the section's first table, with the same column widths for every section."""
    from rich import box
    from rich.table import Table

    from onepass.reports.html import plain

    source = section.tables[0]
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    widths = (24, 15, 15, 17) if console.width >= 80 else (None,) * 4  # where there is no room, cells wrap
    for column, width in zip(source.columns, widths, strict=True):
        table.add_column(column, min_width=width, justify="right" if column else "left")
    for row in source.rows:
        table.add_row(*map(plain, row))
    console.print(plain(section.title), style="bold", highlight=False)
    console.print(table)
