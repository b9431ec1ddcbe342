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
    from onepass.tables.model import TabularModel
    from onepass.tables.readers.stream import Source
    from onepass.tables.training import Inputs, Position, Step

__all__ = ["report", "run", "settle_code", "stoppable", "take_up"]

_RESTARTED = "ONEPASS_RESTARTED"  # once is enough, also where nothing can be kept on the disk


def take_up(
    path: Path, inputs: "Inputs", resume: bool, asked: dict[str, Any]
) -> "tuple[TabularModel, Position] | None":
    """Take up an interrupted run if that is asked for; never start over in silence."""
    from onepass.tables.readers.stream import StreamError
    from onepass.tables.training import partial_path
    from onepass.tables.training import resume as taken_up

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
    found = taken_up(path, inputs, asked) if resume else None
    return found


def settle_code(model: "TabularModel", inputs: "Inputs") -> None:
    """Start anew with all code from the disk if this process had to compile some.

    What was compiled just now differs in last bits from the same code loaded, and a run that is cut and taken up again
    must not show it. Nothing has been learned or written yet, so nobody but the clock notices.
    """
    if inputs.is_stream or _RESTARTED in os.environ or not click.get_current_context().find_root().obj:
        return  # read once, done already, or called by another program, which can't start anew
    model.rehearse()
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


def run(
    model: "TabularModel",
    path: Path,
    inputs: "Inputs",
    sources: "list[Source]",
    rejects: Rejects,
    console: Console,
    *,
    start: "Position | None",
    every: tuple[str, float],
    asked: dict[str, Any],
) -> int:
    """Learn everything, say how it went, and give the exit code."""
    from onepass.tables.training import Every, Interrupted, train

    before = model.n_rows
    if start is not None:
        console.aside(f"going on after {counted(before, 'row')}")

    def listen(step: "Step") -> None:
        rejects.add(step.file, step.rows.rejects)
        console.advance(step.rows.lines, step.share, rejects.count)

    pace = Every(rows=int(every[1]), seconds=None) if every[0] == "rows" else Every(seconds=every[1])
    console.start()
    try:
        with stoppable() as stopping:
            train(
                model,
                path,
                inputs,
                sources,
                start=start,
                every=pace,
                listen=listen,
                stopping=stopping,
                note=lambda: {"asked": asked, **rejects.note()},
            )
            if stopping():
                console.aside("interrupted; what had come by then is learned and saved")
    except Interrupted as stop:
        console.aside(f"interrupted after {counted(stop.rows, 'row')}; go on with: {_again()}")
        return INTERRUPTED
    except OSError as error:
        raise click.ClickException(
            f"cannot write {error.filename or path}: {error.strerror}; what was there is as it was."
        ) from None
    return report(model, path, rejects, console, before)


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
