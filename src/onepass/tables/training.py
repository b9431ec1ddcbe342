"""From files to one model: rows learned in blocks, with a way back after any interruption.

A run over files keeps its progress next to the model, see `progress`. Blocks begin at fixed rows, so a run that was cut
and resumed ends with the very model of one that was not. Standard input can't be read again; there the model itself is
brought up to date.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from onepass.estimators.rows import Rows
from onepass.files.checkpoint import to_bytes
from onepass.files.state import Parameters
from onepass.files.versions import ChangedError, VersionedFile
from onepass.tables.alarms import AlarmDetector
from onepass.tables.history import LearnedFile, LearnedRun, now
from onepass.tables.inputs import ContentLog, Inputs, Position, Step, steps
from onepass.tables.model import TabularModel
from onepass.tables.progress import Progress, RunStart, partial_path, save_progress
from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.source import Source
from onepass.tables.schema import left_out_words

__all__ = ["CheckpointPolicy", "Interrupted", "TrainingRun", "learn_steps", "refine_if_few", "train"]


@dataclass(frozen=True)
class CheckpointPolicy:
    """How often progress is saved: after a number of rows or seconds."""

    rows: int | None = None
    seconds: float | None = 60.0


@dataclass(frozen=True)
class TrainingRun:
    """What is learned into which model."""

    model: TabularModel
    target: VersionedFile
    """Where the model is to be written; an old model stays there until the run has ended."""
    inputs: Inputs
    sources: Sequence[Source]
    base: str | None = None
    """Version of the file that the model was read from; None: it is a new one."""
    progress: Progress | None = None
    """Of the run that is resumed."""
    detector: AlarmDetector | None = None
    """What learns the rows in the model's place when they come for the first time, to tell of some."""
    refine: bool = False
    """Whether to learn all rows again as a batch, if they are few: see `TabularModel.refine`."""

    def start(self) -> RunStart:
        """What the run starts from, or did before it was interrupted."""
        if self.progress is not None:
            return self.progress.begun
        model, inputs = self.model, self.inputs
        counts = model.n_rows, model.n_rejected
        return RunStart(self.base, self.target.version, inputs.starts, *counts, inputs.shuffle)


class Interrupted(Exception):  # noqa: N818 (it is not an error)
    """The user wants to stop; everything learned so far is saved."""

    def __init__(self, rows: int, path: Path) -> None:
        super().__init__(rows, path)
        self.rows = rows
        self.path = path


def train(
    run: TrainingRun,
    policy: CheckpointPolicy | None = None,
    *,
    listen: Callable[[Step], None] = lambda step: None,
    stopping: Callable[[], bool] = lambda: False,
    notes: Callable[[], Parameters] = dict,
    accept: Callable[[], None] = lambda: None,
) -> None:
    """Learn all input into the model, and write it to its file in the end.

    Parameters
    ----------
    run : TrainingRun
    policy : how often progress is saved
    listen : is called after every block learned
    stopping : whether to stop, asked after every block and while none comes
    notes : what else to save with the progress, e.g. what is needed to `resume`
    accept : is called when everything is learned, before the model is written; it may raise
    """
    model, inputs = run.model, run.inputs
    checkpointer = _Checkpointer(run, policy or CheckpointPolicy(), notes)

    def look_up() -> None:
        """Stop, or save, without waiting for the next row, which may take long to come."""
        if stopping():
            if not inputs.is_stream:
                checkpointer.save()
                raise Interrupted(model.n_rows, checkpointer.path)
            run.sources[0].stop()  # what has come so far is still learned
        checkpointer.save_if_late()

    log = None if inputs.is_stream else ContentLog(inputs, run.sources, checkpointer.learned)
    start = None if run.progress is None else run.progress.position
    for step in learn_steps(model, inputs, run.sources, start, log=log, detector=run.detector, meanwhile=look_up):
        listen(step)
        checkpointer.after(step)
        look_up()
    accept()
    if run.refine and model.can_refine:
        checkpointer.save()  # refining starts from the rows alone, so an interrupted run can do it again
        refine_if_few(model, inputs, run.sources, log)
    checkpointer.finish()


