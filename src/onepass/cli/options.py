"""Options that several commands share, said once."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

__all__ = [
    "Command",
    "clustering",
    "delimiter",
    "files",
    "learning",
    "level",
    "model_argument",
    "names",
    "rejecting",
    "reporting",
    "shape",
]

F = TypeVar("F", bound=Callable[..., Any])


class Command(click.Command):
    """A command whose help ends with examples, kept as they are written."""

    def __init__(self, *arguments: Any, examples: Sequence[str] = (), **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples and what the exit codes mean."""
        with formatter.section("Examples"):
            for example in self.examples:
                formatter.write(f"  {example}\n")
        with formatter.section("Exit codes"):
            formatter.write("  0 done, 1 failure, 2 wrong use, 3 done but rows were rejected, 130 interrupted\n")


def _all(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(command: F) -> F:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def names(value: Any) -> tuple[str, ...]:
    """Names separated by commas."""
    return value if isinstance(value, tuple) else tuple(name.strip() for name in value.split(",") if name.strip())


def _widths(value: Any) -> tuple[int, ...]:
    """Widths of hidden layers."""
    if isinstance(value, tuple):
        return value
    try:
        widths = tuple(int(width) for width in value.split(","))
    except ValueError:
        widths = ()
    if not widths or min(widths) < 1:
        raise click.BadParameter(f"{value!r} is not a list of whole numbers such as 50 or 50,50.")
    return widths


def _rows_or_time(value: str) -> tuple[str, float]:
    """Rows, or seconds."""
    unit = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(value[-1:])
    try:
        amount = float(value[:-1]) if unit else float(int(value))
    except ValueError:
        amount = 0.0
    if not 0.0 < amount < float("inf"):
        raise click.BadParameter(
            f"{value!r} is neither a number of rows such as 100000 nor a time such as 30s, 5m or 1h."
        )
    return ("seconds", amount * unit) if unit else ("rows", amount)


def _positive_or(word: str) -> Callable[[str], float | str]:
    """A positive number, or a word."""

    def convert(value: str) -> float | str:
        if value == word:
            return word
        try:
            number = float(value)
        except ValueError:
            number = 0.0
        if not 0.0 < number < float("inf"):
            raise click.BadParameter(f"{value!r} is neither a positive number nor {word!r}.")
        return number

    return convert


files = click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path())

model_argument = click.argument("model", type=click.Path(path_type=Path, dir_okay=False))


def _one_sign(value: str) -> str:
    """A single character."""
    sign = "\t" if value == r"\t" else value
    if len(sign) != 1:
        raise click.BadParameter(f"{value!r} is not one character.")
    return sign


delimiter = click.option(
    "--delimiter",
    type=_one_sign,
    metavar="CHAR",
    help="Between the fields of a CSV, such as ; or \\t; found out by default.",
)

level = click.option(
    "--level",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="How much of what will come lies between lower and upper.",
)

shape = _all(
    click.option("--task", type=click.Choice(["regression", "classification"]), help="Found out by default."),
    click.option("--classes", type=names, default=(), metavar="A,B,...", help="All classes that will ever come."),
    click.option("--columns", type=names, default=(), metavar="A,B,...", help="Learn from these columns only."),
    click.option("--ignore", type=names, default=(), metavar="A,B,...", help="Don't learn from these columns."),
    click.option(
        "--as",
        "kinds",
        multiple=True,
        metavar="COLUMN=KIND",
        help="What a column holds: number, boolean, category, hashed or date. May be given several times.",
    ),
    click.option(
        "--one-hot",
        type=click.IntRange(1, 10_000),
        default=20,
        show_default=True,
        help="Up to so many categories have a feature each; more are hashed.",
    ),
    click.option(
        "--buckets",
        type=click.IntRange(1, 2**16),
        default=64,
        show_default=True,
        help="Features that hashed categories share.",
    ),
    click.option(
        "--sample",
        type=click.IntRange(1),
        default=10_000,
        show_default=True,
        help="First rows that say what columns hold and how large numbers are.",
    ),
    click.option(
        "--hidden",
        type=_widths,
        metavar="N,N,...",
        default=(),
        help="Units of the hidden layers, e.g. 50 or 50,50; none by default.",
    ),
    click.option(
        "--activation",
        help="Of the hidden units (relu by default); without any of the output (linear, or sigmoid for two classes).",
    ),
    click.option(
        "--covariance",
        type=click.Choice(["full", "layer", "neuron", "diagonal"]),
        help="Between which weights correlations are kept; by default as many as the size allows.",
    ),
    click.option(
        "--noise",
        type=_positive_or("learn"),
        metavar="NUMBER|learn",
        default="learn",
        show_default=True,
        help="Variance of the target's noise.",
    ),
    click.option(
        "--prior-scale",
        type=_positive_or("auto"),
        metavar="NUMBER|auto",
        default="1",
        show_default=True,
        help="Standard deviation of the weights before the first row; 'auto' weighs several, and takes longer.",
    ),
    click.option(
        "--forgetting",
        type=click.FloatRange(0.0, 1.0, min_open=True),
        default=1.0,
        show_default=True,
        help="Below 1 the past fades, for relations that drift.",
    ),
    click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Same seed, same network."),
)

learning = _all(
    click.option(
        "--checkpoint-every",
        "every",
        type=_rows_or_time,
        metavar="ROWS|TIME",
        default="60s",
        show_default=True,
        help="Keep the progress of a run after so many rows or so much time.",
    ),
    click.option("--resume", is_flag=True, help="Go on with a run over the same files that was interrupted."),
)

clustering = _all(
    click.option(
        "--engine",
        type=click.Choice(["process", "dask"]),
        default="process",
        show_default=True,
        help="Learn in this process, or on a Dask cluster, a file a shard.",
    ),
    click.option(
        "--workers", type=click.IntRange(min=1), help="Dask processes on this machine; one a core by default."
    ),
    click.option("--scheduler", metavar="ADDRESS", help="A Dask scheduler that is running already."),
    click.option(
        "--rounds",
        type=click.IntRange(min=1),
        help="How often a cluster goes over the files; twice by default.",
    ),
)

rejecting = _all(
    click.option(
        "--rejects",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Write what was rejected there, as CSV: file, line, reason, text.",
    ),
    click.option("--strict", is_flag=True, help="Stop at the first row that would be rejected."),
)

reporting = _all(
    click.option("--json", "as_json", is_flag=True, help="Speak in JSON lines, for machines."),
    click.option("--quiet", "-q", is_flag=True, help="Say nothing unless something fails."),
)
