"""``onepass detect``: which values of a series are not what was to be expected, as they come."""

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from onepass.cli import options, series_command
from onepass.cli.console import Console, counted
from onepass.cli.rejects import RejectOptions, Rejects
from onepass.cli.series_command import Outputs, SeriesInput, makes_new
from onepass.tables.readers.options import ReadOptions

if TYPE_CHECKING:
    from onepass.tables.detection_model import DetectionModel, SeriesScores
    from onepass.tables.series import SeriesTable

__all__ = ["detect", "tell_alarms"]

_OF_NEW = ("time", "target", "by", "inputs", "season", "duplicates", "false_alarms", "side", "pause")


@click.command(
    cls=options.Command,
    short_help="Find values of a series that are not what was to be expected.",
    examples=(
        "onepass detect metrics.csv --time ts --target cpu --out scores.csv --html page.html",
        "onepass detect metrics.csv --time ts --target cpu --by host --false-alarms 1e-3 --side above",
        "onepass detect sales.csv --time date --target sold --inputs promo,temperature",
        "onepass detect monday.csv --time ts --target cpu --model cpu.onepass",
        "onepass detect tuesday.csv --model cpu.onepass --out scores.csv",
    ),
)
@options.files
@series_command.time
@click.option("--target", metavar="COLUMN", help="Column with the values.")
@click.option("--by", metavar="COLUMN", help="Column that says which series a row belongs to, such as a host.")
@click.option(
    "--inputs",
    type=options.names,
    default=(),
    metavar="A,B,...",
    help="Columns with numbers, or true and false, that explain values of their own time, such as promotions or "
    "temperatures.",
)
@click.option(
    "--false-alarms",
    type=click.FloatRange(0.0, 0.1, min_open=True),
    default=1e-4,
    show_default=True,
    metavar="RATE",
    help="Alarms per value while nothing happens: 1e-4 is one in 10,000 values.",
)
@click.option(
    "--side",
    type=click.Choice(["both", "above", "below"]),
    default="both",
    show_default=True,
    help="Whether values above what is expected are suspicious, or those below, or both.",
)
@click.option(
    "--pause",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    metavar="VALUES",
    help="After an alarm there is no other one until so many values in a row were unsuspicious.",
)
@series_command.season
@series_command.duplicates
@series_command.model
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the scores of all values to this file: .csv, .jsonl or .parquet.",
)
@click.option(
    "--html", type=click.Path(dir_okay=False, path_type=Path), help="Write a page with a chart of the alarms."
)
@options.notation
@options.waiting
@options.rejecting
@options.reading
@options.reporting
def detect(
    files: tuple[str, ...],
    model: Path | None,
    out: Path | None,
    html: Path | None,
    wait: float,
    rejecting: RejectOptions,
    reading: ReadOptions,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> int:
    """Score the values of some files in the order of time, each before it is learned, and print the alarms.

    Frequency, seasons and gaps are found out as by `onepass forecast`. An alarm is of one of three kinds: a spike is a
    value beyond its limits; a level is found when the values after a spike stay there; a run is several values that
    are odd only together. How far values may be from what is expected is learned from the series itself, so that there
    are as many false alarms as --false-alarms says. There are none among the first 50 values.

    The output has a row per value: the time, the value, what was expected and its limits low and high; tail, how often
    values are this far from what is expected; the score from 0 to 1; and the kind of the alarm, if there is one.

    With --inputs, values are expected for the inputs of their own time: a jump that a promotion explains raises no
    alarm. How much an input changes values is learned like everything else, from its earlier changes.

    With --model, the scores go on later with new values alone, also those at the end of a file that has grown. They
    must be later than those before. If nothing is new, no file is written.
    """
    from onepass.cli.errors import user_errors

    with Console(as_json=as_json, quiet=quiet) as console, user_errors():
        from onepass.tables.readers.addresses import located

        is_new = makes_new(model, given, _OF_NEW)
        inputs, reading = located(files, reading)
        outputs = Outputs(out, html, model)
        outputs.check(inputs, rejecting, is_new=is_new)
        read = SeriesInput.opened(inputs, reading, console, given)
        with Rejects(rejecting) as log, outputs.only_writer(wait) as target:
            found = _new(read, given, console, log) if is_new else _continued(model, read, console, log)
            if found is None:
                nothing, words = {"series": 0, "values": 0, "alarms": 0}, f"{model} has learned these files already"
                return read.tell_done(console, log, Outputs(None, None, None), nothing, words, "scores")
            known, table, scored = found
            alarms = tell_alarms(console, known, scored)
            if out is not None:
                outputs.write_table(known.table(scored))
            if html is not None:
                from onepass.reports.anomaly_report import anomaly_report

                outputs.write_page(anomaly_report(known, scored, table.summary, inputs))
            if target is not None:
                from onepass.files.checkpoint import to_bytes

                target.write(to_bytes(known))
            values = sum(one.n_known for one in scored)
            words = f"{counted(alarms, 'alarm')} in {counted(values, 'value')}"
            facts = {"series": len(scored), "values": values, "alarms": alarms}
            return read.tell_done(console, log, outputs, facts, words, "scores")


class _Scored(NamedTuple):
    """A model, the values in the files that were new to it, and their scores."""

    model: "DetectionModel"
    table: "SeriesTable"
    scored: "Sequence[SeriesScores]"


def _new(read: SeriesInput, given: dict[str, Any], console: Console, log: Rejects) -> _Scored:
    """A new model, and what it finds in the files."""
    from onepass.tables.detection_model import DetectionModel
    from onepass.tables.series import read_series
    from onepass.tables.series_rows import SeriesColumns

    columns = SeriesColumns(given["time"], given["target"], given["by"], given["inputs"], given["duplicates"])
    table = read_series(read.sources, columns, read.notation, seasons=given["season"])
    model = DetectionModel(table, false_alarms=given["false_alarms"], side=given["side"], quiet=given["pause"])
    read.tell_found(console, log, table)
    scored = model.score_then_learn(table)
    read.record(model, table, model.n_seen)
    return _Scored(model, table, scored)


def _continued(path: Path | None, read: SeriesInput, console: Console, log: Rejects) -> _Scored | None:
    """The model in a file, and what it finds in rows that it has not learned yet; None if there are none."""
    from onepass.cli.paths import load_series
    from onepass.files.checkpoint import CheckpointError
    from onepass.tables.detection_model import DetectionModel

    assert path is not None
    model = load_series(path)
    if not isinstance(model, DetectionModel):
        raise CheckpointError(f"{path} was made by 'onepass {model.made_by}', not by 'onepass detect'")
    read = read.without_known(model, console, "'onepass learn --again'")
    if read.is_empty:
        return None
    table, new = read.tell_new(console, log, model)
    scored = model.score_then_learn(table)
    read.record(model, table, new.new)
    return _Scored(model, table, scored)


def tell_alarms(console: Console, model: "DetectionModel", scored: "Sequence[SeriesScores]") -> int:
    """Print the alarms, and count them."""
    from onepass.tables.detection_model import limit_words

    for one in scored:
        found = one.scores
        for i in one.alarms:
            (time,) = model.times(one.first + i, 1)
            parts = {"value": one.values[i], "expected": found.expected[i], "low": found.low[i], "high": found.high[i]}
            limits = limit_words(parts["low"], parts["high"])
            name = f"{one.key}, {time}" if one.key else time
            words = f"{name}: {parts['value']:,.4g}, expected {parts['expected']:,.4g} ({limits})"
            facts = {name: float(part) if isfinite(part) else None for name, part in parts.items()}
            console.fact(str(found.kind[i]), words, "alarm", time=time, series=one.key, **facts)
    return sum(len(one.alarms) for one in scored)
