"""The files of a run and the way through them: read, cut into blocks and encoded, a thread ahead of the learning."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeVar

from onepass.tables.model import TabularModel
from onepass.tables.readers.batches import row_blocks
from onepass.tables.readers.options import AS_FOUND, ReadOptions
from onepass.tables.readers.paths import STDIN, fingerprint, size_of
from onepass.tables.readers.prefetch import prefetch
from onepass.tables.readers.registry import open_source
from onepass.tables.readers.source import Source
from onepass.tables.rows import Rows

__all__ = ["Inputs", "Position", "Step", "steps"]

T = TypeVar("T")


class Position(NamedTuple):
    """Where a run stands in its input: the next row to be learned."""

    turn: int = 0  # which pass over all files
    file: int = 0
    row: int = 0


@dataclass(frozen=True)
class Inputs:
    """The files of a run, in their order, and the number of passes over them."""

    files: tuple[str, ...]
    passes: int = 1
    reading: ReadOptions = AS_FOUND

    @property
    def is_stream(self) -> bool:
        """Whether they can be read only once."""
        return STDIN in self.files

    def sources(self) -> list[Source]:
        """Open all of them."""
        return [open_source(file, self.reading) for file in self.files]

    def identity(self) -> dict[str, Any]:
        """What tells whether an input is the same as that of an earlier run."""
        files = [fingerprint(file) for file in self.files]
        return {"files": files, "passes": self.passes, **asdict(self.reading)}


class Step(NamedTuple):
    """A block of rows made ready, and where the run stands after it."""

    rows: Rows
    file: str
    position: Position
    share: float  # of all input that has been read


def steps(
    model: TabularModel,
    inputs: Inputs,
    sources: Sequence[Source],
    start: Position | None = None,
    *,
    meanwhile: Callable[[], object] = lambda: None,
) -> Iterator[Step]:
    """Read and encode all rows after a position, a thread ahead of whoever learns them.

    ``meanwhile`` is called from time to time while no row comes.
    """
    return prefetch(_steps(model, inputs, sources, start or Position()), meanwhile=meanwhile)


def _steps(model: TabularModel, inputs: Inputs, sources: Sequence[Source], start: Position) -> Iterator[Step]:
    types = model.types(target=True)
    sizes = [size_of(file) for file in inputs.files]
    total, done = sum(sizes) * inputs.passes, 0
    for turn in range(inputs.passes):
        for file, source in enumerate(sources):
            if (turn, file) >= start[:2]:
                skip = start.row if (turn, file) == start[:2] else 0
                found = row_blocks(source.batches(types, skip), model.rows_per_block, aligned=not inputs.is_stream)
                for block, last in _with_end(found, wait=not inputs.is_stream):
                    share = (done + block.share * sizes[file]) / total
                    position = Position(turn, file + 1) if last else Position(turn, file, block.end)
                    yield Step(model.rows(block.batches), source.name, position, share)
            done += sizes[file]


def _with_end(items: Iterable[T], *, wait: bool) -> Iterator[tuple[T, bool]]:
    """Items, and whether each is the last, as far as it is worth waiting to know."""
    coming = iter(items)
    if not wait:
        yield from ((item, False) for item in coming)
        return
    for item in coming:
        current = item
        for following in coming:
            yield current, False
            current = following
        yield current, True
