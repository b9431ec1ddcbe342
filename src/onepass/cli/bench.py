"""``onepass bench``: measure the library on data sets in a local folder."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from onepass.evaluation.uci import Result

__all__ = ["bench"]


class Widths(click.ParamType[tuple[int, ...]]):
    """Numbers of units of the hidden layers, separated by commas: 50 or 50,50."""

    name = "N[,N...]"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Split at the commas."""
        parts = [part.strip() for part in str(value).split(",")]
        if not all(part.isdecimal() and int(part) > 0 for part in parts):
            self.fail(f"{value!r} is no list of whole numbers above 0, such as 50 or 50,50", param, ctx)
        return tuple(int(part) for part in parts)


@click.group()
def bench() -> None:
    """Measure the library on your own data sets."""


@bench.command()
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    help="Folder with one folder per set: data.txt, index_features.txt, index_target.txt, index_train_i.txt, ...",
)
@click.option("--datasets", default="", help="Names of sets, separated by commas; all by default.")
@click.option("--splits", type=click.IntRange(min=1), help="Number of splits, from the first; all by default.")
@click.option(
    "--passes", type=click.IntRange(min=1), default=1, show_default=True, help="Number of passes over the data."
)
@click.option(
    "--hidden",
    type=Widths(),
    default="50",
    show_default=True,
    help="Numbers of units of the hidden layers, e.g. 50,50.",
)
@click.option(
    "--members", type=click.IntRange(min=1), default=5, show_default=True, help="Number of networks per committee."
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of the random numbers; the same seed gives the same results.",
)
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Write the scores to this file.")
def uci(
    data: Path,
    datasets: str,
    splits: int | None,
    passes: int,
    hidden: tuple[int, ...],
    members: int,
    seed: int,
    file: Path | None,
) -> None:
    """Regression sets with fixed train/test splits: RMSE, log-likelihood, coverage and time.

    All sets use the same defaults. Inputs and targets are standardised by the training part; scores are in the targets'
    own units.
    """
    from rich.console import Console
    from rich.progress import Progress

    from onepass.evaluation.uci import Setting, count_splits, find_datasets
    from onepass.evaluation.uci import bench as run
    from onepass.files.atomic import write_atomically

    there = find_datasets(data)
    asked = [name.strip() for name in datasets.split(",") if name.strip()] or there
    missing = [name for name in asked if name not in there]
    if missing or not asked:
        raise click.ClickException(f"no set {', '.join(missing)} in {data}; there are: {', '.join(there) or 'none'}.")
    total = sum(min(splits or 1000, count_splits(data / name)) for name in asked)
    results: list[Result] = []
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("splits", total=total)
        for result in run(data, asked, splits, Setting(passes, hidden, members, seed), lambda: progress.advance(task)):
            results.append(result)
    if file is not None:
        numbers = [result.numbers() for result in results]
        write_atomically(file, (json.dumps(numbers, indent=2) + "\n").encode())
    click.echo(f"{'':20} {'RMSE':>16} {'log-likelihood':>16} {'95 %':>6} {'s/pass':>9}")
    for result in results:
        click.echo(_line(result))


def _line(result: "Result") -> str:
    rmse = f"{result.rmse_mean:.3f} ± {result.rmse_se:.3f}"
    likelihood = f"{result.ll_mean:.3f} ± {result.ll_se:.3f}"
    return f"{result.dataset:20} {rmse:>16} {likelihood:>16} {result.coverage_mean:6.1f} {result.seconds_per_pass:9.3f}"
