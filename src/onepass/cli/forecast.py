"""``onepass forecast``: what comes next in a series, how sure that is, and how earlier forecasts did."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from onepass.cli import options, series_command
from onepass.cli.console import Console, counted
from onepass.cli.rejects import RejectOptions, Rejects
from onepass.cli.series_command import Outputs, SeriesInput, makes_new
from onepass.tables.readers.options import ReadOptions

if TYPE_CHECKING:
    from onepass.evaluation.backtesting import Backtest
    from onepass.tables.series import SeriesTable
    from onepass.tables.series_model import SeriesForecast, SeriesModel

__all__ = ["forecast"]

_MOST_SHOWN = 8  # rows of the forecast
_OF_NEW = ("time", "target", "by", "inputs", "season", "duplicates", "revisions", "counts", "compare")


@click.command(
    cls=options.Command,
    short_help="Forecast what comes next in a series, with its uncertainty.",
    examples=(
        "onepass forecast sales.csv --time date --target sales --horizon 30 --out next.csv --html next.html",
        "onepass forecast sales.csv --time date --target sales --by store --inputs price,promo --horizon 14",
        "onepass forecast calls.csv --time day --target calls --counts --horizon 14",
        "onepass forecast load.parquet --time hour --target mw --horizon 48 --model load.onepass",
        "onepass forecast tonight.csv --model load.onepass --horizon 48 --out next.csv",
    ),
)
@click.argument("files", nargs=-1, metavar="[FILE...]", type=click.Path())
@series_command.time
@click.option("--target", metavar="COLUMN", help="Column with the values to forecast.")
@click.option(
    "--horizon", type=click.IntRange(1, 10_000), required=True, metavar="STEPS", help="How many steps to forecast."
)
@click.option("--by", metavar="COLUMN", help="Column that says which series a row belongs to, such as a store.")
@click.option(
    "--inputs",
    type=options.names,
    default=(),
    metavar="A,B,...",
    help="Columns with numbers, or true and false, that are known ahead, such as prices or holidays. For the steps to "
    "come they are taken from rows without a target; after the last of these they are taken to stay as they are.",
)
@series_command.season
@series_command.duplicates
@options.level
@series_command.model
@click.option(
    "--revisions",
    type=click.IntRange(min=0),
    default=30,
    show_default=True,
    metavar="STEPS",
    help="Of a new model: of how many of the last steps later files may correct values, at most a tenth of the series.",
)
@click.option(
    "--counts",
    is_flag=True,
    help="The values are counts 0, 1, 2, ..., such as daily sales of one article: limits are whole numbers, and rows "
    "with other values are rejected.",
)
@click.option(
    "--compare",
    type=click.Choice(["ets"]),
    multiple=True,
    help="Also backtest exponential smoothing, fitted anew at every origin; needs the package statsmodels.",
)
@click.option("--backtest/--no-backtest", default=True, show_default=True, help="Score forecasts from earlier times.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the forecasts to this file: .csv, .jsonl or .parquet.",
)
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write a page with a fan chart.")
@options.notation
@options.waiting
@options.rejecting
@options.reading
@options.reporting
def forecast(
    files: tuple[str, ...],
    horizon: int,
    levels: tuple[float, ...],
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
    """Forecast what comes next in the series of some files.

    Finds out the frequency of the times, seasons, gaps, repeated times and changes of the clock, and prints them. Rows
    may be in any order. Times without a value are missing values. Several frequencies in one series, or several values
    of one time, are refused with the lines in which they are.

    The output has a row per step (and series): the time, the mean, the standard deviation std, and lower and upper,
    between which the value will lie with probability --level.

    The backtest forecasts from ten earlier times and scores what came after them: MASE, sMAPE, CRPS and the share of
    values inside their intervals, next to the last value and to the value one season earlier.

    With --model, the model goes on later with new values alone. Values of the last steps may come again, corrected;
    see --revisions.
    """
    from onepass.cli.errors import user_errors

    with Console(as_json=as_json, quiet=quiet) as console, user_errors():
        from onepass.tables.readers.addresses import located

        is_new = makes_new(model, given, _OF_NEW)
        if is_new and not files:
            raise click.UsageError("Missing argument 'FILE...'.")
        inputs, reading = located(files, reading)
        outputs = Outputs(out, html, model)
        outputs.check(inputs, rejecting, is_new=is_new)
        job = _Job(SeriesInput.opened(inputs, reading, console, given), horizon, given, console)
        with Rejects(rejecting) as log, outputs.only_writer(wait) as target:
            known, table = job.new(log) if is_new else job.continued(model, log)
            job.tell_inputs(known)
            tested = job.backtest(table) if is_new and given["backtest"] and table is not None else None
            found = job.forecasts(known, levels[0])
            if out is not None:
                outputs.write_table(known.table(found, levels))
            if html is not None:
                from onepass.reports.forecast_report import forecast_report

                summary = None if table is None else table.summary
                outputs.write_page(forecast_report(known, found, summary, tested, inputs))
            if target is not None and table is not None:
                from onepass.files.checkpoint import to_bytes

                target.write(to_bytes(known))
            steps, many = len(found[0].forecast), f" of {len(found):,} series" if len(found) > 1 else ""
            words = f"forecast {counted(steps, 'step')}{many} from {counted(known.n_seen, 'value')}"
            facts = {"series": len(found), "steps": steps, "values": known.n_seen}
            return job.read.tell_done(console, log, outputs, facts, words, "forecasts")


class _Job(NamedTuple):
    """What is forecast, and how that is reported."""

    read: SeriesInput
    horizon: int
    given: dict[str, Any]
    console: Console

    def new(self, log: Rejects) -> "tuple[SeriesModel, SeriesTable]":
        """A model of the series in the files."""
        from onepass.tables.series import read_series
        from onepass.tables.series_model import SeriesModel
        from onepass.tables.series_rows import SeriesColumns

        given = self.given
        names = (given[name] for name in ("time", "target", "by", "inputs", "duplicates", "counts"))
        columns = SeriesColumns(*names)
        table = read_series(self.read.sources, columns, self.read.notation, seasons=given["season"])
        self.read.tell_found(self.console, log, table)
        known = SeriesModel(table, self.horizon, given["revisions"])
        self.read.record(known, table, known.n_seen)
        return known, table

    def continued(self, path: Path | None, log: Rejects) -> "tuple[SeriesModel, SeriesTable | None]":
        """The model in a file, with the values of further files."""
        from onepass.tables.forecasting import load_series_model

        assert path is not None
        known = load_series_model(path)
        read = self.read.without_known(known, self.console, "'onepass learn --again'")
        if read.is_empty:
            return known, None
        table, new = read.tell_new(self.console, log, known)
        known.learn(table)
        read.record(known, table, new.new + new.corrected)
        return known, table

    def tell_inputs(self, known: "SeriesModel") -> None:
        """Say which inputs are not known for all steps to come."""
        steps = known.known_ahead()
        short = [f"{name} for {n or 'none'} of {counted(self.horizon, 'step')}" for name, n in steps.items()]
        short = [words for words, n in zip(short, steps.values(), strict=True) if n < self.horizon]
        if short:
            self.console.aside(f"inputs known ahead: {', '.join(short)}; what is missing is taken to stay as it is")

    def backtest(self, table: "SeriesTable") -> "Backtest | None":
        """Score forecasts from earlier times, and print the scores."""
        from onepass.evaluation.backtesting import backtest_table

        found = backtest_table(table, self.horizon, compare=self.given["compare"])
        if found is None:
            self.console.aside("there are too few values for a backtest")
            return None
        coverage = {name: shares.tolist() for name, shares in found.coverage.items()}
        self.console.fact("backtest", found.words(), "backtest", scores=found.scores, coverage=coverage)
        self.console.table(found.table())
        for name, why in found.failed.items():
            self.console.aside(f"{name} could not be compared: {why}")
        return found

    def forecasts(self, model: "SeriesModel", level: float) -> "list[SeriesForecast]":
        """The forecasts of all series, and the first of them in a table with intervals of a level."""
        found = list(model.forecasts(self.horizon))
        if not found:
            raise ValueError("a forecast needs at least 2 values, and no series has as many")
        short = model.too_short
        if short:
            names = ", ".join(short[:3]) + (", ..." if len(short) > 3 else "")
            self.console.aside(f"not forecast: {len(short):,} series with fewer than 2 values: {names}")
        self.console.table(_shown(model, found, level))
        return found


def _shown(model: "SeriesModel", found: "Sequence[SeriesForecast]", level: float) -> list[tuple[str, ...]]:
    """The first steps of the forecasts, and the last one of a single series."""
    keyed = model.columns.by is not None
    rows: list[tuple[str, ...]] = [("", *(["series"] if keyed else []), "mean", f"{100 * level:g} % from", "to")]
    steps = len(found[0].forecast)
    each = max(1, _MOST_SHOWN // len(found))
    for one in found[:_MOST_SHOWN]:
        low, high = one.forecast.interval(level)
        places = [*range(min(each, steps))] if len(found) > 1 or steps <= each else [*range(each - 1), steps - 1]
        times = model.times(one.first, steps)
        for place in places:
            numbers = (one.value_text(value[place]) for value in (one.forecast.mean, low, high))
            rows.append((times[place], *([one.key] if keyed else []), *numbers))
    left = len(found) * steps - (len(rows) - 1)
    return [*rows, (f"({left:,} more)", *[""] * (len(rows[0]) - 1))] if left else rows
