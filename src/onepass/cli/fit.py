"""``onepass fit``: a model from files, everything chosen and told."""

import json
from pathlib import Path
from typing import Any

import click

from onepass.cli import options
from onepass.cli.console import Console, counted
from onepass.cli.rejects import Rejects

__all__ = ["fit", "request_from"]


@click.command(
    cls=options.Command,
    examples=(
        "onepass fit trips.csv --target price --model price.onepass",
        "onepass fit 'logs/*.parquet' --target clicked --model clicks.onepass --hidden 50",
        "onepass fit 'data/*.parquet' --target y --model y.onepass --executor dask --workers 4",
        "zcat old.csv.gz | onepass fit - --target kind --classes a,b,c --model kind.onepass",
    ),
)
@options.files
@click.option("--target", required=True, help="The column to foretell.")
@click.option(
    "--model", "path", type=click.Path(dir_okay=False, path_type=Path), required=True, help="Where to write the model."
)
@options.shape
@click.option("--passes", type=click.IntRange(min=1), default=1, show_default=True, help="Passes over the input.")
@options.learning
@options.clustering
@options.rejecting
@options.delimiter
@options.reporting
def fit(
    files: tuple[str, ...],
    target: str,
    path: Path,
    passes: int,
    every: tuple[str, float],
    resume: bool,
    executor: str,
    workers: int | None,
    scheduler: str | None,
    rounds: int | None,
    rejects: Path | None,
    strict: bool,
    delimiter: str | None,
    as_json: bool,
    quiet: bool,
    **shape: Any,
) -> int:
    """Learn a model from files, in one pass.

    FILE... are CSV, JSON lines (both may be gzipped) or Parquet, patterns such as 'data/*.parquet', or - for standard
    input. They are read in their order, in constant memory whatever their size. The first rows say what each column
    holds; every choice is printed, and every one has an option that overrules it.

    Without --hidden the model is a perceptron: linear for numbers, sigmoid for two classes, softmax for more. With
    --hidden 50 it is a network of them.

    Rows that can't be learned are counted and, with --rejects, written down; the exit code is then 3. A run that was
    killed goes on with the same command and --resume, and ends with the same model bit for bit.

    With --executor dask every file is learned by a worker of its own, --workers processes on this machine or those of
    --scheduler, and what they learned is merged; --rounds 2 brings that as close to one process as another order of the
    rows would.
    """
    from onepass.cli.errors import user_errors
    from onepass.cli.paths import check_distinct_paths, check_writable
    from onepass.cli.training_run import run, settle_code, take_up

    with Console(as_json=as_json, quiet=quiet) as voice, user_errors():
        if executor != "dask" and (workers is not None or scheduler is not None or rounds is not None):
            raise click.UsageError("--workers, --scheduler and --rounds are for --executor dask.")
        from onepass.tables.readers.stream import expand
        from onepass.tables.schema import survey
        from onepass.tables.training import Inputs

        inputs = Inputs(tuple(expand(files)), passes, delimiter)
        if executor == "dask":
            _refuse_on_dask(inputs, resume)
        check_distinct_paths(inputs.files, model=path, rejects=rejects)
        check_writable(path, "--model")
        asked = json.loads(json.dumps({"target": target, **shape}))  # as a file will give it back
        begun = take_up(path, inputs, resume, asked)
        sources = inputs.sources()
        if begun is not None:
            model, start = begun
        else:
            model, task = survey(sources, request_from(target, shape), rereadable=not inputs.is_stream)
            start = None
        settle_code(model, inputs)
        if start is None:
            voice.fact("task", task)
            for name, words in model.choices():
                voice.fact(name, words)
            if passes > 1:
                voice.fact("passes", f"{passes}: every row counts {passes} times, so intervals come out too narrow")
        with Rejects(rejects, strict=strict, progress=model.progress) as log:
            if executor == "dask":
                return _fit_on_dask(model, path, inputs, log, voice, workers, scheduler, rounds or 2)
            return run(model, path, inputs, sources, log, voice, start=start, every=every, asked=asked)


def _refuse_on_dask(inputs: Any, resume: bool) -> None:
    for given, option, reason in (
        (inputs.is_stream, "--executor dask", "needs files; standard input can't be shared out"),
        (inputs.passes > 1, "--passes", "is for one process; --rounds says how often a cluster goes over the files"),
        (
            resume,
            "--resume",
            "is for one process; a run on a cluster begins anew, and mends the loss of workers itself",
        ),
    ):
        if given:
            raise click.UsageError(f"{option} {reason}.")


def _fit_on_dask(
    model: Any,
    path: Path,
    inputs: Any,
    log: Rejects,
    voice: Console,
    workers: int | None,
    scheduler: str | None,
    rounds: int,
) -> int:
    from onepass.cli.training_run import report
    from onepass.files.checkpoint import save

    try:
        from onepass.integrations.dask.training import cluster, fit_files
    except ImportError as error:
        raise click.ClickException(f"{error}.") from None
    with cluster(workers, scheduler) as client:
        sizes = {"worker": len(client.nthreads()), "file": len(inputs.files), "round": rounds}
        voice.fact("cluster", ", ".join(counted(n, what) for what, n in sizes.items()))
        voice.start()
        for one in fit_files(model, inputs, client, rounds, lambda done, total: voice.advance(0, done / total, 0)):
            log.add(one.file, one.rejects, one.total - len(one.rejects))
    model.last_run = inputs.identity()
    save(model, path)
    return report(model, path, log, voice, 0)


def request_from(target: str, shape: dict[str, Any]) -> Any:
    """What was asked for, checked as far as that goes without the data."""
    from onepass.tables.columns.encoding import KINDS
    from onepass.tables.model import Settings
    from onepass.tables.schema import Request

    kinds = {}
    for entry in shape["kinds"]:
        column, _, kind = entry.rpartition("=")
        if kind not in KINDS or not column:
            raise click.UsageError(f"--as {entry!r} is not COLUMN=KIND, with KIND one of {', '.join(KINDS)}.")
        kinds[column] = kind
    noise = None if shape["noise"] == "learn" else shape["noise"]
    settings = Settings(
        noise=noise,
        **{name: shape[name] for name in ("hidden", "activation", "covariance", "forgetting", "prior_scale", "seed")},
    )
    plain = {name: shape[name] for name in ("task", "classes", "columns", "ignore", "one_hot", "buckets", "sample")}
    return Request(target, kinds=kinds, settings=settings, **plain)
