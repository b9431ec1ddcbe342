"""What `fit` and `learn` share: a run over the input that can be interrupted and resumed, and the report of its end."""

import os
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from onepass.cli.console import Console, counted
from onepass.cli.errors import INTERRUPTED, REJECTED
from onepass.cli.rejects import Rejects

if TYPE_CHECKING:
    from onepass.tables.inputs import Inputs, Step
    from onepass.tables.model import TabularModel
    from onepass.tables.progress import ResumedRun
    from onepass.tables.training import CheckpointPolicy, TrainingRun

__all__ = ["checkpoint_policy", "report", "resume_run", "run", "settle_code", "stoppable"]

_RESTARTED = "ONEPASS_RESTARTED"  # once is enough, also where nothing can be kept on the disk


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


def settle_code(model: "TabularModel", inputs: "Inputs") -> None:
    """Start anew with all code from the disk if this process had to compile some.

    What was compiled just now differs in last bits from the same code loaded, and a run that is cut and resumed must
    not show it. Nothing has been learned or written yet, so nobody but the clock notices.
    """
    if inputs.is_stream or _RESTARTED in os.environ or not click.get_current_context().find_root().obj:
        return  # read once, done already, or called by another program, which can't start anew
    model.warm_up()
    from onepass.engine.compiled import compiled_now

    if compiled_now():
        os.environ[_RESTARTED] = "1"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


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
    training: "TrainingRun", policy: "CheckpointPolicy", rejects: Rejects, console: Console, asked: dict[str, Any]
) -> int:
    """Learn everything, say how it went, and give the exit code."""
    from onepass.tables.training import Interrupted, train

    before = training.model.n_rows
    if training.start is not None:
        console.aside(f"going on after {counted(before, 'row')}")

    def listen(step: "Step") -> None:
        rejects.add(step.file, step.rows.rejects)
        console.advance(step.rows.lines, step.share, rejects.count)

    console.start()
    try:
        with stoppable() as stopping:
            train(
                training,
                policy,
                listen=listen,
                stopping=stopping,
                notes=lambda: {"asked": asked, **rejects.note()},
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
    return report(training.model, training.path, rejects, console, before)


def report(model: "TabularModel", path: Path, rejects: Rejects, console: Console, before: int) -> int:
    """Say how a run ended that began with so many rows, and give the exit code."""
    rejects.tell(console)
    learned = model.n_rows - before
    facts = {
        "model": str(path),
        "rows": learned,
        "rejected": rejects.count,
        "rows_in_all": model.n_rows,
        "seconds": round(console.seconds, 3),
        "rows_per_second": round(learned / max(console.seconds, 1e-9)),
    }
    console.done(
        facts,
        f"learned {counted(learned, 'row')} in {console.seconds:.1f} s ({facts['rows_per_second']:,} rows/s), "
        f"{rejects.count:,} rejected; the model has seen {model.n_rows:,}",
        f"model: {path}",
    )
    return REJECTED if rejects.count else 0


def _again() -> str:
    arguments = [argument for argument in sys.argv[1:] if argument != "--resume"]
    return shlex.join(["onepass", *arguments, "--resume"])
