"""``onepass learn``: let a saved model learn more rows."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onepass.cli import options
from onepass.cli.console import Console
from onepass.cli.rejects import RejectOptions
from onepass.tables.readers.options import ReadOptions

if TYPE_CHECKING:
    from onepass.files.versions import VersionedFile
    from onepass.tables.inputs import Inputs
    from onepass.tables.training import TrainingRun

__all__ = ["learn"]


@click.command(
    cls=options.Command,
    examples=(
        "onepass learn price.onepass tonight.parquet",
        "onepass learn price.onepass tonight.parquet --out trial.onepass",
        "onepass learn price.onepass 'hourly/*.csv' --wait 10m",
        "onepass learn price.onepass 'new/*.csv.gz' --rejects bad.csv",
        "onepass learn sales.onepass tonight.csv",
        "tail -f sensor.jsonl | onepass learn level.onepass - --alarms alarms.csv",
        "tail -f events.jsonl | onepass learn clicks.onepass - --checkpoint-every 30s",
    ),
)
@options.model_argument
@options.files
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="NEW",
    help="Write the model to this file, and leave MODEL as it is.",
)
@click.option(
    "--passes", type=click.IntRange(min=1), default=1, show_default=True, help="How often to learn the whole input."
)
@options.learning
@options.alarming
@options.rejecting
@options.reading
@options.reporting
def learn(
    model: Path,
    files: tuple[str, ...],
    out: Path | None,
    passes: int,
    learning: options.RunOptions,
    alarms: Path | None,
    rejecting: RejectOptions,
    reading: ReadOptions,
    as_json: bool,
    quiet: bool,
) -> int:
    """Let a saved model learn more rows.

    The columns are read as when MODEL was made; columns that it does not know are ignored. Until all files are learned
    MODEL stays as it is, and the progress is kept next to it, in MODEL.partial; after an interruption the same command
    with --resume continues.

    MODEL recognises files that it has learned by their content, under any name: they are skipped, with a message, and a
    CSV or JSON lines file that has grown since is learned from where it ended before. --again learns them once more,
    except with a model made by 'onepass detect', which scores each value once.
    'onepass history' lists the runs, and 'onepass undo' reverts the last one. Only one process at a time can write a
    model; see --wait.

    --alarms lists the rows whose target the model does not believe, and those at which the relation has changed, each
    judged by what was learned before it. Without --outliers, only absurd numbers are distrusted; changes need
    --outliers or --drift auto.

    A row whose target is absurdly far from what the model predicts is set aside: it is counted, also in the summary,
    but not learned. --alarms lists it.

    From standard input (-) rows are learned as they come, and MODEL itself is updated at every checkpoint.

    MODEL may also be made by 'onepass forecast' or 'onepass detect'. Then the files have values of its series: new
    ones and, for forecasts, late and corrected ones, as far back as --revisions of the first run allows. A model made
    by 'onepass detect' prints the alarms. Such files are read as a whole, so --passes, --checkpoint-every,
    --resume and --alarms don't apply.
    """
    from onepass.cli.errors import user_errors
    from onepass.cli.paths import check_distinct_paths, check_there, check_writable, series_class_of
    from onepass.cli.training_run import check_stream, given_files, only_writer, run_logs

    with Console(as_json=as_json, quiet=quiet) as console, user_errors():
        check_there(model)
        found, reading = given_files(files, reading, learning.again, console)
        written = {"MODEL": model} if out is None else {"out": out}
        only_read = found if out is None else [*found, str(model)]
        check_distinct_paths(only_read, **written, rejects=rejecting.rejects, alarms=alarms)
        check_writable(out or model, "MODEL" if out is None else "--out")
        series = series_class_of(model)
        if series is not None:
            if learning.again and not series.learns_again:
                why = f"a model of 'onepass {series.made_by}' takes each value only once, before the later ones"
                raise click.UsageError(f"--again does not apply to {model}: {why}.")
            from onepass.cli.learn_series import learn_series

            return learn_series(model, out, found, reading, learning, rejecting, console)
        from onepass.tables.inputs import Inputs

        inputs = Inputs(found, passes, reading)
        inputs = replace(inputs, whole_records=rejecting.rejects is not None)
        check_stream(inputs, learning.resume)
        with only_writer(out or model, learning.wait) as target:
            begun = _begun(model, target, inputs, learning, console)
            starts = begun.inputs.starts
            if starts and not any(start is not None for start in starts):
                return _nothing_new(model, target, out, console)
            with run_logs(rejecting, alarms, begun.model, begun.progress) as logs:
                return logs.run(begun, learning, console)


def _begun(
    path: Path, target: "VersionedFile", inputs: "Inputs", learning: options.RunOptions, console: Console
) -> "TrainingRun":
    """The run that was interrupted, if it is to be resumed; or a new one that leaves out what was learned."""
    from onepass.cli.paths import load_model
    from onepass.cli.training_run import check_passes, resume_run, without_known
    from onepass.files.versions import version
    from onepass.tables.schema import check_columns, reading_of
    from onepass.tables.training import TrainingRun

    base = target.version if target.path == path else version(path)
    model = load_model(path)
    check_passes(inputs.passes, model.estimator.drift, in_order=model.has_level)
    inputs = replace(inputs, reading=reading_of(model, inputs.files, inputs.reading))
    sources = inputs.sources()
    console.tell_notes(sources)
    resumed = resume_run(target.path, inputs, sources, learning.resume, {}, base)
    if resumed is not None:
        model, inputs = resumed.model, resumed.goes_on_with(inputs)
    else:
        inputs = without_known(inputs, sources, model.history, learning.again, console)
    if not inputs.starts or any(start is not None for start in inputs.starts):
        for source in sources:
            check_columns(model, source, target=True)
    return TrainingRun(model, target, inputs, sources, base, None if resumed is None else resumed.progress)


def _nothing_new(model: Path, target: "VersionedFile", out: Path | None, console: Console) -> int:
    """Say that the model has learned all of the files already."""
    if out is not None:
        target.write(model.read_bytes())
    where = "" if out is None else f"; {out} is a copy of it"
    facts = {"model": str(out or model), "rows": 0, "rejected": 0}
    console.done(facts, f"{model} has learned these files already{where}")
    return 0
