"""Options that several commands share, defined once."""

import codecs
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from onepass.cli.config import config_option, with_model
from onepass.cli.rejects import RejectLimit, RejectOptions
from onepass.tables.options import OPTIONS, Choice, Count, Option, Plain, Positive
from onepass.tables.readers.options import ReadOptions

__all__ = [
    "ClusterOptions",
    "Command",
    "RunOptions",
    "Share",
    "alarming",
    "all_of",
    "bandit_argument",
    "bandit_name",
    "clustering",
    "count_or_auto",
    "duration",
    "files",
    "learning",
    "level",
    "model_argument",
    "names",
    "notation",
    "numbers",
    "percentage",
    "rate",
    "reading",
    "rejecting",
    "reporting",
    "shape",
    "test_rows",
    "waiting",
    "widths",
]

F = TypeVar("F", bound=Callable[..., Any])
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Command(click.Command):
    """A command whose help ends with examples, printed as they are, and the exit codes."""

    def __init__(self, *arguments: Any, examples: Sequence[str] = (), **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.examples = examples

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line, to which a file of options may add the model."""
        try:
            return super().parse_args(ctx, with_model(self, ctx, args))
        except click.UsageError as error:  # an option without its value comes without the command
            error.ctx = error.ctx or ctx
            raise

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples and the meaning of the exit codes."""
        with formatter.section("Examples"):
            for example in self.examples:
                formatter.write(f"  {example}\n")
        with formatter.section("Exit codes"):
            formatter.write("  0 done, 1 failure, 2 usage error, 3 done but rows were rejected, 130 interrupted\n")


def all_of(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, in this order in the help."""

    def decorate(command: F) -> F:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def _gathered(name: str, kind: type[Any], *decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Options whose values reach the command as one argument: a dataclass with a field for each of them."""

    def decorate(command: F) -> F:
        @wraps(command)
        def gathering(*arguments: Any, **given: Any) -> Any:
            values = {one.name: given.pop(one.name) for one in fields(kind) if one.name in given}
            return command(*arguments, **{name: kind(**values)}, **given)

        return all_of(*decorators)(cast(F, gathering))

    return decorate


def names(value: Any) -> tuple[str, ...]:
    """Names separated by commas."""
    return value if isinstance(value, tuple) else tuple(name.strip() for name in value.split(",") if name.strip())


def numbers(value: Any) -> tuple[float, ...]:
    """Numbers separated by commas."""
    if isinstance(value, tuple):
        return value
    try:
        return tuple(float(number) for number in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of numbers such as 0.5,-1,3.") from None


def duration(value: Any) -> float:
    """A time, in seconds."""
    if isinstance(value, float):
        return value
    try:
        seconds = float(value[:-1]) * _SECONDS[value[-1:]]
    except (KeyError, ValueError):
        seconds = -1.0
    if not 0.0 <= seconds < float("inf"):
        raise click.BadParameter(f"{value!r} is not a time such as 30s, 5m, 12h or 7d.")
    return seconds


def widths(value: Any) -> tuple[int, ...]:
    """Widths of hidden layers."""
    if isinstance(value, tuple):
        return value
    try:
        found = tuple(int(width) for width in value.split(","))
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise click.BadParameter(f"{value!r} is not a list of whole numbers such as 50 or 50,50.")
    return found


def _patience(value: Any) -> float:
    """A time to wait, in seconds; forever if no time is given."""
    return float("inf") if value == "forever" else duration(value)


def _rows_or_time(value: str) -> tuple[str, float]:
    """Rows, or seconds."""
    unit = _SECONDS.get(value[-1:])
    try:
        amount = float(value[:-1]) if unit else float(int(value))
    except ValueError:
        amount = 0.0
    if not 0.0 < amount < float("inf"):
        raise click.BadParameter(
            f"{value!r} is neither a number of rows such as 100000 nor a time such as 30s, 5m or 1h."
        )
    return ("seconds", amount * unit) if unit else ("rows", amount)


def _positive_or(*words: str) -> Callable[[str], float | str]:
    """A positive number, or a word."""

    def convert(value: str) -> float | str:
        if value in words:
            return value
        try:
            number = float(value)
        except ValueError:
            number = 0.0
        if not 0.0 < number < float("inf"):
            raise click.BadParameter(f"{value!r} is neither a positive number nor {' nor '.join(map(repr, words))}.")
        return number

    return convert


def rate(value: str) -> float | str:
    """A share of 1, or ``auto``."""
    if value == "auto":
        return value
    try:
        found = float(value)
    except ValueError:
        found = -1.0
    if not 0.0 <= found <= 1.0:
        raise click.BadParameter(f"{value!r} is neither a rate from 0 to 1 nor 'auto'.")
    return found


def count_or_auto(value: Any) -> int | str:
    """A whole number of at least 1, or ``auto``."""
    if value == "auto":
        return "auto"
    try:
        count = int(value)
    except ValueError:
        count = 0
    if count < 1:
        raise click.BadParameter(f"{value!r} is neither a whole number of at least 1 nor 'auto'.")
    return count


def percentage(value: str) -> float:
    """A part of all rows, in per cent or as a share of 1."""
    try:
        found = float(value[:-1]) / 100.0 if value.endswith("%") else float(value)
    except ValueError:
        found = 0.0
    if not 0.0 < found < 1.0:
        raise click.BadParameter(f"{value!r} is neither a percentage such as 20% nor a share such as 0.2.")
    return found


def test_rows(value: str) -> tuple[str, float]:
    """Which rows to hold out, "random" ones or the "last", and their share of all."""
    which, _, share = value.rpartition(":")
    if which not in ("", "last"):
        raise click.BadParameter(f"{value!r} is neither a share such as 20% nor the last rows such as last:20%.")
    return which or "random", percentage(share)


class Share(click.FloatRange):
    """A share of all rows below one half; the error for a percentage names the number to give."""

    def __init__(self) -> None:
        super().__init__(0.0, 0.5, max_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Take a number."""
        if isinstance(value, str) and value.endswith("%"):
            with suppress(ValueError):
                self.fail(f"{value!r} is a percentage; as a share of 1 write {float(value[:-1]) / 100:g}.", param, ctx)
        return super().convert(value, param, ctx)


class _TablePath(click.Path):
    """Where a table is written that grows with the run."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Take a name, but not the one that stands for standard output elsewhere."""
        if value == "-":
            self.fail(
                "'-' is not a file name here; for standard output give /dev/stdout, best with --quiet, and for a file "
                "of that name ./-.",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


files = click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path())

model_argument = click.argument("model", type=click.Path(path_type=Path, dir_okay=False))

bandit_argument = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))

bandit_name = click.option(
    "--name", default="bandit", show_default=True, help="Which bandit, if the file holds several."
)


def _one_sign(value: str) -> str:
    """A single character."""
    sign = "\t" if value == r"\t" else value
    if len(sign) != 1:
        raise click.BadParameter(f"{value!r} is not a single character such as ; or \\t.")
    return sign


def _encoding(value: str) -> str:
    """The name of an encoding that Python knows."""
    try:
        "".encode(value)
        return codecs.lookup(value).name
    except LookupError:  # also of codecs that are not for text
        raise click.BadParameter(
            f"{value!r} is not a known encoding; common ones are utf-8, utf-16, latin-1, cp1252, cp1250, shift_jis and "
            "gb18030."
        ) from None


def _condition(value: str) -> str:
    """A condition on rows, understood as far as that goes without them."""
    from onepass.tables.readers.condition import Condition

    try:
        return Condition.parse(value).text
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from None


reading = _gathered(
    "reading",
    ReadOptions,
    click.option(
        "--delimiter",
        type=_one_sign,
        metavar="CHAR",
        help="Separator of CSV fields, such as ; or \\t; detected by default.",
    ),
    click.option(
        "--encoding",
        type=_encoding,
        metavar="NAME",
        help="Encoding of text, such as latin-1 or utf-16; detected by default.",
    ),
    click.option(
        "--no-header",
        is_flag=True,
        help="The first line of a CSV file is a row, not the names of the columns; they are called column_1, "
        "column_2, ...",
    ),
    click.option(
        "--table",
        metavar="NAME",
        help="The table of a database to read, not needed if it has only one; or the sheet of a workbook, by default "
        "the first with anything in it.",
    ),
    click.option("--sql", metavar="QUERY", help="Read the result of this SQL query of a database, instead of a table."),
    click.option(
        "--where",
        type=_condition,
        metavar="CONDITION",
        help='Read only the rows that satisfy this condition, such as \'price > 0 and region in ("north", "west")\'; '
        "rows in which a value that it needs is missing are left out too.",
    ),
)

level = click.option(
    "--level",
    "levels",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    multiple=True,
    default=(0.95,),
    show_default="0.95",
    help="Probability with which a new target lies between lower and upper. Given several times, the columns are "
    "lower_50, upper_50 and so on.",
)

# How click reads an option of a new model.
_PLAIN: dict[Plain, dict[str, Any]] = {
    Plain.WORD: {},
    Plain.NAMES: {"type": names, "metavar": "A,B,..."},
    Plain.COLUMN: {"metavar": "COLUMN"},
    Plain.COLUMN_KINDS: {"multiple": True, "metavar": "COLUMN=KIND"},
    Plain.DATE_FORMATS: {"multiple": True, "metavar": "FORMAT"},
    Plain.WIDTHS: {"type": widths, "metavar": "N,N,..."},
    Plain.SEED: {"type": click.IntRange(min=0)},
    Plain.SHARE: {"type": Share(), "metavar": "SHARE"},
    Plain.FRACTION: {"type": click.FloatRange(0.0, 1.0, min_open=True)},
    Plain.RATE: {"type": rate, "metavar": "RATE|auto"},
    Plain.ON_OFF: {},
}


def _read_as(kind: Plain | Choice | Count | Positive) -> dict[str, Any]:
    if isinstance(kind, Choice):
        return {"type": click.Choice(kind.words)}
    if isinstance(kind, Count):
        return {"type": click.IntRange(1, kind.most)}
    if isinstance(kind, Positive):
        convert = _positive_or(*kind.words) if kind.words else click.FloatRange(min=0.0, min_open=True)
        return {"type": convert, "metavar": "|".join(("NUMBER", *kind.words))}
    return _PLAIN[kind]


def _of_model(option: Option) -> Callable[[F], F]:
    """An option of a new model as click has it."""
    read = _read_as(option.kind)
    text = option.words(lambda other: other.option) + (" May be given several times." if "multiple" in read else "")
    name = f"{option.option}/--no-{option.option[2:]}" if option.kind is Plain.ON_OFF else option.option
    shown = option.default not in (None, ())
    return click.option(name, option.name, default=option.default, show_default=shown, help=text, **read)


shape = all_of(*map(_of_model, OPTIONS))

notation = all_of(*(_of_model(option) for option in OPTIONS if option.name in ("decimal", "missing", "date_formats")))

waiting = click.option(
    "--wait",
    type=_patience,
    is_flag=False,
    flag_value="forever",
    default="0s",
    metavar="[TIME]",
    help="If another process is writing the model, wait for it: up to a time such as 10m, or, if no time is given, as "
    "long as it takes. By default the command fails at once.",
)


@dataclass(frozen=True)
class RunOptions:
    """How a run over files goes on, and what it leaves out."""

    every: tuple[str, float]  # ("rows", n) or ("seconds", s) between two checkpoints
    resume: bool
    again: bool
    wait: float  # seconds, until no other process writes the model


@dataclass(frozen=True)
class ClusterOptions:
    """Where rows are learned: in this process, or on a Dask cluster."""

    executor: str
    workers: int | None
    scheduler: str | None
    rounds: int | None

    @property
    def is_dask(self) -> bool:
        """Whether it is a cluster."""
        return self.executor == "dask"

    def check(self) -> None:
        """Refuse options of a cluster where there is none."""
        if not self.is_dask and any(one is not None for one in (self.workers, self.scheduler, self.rounds)):
            raise click.UsageError("--workers, --scheduler and --rounds need --executor dask.")


learning = _gathered(
    "learning",
    RunOptions,
    click.option(
        "--checkpoint-every",
        "every",
        type=_rows_or_time,
        metavar="ROWS|TIME",
        default="60s",
        show_default=True,
        help="Save the progress of the run after this number of rows or this time.",
    ),
    click.option("--resume", is_flag=True, help="Continue an interrupted run over the same files."),
    click.option(
        "--again",
        is_flag=True,
        help="Also learn files that the model has learned before, or that are given several times.",
    ),
    waiting,
)

clustering = _gathered(
    "cluster",
    ClusterOptions,
    click.option(
        "--executor",
        type=click.Choice(["process", "dask"]),
        default="process",
        show_default=True,
        help="Learn in this process, or on a Dask cluster, where each file is learned by one worker.",
    ),
    click.option(
        "--workers",
        type=click.IntRange(min=1),
        help="Number of Dask processes on this machine; one per core by default.",
    ),
    click.option("--scheduler", metavar="ADDRESS", help="Address of a running Dask scheduler."),
    click.option(
        "--rounds",
        type=click.IntRange(min=1),
        help="How often a cluster learns the files; 2 by default.",
    ),
)

alarming = click.option(
    "--alarms",
    type=_TablePath(),
    metavar="FILE",
    help="Write rows whose target the model does not believe, and rows at which the relation changed, to this CSV file "
    "as they are found: file, line, kind, probability, target, predicted. Without --outliers these are only numbers "
    "that were set aside, without --drift auto no slow changes; the very first rows can hardly be judged.",
)


def _reject_limit(value: str) -> RejectLimit:
    """A share in per cent, or a count."""
    try:
        found = RejectLimit(share=float(value[:-1]) / 100.0) if value.endswith("%") else RejectLimit(count=int(value))
    except ValueError:
        found = RejectLimit(share=-1.0)
    if not 0.0 <= found.share <= 1.0 or (found.count or 0) < 0:
        raise click.BadParameter(f"{value!r} is neither a share such as 5% or 100% nor a count such as 1000.")
    return found


rejecting = _gathered(
    "rejecting",
    RejectOptions,
    click.option(
        "--rejects",
        type=_TablePath(),
        metavar="FILE",
        help="Write rejected rows to this CSV file: file, line, reason, text.",
    ),
    click.option("--strict", is_flag=True, help="Fail at the first row that would be rejected."),
    click.option(
        "--max-rejects",
        type=_reject_limit,
        metavar="SHARE%|COUNT",
        help="Fail, and write nothing, if more rows than this are rejected: a share such as 5%, which applies from 20 "
        "rejected rows on, or a count; 100% allows all. By default 5%; for predict, which leaves rejected rows empty, "
        "100%. Rows without a target are not learned and don't count as rejected, unless more than half have none.",
    ),
)

reporting = all_of(
    config_option,
    click.option("--json", "as_json", is_flag=True, help="Print JSON lines, for programs."),
    click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors."),
)
