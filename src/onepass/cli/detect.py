"""``onepass detect``: which values of a series are not what was to be expected, as they come."""

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onepass._extras import require
from onepass.cli import options
from onepass.cli.console import Console, counted
from onepass.cli.left_out import tell_left_out
from onepass.cli.rejects import RejectOptions, Rejects
from onepass.tables.readers.options import ReadOptions

if TYPE_CHECKING:
    from onepass.tables.columns.notation import Notation
    from onepass.tables.detection_model import DetectionModel, SeriesScores
    from onepass.tables.readers.source import Source
    from onepass.tables.series import SeriesTable

__all__ = ["detect"]

_OF_NEW = ("time", "target", "by", "season", "duplicates", "false_alarms", "side", "pause")


@click.command(
    cls=options.Command,
    short_help="Find values of a series that are not what was to be expected.",
    examples=(
        "onepass detect metrics.csv --time ts --target cpu --out scores.csv --html page.html",
        "onepass detect metrics.csv --time ts --target cpu --by host --false-alarms 1e-3 --side above",
        "onepass detect monday.csv --time ts --target cpu --model cpu.onepass",
        "onepass detect tuesday.csv --model cpu.onepass --out scores.csv",
    ),
)
@options.files
@click.option("--time", metavar="COLUMN", help="Column with the times: dates, with or without offsets, or numbers.")
@click.option("--target", metavar="COLUMN", help="Column with the values.")
@click.option("--by", metavar="COLUMN", help="Column that says which series a row belongs to, such as a host.")
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
@click.option(
    "--season",
    type=options.numbers,
    metavar="STEPS,...",
    help="Lengths of the seasons in steps, such as 24,168 for hours; 1 for none. By default those of the frequency.",
)
@click.option(
    "--duplicates",
    type=click.Choice(["error", "last", "mean", "sum"]),
    default="error",
    show_default=True,
    help="What counts if a time has several values: the last one, or the mean or sum of all. By default rows that are "
    "repeated as they are count once, and values that differ are refused.",
)
@click.option(
    "--model",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Keep the model in this file. With --time and --target it is made new; without them it goes on with the "
    "values of the files.",
)
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

    With --model, the scores go on later with new values alone. They must be later than those before.
    """
    from onepass.cli.errors import user_errors
    from onepass.cli.forecast import held, output_kind, write_table
    from onepass.cli.paths import check_distinct_paths, check_writable

    with Console(as_json=as_json, quiet=quiet) as console, user_errors():
        from onepass.tables.columns.notation import Notation
        from onepass.tables.readers.addresses import located
        from onepass.tables.readers.registry import open_source

        is_new = _is_new(model, given)
        inputs, reading = located(files, reading)
        outputs = {"out": out, "html": html} | ({"model": model} if is_new else {})
        check_distinct_paths(
            [*inputs, *([] if is_new or model is None else [model])], **outputs, rejects=rejecting.rejects
        )
        for name, path in (*outputs.items(), ("model", model)):
            if path is not None:
                check_writable(path, f"--{name}")
        if html is not None:
            require("plots", "--html")
        kind = output_kind(out)
        sources = [open_source(file, reading) for file in inputs]
        console.tell_notes(sources)
        notation = Notation(given["decimal"], given["missing"], tuple(given["date_formats"]))
        with Rejects(rejecting) as log, held(model, wait) as target:
            known, table = _new(sources, notation, given) if is_new else _continued(model, sources, notation)
            _report(console, log, table)
            scored = known.score_then_learn(table)
            alarms = _tell_alarms(console, known, scored)
            if out is not None:
                write_table(out, kind, known.table(scored))
            if html is not None:
                _write_page(html, known, scored, table, inputs)
            if target is not None:
                from onepass.files.checkpoint import to_bytes

                target.write(to_bytes(known))
            return _tell(
                console, log, scored, alarms, {"out": out, "html": html, "model": model}, reading.where, sources
            )


def _is_new(model: Path | None, given: dict[str, Any]) -> bool:
    """Whether a model is made; if not, nothing may be said that only a new one asks for."""
    if given["time"] is None and given["target"] is None and model is not None:
        for name in _OF_NEW:
            if click.get_current_context().get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
                option = name.replace("_", "-")
                raise click.UsageError(
                    f"--{option} is known to the model {model}; give it only with --time and --target."
                )
        return False
    missing = next((name for name in ("time", "target") if given[name] is None), None)
    if missing is not None:
        raise click.UsageError(f"Missing option '--{missing}'; only a model that was made before needs none (--model).")
    return True


def _new(
    sources: "Sequence[Source]", notation: "Notation", given: dict[str, Any]
) -> "tuple[DetectionModel, SeriesTable]":
    from onepass.forecasting.members import as_seasons
    from onepass.tables.detection_model import DetectionModel
    from onepass.tables.series import read_series
    from onepass.tables.series_rows import SeriesColumns

    columns = SeriesColumns(given["time"], given["target"], given["by"], (), given["duplicates"])
    seasons = None if given["season"] is None else as_seasons(given["season"])
    table = read_series(sources, columns, notation, seasons=seasons)
    own = {"false_alarms": given["false_alarms"], "side": given["side"], "quiet": given["pause"]}
    return DetectionModel(table.columns, table.rhythm, table.zone, table.seasons, **own), table


def _continued(
    path: Path | None, sources: "Sequence[Source]", notation: "Notation"
) -> "tuple[DetectionModel, SeriesTable]":
    from onepass.files.checkpoint import CheckpointError, load
    from onepass.tables.detection_model import DetectionModel
    from onepass.tables.series import read_further

    assert path is not None
    known = load(path)
    if not isinstance(known, DetectionModel):
        kind = type(known).__name__
        raise CheckpointError(f"{path} has a {kind}; 'onepass detect' goes on with models that it has made")
    return known, read_further(sources, known, notation)


def _report(console: Console, log: Rejects, table: "SeriesTable") -> None:
    """Say what was found in the files, and fail if too many of their rows are not what they should be."""
    for file, reject in table.rejects:
        log.add(file, (reject,))
    log.judge(table.summary.rows, 1.0)
    log.judge_all()
    for name, words in table.summary.facts():
        console.fact(name, words)


def _tell_alarms(console: Console, model: "DetectionModel", scored: "Sequence[SeriesScores]") -> int:
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


def _write_page(
    html: Path,
    model: "DetectionModel",
    scored: "Sequence[SeriesScores]",
    table: "SeriesTable",
    files: Sequence[str],
) -> None:
    from onepass.files.atomic import write_atomically
    from onepass.reports.anomaly_report import anomaly_report
    from onepass.reports.html import render_html

    write_atomically(html, render_html(anomaly_report(model, scored, table.summary, files)).encode())


def _tell(
    console: Console,
    log: Rejects,
    scored: "Sequence[SeriesScores]",
    alarms: int,
    outputs: dict[str, Path | None],
    where: str | None,
    sources: "Sequence[Source]",
) -> int:
    """Say how it went, and give the exit code."""
    from onepass.cli.errors import REJECTED

    log.tell(console)
    tell_left_out(console, where, sources)
    values = sum(len(one.values) for one in scored)
    names = {"out": "scores", "html": "page", "model": "model"}
    console.done(
        {"series": len(scored), "values": values, "alarms": alarms, "rejected": log.count}
        | {name: None if path is None else str(path) for name, path in outputs.items()},
        f"{counted(alarms, 'alarm')} in {counted(values, 'value')}",
        *(f"{names[name]}: {path}" for name, path in outputs.items() if path is not None),
    )
    return REJECTED if log.count else 0
