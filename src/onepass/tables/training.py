"""From files to one model: rows read and encoded ahead, learned in blocks, with a way back after any interruption.

A run over files keeps its progress beside the model: the model so far and where in its input it stands, in one file
that is replaced as a whole. Blocks begin at fixed rows, so a run that was cut and taken up again ends with the very
model of one that was not. Standard input can't be read again; there the model itself is brought up to date.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from onepass.files.checkpoint import CheckpointError, load, save
from onepass.files.state import as_tally
from onepass.tables.model import Rows, TabularModel
from onepass.tables.readers.stream import STDIN, Source, StreamError, ahead, blocks, fingerprint, open_source

__all__ = ["Every", "Inputs", "Interrupted", "Position", "Step", "partial_path", "resume", "steps", "train"]

T = TypeVar("T")


class Position(NamedTuple):
    """Where a run stands in its input: the next row to be learned."""

    turn: int = 0  # which pass over all files
    file: int = 0
    row: int = 0


@dataclass(frozen=True)
class Inputs:
    """The files of a run, in their order, and how often they are gone through."""

    files: tuple[str, ...]
    passes: int = 1
    delimiter: str | None = None

    @property
    def is_stream(self) -> bool:
        """Whether they can be read only once."""
        return STDIN in self.files

    def sources(self) -> list[Source]:
        """Open all of them."""
        return [open_source(file, self.delimiter) for file in self.files]

    def identity(self) -> dict[str, Any]:
        """By what the same input is known again."""
        files = [fingerprint(file) for file in self.files]
        return {"files": files, "passes": self.passes, "delimiter": self.delimiter}


@dataclass(frozen=True)
class Every:
    """How often progress is kept: after so many rows or so many seconds."""

    rows: int | None = None
    seconds: float | None = 60.0


class Step(NamedTuple):
    """A block of rows made ready, and where the run stands behind it."""

    rows: Rows
    file: str
    position: Position
    share: float  # of all input that has been read


class Interrupted(Exception):  # noqa: N818 (it is no error)
    """The user wants to stop; everything learned so far is kept."""

    def __init__(self, rows: int, kept: Path) -> None:
        super().__init__(rows, kept)
        self.rows, self.kept = rows, kept


def partial_path(model: Path) -> Path:
    """Where the progress of a run is kept."""
    return model.with_name(model.name + ".partial")


def steps(
    model: TabularModel,
    inputs: Inputs,
    sources: Sequence[Source],
    start: Position | None = None,
    *,
    meanwhile: Callable[[], object] = lambda: None,
) -> Iterator[Step]:
    """Read, encode and hand on all rows behind a position, a thread ahead of whoever learns them.

    ``meanwhile`` is called from time to time while no row comes.
    """
    return ahead(_steps(model, inputs, sources, start or Position()), meanwhile=meanwhile)


def _steps(model: TabularModel, inputs: Inputs, sources: Sequence[Source], start: Position) -> Iterator[Step]:
    types = model.types(target=True)
    sizes = [1 if file == STDIN else max(Path(file).stat().st_size, 1) for file in inputs.files]
    total, done = sum(sizes) * inputs.passes, 0
    for turn in range(inputs.passes):
        for file, source in enumerate(sources):
            if (turn, file) >= start[:2]:
                skip = start.row if (turn, file) == start[:2] else 0
                found = blocks(source.pieces(types, skip), model.block, aligned=not inputs.is_stream)
                for block, last in _with_end(found, wait=not inputs.is_stream):
                    share = (done + block.share * sizes[file]) / total
                    position = Position(turn, file + 1) if last else Position(turn, file, block.end)
                    yield Step(model.rows(block.pieces), source.name, position, share)
            done += sizes[file]


def _with_end(items: Iterable[T], *, wait: bool) -> Iterator[tuple[T, bool]]:
    """Items, and whether each is the last, as far as it is worth waiting to know."""
    coming = iter(items)
    if not wait:
        yield from ((item, False) for item in coming)
        return
    for item in coming:
        held = item
        for following in coming:
            yield held, False
            held = following
        yield held, True


def resume(path: Path, inputs: Inputs, asked: dict[str, Any]) -> tuple[TabularModel, Position] | None:
    """Take up the run whose progress is kept, if there is one, and if it was asked for the same over the same input."""
    partial = partial_path(path)
    if not partial.exists():
        return None
    model = load(partial)
    if not isinstance(model, TabularModel) or model.progress is None:
        raise CheckpointError(f"{partial} holds no progress of a run")
    try:
        known, was_asked = model.progress["input"], dict(model.progress["asked"])
        place = model.progress["position"]
        position = Position(*(as_tally(place[name], name) for name in Position._fields))
        names = ", ".join(str(file["name"]) for file in known["files"])
        passes = as_tally(known["passes"], "passes")
    except (KeyError, TypeError, ValueError):
        raise CheckpointError(f"{partial} holds no progress of a run") from None
    if known != inputs.identity():
        raise StreamError(
            f"the input is not that of the run that was interrupted, or has changed since ({names}; "
            f"passes: {passes}); to start over delete {partial}"
        )
    if was_asked.keys() != asked.keys():
        raise StreamError(f"{partial} is the progress of another command's run; go on with that one, or delete it")
    changed = [name for name in asked if was_asked.get(name) != asked[name]]
    if changed:
        options = ", ".join("--" + name.replace("_", "-") for name in changed)
        raise StreamError(f"{options} is not what the interrupted run was given; to start over delete {partial}")
    return model, position


def train(
    model: TabularModel,
    path: Path,
    inputs: Inputs,
    sources: Sequence[Source],
    *,
    start: Position | None = None,
    every: Every | None = None,
    listen: Callable[[Step], None] = lambda step: None,
    stopping: Callable[[], bool] = lambda: False,
    note: Callable[[], dict[str, Any]] = dict,
) -> None:
    """Learn all input into the model, and write it to its file in the end.

    Parameters
    ----------
    model : TabularModel
    path : where it is to be written; an old model stays there until the run has ended
    inputs, sources : what to learn
    start : where to begin
    every : how often progress is kept
    listen : is told of every block learned
    stopping : says whether to stop after the block
    note : what else to keep with the progress
    """
    if inputs.is_stream:
        model.last_run = None  # from here on it has learned something that no files hold
    keeper = _Keeper(model, path, inputs, every or Every(), note)
    n_read = 0

    def look_up() -> None:
        """A stream may pause: whoever wants to stop, and the clock, don't wait for its next row."""
        if inputs.is_stream:
            if stopping():
                sources[0].stop()  # what has come so far is still learned
            keeper.in_time()

    for step in steps(model, inputs, sources, start, meanwhile=look_up):
        model.learn(step.rows)
        n_read += step.rows.lines
        listen(step)
        if stopping() and not inputs.is_stream:
            keeper.keep(step.position)
            raise Interrupted(model.n_rows, keeper.path)
        keeper.after(step)
        look_up()
    if not model.n_rows:
        raise StreamError(
            "no row could be learned: all of them were rejected" if n_read else "there is no row to learn"
        )
    model.progress = None
    model.last_run = keeper.identity
    save(model, path)
    partial_path(path).unlink(missing_ok=True)


class _Keeper:
    """Keeps the progress of a run from time to time."""

    def __init__(
        self, model: TabularModel, path: Path, inputs: Inputs, every: Every, note: Callable[[], dict[str, Any]]
    ) -> None:
        self.path = path if inputs.is_stream else partial_path(path)
        self._model, self._inputs, self._every, self._note = model, inputs, every, note
        self.identity = None if inputs.is_stream else inputs.identity()
        self._rows, self._position = 0, Position()
        self._time = time.monotonic()

    def after(self, step: Step) -> None:
        self._rows, self._position = self._rows + step.rows.lines, step.position
        if self._every.rows is not None and self._rows >= self._every.rows:
            self.keep(step.position)
        self.in_time()

    def in_time(self) -> None:
        """Keep what came since the last time, if that is long ago."""
        late = self._every.seconds is not None and time.monotonic() - self._time >= self._every.seconds
        if late and self._rows:
            self.keep(self._position)

    def keep(self, position: Position) -> None:
        if self._model.n_rows:
            if self.identity is not None:
                place = position._asdict()
                self._model.progress = {"input": self.identity, "position": place, **self._note()}
            save(self._model, self.path)
        self._rows, self._time = 0, time.monotonic()
