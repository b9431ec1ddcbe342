"""``onepass report``: the page to pass on, which says how well a column can be predicted, and from what."""

from pathlib import Path
from typing import Any

import click

from onepass.cli import options
from onepass.cli.evaluate import score_files, scoring

__all__ = ["report"]


@click.command(
    cls=options.Command,
    short_help="Write one page on how well a column can be predicted.",
    examples=(
        "onepass report trips.csv --target price",
        "onepass report sales.csv --target sold --test-split last:20% --out sold.html",
        "onepass report tonight.parquet --model price.onepass",
    ),
)
@scoring
@click.option(
    "--out",
    "html",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="Write the page to this HTML file.",
)
@options.rejecting
@options.reading
@options.reporting
def report(**given: Any) -> int:
    """Score a model as 'onepass evaluate' does and write the result as one page, made to be passed on.

    The verdict comes first: whether predictions beat the mean, the last value, and the value at the same time one
    period earlier; whether a column gives the target away; whether the intervals hold what they promise, as far as
    so many rows can tell; whether a single row decides the score. Then predicted against actual values, calibration
    with counts, errors over time, what each column is good for, the worst rows and what led to them, and what was
    read and rejected. The page is one file that fetches nothing, reads well on a phone and on paper, and names
    files without their folders.
    """
    return score_files(**given)
