"""``onepass bandit create``: a new bandit in a file."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onepass.cli import options
from onepass.cli.bandit_words import print_bandit
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
    help="Read the arms from this file: names in the first column, and optionally numbers that describe each arm in "
    "the others; with such numbers one model for all arms is learned. A header line is skipped.",
)
@click.option("--features", type=click.IntRange(min=1), metavar="N", help="How many numbers a context has.")
@click.option(
    "--policy",
    type=click.Choice(["thompson", "ucb", "greedy", "epsilon_greedy"]),
    default="thompson",
    show_default=True,
    help="How an arm is chosen. thompson: as often as it may be the best; ucb: the one with the highest upper "
    "confidence bound; greedy: the one with the highest expected reward; epsilon_greedy: the same, but 1 choice in 20 "
    "at random.",
)
@click.option(
    "--observation",
    type=click.Choice(["bernoulli", "gaussian", "poisson", "negative_binomial"]),
    default="bernoulli",
    show_default=True,
    help="What rewards are. bernoulli: 0 or 1; gaussian: numbers; poisson, negative_binomial: counts.",
)
@click.option(
    "--reward-range",
    type=options.numbers,
    metavar="LOW,HIGH",
    default="0,1",
    show_default=True,
    help="Rough range of rewards that are numbers; single rewards may lie outside it.",
)
@click.option(
    "--hidden",
    type=options.widths,
    metavar="N,N,...",
    default=(),
    help="Learn by a network, with these numbers of units in its hidden layers, such as 50 or 50,50. "
    "Without it the bandit learns by perceptrons.",
)
@click.option(
    "--prior-scale",
    type=click.FloatRange(min=0.0, min_open=True),
    default=1.0,
    show_default=True,
    help="Standard deviation of the weights before the first reward.",
)
@click.option(
    "--drift",
    type=options.rate,
    metavar="RATE|auto",
    default="0",
    show_default=True,
    help="How fast the rewards of the arms change, from 0 to 1: with every reward the covariance of the weights moves "
    "this share of the way back to the prior's. 'auto' finds the rate by itself.",
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
@click.option(
    "--standardize",
    is_flag=True,
    help="Scale contexts to mean 0 and standard deviation 1, using the contexts seen so far.",
)
@click.option(
    "--population",
    is_flag=True,
    help="Let new arms start from what arms with rewards have in common; for many arms.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the random numbers.")
@click.option(
    "--from",
    "saved",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="MODEL",
    help="Start from the bandit in this file, written by 'onepass bandit save' or by onepass.save in Python.",
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

    The numbers of a context should have a size of about 1; --standardize scales them. An existing bandit is not
    replaced.
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
            raise click.UsageError(
                f"--from takes the bandit with all its settings, so --{more[0].replace('_', '-')} can't be given."
            )
    elif (arms is None) == (arms_from is None):
        raise click.UsageError("Give the names of the arms with either --arms or --arms-from.")
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
    from onepass.decisions.stored import open_bandit
    from onepass.events import EventStore

    with EventStore(file) as store, store.transaction():
        if name in store.streams():
            raise click.ClickException(
                f"{file} already has a bandit {name!r}, which is not replaced; give another file, or another --name."
            )
        open_bandit(store, name, lambda: made)
