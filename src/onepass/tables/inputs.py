"""The files of a run and the way through them: read, cut into blocks and encoded, a thread ahead of the learning.

The digest of what is learned is taken along, see `ContentLog`: it says in the end what the model has learned, and after
an interruption whether a file is still the same.
"""

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from onepass.estimators.rows import Rows
from onepass.tables.history import LearnedFile
from onepass.tables.readers.batches import RowBatch, RowBlock, first_rows, row_blocks
from onepass.tables.readers.content import Content, ContentReader, head_digest
from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.options import AS_FOUND, ReadOptions
from onepass.tables.readers.paths import STDIN, is_url
from onepass.tables.readers.prefetch import prefetch
from onepass.tables.readers.registry import open_source
from onepass.tables.readers.source import Source

if TYPE_CHECKING:
    from onepass.tables.model import TabularModel

__all__ = ["ContentLog", "Inputs", "Position", "Step", "steps"]

T = TypeVar("T")

_AHEAD = 2**22  # bytes by which the digest is ahead of the rows at least, whose place in the file is known roughly
_FAR_AHEAD = 8 * _AHEAD  # by which it may be, so that reading rarely waits for it


class Position(NamedTuple):
    """The position of a run in its input: the next row to be learned."""

    turn: int = 0  # which pass over all files
    file: int = 0
    row: int = 0
    shuffled: int = 0  # rows after that one, taken in their random order, that have been learned already


@dataclass(frozen=True)
class Inputs:
    """The files of a run, in their order, and the number of passes over them."""

    files: tuple[str, ...]
    passes: int = 1
    reading: ReadOptions = AS_FOUND
    starts: tuple[int | None, ...] = ()
    """The first row to learn of each file, or None for a file that is left out; none at all: from the first row on."""
    stops: tuple[int | None, ...] = ()
    """The row of each file before which to stop, or None to read it to its end; none at all: all to their ends."""
    shuffle: int | None = None
    """Seed of the random order of rows, within buffers of `TabularModel.rows_per_buffer`; None: in their own order."""
    whole_records: bool = False
    """Whether rejects have all columns, also those that the model does not use."""

    def first_row(self, number: int) -> int | None:
        """The first row to learn of a file; None: it is left out."""
        return self.starts[number] if self.starts else 0

    def part_of(self, number: int, batches: Iterator[RowBatch], skipped: int) -> Iterator[RowBatch]:
        """The batches of a file, of which some rows were skipped, up to the row before which to stop."""
        stop = self.stops[number] if self.stops else None
        return batches if stop is None else first_rows(max(stop - skipped, 0), batches)

    @property
    def is_stream(self) -> bool:
        """Whether they can be read only once."""
        return STDIN in self.files

    def sources(self) -> list[Source]:
        """Open all of them."""
        return [open_source(file, self.reading) for file in self.files]

    def identity(self, sources: Sequence[Source]) -> dict[str, Any]:
        """What tells whether an input, which has been opened, is the same as that of an earlier run."""
        files = [_identity(*pair) for pair in zip(self.files, sources, strict=True)]
        reading: dict[str, Any] = json.loads(json.dumps(asdict(self.reading), default=str))  # as a file gives it back
        del reading["notation"]  # it is one of the settings that the run was given
        return {"files": files, "passes": self.passes, **reading}


def _identity(file: str, source: Source) -> dict[str, Any]:
    """Name and size of a file, and a digest of its beginning."""
    if is_url(file):
        from onepass.tables.readers.remote import remote_fingerprint  # what few need takes a while to load

        return remote_fingerprint(file)
    extent, name = source.extent, os.path.basename(file)
    if extent is None:  # it can't be looked at twice
        return {"name": name, "size": 0, "digest": ""}
    return {"name": name, "size": extent.size, "digest": head_digest(file, extent.size)}


