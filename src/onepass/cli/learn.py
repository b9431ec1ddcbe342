"""``onepass learn``: let a saved model learn more rows."""

from pathlib import Path

import click

from onepass.cli import options
from onepass.cli.alarms import Alarms
from onepass.cli.console import Console
from onepass.cli.rejects import RejectOptions, Rejects
from onepass.tables.readers.options import ReadOptions

__all__ = ["learn"]


@click.command(
    cls=options.Command,
    examples=(
        "onepass learn price.onepass tonight.parquet",
        "onepass learn price.onepass tonight.parquet --out trial.onepass",
        "onepass learn price.onepass 'hourly/*.csv' --wait 10m",
        "onepass learn price.onepass 'new/*.csv.gz' --rejects bad.csv",
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
    every: tuple[str, float],
    resume: bool,
    again: bool,
    wait: float,
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
    CSV or JSON lines file that has grown since is learned from where it ended before. --again learns them once more.
    'onepass history' lists the runs, and 'onepass undo' reverts the last one. Only one process at a time can write a
    model; see --wait.

    --alarms lists the rows whose target the model does not believe, and those at which the relation has changed, each
    judged by what was learned before it. Without --outliers, only absurd numbers are not believed; changes need
    --outliers or --drift auto.

    A row whose target is absurdly far from what the model predicts is set aside: it is counted, also in the summary,
    but not learned. --alarms lists it.

    From standard input (-) rows are learned as they come, and MODEL itself is updated at every checkpoint.
    """
    from onepass.cli.errors import user_errors
    from onepass.cli.paths import check_distinct_paths, check_there, check_writable, load_model
    from onepass.cli.training_run import (
        Logs,
        check_passes,
        check_stream,
        checkpoint_policy,
        given_files,
        only_writer,
        resume_run,
        run,
        without_known,
    )

    with Console(as_json=as_json, quiet=quiet) as console, user_errors():
        from onepass.files.versions import version
        from onepass.tables.inputs import Inputs
        from onepass.tables.schema import check_columns
        from onepass.tables.training import TrainingRun

        inputs = Inputs(given_files(files, again, console), passes, reading)
        check_stream(inputs, resume)
        written = {"MODEL": model} if out is None else {"out": out}
        read = inputs.files if out is None else [*inputs.files, str(model)]
        check_distinct_paths(read, **written, rejects=rejecting.rejects, alarms=alarms)
        check_there(model)
        check_writable(out or model, "MODEL" if out is None else "--out")
        with only_writer(out or model, wait) as target:
            base = target.version if out is None else version(model)
            learned = load_model(model)
            check_passes(passes, learned.estimator.drift)
            sources = inputs.sources()
            console.tell_notes(sources)
            resumed = resume_run(target.path, inputs, sources, resume, {}, base)
            if resumed is None:
                inputs = without_known(inputs, sources, learned.ledger, again, console)
            else:
                learned, inputs = resumed.model, resumed.goes_on_with(inputs)
            if inputs.starts and not any(start is not None for start in inputs.starts):
                if out is not None:
                    target.write(model.read_bytes())
                facts = {"model": str(out or model), "rows": 0, "rejected": 0}
                where = "" if out is None else f"; {out} is a copy of it"
                console.done(facts, f"{model} has learned these files already{where}")
                return 0
            for source in sources:
                check_columns(learned, source, target=True)
            progress = None if resumed is None else resumed.progress
            notes = None if progress is None else progress.notes
            with Alarms(alarms, learned, notes) as watched, Rejects(rejecting, notes) as log:
                training = TrainingRun(learned, target, inputs, sources, base, progress, watched.watch)
                return run(training, checkpoint_policy(every), Logs(log, watched), console, asked={})
