"""What `fit` and `learn` share: one writer at a time, no file learned twice, runs that can be resumed, their report."""

import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from onepass.cli.alarms import Alarms
from onepass.cli.console import Console, counted
from onepass.cli.errors import INTERRUPTED, REJECTED
from onepass.cli.left_out import tell_left_out
from onepass.cli.rejects import RejectOptions, Rejects, TooManyRejectsError

if TYPE_CHECKING:
    from onepass.cli.options import RunOptions
    from onepass.files.versions import VersionedFile
    from onepass.tables.history import TrainingHistory
    from onepass.tables.inputs import Inputs, Step
    from onepass.tables.model import TabularModel
    from onepass.tables.progress import Progress, ResumedRun
    from onepass.tables.readers.options import ReadOptions
    from onepass.tables.readers.source import Source
    from onepass.tables.training import CheckpointPolicy, TrainingRun

__all__ = [
    "Logs",
    "Tally",
    "check_passes",
    "check_stream",
    "checkpoint_policy",
    "first_rows",
    "given_files",
    "only_writer",
    "report",
    "resume_run",
    "run_logs",
    "set_aside_words",
    "stoppable",
    "without_known",
]

STOP_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals by which a run is asked to stop; not every system has all of them."""


class Logs(NamedTuple):
    """What is written down of a run."""

    rejects: Rejects
    alarms: Alarms

    def note(self) -> dict[str, Any]:
        """What has to be kept with a run's progress, so that nothing is written down twice."""
        return {**self.rejects.note(), **self.alarms.note()}

    def run(
        self, training: "TrainingRun", options: "RunOptions", console: Console, asked: dict[str, Any] | None = None
    ) -> int:
        """Learn everything, say how it went, and give the exit code."""
        detecting = replace(training, detector=self.alarms.detector)
        return _run(detecting, checkpoint_policy(options.every), self, console, asked or {})


@contextmanager
def run_logs(
    rejecting: RejectOptions, alarms: Path | None, model: "TabularModel", progress: "Progress | None"
) -> Iterator[Logs]:
    """The files that a run writes down rejects and alarms in, which go on where an interrupted run ended."""
    notes = None if progress is None else progress.notes
    with Alarms(alarms, model, notes) as watched, Rejects(rejecting, notes) as log:
        yield Logs(log, watched)


class Tally(NamedTuple):
    """What a model has counted."""

    rows: int
    set_aside: int

    @classmethod
    def of(cls, model: "TabularModel") -> "Tally":
        """What it has counted until now."""
        return cls(model.n_rows, model.n_set_aside)


def set_aside_words(n: int) -> list[str]:
    """That rows were counted but not learned; nothing if there were none."""
    if n <= 0:
        return []
    rows, whose = ("1 row was", "its target is") if n == 1 else (f"{n:,} rows were", "their targets are")
    return [f"{rows} set aside: {whose} absurdly far from what was predicted"]


def check_passes(passes: int, drift: float | str, *, in_order: bool = False) -> None:
    """Refuse to go over the rows again with a model that can't, such as one that follows rows in their order."""
    if passes > 1 and in_order:
        raise click.UsageError(f"--time needs --passes 1, got {passes}: rows are learned once, in the order of time.")
    if passes > 1 and drift == "auto":
        raise click.UsageError(
            f"--drift auto compares rates by rows that have not been learned yet, and needs --passes 1, got {passes}; "
            "give --drift as a number to learn the rows again."
        )


@contextmanager
def only_writer(path: Path, wait: float) -> "Iterator[VersionedFile]":
    """Keep other processes from writing a model for the length of the block, and clear what killed ones left behind."""
    from onepass.files import versions
    from onepass.files.atomic import clear_drafts
    from onepass.files.lock import LockedError
    from onepass.tables.progress import partial_path

    with ExitStack() as held:
        try:
            file = held.enter_context(versions.only_writer(path, wait))
        except LockedError as error:
            waited = "; --wait 10m waits for it" if not wait else f", for longer than --wait {wait:g}s"
            raise click.ClickException(f"{error}{waited}.") from None
        clear_drafts(partial_path(path))
        yield file


