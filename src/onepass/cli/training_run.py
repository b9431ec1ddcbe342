"""What `fit` and `learn` share: a run over the input that can be interrupted and resumed, and the report of its end."""

import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from onepass.cli.alarms import Alarms
from onepass.cli.console import Console, counted
from onepass.cli.errors import INTERRUPTED, REJECTED
from onepass.cli.left_out import tell_left_out
from onepass.cli.rejects import Rejects

if TYPE_CHECKING:
    from onepass.tables.inputs import Inputs, Step
    from onepass.tables.model import TabularModel
    from onepass.tables.progress import ResumedRun
    from onepass.tables.training import CheckpointPolicy, TrainingRun

__all__ = ["Logs", "check_passes", "checkpoint_policy", "report", "resume_run", "run", "stoppable"]


class Logs(NamedTuple):
    """What is written down of a run."""

    rejects: Rejects
    alarms: Alarms

    def note(self) -> dict[str, Any]:
        """What has to be kept with a run's progress, so that nothing is written down twice."""
        return {**self.rejects.note(), **self.alarms.note()}


def check_passes(passes: int, drift: float | str) -> None:
    """Refuse to go over the rows again with a model that can't."""
    if passes > 1 and drift == "auto":
        raise click.UsageError(
            "--passes is for a drift of one rate; --drift auto weighs rates by rows that have not been learned yet."
        )


def resume_run(path: Path, inputs: "Inputs", resume: bool, asked: dict[str, Any]) -> "ResumedRun | None":
    """Resume an interrupted run if that is asked for; never start over in silence."""
    from onepass.tables.progress import partial_path
    from onepass.tables.progress import resume as resumed
    from onepass.tables.readers.errors import StreamError

    if inputs.is_stream:
        for given, option in ((resume, "--resume"), (inputs.passes > 1, "--passes")):
            if given:
                raise click.UsageError(f"{option} needs files; standard input can't be read again.")
        return None
    if not resume and partial_path(path).exists():
        raise StreamError(
            f"{partial_path(path)} is the progress of a run that was interrupted: go on with it by --resume, or delete "
            "it to start over"
        )
    return resumed(path, inputs, asked) if resume else None


@contextmanager
def stoppable() -> Iterator[Any]:
    """Give a function that says whether the user wants to stop; whoever asks twice is heard at once."""
    asked = False

    def ask(signum: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    before = {sign: signal.signal(sign, ask) for sign in (signal.SIGINT, signal.SIGTERM)}
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


def run(
    training: "TrainingRun", policy: "CheckpointPolicy", logs: Logs, console: Console, asked: dict[str, Any]
) -> int:
    """Learn everything, say how it went, and give the exit code."""
    from onepass.tables.training import Interrupted, train

    before = training.model.n_rows
    if training.start is not None:
        console.aside(f"going on after {counted(before, 'row')}")

    def listen(step: "Step") -> None:
        logs.rejects.add(step.file, step.rows.rejects)
        console.advance(step.rows.lines, step.share, logs.rejects.count)

    console.start()
    try:
        with stoppable() as stopping:
            train(
                training,
                policy,
                listen=listen,
                stopping=stopping,
                notes=lambda: {"asked": asked, **logs.note()},
            )
            if stopping():
                console.aside("interrupted; what had come by then is learned and saved")
    except Interrupted as stop:
        console.aside(f"interrupted after {counted(stop.rows, 'row')}; go on with: {_again()}")
        return INTERRUPTED
    except OSError as error:
        raise click.ClickException(
            f"cannot write {error.filename or training.path}: {error.strerror}; what was there is as it was."
        ) from None
    tell_left_out(console, training.inputs.reading.where, training.sources)
    return report(training.model, training.path, logs, console, before)


def report(model: "TabularModel", path: Path, logs: Logs, console: Console, before: int) -> int:
    """Say how a run ended that began with so many rows, and give the exit code."""
    rejects, alarms = logs
    rejects.tell(console)
    learned = model.n_rows - before
    facts = {
        "model": str(path),
        "rows": learned,
        "rejected": rejects.count,
        **alarms.facts(),
        "rows_in_all": model.n_rows,
        "seconds": round(console.seconds, 3),
        "rows_per_second": round(learned / max(console.seconds, 1e-9)),
    }
    console.done(
        facts,
        f"learned {counted(learned, 'row')} in {console.seconds:.1f} s ({facts['rows_per_second']:,} rows/s), "
        f"{rejects.count:,} rejected; the model has seen {model.n_rows:,}",
        *alarms.words(),
        f"model: {path}",
    )
    return REJECTED if rejects.count else 0


def _again() -> str:
    arguments = [argument for argument in sys.argv[1:] if argument != "--resume"]
    return shlex.join(["onepass", *arguments, "--resume"])
