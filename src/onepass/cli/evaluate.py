"""``onepass evaluate``: predict every row before learning it, and score the predictions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onepass._extras import require
from onepass.cli import options
from onepass.cli.console import Console, counted, in_columns
from onepass.cli.left_out import tell_left_out
from onepass.cli.rejects import RejectOptions, Rejects
from onepass.cli.schema import schema_options, tell_choices
from onepass.tables.readers.options import ReadOptions

if TYPE_CHECKING:
    from onepass.evaluation.prequential import Trial
    from onepass.tables.inputs import Inputs, Step
    from onepass.tables.model import TabularModel
    from onepass.tables.readers.source import Source
    from onepass.tables.schema import SchemaOptions

    _Scored = Callable[[Callable[[], object]], Iterator[Step]]

__all__ = ["evaluate", "score_files", "scoring"]


scoring = options.all_of(
    options.files,
    click.option("--target", help="Name of the column to predict."),
    click.option(
        "--model",
        "path",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Start from this saved model; the file is not changed.",
    ),
    options.shape,
    click.option(
        "--compare",
        is_flag=True,
        help="Also score one-pass models of scikit-learn and River on the same rows, each with its best step size so "
        "far.",
    ),
    click.option(
        "--test-split",
        type=options.test_rows,
        metavar="[last:]SHARE%",
        help="Hold out this share of the rows: they are not learned, and only they are scored, by the model that has "
        "learned the others. 20% are drawn at random (--seed); last:20% are those at the end, predicted by the model "
        "that 'onepass fit' makes of the rows before them.",
    ),
)
"""What is scored, and how: the options of `evaluate` and `report`."""


@click.command(
    cls=options.Command,
    short_help="Predict every row, then learn it, and score the predictions.",
    examples=(
        "onepass evaluate trips.csv --target price --html report.html",
        "onepass evaluate 'logs/*.parquet' --target clicked --compare",
        "onepass evaluate tonight.parquet --model price.onepass",
        "onepass evaluate trips.csv --target price --test-split 20%",
        "onepass evaluate sales.csv --target sold --test-split last:20%",
    ),
)
@scoring
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), help="Write an HTML report to this file.")
@options.rejecting
@options.reading
@options.reporting
def evaluate(**given: Any) -> int:
    """Test, then train: predict every row, score the prediction, learn the row.

    Every row tests what was learned from the rows before it, so no data have to be held out. The scores are, for
    numbers, RMSE, MAE, log-likelihood and the share of targets inside the 50, 80 and 95 % intervals; for counts also
    the Poisson deviance; for classes accuracy, log-loss, Brier score and the area under the ROC curve; for all of them
    the calibration error. Scores over time are in --json and --html. Next to them are the scores of the mean so far,
    of the last value, and of the value one period earlier: what any model has to beat.

    With --test-split 20% a fifth of the rows is held out instead, and scored when all others have been learned.
    Random rows, and rows that come right after those learned, say little about a future that differs from the past:
    where the rows are in the order of time, --test-split last:20% shows how the model does that you would use now.

    The model is the one that 'onepass fit' would make with the same options (give --target), or a saved one (give
    --model). The kinds of the columns, the mean and scale of numbers, and the scales of the prior are taken from the
    first rows beforehand.
    """
    return score_files(**given)


def score_files(
    files: tuple[str, ...],
    target: str | None,
    path: Path | None,
    compare: bool,
    test_split: tuple[str, float] | None,
    html: Path | None,
    rejecting: RejectOptions,
    reading: ReadOptions,
    as_json: bool,
    quiet: bool,
    **shape: Any,
) -> int:
    """Score a model on files, print the scores, and write the page if it is wanted."""
    from onepass.cli.errors import INTERRUPTED, REJECTED, user_errors
    from onepass.cli.paths import check_distinct_paths, check_writable, load_model
    from onepass.cli.training_run import stoppable

    with Console(as_json=as_json, quiet=quiet) as console, user_errors():
        if (target is None) == (path is None):
            raise click.UsageError("Give either --target, for a new model, or --model, for a saved one.")
        from onepass.tables.inputs import Inputs
        from onepass.tables.readers.addresses import located
        from onepass.tables.schema import reading_of

        schema = schema_options(target or "", shape)
        found, reading = located(files, replace(reading, notation=schema.notation))
        model = None if path is None else load_model(path)
        reading = reading if model is None else reading_of(model, found, reading)
        inputs = Inputs(found, 1, reading)
        inputs = replace(inputs, whole_records=rejecting.rejects is not None)
        check_distinct_paths([*inputs.files, *([path] if path else [])], html=html, rejects=rejecting.rejects)
        if html is not None:
            require("plots", "--html")
            check_writable(html, "--html")
        sources = inputs.sources()
        console.tell_notes(sources)
        trial, scored = _trial(model, schema, inputs, sources, console, test_split, compare=compare)
        for note in trial.comparison_notes():
            console.aside(f"--compare: {note}")
        with stoppable() as stopping, Rejects(rejecting) as log:
            _score(trial, scored, sources, log, console, stopping)
        log.tell(console)
        tell_left_out(console, reading.where, sources)
        trial.check()
        for name, why in trial.failed.items():
            console.aside(f"{name} could not go on and is left out: {why}")
        if html is not None:
            from onepass.reports.page import write_page

            write_page(html, trial, inputs.files)
        _print_scores(console, trial, log, html)
        return INTERRUPTED if stopping() else REJECTED if log.count else 0


def _trial(
    model: "TabularModel | None",
    schema: "SchemaOptions",
    inputs: "Inputs",
    sources: "Sequence[Source]",
    console: Console,
    test_split: tuple[str, float] | None,
    *,
    compare: bool,
) -> "tuple[Trial, _Scored]":
    """What is scored, and what scores all rows: the saved model, or a new one of which every choice is printed."""
    from onepass.evaluation.evaluating import score_steps
    from onepass.evaluation.future import future_steps
    from onepass.evaluation.held_out import HeldOut, LastRows
    from onepass.evaluation.prequential import Trial
    from onepass.tables.fitting import FitOptions
    from onepass.tables.schema import check_columns, infer_model

    if model is not None:
        for source in sources:
            check_columns(model, source, target=True)
    which, share = test_split or ("", 0.0)
    _check_split(which, inputs, model.by if model is not None else schema.settings.by, compare=compare)
    reason, refine = None, False
    if which == "last":
        last = LastRows.of(inputs, sources, schema.target if model is None else model.target.name, share)
        if model is None:
            wanted = FitOptions(schema)
            model, reason, last = last.new_model(wanted, sources)
            refine = wanted.refines(inputs, model)
        trial = Trial(model, compare=compare, split=last)
        scored: _Scored = partial(future_steps, trial, last, sources, refine=refine)
    else:
        if model is None:
            model, reason = infer_model(sources, schema, rereadable=not inputs.is_stream)
        trial = Trial(model, compare=compare, split=HeldOut(share, schema.settings.seed) if which else None)
        scored = partial(score_steps, trial, replace(inputs, passes=trial.passes), sources)
    if reason is not None:
        tell_choices(console, model, reason)
    return trial, scored


def _score(
    trial: "Trial",
    scored: "_Scored",
    sources: "Sequence[Source]",
    log: Rejects,
    console: Console,
    stopping: Callable[[], bool],
) -> None:
    """Score all rows, or those up to an interruption."""
    console.start()
    halt = sources[0].stop  # a stream that pauses; files end by themselves
    for step in scored(lambda: stopping() and halt()):
        if step.position.turn == 0:
            log.add(step.file, step.rows.rejects)
            log.judge(step.rows.n_read, trial.passes * step.share)
        console.advance(step.rows.n_read, step.share, log.count)
        if stopping():
            console.aside("interrupted; these are the scores so far")
            return
    log.judge_all()


def _check_split(which: str, inputs: "Inputs", by: str | None, *, compare: bool) -> None:
    for given, reason in (
        (inputs.is_stream, "reads the input twice, so it needs files and can't be used with standard input"),
        (compare, "can't be given with --compare, which scores every row before it is learned"),
        (by is not None, "can't be given with a model per key (--by); leave it out to score rows as they are learned"),
    ):
        if which and given:
            raise click.UsageError(f"--test-split {reason}.")


def _print_scores(console: Console, trial: "Trial", log: Rejects, html: Path | None) -> None:
    from onepass.cli.training_run import set_aside_words

    table = trial.table()
    facts: dict[str, Any] = {"rows": trial.rows, "rejected": log.count, "without_target": log.without_target}
    facts["seconds"] = round(console.seconds, 3)
    facts["set_aside"] = trial.n_set_aside
    if trial.model.estimator.outliers:
        facts["outliers"] = trial.n_outliers
    if trial.model.verdict:
        facts["answers"] = trial.model.verdict
    facts |= {"scores": trial.scores(), "settings": trial.settings(), "failed": trial.failed}
    facts["over_time"] = trial.over_time()
    speed = trial.rows / max(console.seconds, 1e-9)
    what = "row" if trial.split is None else "test row"
    words = [
        f"{counted(trial.rows, what)} in {console.seconds:.1f} s ({speed:,.0f} rows/s), {log.count:,} rejected"
        + ("" if trial.split is None else f"; learned from {counted(trial.model.n_rows, 'other row')}"),
        *in_columns(table),
        *([f"scores of {counted(trial.rows, 'row')} are mostly chance"] if trial.is_small else []),
        *filter(None, (trial.coverage_words(), _worst(trial))),
        *set_aside_words(trial.n_set_aside),
        *([f"answers: {trial.model.verdict}"] if trial.model.verdict else []),
        *([f"{counted(trial.n_outliers, 'target')} not trusted"] if "outliers" in facts else []),
        *(f"best setting of {name}: {setting}" for name, setting in trial.settings().items()),
        *([f"report: {html}"] if html is not None else []),
    ]
    console.done(facts, *words)


def _worst(trial: "Trial") -> str:
    """The row that ruined the score, if one did, and what helps against it."""
    words = trial.worst.words()
    helps = "" if trial.model.estimator.outliers else " (--outliers 0.05 has such rows do little harm)"
    return words and words + helps
