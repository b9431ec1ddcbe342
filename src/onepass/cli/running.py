"""What `fit` and `learn` share: a run over the input that can be interrupted, and every failure in one sentence."""

import os
import shlex
import signal
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from onepass.cli.rejects import Rejects
from onepass.cli.schema import flag, schema_error_words
from onepass.cli.voice import Voice, counted

if TYPE_CHECKING:
    from onepass.tables.inputs import Inputs, Step
    from onepass.tables.model import TabularModel
    from onepass.tables.progress import ResumedRun
    from onepass.tables.training import CheckpointPolicy, TrainingRun

__all__ = [
    "REJECTED",
    "check_distinct_paths",
    "check_writable",
    "checkpoint_policy",
    "load_model",
    "report",
    "resume_run",
    "run",
    "settle_code",
    "stoppable",
    "user_errors",
]

REJECTED = 3  # exit code of a run that ended but turned rows away
_INTERRUPTED = 130
_RESTARTED = "ONEPASS_RESTARTED"  # once is enough, also where nothing can be kept on the disk


@contextmanager
def user_errors() -> Iterator[None]:
    """Turn what the library refuses into a message for the user."""
    from onepass.files.checkpoint import CheckpointError
    from onepass.tables.columns.errors import SchemaError
    from onepass.tables.progress import OtherSettingsError
    from onepass.tables.readers.errors import StreamError

    try:
        yield
    except SchemaError as error:
        raise click.ClickException(_ended(schema_error_words(error))) from None
    except OtherSettingsError as error:
        words = error.words([flag(setting) for setting in error.settings], error.partial)
        raise click.ClickException(_ended(words)) from None
    except (CheckpointError, StreamError) as error:
        raise click.ClickException(_ended(str(error))) from None
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except FileNotFoundError as error:
        raise click.ClickException(f"{error.filename} does not exist.") from None
    except OSError as error:
        raise click.ClickException(f"{error.filename or 'a file'}: {error.strerror or error}.") from None
    except (ValueError, TypeError) as error:  # e.g. an activation that the library does not know
        raise click.ClickException(_ended(str(error))) from None


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "?")) else f"{sentence}."


def check_distinct_paths(read: Iterable[str | Path], **written: Path | None) -> None:
    """See to it that no file is written that is read, or written twice; by which names they go does not matter.

    Parameters
    ----------
    read : all inputs
    written : all outputs by option, with MODEL for the argument
    """
    taken = [(Path(path), "an input") for path in read]
    for name, path in written.items():
        if path is None:
            continue
        option = name if name.isupper() else f"--{name}"
        for other, what in taken:
            if _same_file(path, other):
                raise click.UsageError(f"{option} {path} is also {what}.")
        taken.append((path, option))


def _same_file(one: Path, other: Path) -> bool:
    """Whether writing one loses the other; nothing is lost in a device such as /dev/null."""
    if one.exists() and other.exists():
        return one.is_file() and one.samefile(other)
    return one.resolve() == other.resolve()


def check_writable(path: Path, option: str) -> None:
    """See to it before the work begins that a file can be written there."""
    try:
        if path.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise click.ClickException(f"cannot write to {option} {path}: {error.strerror}.") from None


def load_model(path: Path) -> "TabularModel":
    """Read a model that this command line made."""
    from onepass.files.checkpoint import CheckpointError, load
    from onepass.tables.model import TabularModel

    model = load(path)
    if not isinstance(model, TabularModel):
        raise CheckpointError(
            f"{path} holds a {type(model).__name__}, not a model of a table as 'onepass fit' makes them"
        )
    return model


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
    training: "TrainingRun", policy: "CheckpointPolicy", rejects: Rejects, voice: Voice, asked: dict[str, Any]
) -> int:
    """Learn everything, say how it went, and give the exit code."""
    from onepass.tables.training import Interrupted, train

    before = training.model.n_rows
    if training.start is not None:
        voice.aside(f"going on after {counted(before, 'row')}")

    def listen(step: "Step") -> None:
        rejects.add(step.file, step.rows.rejects)
        voice.advance(step.rows.lines, step.share, rejects.count)

    voice.start()
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
                voice.aside("interrupted; what had come by then is learned and saved")
    except Interrupted as stop:
        voice.aside(f"interrupted after {counted(stop.rows, 'row')}; go on with: {_again()}")
        return _INTERRUPTED
    except OSError as error:
        raise click.ClickException(
            f"cannot write {error.filename or training.path}: {error.strerror}; what was there is as it was."
        ) from None
    return report(training.model, training.path, rejects, voice, before)


def report(model: "TabularModel", path: Path, rejects: Rejects, voice: Voice, before: int) -> int:
    """Say how a run ended that began with so many rows, and give the exit code."""
    rejects.tell(voice)
    learned = model.n_rows - before
    facts = {
        "model": str(path),
        "rows": learned,
        "rejected": rejects.count,
        "rows_in_all": model.n_rows,
        "seconds": round(voice.seconds, 3),
        "rows_per_second": round(learned / max(voice.seconds, 1e-9)),
    }
    voice.done(
        facts,
        f"learned {counted(learned, 'row')} in {voice.seconds:.1f} s ({facts['rows_per_second']:,} rows/s), "
        f"{rejects.count:,} rejected; the model has seen {model.n_rows:,}",
        f"model: {path}",
    )
    return REJECTED if rejects.count else 0


def _again() -> str:
    arguments = [argument for argument in sys.argv[1:] if argument != "--resume"]
    return shlex.join(["onepass", *arguments, "--resume"])