def learn_steps(
    model: TabularModel,
    inputs: Inputs,
    sources: Sequence[Source],
    start: Position | None = None,
    *,
    log: ContentLog | None = None,
    detector: AlarmDetector | None = None,
    meanwhile: Callable[[], object] = lambda: None,
) -> Iterator[Step]:
    """Learn all rows after a position; gives each block once it is learned. The arguments are those of `steps`.

    ``detector`` learns the rows in the model's place when they come for the first time.
    """
    n_read, first_reject = 0, ""
    for step in steps(model, inputs, sources, start, log=log, meanwhile=meanwhile):
        if step.position.turn:
            model.decide_comparison()
        if detector is not None and step.position.turn == 0:
            detector.learn(step.rows, step.file)
        else:
            model.learn(step.rows)
        n_read += step.rows.n_read
        if step.rows.rejects and not first_reject:
            first_reject = f"{step.file}, line {step.rows.rejects[0].line}: {step.rows.rejects[0].reason}"
        yield step
    if not model.n_rows:
        raise StreamError(
            f"no row could be learned: all of them were rejected, the first in {first_reject}"
            if n_read
            else f"there is no row to learn{left_out_words(sources)}"
        )


def refine_if_few(model: TabularModel, inputs: Inputs, sources: Sequence[Source], log: ContentLog | None) -> None:
    """Learn all rows again as a batch, if they are few: see `TabularModel.refine`."""
    if model.can_refine:
        again = steps(model, replace(inputs, passes=1, shuffle=None), sources, log=log)
        model.refine(Rows.joined([step.rows for step in again]))


class _Checkpointer:
    """Saves the progress of a run from time to time, and the model in the end."""

    def __init__(self, run: TrainingRun, policy: CheckpointPolicy, notes: Callable[[], Parameters]) -> None:
        self._run, self._policy, self._notes = run, policy, notes
        self._identity = None if run.inputs.is_stream else run.inputs.identity(run.sources)
        self._history, self._begun = run.model.history, run.start()
        progress = run.progress
        self.learned: dict[int, LearnedFile] = {} if progress is None else dict(progress.learned)
        self._position = Position() if progress is None else progress.position
        self._content = None if progress is None else progress.content
        self._rows, self._time = 0, time.monotonic()

    @property
    def path(self) -> Path:
        """Where progress is saved: next to the model, or for a stream in the model itself."""
        return self._run.target.path if self._identity is None else partial_path(self._run.target.path)

    def after(self, step: Step) -> None:
        """Take note of a block that was learned, and save if it is time."""
        if step.learned is not None:
            self.learned[step.position.file - 1] = step.learned
        self._rows, self._position, self._content = self._rows + step.rows.n_read, step.position, step.content
        if self._policy.rows is not None and self._rows >= self._policy.rows:
            self.save()

    def save_if_late(self) -> None:
        """Save what was learned since the last time, if that is long ago."""
        late = self._policy.seconds is not None and time.monotonic() - self._time >= self._policy.seconds
        if late and self._rows:
            self.save()

    def save(self) -> None:
        """Save everything learned so far."""
        model = self._run.model
        if model.n_rows and self._identity is None:
            self._write_model()
        elif model.n_rows and self._identity is not None:
            progress = Progress(self._identity, self._position, self._notes(), self._begun, self.learned, self._content)
            save_progress(model, progress, self.path)
        self._rows, self._time = 0, time.monotonic()

    def finish(self) -> None:
        """Write the model with its history; the progress is needed no more."""
        try:
            self._write_model()
        except ChangedError:
            partial_path(self._run.target.path).unlink(missing_ok=True)  # what was learned is kept elsewhere
            raise
        partial_path(self._run.target.path).unlink(missing_ok=True)

    def _write_model(self) -> None:
        model, begun, passes = self._run.model, self._begun, self._run.inputs.passes
        rows, rejected = model.n_rows - begun.rows, model.n_rejected - begun.rejected
        files = tuple(self.learned[number] for number in sorted(self.learned))
        model.history = self._history.with_run(LearnedRun(now(), rows, rejected, passes, files))
        self._run.target.write(to_bytes(model))
