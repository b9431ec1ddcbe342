"""``onepass decide``: let a bandit choose an arm in a context; its reward is given later."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onepass.cli import options
from onepass.cli.console import Console

if TYPE_CHECKING:
    from onepass.cli.bandit_file import Request

__all__ = ["decide"]

_SHOWN = 10  # arms


@click.command(
    cls=options.Command,
    short_help="Let a bandit choose an arm in a context.",
    examples=(
        "onepass decide headline.bandit --context 0.5,-1",
        "onepass decide headline.bandit --context 0.5,-1 --id 'visit 17' --json",
        "onepass decide headline.bandit --context 0.5,-1 -n 2 --arms red,blue",
        """echo '{"id": "visit 18", "context": [0.1, 0.3]}' | onepass decide headline.bandit""",
    ),
)
@options.bandit_argument
@click.option(
    "--context", type=options.numbers, metavar="X,X,...", help="The context: the numbers known before the choice."
)
@click.option(
    "--id",
    "decision_id",
    metavar="ID",
    help="Id of the decision, with which its reward is given later; by default its number.",
)
@click.option(
    "-n", "n", type=click.IntRange(min=1), default=1, show_default=True, help="Choose this many arms, the best first."
)
@click.option("--arms", type=options.names, metavar="A,B,...", help="Choose among these arms only; by default all.")
@options.bandit_name
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line, for programs.")
def decide(
    file: Path,
    context: tuple[float, ...] | None,
    decision_id: str | None,
    n: int,
    arms: tuple[str, ...] | None,
    name: str,
    as_json: bool,
) -> int:
    """Let the bandit in FILE choose an arm, and print the arm and the id of the decision.

    The decision is on the disk before it is printed; 'onepass reward FILE ID VALUE' gives its reward later. With an
    --id of your own the command may be repeated: it then prints the same decision again. Another context, -n or --arms
    with an --id that was used is an error.

    With --json the fields are id, arm, arms (the best first), propensity (the probability with which the arm was
    chosen), and, for every arm by name, propensities, means (expected rewards) and stds (their standard deviations).
    For a decision that is printed again ("again": true) the last three are null.

    Without --context requests are read from standard input, as JSON lines such as {"context": [0.5, -1]}. "id", "n" and
    "arms" may be given too; "arms" may be an object that gives new arms with their features: {"new": [0.3, 0.1]}. Every
    line is answered at once by one JSON line. A line that can't be used is answered by {"id": ..., "error": ...}, and
    the exit code is then 3.
    """
    from onepass.cli.bandit_file import Request, open_file
    from onepass.cli.errors import user_errors
    from onepass.cli.json_lines import for_each_line

    if decision_id == "" or (decision_id is not None and context is None):
        raise click.UsageError(
            '--id must not be empty and needs --context; in JSON lines on standard input give the field "id".'
        )
    with Console(as_json=as_json) as console, user_errors(), open_file(file, name) as opened:
        if context is None:
            return for_each_line(
                lambda found: _print_json(opened.decide(_requested(found, n, arms))),
                lambda found, reason: _print_json({"id": found.get("id"), "error": reason}),
            )
        made = opened.decide(Request(context, decision_id, n, arms))
        if as_json:
            _print_json(made)
        else:
            _print_words(made, console)
    return 0


def _requested(found: dict[str, Any], n: int, arms: tuple[str, ...] | None) -> "Request":
    """The request in a line of input; what it leaves out is as the options say."""
    from onepass.cli.bandit_file import Request
    from onepass.cli.json_lines import as_id, as_numbers, check_fields, field

    check_fields(found, ("context", "id", "n", "arms"))
    own_n, own_arms = found.get("n", n), found.get("arms", arms)
    if not isinstance(own_n, int) or isinstance(own_n, bool) or own_n < 1:
        raise ValueError(f"n must be a whole number of at least 1, got {own_n!r}")
    if isinstance(own_arms, dict):
        own_arms = {arm: as_numbers(features, f"arm {arm!r}") for arm, features in own_arms.items()}
    elif own_arms is not None and not isinstance(own_arms, list | tuple):
        raise ValueError(f"arms must be a list of names, or an object with the features of each, got {own_arms!r}")
    given = found.get("id")
    return Request(
        as_numbers(field(found, "context"), "context"), None if given is None else as_id(given), own_n, own_arms
    )


def _print_json(made: dict[str, Any]) -> None:
    click.echo(json.dumps(made))  # which flushes, too


def _print_words(made: dict[str, Any], console: Console) -> None:
    console.fact("id", made["id"] + (" (decided before)" if made["again"] else ""))
    console.fact("arm", ", ".join(map(str, made["arms"])))
    console.fact("propensity", f"{made['propensity']:.4g}")
    if made["again"]:
        return
    likely = sorted(made["propensities"], key=made["propensities"].get, reverse=True)
    for arm in likely[:_SHOWN]:
        expected = f"expected reward {made['means'][arm]:.4g} ± {made['stds'][arm]:.2g}"
        console.fact(f"  {arm}", f"propensity {made['propensities'][arm]:.4g}, {expected}")
    if len(likely) > _SHOWN:
        console.fact("  others", f"{len(likely) - _SHOWN:,} arms with smaller propensities")
