"""``onepass bandit create``: a new bandit in a file."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onepass.cli import options
from onepass.cli.bandit_words import REWARDS, print_bandit
from onepass.cli.console import Console

if TYPE_CHECKING:
    from onepass.decisions import ContextualBandit

__all__ = ["create"]


@click.command(
    cls=options.Command,
    short_help="Make a new bandit.",
    examples=(
        "onepass bandit create headline.bandit --arms red,green,blue --features 2",
        "onepass bandit create price.bandit --arms-from prices.csv --features 5 --observation gaussian "
        "--reward-range 0,100",
        "onepass bandit create feed.bandit --arms a,b,c --features 20 --hidden 50 --drift auto",
        "onepass bandit create copy.bandit --from saved.onepass",
    ),
)
@options.bandit_argument
@click.option("--arms", type=options.names, metavar="A,B,...", help="Names of the arms.")
@click.option(
    "--arms-from",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="CSV",
    help="Take the arms from this file: the name in the first column, numbers that describe the arm in further ones if "
    "there are any; one model then learns what such arms are worth. A first line with texts in their place is skipped.",
)
@click.option("--features", type=click.IntRange(min=1), metavar="N", help="How many numbers a context has.")
@click.option(
    "--policy",
    type=click.Choice(["thompson", "ucb", "greedy", "epsilon_greedy"]),
    default="thompson",
    show_default=True,
    help="How arms are chosen: as often as they may be the best; by how good they may be; by the expected reward; by "
    "it but for 1 in 20.",
)
@click.option(
    "--observation",
    type=click.Choice(list(REWARDS)),
    default="bernoulli",
    show_default=True,
    help="Rewards: 0 or 1, numbers, or counts.",
)
@click.option(
    "--reward-range",
    type=options.numbers,
    metavar="LOW,HIGH",
    default="0,1",
    show_default=True,
    help="Between which rewards that are numbers roughly lie; they may lie outside.",
)
@click.option(
    "--hidden",
    type=options.widths,
    metavar="N,N,...",
    default=(),
    help="Learn by a network with hidden layers of so many units, e.g. 50 or 50,50; by default by perceptrons.",
)
@click.option(
    "--prior-scale",
    type=click.FloatRange(min=0.0, min_open=True),
    default=1.0,
    show_default=True,
    help="Prior standard deviation of the weights.",
)
@click.option(
    "--drift",
    type=options.rate,
    metavar="RATE|auto",
    default="0",
    show_default=True,
    help="The rate at which the truth moves with every reward, from 0 to 1; 'auto' finds it out.",
)
@click.option(
    "--forgetting",
    type=click.FloatRange(0.0, 1.0, min_open=True),
    default=1.0,
    show_default=True,
    help="Below 1 older rewards count less.",
)
@click.option(
    "--outliers",
    type=options.Share(),
    metavar="SHARE",
    default=0.0,
    show_default=True,
    help="Share of the rewards that can't be trusted, such as 0.05.",
)
@click.option("--standardize", is_flag=True, help="Bring contexts to mean 0 and deviation 1 by those seen so far.")
@click.option("--population", is_flag=True, help="Let new arms start as those with rewards are; for many arms.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the random numbers.")
@click.option(
    "--from",
    "saved",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="MODEL",
    help="Take the bandit that 'onepass bandit save', or onepass.save in Python, has written to this file.",
)
@options.bandit_name
@options.reporting
def create(
    file: Path,
    arms: tuple[str, ...] | None,
    arms_from: Path | None,
    saved: Path | None,
    name: str,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """Make a new bandit in FILE, with arms to choose from.

    Contexts should be numbers of about unit size; --standardize brings them there. An existing bandit is not replaced.
    """
    from onepass.cli.errors import user_errors

    _check_sources(arms, arms_from, saved, given["features"])
    with Console(as_json=as_json, quiet=quiet) as console, user_errors():
        if saved is not None:
            made = _load_bandit(saved)
        else:
            from onepass.decisions import ContextualBandit

            n_features = given.pop("features")
            made = ContextualBandit(_read_arms(arms_from) if arms_from is not None else arms or (), n_features, **given)
        _store(file, name, made)
        print_bandit(made, console, as_json=as_json)
        if not as_json:
            console.done({}, f"bandit: {file}")


def _check_sources(arms: Any, arms_from: Path | None, saved: Path | None, features: int | None) -> None:
    """The arms come from one place; a saved bandit has all its settings."""
    if saved is not None:
        own = ("file", "saved", "name", "as_json", "quiet")
        ctx, default = click.get_current_context(), click.core.ParameterSource.DEFAULT
        more = [key for key in ctx.params if key not in own and ctx.get_parameter_source(key) is not default]
        if more:
            raise click.UsageError(f"--from takes the bandit as it is, without --{more[0].replace('_', '-')}.")
    elif (arms is None) == (arms_from is None):
        raise click.UsageError("give the names of the arms by --arms, or by --arms-from.")
    elif features is None:
        raise click.UsageError("--features is needed: how many numbers a context has.")


def _read_arms(path: Path) -> dict[str, list[float]] | list[str]:
    """Names, or features by name."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file) if any(row)]
    if rows and len(rows[0]) > 1 and _features(rows[0]) is None:
        del rows[0]
    if not rows:
        raise ValueError(f"{path} has no arms")
    names = [row[0].strip() for row in rows]
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise ValueError(f"{path} has the arm {twice!r} twice")
    if all(len(row) == 1 for row in rows):
        return names
    features: dict[str, list[float]] = {}
    for name, row in zip(names, rows, strict=True):
        found = _features(row)
        if found is None or len(row) != len(rows[0]):
            raise ValueError(f"{path}: the arm {name!r} must have {len(rows[0]) - 1} numbers, got {row[1:]}")
        features[name] = found
    return features


def _features(row: list[str]) -> list[float] | None:
    try:
        return [float(value) for value in row[1:]]
    except ValueError:
        return None


def _load_bandit(path: Path) -> "ContextualBandit":
    from onepass.decisions import ContextualBandit
    from onepass.files.checkpoint import CheckpointError, load

    found = load(path)
    if not isinstance(found, ContextualBandit):
        raise CheckpointError(f"{path} holds a {type(found).__name__}, not a bandit")
    return found


def _store(file: Path, name: str, made: "ContextualBandit") -> None:
    from onepass.decisions.journal import open_bandit
    from onepass.files.events import EventStore

    with EventStore(file) as store, store.transaction():
        if name in store.streams():
            raise click.ClickException(
                f"{file} holds a bandit {name!r} already, which is not replaced; give another file, or --name."
            )
        open_bandit(store, name, lambda: made)
