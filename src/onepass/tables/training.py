"""From files to one model: rows learned in blocks, with a way back after any interruption.

A run over files keeps its progress beside the model, see `progress`. Blocks begin at fixed rows, so a run that was cut
and resumed ends with the very model of one that was not. Standard input can't be read again; there the model itself is
brought up to date.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from onepass.files.checkpoint import save
from onepass.files.state import Parameters
from onepass.tables.alarms import Watch
from onepass.tables.inputs import Inputs, Position, Step, steps
from onepass.tables.model import TabularModel
from onepass.tables.progress import Progress, partial_path, save_progress
from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.source import Source
from onepass.tables.schema import left_out_words

__all__ = ["CheckpointPolicy", "Interrupted", "TrainingRun", "train"]


@dataclass(frozen=True)
class CheckpointPolicy:
    """How often progress is saved: after so many rows or so many seconds."""

    rows: int | None = None
    seconds: float | None = 60.0


@dataclass(frozen=True)
class TrainingRun:
    """What is learned into which model."""

    model: TabularModel
    path: Path
    """Where the model is to be written; an old model stays there until the run has ended."""
    inputs: Inputs
    sources: Sequence[Source]
    start: Position | None = None
    """The first row to learn; None: the first of all."""
    watch: Watch | None = None
    """What learns the rows in the model's place when they come for the first time, to tell of some."""


class Interrupted(Exception):  # noqa: N818 (it is no error)
    """The user wants to stop; everything learned so far is saved."""

    def __init__(self, rows: int, path: Path) -> None:
        super().__init__(rows, path)
        self.rows, self.path = rows, path


def train(
    run: TrainingRun,
    policy: CheckpointPolicy | None = None,
    *,
    listen: Callable[[Step], None] = lambda step: None,
    stopping: Callable[[], bool] = lambda: False,
    notes: Callable[[], Parameters] = dict,
) -> None:
    """Learn all input into the model, and write it to its file in the end.

    Parameters
    ----------
    run : TrainingRun
    policy : how often progress is saved
    listen : is told of every block learned
    stopping : whether to stop after the block
    notes : what else to save with the progress, e.g. what is needed to `resume`
    """
    model, inputs = run.model, run.inputs
    if inputs.is_stream:
        model.last_run = None  # from here on it has learned something that no files hold
    checkpointer = _Checkpointer(run, policy or CheckpointPolicy(), notes)
    n_read, first_reject = 0, ""

    def look_up() -> None:
        """A stream may pause: whoever wants to stop, and the clock, don't wait for its next row."""
        if inputs.is_stream:
            if stopping():
                run.sources[0].stop()  # what has come so far is still learned
            checkpointer.save_if_late()

    for step in steps(model, inputs, run.sources, run.start, meanwhile=look_up):
        if run.watch is not None and step.position.turn == 0:
            run.watch.learn(step.rows, step.file)
        else:
            model.learn(step.rows)
        n_read += step.rows.lines
        if step.rows.rejects and not first_reject:
            first_reject = f"{step.file}, line {step.rows.rejects[0].line}: {step.rows.rejects[0].reason}"
        listen(step)
        if stopping() and not inputs.is_stream:
            checkpointer.save(step.position)
            raise Interrupted(model.n_rows, checkpointer.path)
        checkpointer.after(step)
        look_up()
    if not model.n_rows:
        raise StreamError(
            f"no row could be learned: all of them were rejected, the first in {first_reject}"
            if n_read
            else f"there is no row to learn{left_out_words(run.sources)}"
        )
    model.last_run = checkpointer.identity
    save(model, run.path)
    partial_path(run.path).unlink(missing_ok=True)


class _Checkpointer:
    """Saves the progress of a run from time to time."""

    def __init__(self, run: TrainingRun, policy: CheckpointPolicy, notes: Callable[[], Parameters]) -> None:
        self.path = run.path if run.inputs.is_stream else partial_path(run.path)
        self.identity = None if run.inputs.is_stream else run.inputs.identity()
        self._model, self._policy, self._notes = run.model, policy, notes
        self._rows, self._position = 0, Position()
        self._time = time.monotonic()

    def after(self, step: Step) -> None:
        self._rows, self._position = self._rows + step.rows.lines, step.position
        if self._policy.rows is not None and self._rows >= self._policy.rows:
            self.save(step.position)
        self.save_if_late()

    def save_if_late(self) -> None:
        """Save what was learned since the last time, if that is long ago."""
        late = self._policy.seconds is not None and time.monotonic() - self._time >= self._policy.seconds
        if late and self._rows:
            self.save(self._position)

    def save(self, position: Position) -> None:
        if self._model.n_rows:
            progress = None if self.identity is None else Progress(self.identity, position, self._notes())
            save_progress(self._model, progress, self.path)
        self._rows, self._time = 0, time.monotonic()
