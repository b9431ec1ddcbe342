"""``onepass reward``: tell a bandit the rewards of its decisions."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import click

from onepass.cli import options
from onepass.cli.console import Console, counted

__all__ = ["reward"]

_SHOWN = 10  # ids


def _number(value: Any) -> float:
    try:
        return float(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a number.", param_hint="'VALUE'") from None


@click.command(
    cls=options.Command,
    short_help="Tell a bandit the reward of a decision.",
    context_settings={"ignore_unknown_options": True},  # or a negative VALUE would be taken for one
    examples=(
        "onepass reward headline.bandit 0 1",
        "onepass reward price.bandit 'visit 17' -3.5",
        "onepass reward headline.bandit 'visit 18' 1 --arm blue",
        """echo '{"id": "visit 18", "reward": 1}' | onepass reward headline.bandit --unknown count""",
    ),
)
@options.bandit_argument
@click.argument("decision_id", metavar="[ID", required=False)
@click.argument("value", metavar="VALUE]", type=_number, required=False)
@click.option(
    "--arm", metavar="NAME", help="If the decision chose several arms: the one rewarded; by default the first."
)
@click.option(
    "--unknown",
    type=click.Choice(["error", "count"]),
    help="What to do with a reward that no decision waits for, because the decision was never made or has expired: "
    "'error' ends with exit code 1, 'count' only counts it. By default 'error', unless a bandit made in Python says "
    "otherwise.",
)
@options.bandit_name
@options.reporting
def reward(
    file: Path,
    decision_id: str | None,
    value: float | None,
    arm: str | None,
    unknown: str | None,
    name: str,
    as_json: bool,
    quiet: bool,
) -> int:
    """Tell the bandit in FILE the reward of the decision ID. Rewards may come minutes or days later, in any order.

    The reward is on the disk when the command has ended. The same reward may be given again and counts once; a
    different reward for the same decision is an error.

    Without ID and VALUE rewards are read from standard input, as JSON lines such as {"id": "17", "reward": 1}, which
    may also have "arm", and learned as they come. Lines that can't be used are reported on standard error, and the exit
    code is 3, or 1 if no decision waits for some of the rewards. With --json every line is answered by one: {"id": ...,
    "result": "learned", "known" or "unknown"}.
    """
    from onepass.cli.bandit_file import open_file
    from onepass.cli.errors import user_errors
    from onepass.cli.json_lines import as_id, as_number, check_fields, field, for_each_line

    if decision_id is not None and value is None:
        raise click.UsageError("ID needs a VALUE: onepass reward FILE ID VALUE.")
    if decision_id is None and arm is not None:
        raise click.UsageError('--arm needs ID and VALUE; in lines of standard input it is the field "arm".')
    results: Counter[str] = Counter()
    lost: list[str] = []
    with Console(as_json=as_json, quiet=quiet) as console, user_errors(), open_file(file, name) as opened:
        counts = (unknown or opened.bandit.unknown_rewards) == "count"

        def learn(key: str, amount: float, own: Any) -> None:
            result = opened.reward(key, amount, own)
            results[result] += 1
            if result == "unknown" and counts:
                opened.count_unknown(key, amount)
            elif result == "unknown":
                lost.append(key)
                click.echo(f"unknown: no decision waits for {key!r}", err=True)
            if as_json and not quiet:
                click.echo(json.dumps({"id": key, "result": result}))

        def learn_line(found: dict[str, Any]) -> None:
            check_fields(found, ("id", "reward", "arm"))
            learn(as_id(field(found, "id")), as_number(field(found, "reward"), "a reward"), found.get("arm"))

        def reject(found: dict[str, Any], reason: str) -> None:
            if as_json and not quiet:
                click.echo(json.dumps({"id": found.get("id"), "error": reason}))

        code = 0
        if decision_id is not None and value is not None:
            learn(decision_id, value, arm)
        else:
            code = for_each_line(learn_line, reject)
        if not as_json:
            console.done({}, _words(results))
        if lost:
            raise click.ClickException(_lost_words(lost, results["learned"]))
    return code


def _words(results: "Counter[str]") -> str:
    if results == {"known": 1}:
        return "already known: the same reward came before"
    words = [f"learned {counted(results['learned'], 'reward')}"]
    words += [f"{results['known']:,} already known"] if results["known"] else []
    words += [f"{results['unknown']:,} that no decision waits for"] if results["unknown"] else []
    return ", ".join(words)


def _lost_words(lost: list[str], learned: int) -> str:
    names = ", ".join(map(repr, lost[:_SHOWN]))
    more = f" and {len(lost) - _SHOWN:,} more" if len(lost) > _SHOWN else ""
    return (
        f"no decision with the id {names}{more} waits for a reward: it was never made here, or has expired; learned "
        f"{counted(learned, 'reward')}. With --unknown count this is not an error."
    )