def given_files(
    files: tuple[str, ...], reading: "ReadOptions", again: bool, console: Console
) -> tuple[tuple[str, ...], "ReadOptions"]:
    """The files that are meant, each once unless it is to be learned again, and how they are read.

    Repeated names are reported.
    """
    from onepass.tables.readers.addresses import located
    from onepass.tables.readers.paths import shown
    from onepass.tables.selection import distinct

    found, reading = located(files, reading)
    if again:
        return found, reading
    found, named_before = distinct(found)
    for file in dict.fromkeys(map(shown, named_before)):
        console.aside(f"{file} is given several times and is learned once; with --again it is learned each time")
    return found, reading


def without_known(
    inputs: "Inputs", sources: "list[Source]", history: "TrainingHistory", again: bool, console: Console
) -> "Inputs":
    """The files without those that were learned before; what is left out is reported."""
    if again or inputs.is_stream:
        return inputs
    return replace(inputs, starts=first_rows(inputs.files, sources, inputs.reading, history, console))


def first_rows(
    files: Sequence[str],
    sources: "Sequence[Source]",
    reading: "ReadOptions",
    history: "TrainingHistory",
    console: Console,
    again: str | None = "--again",
) -> "tuple[int | None, ...]":
    """The first row of each file that was not learned before, None where there is none; what is left out is reported.

    ``again`` is the option, perhaps of another command, that learns such rows once more, if the model can.
    """
    from onepass.tables.selection import KnownContentError, select

    try:
        selected = select(files, sources, history, reading)
    except KnownContentError as error:
        hint = "" if again is None else f"{again} learns all of it once more, and "
        raise click.ClickException(f"{error}; {hint}'onepass undo' reverts the last run first.") from None
    hint = "" if again is None else f"; {again} learns it again"
    for one in selected:
        if one.start is None:
            console.aside(f"{one.file} {one.reason} and is left out{hint}")
        elif one.reason is not None:
            console.aside(f"{one.file} {one.reason}")
    return tuple(one.start for one in selected)


def check_stream(inputs: "Inputs", resume: bool, *, shuffle: bool = False) -> None:
    """Refuse to read standard input again."""
    for given, option in ((resume, "--resume"), (inputs.passes > 1, "--passes"), (shuffle, "--shuffle on")):
        if given and inputs.is_stream:
            raise click.UsageError(f"{option} needs files; standard input can be read only once.")


def resume_run(
    path: Path, inputs: "Inputs", sources: "list[Source]", resume: bool, asked: dict[str, Any], base: str | None = None
) -> "ResumedRun | None":
    """Resume an interrupted run if that is asked for; never start over in silence."""
    from onepass.tables.progress import clear_ended, partial_path
    from onepass.tables.progress import resume as resumed
    from onepass.tables.readers.errors import StreamError

    if inputs.is_stream:
        return None
    if partial_path(path).exists() and clear_ended(path):
        return None
    if not resume and partial_path(path).exists():
        raise StreamError(
            f"{partial_path(path)} is the progress of a run that was interrupted: continue that run with --resume, or "
            "delete the file to start over"
        )
    return resumed(path, inputs, sources, asked, base) if resume else None


@contextmanager
def stoppable() -> Iterator[Any]:
    """Give a function that says whether the user wants to stop; a second signal stops at once."""
    asked = False

    def ask(signum: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    # What is ignored stays so: nohup asks for that.
    before = {sign: signal.signal(sign, ask) for sign in STOP_SIGNALS if signal.getsignal(sign) is not signal.SIG_IGN}
    try:
        yield lambda: asked
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)


