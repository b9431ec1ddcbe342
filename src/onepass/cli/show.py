"""``onepass show``: what a model is and what it has learned."""

from dataclasses import asdict
from pathlib import Path

import click

from onepass.cli import options
from onepass.cli.voice import Voice

__all__ = ["show"]


@click.command(
    cls=options.Command,
    short_help="Say what a model is and what it has learned.",
    examples=(
        "onepass show price.onepass",
        "onepass show price.onepass --weights 50",
        "onepass show price.onepass --html report.html",
    ),
)
@options.model_argument
@click.option(
    "--weights", type=click.IntRange(min=0), default=10, show_default=True, help="How many of the largest to show."
)
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write a report there, in one file.")
@click.option("--json", "as_json", is_flag=True, help="Speak in JSON lines, for machines.")
def show(model: Path, weights: int, html: Path | None, as_json: bool) -> None:
    """Say what a model is: columns, choices, rows seen, noise and the largest weights with their uncertainty.

    A weight is what one standard deviation of a number, or a category being there, does to the target, or to the log
    odds of a class; behind ± stands its standard deviation.
    """
    from onepass.cli.running import check_distinct_paths, check_writable, load_model, user_errors

    with Voice(as_json=as_json) as voice, user_errors():
        from onepass.tables.progress import load_progress

        check_distinct_paths([model], html=html)
        if html is not None:
            check_writable(html, "--html")
        known = load_model(model)
        for name, words in known.facts():
            voice.fact(name, words, "fact")
        if load_progress(model) is not None:
            voice.fact("progress", "of a run that has not ended", "fact")
        for name, words in known.choices():
            voice.fact(name, words)
        for key, found in known.weights().items() if weights else ():
            for weight in found[:weights]:
                words = f"{weight.mean:+.4g} ± {weight.std:.2g} ({key})"
                voice.fact(f"weight {weight.feature}", words, "weight", **asdict(weight), of=key)
        if html is not None:
            from onepass.files.atomic import write_atomically
            from onepass.reports.html import render_html
            from onepass.reports.model_report import model_report

            write_atomically(html, render_html(model_report(known, str(model))).encode())
            voice.fact("report", str(html), "report")
