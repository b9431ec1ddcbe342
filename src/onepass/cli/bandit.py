"""``onepass bandit``: create a bandit in a file, look at it, and change its arms."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onepass.cli import options
from onepass.cli.bandit_create import create
from onepass.cli.bandit_words import print_arms, print_bandit
from onepass.cli.console import Console, counted

if TYPE_CHECKING:
    from onepass.decisions import ContextualBandit

__all__ = ["bandit"]


@click.group()
def bandit() -> None:
    """Create and manage bandits, which choose with 'onepass decide' and learn with 'onepass reward'.

    A contextual bandit chooses one of several arms, such as headlines, prices or servers. Before each choice it is
    given the context, a row of numbers; afterwards it gets the reward of the arm that it chose. From these it learns
    which arm is best in which context. It tries an arm that it is unsure of as often as that arm may be the best.

    A bandit is kept in one file. Any number of commands may use it at once, and what a command has printed is safe even
    if the machine crashes.
    """


bandit.add_command(create)


@bandit.command(
    cls=options.Command,
    short_help="Print what a bandit is and what it has done.",
    examples=("onepass bandit show headline.bandit", "onepass bandit show headline.bandit --json"),
)
@options.bandit_argument
@options.bandit_name
@options.reporting
def show(file: Path, name: str, as_json: bool, quiet: bool) -> None:
    """Print the arms of the bandit in FILE, its policy and model, and how many decisions and rewards there were."""
    from onepass.cli.bandit_file import open_file
    from onepass.cli.errors import user_errors

    with Console(as_json=as_json, quiet=quiet) as console, user_errors(), open_file(file, name) as opened:
        print_bandit(opened.bandit, console, as_json=as_json)


@bandit.command(
    cls=options.Command,
    short_help="Stop waiting for the rewards of old decisions.",
    examples=(
        "onepass bandit expire headline.bandit --after 1d",
        "onepass bandit expire headline.bandit --after 30m --default 0    # no click within half an hour is none",
    ),
)
@options.bandit_argument
@click.option("--after", type=options.duration, metavar="TIME", required=True, help="Age, such as 30s, 5m, 12h or 7d.")
@click.option("--default", type=float, metavar="VALUE", help="Learn this reward for each of them; by default none.")
@options.bandit_name
@options.reporting
def expire(file: Path, after: float, default: float | None, name: str, as_json: bool, quiet: bool) -> None:
    """Stop waiting for the rewards of decisions older than --after; with --default, learn that reward for each."""
    from onepass.cli.bandit_file import open_file
    from onepass.cli.errors import user_errors

    with Console(as_json=as_json, quiet=quiet) as console, user_errors(), open_file(file, name) as opened:
        expired = opened.bandit.expire(after, default)
        learned = "" if default is None else f", with the reward {default:g} each"
        words = f"expired: {counted(expired, 'decision')}{learned if expired else ''}"
        waiting = opened.bandit.n_pending
        console.done({"expired": expired, "pending": waiting}, f"{words}; {waiting:,} still wait for a reward")


def _change_arms(
    file: Path, name: str, change: Callable[["ContextualBandit"], object], console: Console, *, as_json: bool
) -> None:
    """Change the arms of a bandit, and print those there are then."""
    from onepass.cli.bandit_file import open_file
    from onepass.cli.errors import user_errors

    with console, user_errors(), open_file(file, name) as opened:
        change(opened.bandit)
        facts = {"arms": list(opened.bandit.arms), "paused": list(opened.bandit.paused)}
        if as_json:
            console.done(facts)
        else:
            print_arms(facts, console)


@bandit.command(
    "add-arm",
    cls=options.Command,
    short_help="Add an arm.",
    examples=(
        "onepass bandit add-arm headline.bandit violet",
        "onepass bandit add-arm price.bandit 'very cheap' --arm-features 0.1,2",
    ),
)
@options.bandit_argument
@click.argument("arm")
@click.option(
    "--arm-features", type=options.numbers, metavar="X,X,...", help="Features of the arm, if the other arms have some."
)
@options.bandit_name
@options.reporting
def add_arm(
    file: Path, arm: str, arm_features: tuple[float, ...] | None, name: str, as_json: bool, quiet: bool
) -> None:
    """Add the arm ARM to the bandit in FILE; it can be chosen from now on."""
    console = Console(as_json=as_json, quiet=quiet)
    _change_arms(file, name, lambda made: made.add_arm(arm, arm_features), console, as_json=as_json)


def _arm_command(method: str, command_name: str, help_words: str, short_help: str) -> None:
    """Add a command that does something to one arm."""

    @bandit.command(
        command_name,
        cls=options.Command,
        short_help=short_help,
        help=help_words,
        examples=(f"onepass bandit {command_name} headline.bandit green",),
    )
    @options.bandit_argument
    @click.argument("arm")
    @options.bandit_name
    @options.reporting
    def alter(file: Path, arm: str, name: str, as_json: bool, quiet: bool) -> None:
        from onepass.cli.bandit_file import find_name

        def change(made: "ContextualBandit") -> None:
            getattr(made, method)(find_name(arm, made.arms))

        _change_arms(file, name, change, Console(as_json=as_json, quiet=quiet), as_json=as_json)


_arm_command(
    "remove_arm",
    "remove-arm",
    "Remove the arm ARM: it is never chosen again, and rewards that come for it later are not learned.",
    "Remove an arm.",
)
_arm_command(
    "pause",
    "pause",
    "Do not choose the arm ARM until 'onepass bandit resume'; rewards that come for it meanwhile are learned.",
    "Do not choose an arm for a while.",
)
_arm_command("resume", "resume", "Choose the arm ARM again, after 'onepass bandit pause'.", "Choose an arm again.")


@bandit.command(
    cls=options.Command,
    short_help="Save a bandit as a model file.",
    examples=("onepass bandit save headline.bandit saved.onepass",),
)
@options.bandit_argument
@click.argument("model", type=click.Path(path_type=Path, dir_okay=False))
@options.bandit_name
@options.reporting
def save(file: Path, model: Path, name: str, as_json: bool, quiet: bool) -> None:
    """Save the bandit in FILE as the model file MODEL, for onepass.load in Python or 'onepass bandit create --from'."""
    from onepass.cli.bandit_file import open_file
    from onepass.cli.errors import user_errors
    from onepass.cli.paths import check_distinct_paths, check_writable

    with Console(as_json=as_json, quiet=quiet) as console, user_errors(), open_file(file, name) as opened:
        from onepass.files import checkpoint

        check_distinct_paths([file], MODEL=model)
        check_writable(model, "MODEL")
        checkpoint.save(opened.bandit, model)
        console.done({"model": str(model)}, f"model: {model}")