def checkpoint_policy(every: tuple[str, float]) -> "CheckpointPolicy":
    """How often progress is saved, as the option says: ("rows", n) or ("seconds", s)."""
    from onepass.tables.training import CheckpointPolicy

    unit, amount = every
    return CheckpointPolicy(rows=int(amount), seconds=None) if unit == "rows" else CheckpointPolicy(seconds=amount)


def _run(
    training: "TrainingRun", policy: "CheckpointPolicy", logs: Logs, console: Console, asked: dict[str, Any]
) -> int:
    """Learn everything, say how it went, and give the exit code."""
    from onepass.tables.progress import partial_path
    from onepass.tables.training import Interrupted, train

    before = Tally.of(training.model)
    if training.progress is not None:
        console.aside(f"continuing after {counted(before.rows, 'row')}")

    def listen(step: "Step") -> None:
        logs.rejects.add(step.file, step.rows.rejects)
        logs.rejects.judge(step.rows.n_read, step.share)
        console.advance(step.rows.n_read, step.share, logs.rejects.count)

    console.start()
    try:
        with stoppable() as stopping:
            train(
                training,
                policy,
                listen=listen,
                stopping=stopping,
                accept=logs.rejects.judge_all,
                notes=lambda: {"asked": asked, **logs.note()},
            )
            if stopping():
                console.aside("interrupted; the rows that had come by then are learned and saved")
    except Interrupted as stop:
        console.aside(f"interrupted after {counted(stop.rows, 'row')}; continue with: {_again()}")
        return INTERRUPTED
    except TooManyRejectsError:
        if training.progress is None:  # what was saved is this run's own, and worth nothing
            partial_path(training.target.path).unlink(missing_ok=True)
        raise
    except OSError as error:
        raise click.ClickException(
            f"cannot write {error.filename or training.target.path}: {error.strerror}; the file there is unchanged."
        ) from None
    tell_left_out(console, training.inputs.reading.where, training.sources)
    if training.refine and training.model.n_passes > 1:
        console.fact("passes", f"{training.model.n_passes}, by expectation propagation: every row counts once")
    return report(training.model, training.target.path, logs, console, before)


_ONE_ROW = "predictions mean nothing yet: mean and scale of the target were taken from this single row; learn more rows"


def report(model: "TabularModel", path: Path, logs: Logs, console: Console, before: "Tally") -> int:
    """Report how a run ended, given the rows it began with; returns the exit code."""
    from onepass.tables.description import future_words

    rejects, alarms = logs
    rejects.tell(console)
    learned, set_aside = (now - then for now, then in zip(Tally.of(model), before, strict=True))
    facts = {
        "model": str(path),
        "rows": learned,
        "rejected": rejects.count,
        "without_target": rejects.without_target,
        "set_aside": max(set_aside, 0),
        **alarms.facts(),
        **({"answers": model.verdict} if model.verdict else {}),
        **({} if model.forward_test is None else {"forward_test": model.forward_test.state()}),
        "rows_in_all": model.n_rows,
        "seconds": round(console.seconds, 3),
        "rows_per_second": round(learned / max(console.seconds, 1e-9)),
    }
    console.done(
        facts,
        f"learned {counted(learned, 'row')} in {console.seconds:.1f} s ({facts['rows_per_second']:,} rows/s), "
        f"{rejects.count:,} rejected; the model has seen {model.n_rows:,}",
        *set_aside_words(set_aside),
        *([_ONE_ROW] if model.n_rows == 1 else []),
        *alarms.words(),
        *([f"answers: {model.verdict}"] if model.verdict else []),
        *([] if model.forward_test is None else [f"future: {future_words(model.forward_test)}"]),
        f"model: {path}",
    )
    return REJECTED if rejects.count else 0


def _again() -> str:
    arguments = [argument for argument in sys.argv[1:] if argument != "--resume"]
    return shlex.join(["onepass", *arguments, "--resume"])
