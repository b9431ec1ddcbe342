"""``onepass predict``: what a model predicts for rows, and how sure it is."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from onepass.cli import options
from onepass.cli.console import Console, counted
from onepass.cli.left_out import tell_left_out
from onepass.cli.rejects import NO_LIMIT, RejectOptions, Rejects
from onepass.tables.readers.options import ReadOptions

if TYPE_CHECKING:
    from onepass.tables.model import TabularModel
    from onepass.tables.readers.source import Source

__all__ = ["predict"]


@click.command(
    cls=options.Command,
    examples=(
        "onepass predict price.onepass new.csv --out predictions.csv",
        "onepass predict price.onepass 'new/*.parquet' --level 0.8 --keep id --out predictions.parquet",
        "onepass predict price.onepass new.csv --where 'id == 17' --explain",
        "cat new.jsonl | onepass predict clicks.onepass - > probabilities.csv",
    ),
)
@options.model_argument
@options.files
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write: .csv, .jsonl or .parquet; standard output by default.",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["csv", "jsonl", "parquet"]),
    help="Format of the output; inferred from the --out extension by default, CSV on standard output.",
)
@options.level
@click.option(
    "--keep", type=options.names, default=(), metavar="A,B,...", help="Columns of the input to copy to the output."
)
@click.option(
    "--explain",
    is_flag=True,
    help="Also say how much each column adds to the prediction for an average row: in columns add_..., with their "
    "standard deviations in std_...; on a terminal in a few lines per row.",
)
@click.option(
    "--full-precision",
    is_flag=True,
    help="Write all digits of predictions to CSV and JSON lines. By default they are rounded by less than a millionth "
    "of their standard deviation; Parquet always has all digits.",
)
@options.rejecting
@options.reading
@options.reporting
def predict(
    model: Path,
    files: tuple[str, ...],
    out: Path | None,
    kind: str | None,
    levels: tuple[float, ...],
    keep: tuple[str, ...],
    explain: bool,
    full_precision: bool,
    rejecting: RejectOptions,
    reading: ReadOptions,
    as_json: bool,
    quiet: bool,
) -> int:
    """Predict the target of every row, with its uncertainty.

    For numbers the output columns are mean, std, lower and upper; a new target lies between lower and upper with
    probability --level. With several levels, as in --level 0.5 --level 0.95, there are lower_50, upper_50, lower_95 and
    upper_95, and wider intervals contain narrower ones. For classes they are label, the most probable class,
    and a probability for each class, such as p_no and p_yes for the classes no and yes. There is one output row for
    each input row, in the same order. A row that can't be predicted is left empty, counted and, with --rejects, written
    to a file. A line that can't be read as a row, such as one with too few fields, has no output row.

    With --explain every prediction is split into parts: the baseline, which is the prediction for an average row, plus
    what each column adds. The sum is the mean in the units of the target; for counts it is the log rate, for two
    classes the log odds of the second, for more classes the log odds of the label. Parts that the model knows little
    about have a large standard deviation.

    The output file appears only when it is complete.
    """
    from onepass.cli.errors import user_errors
    from onepass.cli.paths import check_distinct_paths, check_writable, load_model

    with Console(as_json=as_json, quiet=quiet, to_stderr=out is None) as console, user_errors():
        from onepass.tables.prediction import as_given_levels
        from onepass.tables.readers.addresses import located
        from onepass.tables.readers.registry import open_source
        from onepass.tables.schema import reading_of
        from onepass.tables.writing import format_of

        inputs, reading = located(files, reading)
        check_distinct_paths([model, *inputs], out=out, rejects=rejecting.rejects)
        known = load_model(model)
        if out is not None:
            check_writable(out, "--out")
        reads_along = explain and out is None and kind is None and sys.stdout.isatty()
        kind = kind or ("csv" if out is None else format_of(out))
        if kind is None:
            raise click.UsageError(f"--out {out} does not end in .csv, .jsonl or .parquet; give --format.")
        reading = reading_of(known, inputs, reading)
        sources = [open_source(file, reading) for file in inputs]
        console.tell_notes(sources)
        asked = _Asked(as_given_levels(levels), keep, explain, None if reads_along else kind, out, full_precision)
        _check_columns(known, sources, asked)
        if not reads_along:  # a progress bar would run into the lines
            console.start()
        return _predict(known, sources, asked, rejecting, reading.where, console)


class _Asked(NamedTuple):
    """What is predicted, and where it goes."""

    levels: tuple[float, ...]
    keep: tuple[str, ...]
    explain: bool
    kind: str | None  # of file; None: lines to be read at a terminal
    out: Path | None
    full_precision: bool

    @property
    def rounds(self) -> bool:
        """Whether only the digits that matter are written."""
        return not self.full_precision and self.kind != "parquet"


def _check_columns(model: "TabularModel", sources: "Sequence[Source]", asked: _Asked) -> None:
    """Refuse files that lack columns, and columns to keep that have the name of an output column."""
    from onepass.tables.readers.source import check_has
    from onepass.tables.schema import check_columns

    for source in sources:
        check_columns(model, source, target=False)
        check_has(asked.keep, source)
    taken = sorted(set(asked.keep) & set(_output_names(model, asked)))
    if taken:
        raise click.UsageError(
            f"--keep {taken[0]} has the same name as an output column; rename it in the input, or leave it out and "
            "join it by row number: output rows are in the order of the input."
        )


def _output_names(model: "TabularModel", asked: _Asked) -> list[str]:
    """Columns of the output, but for those of the input that are kept."""
    from onepass.tables.explanation import Explanation

    names = Explanation.names([column.name for column in model.encoding.columns]) if asked.explain else []
    return [*model.prediction_names(asked.levels), *names]


def _predict(
    model: "TabularModel",
    sources: "Sequence[Source]",
    asked: _Asked,
    rejecting: RejectOptions,
    where: str | None,
    console: Console,
) -> int:
    """Predict and write all rows, say how it went, and give the exit code."""
    from onepass.cli.errors import REJECTED
    from onepass.cli.explained_rows import explained_rows
    from onepass.tables.digits import rounded_predictions
    from onepass.tables.prediction import predict_sources
    from onepass.tables.readers.errors import StreamError
    from onepass.tables.readers.source import StandardInput
    from onepass.tables.schema import left_out_words
    from onepass.tables.writing import TableWriter

    rows = empty = 0
    names = _output_names(model, asked)
    aligned = not isinstance(sources[0], StandardInput)
    shown = {"explained": asked.explain, "whole_records": rejecting.rejects is not None}
    found = predict_sources(model, sources, asked.levels, asked.keep, aligned=aligned, **shown)
    limit = rejecting.max_rejects or NO_LIMIT
    with Rejects(rejecting, limit=limit) as log, TableWriter(asked.out, asked.kind or "csv") as writer:
        for source, batch, predicted, n_empty, rejects, share in found:
            log.add(source.name, rejects)
            if predicted is not None and asked.kind is None:
                click.echo("\n".join(explained_rows(model, source.name, batch, predicted, asked.levels)))
            elif predicted is not None:
                writer.write(rounded_predictions(predicted, names) if asked.rounds else predicted)
            rows, empty = rows + len(batch), empty + n_empty
            log.judge(len(batch) + len(batch.malformed), share)
            console.advance(len(batch), share, log.count)
        log.judge_all()
        if not rows and not log.count:
            raise StreamError(f"there is no row to predict{left_out_words(sources)}")
    log.tell(console)
    tell_left_out(console, where, sources)
    console.done(
        {"rows": rows - empty, "rejected": log.count, "out": None if asked.out is None else str(asked.out)},
        f"predicted {counted(rows - empty, 'row')}, {log.count:,} rejected",
        *([f"predictions: {asked.out}"] if asked.out is not None else []),
    )
    return REJECTED if log.count else 0