class Step(NamedTuple):
    """A prepared block of rows, and the position of the run after it."""

    rows: Rows
    file: str
    position: Position
    share: float  # of all input that has been read
    content: Content | None = None  # of the file, up to these rows and a little further
    learned: LearnedFile | None = None  # the file, if these rows are the last of it in the first pass


class ContentLog:
    """Takes the digests of files along as they are read, and sees to it that no file changes meanwhile.

    Parameters
    ----------
    inputs : of the run
    sources : the same, opened
    learned : files by their number that the run has learned before it was interrupted
    """

    def __init__(
        self, inputs: Inputs, sources: Sequence[Source], learned: Mapping[int, LearnedFile] | None = None
    ) -> None:
        self._files = inputs.files
        self._parts = [inputs.reading.part(source.table) for source in sources]
        self._extents = [source.extent for source in sources]
        self._known = {
            number: Content(file.size, file.head, file.digest or "") for number, file in (learned or {}).items()
        }
        self._number = 0
        self._reader: ContentReader | None = None
        self._hasher: Executor | None = None
        self._coming: deque[tuple[int, Future[Content]]] = deque()  # contents asked for, by their size
        self._remote: LearnedFile | None = None  # what was at an address when it was begun

    @contextmanager
    def reading(self, number: int) -> Iterator[None]:
        """Take along the file of this number for the length of the block."""
        extent, self._number = self._extents[number], number
        if extent is None:
            file = self._files[number]
            self._remote = LearnedFile.remote(file, None, self._parts[number]) if is_url(file) else None
            yield
            return
        if number not in self._known:
            extent.cut = None  # whatever a first look decided
        self._reader, self._coming = ContentReader(self._files[number]), deque()
        # A thread of its own: parsing and learning keep one each busy already.
        with closing(self._reader), ThreadPoolExecutor(1) as self._hasher:
            try:
                if number not in self._known:
                    self._ask(min(_FAR_AHEAD, extent.size))
                yield
            finally:
                self._reader.stop()
        self._reader = self._hasher = None

    def so_far(self, share: float) -> Content | None:
        """The content of the file up to a share of it, and a little further.

        Bytes are taken along before their rows are read: if they change afterwards, that shows in the end.
        """
        extent = self._extents[self._number]
        if extent is None or self._reader is None or self._number in self._known:
            return None
        place = int(share * extent.size)
        self._ask(min(place + _FAR_AHEAD, extent.size))
        while self._coming[0][0] < min(place + _AHEAD, extent.size):
            self._coming.popleft()
        return self._coming[0][1].result()

    def _ask(self, size: int) -> None:
        """Have the thread go on up to so many bytes, in pieces that can be waited for."""
        assert self._reader is not None
        assert self._hasher is not None
        asked = self._coming[-1][0] if self._coming else 0
        while asked < size:
            asked = min(asked + _AHEAD, size)
            self._coming.append((asked, self._hasher.submit(self._reader.advance, asked)))

    def end(self, rows: int) -> LearnedFile | None:
        """The file that has been read to its end, with so many rows, if that was for the first time."""
        extent, known = self._extents[self._number], self._known.get(self._number)
        if extent is None:
            return self._end_of_remote(rows)
        if self._reader is None:
            return None
        if self._coming:
            self._coming[-1][1].result()
        content = self._reader.final_content(extent, known)
        self._known[self._number] = content
        if known is not None:
            return None
        return LearnedFile.of(os.path.basename(self._files[self._number]), content, rows, self._parts[self._number])

    def _end_of_remote(self, rows: int) -> LearnedFile | None:
        if self._remote is None:
            return None
        file = LearnedFile.remote(self._files[self._number], None, self._parts[self._number])
        if file != self._remote:
            raise StreamError(f"{file.name} was changed while it was read; start the run again")
        known = self._known.setdefault(self._number, content := Content(file.size, file.head, ""))
        return replace(file, rows=rows) if known is content else None


