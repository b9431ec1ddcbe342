"""Which of the files given are learned, and from which row on: nothing twice.

Left out are files whose content the model has learned already, and those that were given before under another name. A
file that begins with a content that was learned, and has grown by lines since, is learned from there on.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from onepass.tables.history import LearnedFile, TrainingHistory
from onepass.tables.readers.content import ContentReader, head_digest, head_digests
from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.options import ALL, AS_FOUND, Part, ReadOptions
from onepass.tables.readers.paths import is_url
from onepass.tables.readers.source import Source
from onepass.tables.reasons import Reason

__all__ = ["KnownContentError", "Selected", "as_learned", "distinct", "select"]


@dataclass(frozen=True)
class Selected:
    """A file, and what is done with it."""

    file: str
    start: int | None  # the first row to learn; None: it is left out
    reason: Reason | None = None  # why it is left out, or learned in part


class KnownContentError(StreamError):
    """A file begins with what was learned, but the rest of it can't be learned alone."""

    def __init__(self, file: str, reason: Reason) -> None:
        super().__init__(f"{file} {reason}")
        self.reason = reason


def distinct(files: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Files without those that were named before, and the names that are left out.

    Examples
    --------
    >>> distinct([os.curdir, os.path.join(os.curdir, ""), os.pardir])
    (('.', '..'), ('./',))
    """
    kept: dict[object, str] = {}
    again: list[str] = []
    for file in files:
        try:
            found = os.stat(file)
            key: object = (found.st_dev, found.st_ino)
        except OSError:  # no file of this machine: its name says what it is
            key = file
        if key in kept:
            again.append(file)
        else:
            kept[key] = file
    return tuple(kept.values()), tuple(again)


def select(
    files: Sequence[str], sources: Sequence[Source], history: TrainingHistory, reading: ReadOptions = AS_FOUND
) -> list[Selected]:
    """What is done with each of the files, which have been opened with these options and may be read in part.

    A file or table that was learned as a whole was learned in all its parts. What was learned of another part does not
    keep a file from being learned, but is reported: some rows may then count twice.

    Raises
    ------
    KnownContentError
        If a file begins with what was learned, but can't be learned from there on.
    """
    here: dict[int, list[str]] = {}  # those of the run by their size
    chosen = []
    for file, source in zip(files, sources, strict=True):
        part = reading.part(source.table)
        if source.extent is None:
            chosen.append(_of_address(file, source, part, history) if is_url(file) else Selected(file, 0))
            continue
        size = source.extent.size
        found = _learned_before(file, source, part, [one for one in history.files if part.is_in(one.part)])
        if found is not None:
            chosen.append(_continued(file, source, part, found, history))
            continue
        copy = next((other for other in here.get(size, ()) if _equal(file, other, size)), None)
        if copy is not None:
            chosen.append(Selected(file, None, Reason("same_content", value=copy)))
            continue
        here.setdefault(size, []).append(file)
        chosen.append(Selected(file, 0, _learned_otherwise(file, source, part, history)))
    return chosen


def as_learned(
    files: Sequence[str], sources: Sequence[Source], ends: Sequence[int | None], reading: ReadOptions = AS_FOUND
) -> list[LearnedFile]:
    """Files that were read as a whole, for the history; ``ends`` has their numbers of rows, None where left out."""
    found = []
    for file, source, rows in zip(files, sources, ends, strict=True):
        part = reading.part(source.table)
        if rows is None:
            continue
        if is_url(file):
            found.append(LearnedFile.remote(file, rows, part))
        elif source.extent is not None:
            reader = ContentReader(file)
            try:
                content = reader.final_content(source.extent)
            finally:
                reader.close()
            found.append(LearnedFile.of(os.path.basename(file), content, rows, part))
    return found


def _of_address(url: str, source: Source, part: Part, history: TrainingHistory) -> Selected:
    """What is done with a remote file, which is known by its address and its version."""
    at_address = [file for file in history.files if file.name == source.name and part.is_in(file.part)]
    if not at_address:
        other = next((file for file in history.files if file.name == source.name and part.may_meet(file.part)), None)
        return Selected(source.name, 0, None if other is None else _known("rows_twice", other, source.name, history))
    now = LearnedFile.remote(url, None, ALL)
    same = [file for file in at_address if (file.size, file.head) == (now.size, now.head)]
    code = "changed" if not same else "learned" if now.head else "version_unknown"
    reason = _known(code, (same or at_address)[0], source.name, history)
    return Selected(source.name, None if code == "learned" else 0, reason)


def _known(code: str, known: LearnedFile, name: str, history: TrainingHistory, **facts: Any) -> Reason:
    """A reason with when a file was learned, which part, and under which name if it was another."""
    alias = "" if known.name == name else known.name
    return Reason(code, when=history.run_of(known).when, alias=alias, part=known.part, **facts)


def _learned_otherwise(file: str, source: Source, part: Part, history: TrainingHistory) -> Reason | None:
    """What to report of a file that is learned as a whole, though it is not quite new."""
    others = [one for one in history.files if part.may_meet(one.part)]
    other = _learned_before(file, source, part, others)
    name = os.path.basename(file)
    if other is not None:
        return _known("rows_twice", other, name, history)
    assert source.extent is not None
    # A log of lines is often named as another one; a table that is written anew has its old rows again.
    named = (
        () if source.extent.is_lines else (one for one in history.files if one.name == name and part.is_in(one.part))
    )
    known = next(iter(named), None)
    return None if known is None else _known("other_content", known, name, history)


def _learned_before(file: str, source: Source, part: Part, known: Iterable[LearnedFile]) -> LearnedFile | None:
    """The longest content that was learned and that the file begins with; the file is read only if it may."""
    assert source.extent is not None
    candidates = list(_candidates(file, source.extent.size, list(known)))
    if not candidates:
        return None
    best: LearnedFile | None = None
    reader = ContentReader(file)
    try:
        for candidate in sorted(candidates, key=lambda one: (one.size, one.part == part)):
            if reader.advance(candidate.size).digest == candidate.digest:
                best = candidate
    finally:
        reader.close()
    return best


def _candidates(file: str, size: int, known: Sequence[LearnedFile]) -> Iterator[LearnedFile]:
    shorter = [one for one in known if one.size <= size]
    heads = head_digests(file, {one.size for one in shorter})
    return (one for one in shorter if heads[one.size] == one.head)


def _continued(file: str, source: Source, part: Part, known: LearnedFile, history: TrainingHistory) -> Selected:
    extent = source.extent
    assert extent is not None
    name = os.path.basename(file)
    if known.size == extent.size:
        return Selected(file, None, _known("learned", known, name, history))
    with open(file, "rb", buffering=0) as opened:
        opened.seek(known.size - 1)
        last, following = opened.read(1), opened.read(1)
    is_whole = b"\n" in (last, following) or following == b"\r"
    if not extent.is_lines or known.rows is None:
        code = "grown_not_lines"
    elif known.part != part:
        code = "grown_other_part"
    elif is_whole:
        return Selected(file, known.rows, _known("grown", known, name, history, row=known.rows + 1))
    elif known.goes_on is not None:
        return Selected(file, known.goes_on, _known("grown_open_line", known, name, history))
    else:
        code = "grown_half_line"
    raise KnownContentError(file, _known(code, known, name, history, size=known.size))


def _equal(file: str, other: str, size: int) -> bool:
    if head_digest(file, size) != head_digest(other, size):
        return False
    readers = ContentReader(file), ContentReader(other)
    try:
        return readers[0].advance(size) == readers[1].advance(size)
    finally:
        for reader in readers:
            reader.close()
