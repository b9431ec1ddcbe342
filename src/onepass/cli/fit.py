"""``onepass fit``: learn a model from files; every choice that is not given is made from the data, and printed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from onepass.cli import options
from onepass.cli.console import Console, counted
from onepass.cli.rejects import RejectOptions
from onepass.cli.schema import schema_options, tell_choices
from onepass.tables.readers.options import ReadOptions

if TYPE_CHECKING:
    from onepass.cli.training_run import Logs
    from onepass.files.versions import VersionedFile
    from onepass.tables.fitting import FitOptions
    from onepass.tables.history import LearnedFile
    from onepass.tables.inputs import Inputs
    from onepass.tables.model import TabularModel
    from onepass.tables.readers.options import Part
    from onepass.tables.training import TrainingRun

__all__ = ["default_model_path", "fit"]

_DATABASE_ENDINGS = (".db", ".sqlite", ".duckdb")
_WORKBOOK_ENDINGS = (".xlsx", ".xls", ".ods")
_TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson")
_TABLE_ENDINGS = (*_TEXT_ENDINGS, ".parquet", ".pq", *_DATABASE_ENDINGS, *_WORKBOOK_ENDINGS)
_PACKED_ENDINGS = (".gz", ".bz2", ".xz", ".zst", ".zip")


@click.command(
    cls=options.Command,
    examples=(
        "onepass fit trips.csv --target price",
        "onepass fit 'logs/*.parquet' --target clicked --model clicks.onepass --hidden 50",
        "onepass fit sales.csv --target sales --by store --where 'sales > 0'",
        "onepass fit trips.csv --target price --time date",
        "onepass fit --config price.toml",
        "onepass fit sensor.csv --target level --outliers 0.05 --drift auto --alarms alarms.csv",
        "onepass fit 'data/*.parquet' --target y --model y.onepass --executor dask --workers 4",
        "zcat old.csv.gz | onepass fit - --target kind --classes a,b,c --model kind.onepass",
    ),
)
@options.files
@click.option("--target", required=True, help="The column to predict.")
@click.option(
    "--model",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write the model to. By default it is written to the current folder and named after the first input "
    "file: trips.csv makes trips.onepass.",
)
@options.shape
@click.option(
    "--passes",
    type=options.count_or_auto,
    metavar="N|auto",
    default="auto",
    show_default=True,
    help="How often to learn the whole input. 'auto' learns it once; if a network is chosen and there are at most "
    "16,384 rows, all of them are then learned anew as a batch: in five passes of expectation propagation if these "
    "predict rows held out of a sample better, else in one. With a number, every row counts that many times.",
)
@click.option(
    "--shuffle",
    type=click.Choice(["auto", "on", "off"]),
    default="auto",
    show_default=True,
    help="Learn rows in a random order, shuffled within a buffer of 16,384 rows (fewer if there are more than 512 "
    "features). A network follows the latest rows most. 'auto' shuffles if a network may be chosen, unless the order "
    "is needed: with --drift, --forgetting, --prior-scale auto, --alarms, --executor dask or standard input, or if "
    "tests on rows ahead choose a model that follows the order.",
)
@options.learning
@options.clustering
@options.alarming
@options.rejecting
@options.reading
@options.reporting
def fit(
    files: tuple[str, ...],
    target: str,
    path: Path | None,
    passes: int | str,
    shuffle: str,
    learning: options.RunOptions,
    cluster: options.ClusterOptions,
    alarms: Path | None,
    rejecting: RejectOptions,
    reading: ReadOptions,
    as_json: bool,
    quiet: bool,
    **shape: Any,
) -> int:
    """Learn a model from files.

    FILE... are CSV, JSON, Parquet, SQLite or DuckDB files (CSV and JSON also compressed with gzip, bzip2, xz, zstd or
    zip); patterns such as 'data/*.parquet'; addresses such as https://... or s3://...; or - for standard input. They
    are read in the order given, in constant memory whatever their size; --shuffle and --passes say how their rows are
    learned. What each column holds is decided from the first rows; every choice is printed, and each has an option that
    overrides it.

    The model is a perceptron (linear for numbers, sigmoid for two classes, softmax for more) or a network: both learn
    the first rows, and the one that predicts them better is kept. Very large inputs are learned by a perceptron.
    Before that models learn the first part of the rows and predict the rows after it: if one that follows the order of
    the rows is better at that, it is chosen, and intervals that would be too narrow are widened. The line 'future' says
    how good such predictions are. Give --shuffle on if the order of the rows has no meaning.
    --model-kind perceptron always makes a perceptron, --hidden 50 a network. For counts (0, 1, 2, ...) give
    --task counts.

    Without --model the model is written to the current folder and named after the first file. An existing file of that
    name is replaced only if it is a model of the same target learned from the same files.

    With --time date the rows are those of a process in time: predictions start from where the last rows have left the
    target, lean on the seasons that the rows cover twice, and have intervals that widen with the distance from the last
    row. The rows must come in the order of that column, the oldest first.

    With --outliers 0.05 extreme targets and wrong labels do little harm, and with --drift auto the model follows
    relations that change. --alarms lists such rows and changes as they are found.

    Rows that can't be learned are counted and, with --rejects, written to a file; the exit code is then 3. If there are
    more than --max-rejects allows, the command fails and writes no model. A run that was interrupted continues with
    the same command and --resume, and ends with exactly the same model.

    With --executor dask each file is learned by a worker, --workers processes on this machine or the workers of
    --scheduler, and the results are merged. With --rounds 2 the result is about as close to that of one process as
    learning the rows in another order would be.
    """
    from onepass.cli.errors import user_errors
    from onepass.cli.paths import check_distinct_paths, check_writable
    from onepass.cli.training_run import check_passes, check_stream, given_files, only_writer, run_logs

    with Console(as_json=as_json, quiet=quiet) as console, user_errors():
        cluster.check()
        from onepass.tables.fitting import FitOptions
        from onepass.tables.inputs import Inputs

        schema = schema_options(target, shape)
        wanted = FitOptions(schema, passes, shuffle, in_order=cluster.is_dask or alarms is not None)
        check_passes(wanted.turns, shape["drift"])
        reading = replace(reading, notation=schema.notation)
        found, reading = given_files(files, reading, learning.again, console)
        inputs = Inputs(found, wanted.turns, reading)
        inputs = replace(inputs, whole_records=rejecting.rejects is not None)
        check_stream(inputs, learning.resume, shuffle=shuffle == "on")
        if cluster.is_dask:
            _refuse_on_dask(inputs, learning.resume, shape, alarms, shuffle)
        path = path or _unnamed_model(inputs, target)
        check_distinct_paths(inputs.files, model=path, rejects=rejecting.rejects, alarms=alarms)
        check_writable(path, "--model")
        given = {"target": target, "passes": passes, "shuffle": shuffle, **shape}
        asked = json.loads(json.dumps(given))  # as a file will give it back
        with only_writer(path, learning.wait) as written:
            begun = _begun(wanted, written, inputs, learning, cluster, console, asked)
            with run_logs(rejecting, alarms, begun.model, begun.progress) as logs:
                if cluster.is_dask:
                    return _fit_on_dask(begun.model, written, begun.inputs, logs, console, cluster)
                return logs.run(begun, learning, console, asked)


def _begun(
    wanted: "FitOptions",
    written: "VersionedFile",
    inputs: "Inputs",
    learning: options.RunOptions,
    cluster: options.ClusterOptions,
    console: Console,
    asked: dict[str, Any],
) -> "TrainingRun":
    """The run that was interrupted, if it is to be resumed; or a new one, of which every choice is printed."""
    from onepass.cli.training_run import resume_run, without_known
    from onepass.tables.history import TrainingHistory
    from onepass.tables.training import TrainingRun

    sources = inputs.sources()
    console.tell_notes(sources)
    resumed = resume_run(written.path, inputs, sources, learning.resume, asked)
    if resumed is not None:
        refine = wanted.refines(inputs, resumed.model)
        inputs = resumed.goes_on_with(inputs)
        return TrainingRun(resumed.model, written, inputs, sources, None, resumed.progress, refine=refine)
    inputs = without_known(inputs, sources, TrainingHistory(), learning.again, console)
    model, reason, inputs = wanted.new_model(inputs, sources)
    if cluster.is_dask:
        model.end_comparison()
    refine = wanted.refines(inputs, model)
    tell_choices(console, model, reason)
    if inputs.shuffle is not None:
        console.fact("order", f"random, within a buffer of {model.rows_per_buffer:,} rows")
    if wanted.turns > 1:
        what = f"{wanted.turns}: every row counts {wanted.turns} times, so intervals come out too narrow"
        console.fact("passes", what)
    return TrainingRun(model, written, inputs, sources, refine=refine)


def default_model_path(file: str, table: str | None = None) -> Path:
    """Where to write the model of a file, if nothing else is said: in the folder the command runs in.

    Examples
    --------
    >>> print(default_model_path("data/trips.csv.gz"), default_model_path("v1.2"))
    trips.onepass v1.2.onepass
    >>> print(default_model_path("https://example.org/trips.zip?version=2"))
    trips.onepass
    >>> print(default_model_path("postgresql://ann@host/data", "trips"))
    trips.onepass
    """
    from onepass.tables.readers.addresses import SERVERS, scheme_of

    if table is not None and scheme_of(file) in SERVERS:
        return Path(table + ".onepass")
    name = Path(urlsplit(file).path if "://" in file else file).name
    if name == "-":
        raise click.UsageError("Standard input has no name that the model could take; give --model FILE.")
    if name.endswith(_PACKED_ENDINGS):
        name = Path(name).stem
    ending = Path(name).suffix
    return Path((name.removesuffix(ending) if ending.lower() in _TABLE_ENDINGS else name) + ".onepass")


def _unnamed_model(inputs: "Inputs", target: str) -> Path:
    """Where to write a model that was not named: over no file but a model of the same target and files."""
    from onepass.tables.readers.source import check_has

    path = default_model_path(inputs.files[0], inputs.reading.table)
    if path.exists() and not _is_model_of(path, inputs, target):
        for source in inputs.sources():
            check_has([target], source)  # a mistyped target is the likelier mistake
        raise click.UsageError(
            f"{path} exists, and is not a model of {target!r} learned from these files; give --model {path} to replace "
            "it, or --model with another name."
        )
    return path


def _is_model_of(path: Path, inputs: "Inputs", target: str) -> bool:
    from onepass.cli.paths import load_model
    from onepass.files.checkpoint import CheckpointError

    try:
        model = load_model(path)
    except CheckpointError:
        return False
    from onepass.tables.readers.content import Content

    identity = inputs.identity(inputs.sources())
    files = [Content(file["size"], file["digest"], "") for file in identity["files"]]
    return model.target.name == target and model.history.is_one_run_of(files, inputs.passes)


def _refuse_on_dask(inputs: "Inputs", resume: bool, shape: dict[str, Any], alarms: Path | None, shuffle: str) -> None:
    for given, option, reason in (
        (inputs.is_stream, "--executor dask", "needs files; standard input can't be divided among workers"),
        (inputs.passes > 1, "--passes", "can't be used with --executor dask; give --rounds instead"),
        (
            resume,
            "--resume",
            "can't be used with --executor dask; start the run again (workers that are lost are replaced by Dask)",
        ),
        (shuffle == "on", "--shuffle on", "can't be used with --executor dask"),
        (shape["weight"] is not None, "--weight", "can't be used with --executor dask"),
        (shape["by"] is not None, "--by", "can't be used with --executor dask"),
        (
            shape["time"] is not None,
            "--time",
            "can't be used with --executor dask: it needs one process that learns the rows in order",
        ),
        (
            shape["drift"] != 0.0,
            "--drift",
            "can't be used with --executor dask: the rows of different workers have no common order",
        ),
        (
            alarms is not None,
            "--alarms",
            "can't be used with --executor dask: it needs one process that learns the rows in order",
        ),
    ):
        if given:
            raise click.UsageError(f"{option} {reason}.")


def _fit_on_dask(
    model: "TabularModel",
    written: "VersionedFile",
    inputs: "Inputs",
    logs: "Logs",
    console: Console,
    options: options.ClusterOptions,
) -> int:
    from onepass.cli.left_out import tell_left_out
    from onepass.cli.training_run import Tally, report
    from onepass.files.checkpoint import to_bytes
    from onepass.tables.history import LearnedRun, now

    names = tuple(file for number, file in enumerate(inputs.files) if inputs.first_row(number) is not None)
    inputs = replace(inputs, files=names, starts=())
    sources = inputs.sources()
    files = tuple(_whole(file, inputs.reading.part(source.table)) for file, source in zip(names, sources, strict=True))
    try:
        from onepass.integrations.dask.training import cluster, fit_files
    except ImportError as error:
        raise click.ClickException(f"{error}.") from None
    rounds = options.rounds or 2
    with cluster(options.workers, options.scheduler) as client:
        sizes = {"worker": len(client.nthreads()), "file": len(inputs.files), "round": rounds}
        console.fact("cluster", ", ".join(counted(n, what) for what, n in sizes.items()))
        console.start()
        found = fit_files(model, inputs, client, rounds, lambda done, total: console.advance(0, done / total, 0))
        for one in found:
            logs.rejects.add(one.file, one.rejects, one.total - len(one.rejects))
    logs.rejects.judge(model.n_rows + logs.rejects.count, 1.0)
    logs.rejects.judge_all()
    model.history = model.history.with_run(LearnedRun(now(), model.n_rows, model.n_rejected, 1, files))
    written.write(to_bytes(model))
    tell_left_out(console, inputs.reading.where, found)
    return report(model, written.path, logs, console, Tally(0, 0))


def _whole(file: str, part: "Part") -> "LearnedFile":
    """A file that workers learn as a whole; its rows are not counted."""
    from onepass.tables.history import LearnedFile
    from onepass.tables.readers.content import content_of
    from onepass.tables.readers.paths import is_url

    if is_url(file):
        return LearnedFile.remote(file, None, part)
    return LearnedFile.of(Path(file).name, content_of(file, Path(file).stat().st_size), None, part)
