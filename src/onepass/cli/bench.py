"""``onepass bench``: measure the library on data sets in a local folder."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from onepass.decisions.benchmark.measure import Outcome
    from onepass.evaluation.uci import Result

__all__ = ["bench"]


class Widths(click.ParamType[tuple[int, ...]]):
    """Numbers of units of the hidden layers, separated by commas: 50 or 50,50."""

    name = "N[,N...]"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Split at the commas."""
        parts = [part.strip() for part in str(value).split(",")]
        if not all(part.isdecimal() and int(part) > 0 for part in parts):
            self.fail(f"{value!r} is not a list of whole numbers above 0, such as 50 or 50,50", param, ctx)
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


@bench.command()
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with mnist/ (its four files) and bandits/ (statlog.npz, covertype.npz, adult.npz); without it only "
    "tasks on synthetic data can be run.",
)
@click.option("--tasks", default="", help="Names of tasks, separated by commas; all by default.")
@click.option(
    "--seeds", type=click.IntRange(min=1), help="Runs of each task; by default as many as in the published results."
)
@click.option(
    "--steps", type=click.IntRange(min=1), help="Steps of each run, for a short trial; by default those of the task."
)
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Write all numbers to this file.")
def bandits(data: Path | None, tasks: str, seeds: int | None, steps: int | None, file: Path | None) -> None:
    """Contextual bandits: rewards, regret and steps per second, beside what others have published.

    All tasks use the same defaults. In the tasks with data the arms are the labels of rows, and only the reward of the
    arm chosen is seen.
    """
    from rich.console import Console
    from rich.progress import Progress

    from onepass.decisions.benchmark.catalogue import ENTRIES, entries_for
    from onepass.decisions.benchmark.measure import measure
    from onepass.files.atomic import write_atomically

    try:
        asked = entries_for([name.strip() for name in tasks.split(",") if name.strip()])
    except ValueError as error:
        raise click.BadParameter(f"{error}.", param_hint="--tasks") from None
    if data is None and tasks:
        needing = [name for name in asked if ENTRIES[name].folder is not None]
        if needing:
            raise click.UsageError(f"--data is needed for {', '.join(needing)}.")
    elif data is None:
        asked = [name for name in asked if ENTRIES[name].folder is None]
    runs = sum((seeds or ENTRIES[name].seeds) * len(ENTRIES[name].players) for name in asked)
    found = []
    with Progress(console=Console(stderr=True)) as progress:
        row = progress.add_task("runs", total=runs)
        for outcome in measure(data, asked, seeds, steps, lambda: progress.advance(row)):
            found.append(outcome)
    if file is not None:
        write_atomically(file, (json.dumps([one.numbers() for one in found], indent=1) + "\n").encode())
    for name in asked:
        entry = ENTRIES[name]
        click.echo(f"{name}: {entry.title}" + (f" (published: {entry.published})" if entry.published else ""))
        for outcome in (one for one in found if one.task == name):
            click.echo(_outcome_line(outcome, total=entry.total))


def _outcome_line(outcome: "Outcome", *, total: bool) -> str:
    (mean, error), (regret, regret_error) = outcome.reward, outcome.regret
    reward = f"{mean:,.0f} ± {error:,.0f}" if total else f"{mean:.4f} ± {error:.4f}"
    return (
        f"  {outcome.player:38} {reward:>18}   regret {regret:9,.0f} ± {regret_error:,.0f} "
        f"(best fixed arm {outcome.fixed_arm:,.0f})   {outcome.steps_per_second:7,.0f} steps/s"
    )


def _line(result: "Result") -> str:
    rmse = f"{result.rmse_mean:.3f} ± {result.rmse_se:.3f}"
    likelihood = f"{result.ll_mean:.3f} ± {result.ll_se:.3f}"
    return f"{result.dataset:20} {rmse:>16} {likelihood:>16} {result.coverage_mean:6.1f} {result.seconds_per_pass:9.3f}"