def steps(
    model: "TabularModel",
    inputs: Inputs,
    sources: Sequence[Source],
    start: Position | None = None,
    *,
    log: ContentLog | None = None,
    meanwhile: Callable[[], object] = lambda: None,
) -> Iterator[Step]:
    """Read and encode all rows after a position, in a thread ahead of learning.

    ``log`` takes the digests of the files along. ``meanwhile`` is called from time to time while no row comes.
    """
    return prefetch(_steps(model, inputs, sources, start or Position(), log), meanwhile=meanwhile)


def _steps(
    model: "TabularModel", inputs: Inputs, sources: Sequence[Source], start: Position, log: ContentLog | None
) -> Iterator[Step]:
    sizes = [0 if inputs.first_row(number) is None else _size(source) for number, source in enumerate(sources)]
    total, done = sum(sizes) * inputs.passes, 0
    for turn in range(inputs.passes):
        for number, source in enumerate(sources):
            first = inputs.first_row(number)
            if (turn, number) >= start[:2] and first is not None:
                begin = Position(turn, number, first)
                if (turn, number) == start[:2] and start.row >= first:
                    begin = start
                for step in _steps_of_file(model, source, begin, log, inputs):
                    yield step._replace(share=(done + step.share * sizes[number]) / total)
            done += sizes[number]


def _size(source: Source) -> int:
    return 1 if source.extent is None else source.extent.size


def _steps_of_file(
    model: "TabularModel", source: Source, start: Position, log: ContentLog | None, inputs: Inputs
) -> Iterator[Step]:
    """The steps of one file; their share is that of the file."""
    turn, number, skip, done = start
    size = model.rows_per_block if inputs.shuffle is None else model.rows_per_buffer
    shown = model.unused_columns(source.columns()) if inputs.whole_records else ()
    batches = inputs.part_of(number, source.batches(model.types(target=True, more=shown), skip), skip)
    found = row_blocks(batches, size, aligned=not inputs.is_stream)
    with nullcontext() if log is None else log.reading(number):
        for block, last in _with_end(found, wait=not inputs.is_stream):
            position = Position(turn, number + 1) if last else Position(turn, number, block.end)
            step = Step(model.rows(block.batches), source.name, position, block.share)
            content, all_rows = None if log is None else log.so_far(block.share), step.rows
            if inputs.shuffle is not None:
                begin, done = Position(turn, number, block.start, done), 0
                *parts, step = _shuffled(step, begin, model.rows_per_block, inputs.shuffle)
                yield from (part._replace(content=content) for part in parts)
            if log is not None and last:
                yield step._replace(learned=_with_open_end(log.end(block.end), block, all_rows))
            else:
                yield step._replace(content=content)


def _shuffled(step: Step, begin: Position, size: int, seed: int) -> Iterator[Step]:
    """A buffer of rows in a random order that depends on its place alone, as steps after those already learned."""
    rows, n = step.rows, len(step.rows.y)
    order = np.random.default_rng([seed, *begin[:3]]).permutation(n)
    for start in range(begin.shuffled, max(n, 1), size):
        part = rows.at(order[start : start + size])
        if start == 0:  # where everything that was rejected is reported
            part = replace(part, rejects=rows.rejects, n_left_out=rows.n_left_out)
        is_last = start + size >= n
        yield step._replace(rows=part, position=step.position if is_last else begin._replace(shuffled=start + size))


def _with_open_end(file: LearnedFile | None, block: RowBlock, rows: Rows) -> LearnedFile | None:
    """A file whose last record, if it was rejected, may still be completed: nothing was learned of it."""
    batch = block.batches[-1]
    if file is None or not rows.rejects:
        return file
    if any(one.before >= block.end for one in batch.malformed):
        return replace(file, goes_on=block.end)
    rejected = len(batch) and max(one.line for one in rows.rejects) == batch.lines[-1]
    return replace(file, goes_on=block.end - 1) if rejected else file


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
