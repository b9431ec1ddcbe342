"""``onepass learn``: a model goes on where it stopped."""

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
        "onepass learn price.onepass 'new/*.csv.gz' --rejects bad.csv",
        "tail -f sensor.jsonl | onepass learn level.onepass - --alarms alarms.csv",
        "tail -f events.jsonl | onepass learn clicks.onepass - --checkpoint-every 30s",
    ),
)
@options.model_argument
@options.files
@click.option("--passes", type=click.IntRange(min=1), default=1, show_default=True, help="Passes over the input.")
@options.learning
@options.alarming
@options.rejecting
@options.reading
@options.reporting
def learn(
    model: Path,
    files: tuple[str, ...],
    passes: int,
    every: tuple[str, float],
    resume: bool,
    alarms: Path | None,
    rejecting: RejectOptions,
    reading: ReadOptions,
    as_json: bool,
    quiet: bool,
) -> int:
    """Go on learning where a model stopped.

    The rows are encoded as those that MODEL was made from; columns it does not know are left alone. Until all files are
    learned MODEL stays as it is and the progress is kept beside it, in MODEL.partial; after an interruption the same
    command with --resume goes on. With --resume files that the last run learned to their end are not learned again.

    --alarms lists the rows whose target the model does not believe, and those at which the truth has changed, each
    judged by what was learned before it. A model made with --outliers or --drift auto can do so.

    From standard input (-) rows are learned as they come, and MODEL itself is brought up to date at every checkpoint.
    """
    from onepass.cli.errors import user_errors
    from onepass.cli.paths import check_distinct_paths, check_writable, load_model
    from onepass.cli.training_run import Logs, check_passes, checkpoint_policy, resume_run, run

    with Console(as_json=as_json, quiet=quiet) as console, user_errors():
        from onepass.tables.inputs import Inputs
        from onepass.tables.readers.paths import expand
        from onepass.tables.schema import check_columns
        from onepass.tables.training import TrainingRun

        inputs = Inputs(tuple(expand(files)), passes, reading)
        check_distinct_paths(inputs.files, MODEL=model, rejects=rejecting.rejects, alarms=alarms)
        learned = load_model(model)
        check_passes(passes, learned.estimator.drift)
        check_writable(model, "MODEL")
        resumed = resume_run(model, inputs, resume, {})
        if resumed is None and resume and learned.last_run == inputs.identity():
            console.done({"model": str(model), "rows": 0, "rejected": 0}, f"{model} has learned these files already")
            return 0
        sources = inputs.sources()
        console.tell_notes(sources)
        learned = learned if resumed is None else resumed.model
        for source in sources:
            check_columns(learned, source, target=True)
        notes = resumed and resumed.progress.notes
        with Alarms(alarms, learned, notes) as watched, Rejects(rejecting, notes) as log:
            start = resumed and resumed.progress.position
            training = TrainingRun(learned, model, inputs, sources, start, watched.watch)
            return run(training, checkpoint_policy(every), Logs(log, watched), console, asked={})
