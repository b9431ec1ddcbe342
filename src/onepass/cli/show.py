"""``onepass show``: print what a model is and what it has learned."""

from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onepass._extras import require
from onepass.cli import options
from onepass.cli.console import Console
from onepass.cli.series_command import refuse_given

if TYPE_CHECKING:
    from onepass.tables.model import TabularModel

__all__ = ["show"]


@click.command(
    cls=options.Command,
    short_help="Print what a model is and what it has learned.",
    examples=(
        "onepass show price.onepass",
        "onepass show price.onepass --weights 50",
        "onepass show price.onepass --html report.html",
        "onepass show --diff yesterday.onepass price.onepass",
    ),
)
@options.model_argument
@click.option(
    "--weights",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Number of the largest weights to print.",
)
@click.option(
    "--diff",
    "old",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="OLD",
    help="Print only what differs between the model OLD and MODEL, and the weights that changed most.",
)
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write an HTML report to this file.")
@click.option(
    "--columns", is_flag=True, help="Print every column; by default columns are only counted if there are more than 40."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines, for programs.")
def show(model: Path, weights: int, columns: bool, old: Path | None, html: Path | None, as_json: bool) -> None:
    """Print what a model is: columns, choices, rows learned, noise and the largest weights with their uncertainty.

    A weight says how much the prediction changes for one standard deviation more of a number, for the presence of a
    category, or for a word in a text of average length. The prediction is in the units of the target; it is the
    logarithm of the target if that is learned (0.01 is about 1 %), the log rate of counts, or the log odds of a class.
    After ± comes the standard deviation of the weight.

    Of a model made by 'onepass forecast' or 'onepass detect' it prints columns, frequency, seasons and the values
    learned.

    With --diff the changes of weights are in units of the standard deviation that they had in OLD: one or two are
    expected, five mean that the relation or the data have changed.
    """
    from onepass.cli.errors import user_errors
    from onepass.cli.paths import check_distinct_paths, check_writable, load_model, series_command_of

    with Console(as_json=as_json) as console, user_errors():
        check_distinct_paths([model], html=html)
        if html is not None:
            require("plots", "--html")
            check_writable(html, "--html")
        if model.exists() and series_command_of(model) is not None:
            _show_series(console, model)
            return
        from onepass.tables.progress import load_progress
        from onepass.tables.weights import meaning_of_weights, unit_of_weights

        known = load_model(model)
        if old is not None:
            if html is not None:
                raise click.UsageError("--html is a report on one model; it can't be given with --diff.")
            _show_differences(console, load_model(old), known, weights)
            return
        numbers = known.numbers()
        for name, words in known.facts():
            console.fact(name, words, "fact", **numbers.get(name, {}))
        if load_progress(model) is not None:
            console.fact("progress", "of a run that has not ended", "fact")
        for name, words in known.choices(None if columns else console.most_columns):
            console.fact(name, words)
        unit = unit_of_weights(known).removeprefix("the ")
        if weights:
            console.fact("weights", meaning_of_weights(known), "fact")
        for key, found in known.weights().items() if weights else ():
            for weight in found[:weights]:
                words = f"{weight.mean:+.4g} ± {weight.std:.2g} ({key if known.labels else unit})"
                console.fact(f"weight {weight.feature}", words, "weight", **asdict(weight), of=key)
        if html is not None:
            from onepass.files.atomic import write_atomically
            from onepass.reports.html import render_html
            from onepass.reports.model_report import model_report

            write_atomically(html, render_html(model_report(known, str(model))).encode())
            console.fact("report", str(html), "report")


def _show_series(console: Console, path: Path) -> None:
    from onepass.cli.paths import load_series

    for option in ("weights", "old", "html", "columns"):
        refuse_given(option, f"needs a model made by 'onepass fit'; {path} is one of series.")
    for name, words in load_series(path).facts():
        console.fact(name, words, "fact")


def _show_differences(console: Console, old: "TabularModel", new: "TabularModel", most: int) -> None:
    from onepass.tables.comparison import changed_facts, moves
    from onepass.tables.weights import unit_of_weights

    if old.target.name != new.target.name:
        raise click.UsageError(
            f"--diff: the models predict different targets, {old.target.name!r} and {new.target.name!r}."
        )
    differences, unit = 0, unit_of_weights(new).removeprefix("the ")
    for name, before, after in changed_facts(old, new):
        console.fact(name, f"{before or 'none'} -> {after or 'none'}", "difference", old=before, new=after)
        differences += 1
    for move in [one for one in moves(old, new) if one.deviations][:most]:
        parts = [f"{one.mean:+.4g} ± {one.std:.2g}" if one else "none" for one in (move.old, move.new)]
        deviations = move.deviations if isfinite(move.deviations) else None
        far = "" if deviations is None else f", {deviations:+.1f} standard deviations"
        numbers = {side: asdict(one) if one else None for side, one in (("old", move.old), ("new", move.new))}
        words = f"{parts[0]} -> {parts[1]}{far} ({unit if not new.labels else move.of})"
        console.fact(f"weight {move.feature}", words, "move", of=move.of, deviations=deviations, **numbers)
        differences += 1
    if unit_of_weights(old) != unit_of_weights(new):
        units = " -> ".join(unit_of_weights(model) for model in (old, new))
        console.fact("weights", f"changes of {units}: not compared", "difference")
        differences += 1
    if not differences:
        console.fact("differences", "none", "difference")
