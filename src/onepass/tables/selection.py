"""Which of the files given are learned, and from which row on: nothing twice.

Left out are files whose content the model has learned already, and those that were given before under another name. A
file that begins with a content that was learned, and has grown by lines since, is learned from there on.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from onepass.tables.ledger import LearnedFile, Ledger
from onepass.tables.readers.content import ContentReader, head_digest, head_digests
from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.options import AS_FOUND, ReadOptions
from onepass.tables.readers.paths import is_url
from onepass.tables.readers.source import Source

__all__ = ["KnownContentError", "Selected", "distinct", "select"]


@dataclass(frozen=True)
class Selected:
    """A file, and what is done with it."""

    file: str
    start: int | None  # the first row to learn; None: it is left out
    reason: str = ""  # why it is left out, or learned in part


class KnownContentError(StreamError):
    """A file begins with what was learned, but the rest of it can't be learned alone."""


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
    files: Sequence[str], sources: Sequence[Source], ledger: Ledger, reading: ReadOptions = AS_FOUND
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
        part = _Part.of(reading, source)
        if source.extent is None:
            chosen.append(_of_address(file, source, part, ledger) if is_url(file) else Selected(file, 0))
            continue
        size = source.extent.size
        found = _learned_before(file, source, part, filter(part.is_in, ledger.files))
        if found is not None:
            chosen.append(_continued(file, source, part, found, ledger))
            continue
        copy = next((other for other in here.get(size, ()) if _equal(file, other, size)), None)
        if copy is not None:
            chosen.append(Selected(file, None, f"has the same content as {copy}"))
            continue
        here.setdefault(size, []).append(file)
        chosen.append(Selected(file, 0, _learned_otherwise(file, source, part, ledger)))
    return chosen


@dataclass(frozen=True)
class _Part:
    """What is read of a file."""

    words: str  # see `ReadOptions.part`
    unfiltered: str  # the same without the condition on rows

    @classmethod
    def of(cls, reading: ReadOptions, source: Source) -> "_Part":
        return cls(reading.part(source.table), replace(reading, where=None).part(source.table))

    def is_in(self, known: LearnedFile) -> bool:
        """Whether what was learned of a file has all rows of this part."""
        return known.part in ("", self.unfiltered, self.words)

    def may_meet(self, known: LearnedFile) -> bool:
        """Whether what was learned of a file is another part, but may have some rows of this one."""
        table = known.part.partition(", where ")[0]
        other_table = table.startswith("table ") and self.unfiltered.startswith("table ") and table != self.unfiltered
        return not self.is_in(known) and not other_table


def _of_address(url: str, source: Source, part: _Part, ledger: Ledger) -> Selected:
    """What is done with a remote file, which is known by its address and its version."""
    at_address = [file for file in ledger.files if file.name == source.name and part.is_in(file)]
    if not at_address:
        other = next((file for file in ledger.files if file.name == source.name and part.may_meet(file)), None)
        return Selected(source.name, 0, "" if other is None else _twice(other, source.name, ledger))
    now = LearnedFile.remote(url, None, "")
    same = [file for file in at_address if (file.size, file.head) == (now.size, now.head)]
    before = _before((same or at_address)[0], source.name, ledger)
    if same and now.head:
        return Selected(source.name, None, f"was {before}")
    if same:
        return Selected(source.name, 0, f"was {before}; its server does not tell whether it has changed: learned whole")
    return Selected(source.name, 0, f"has changed since it was {before}; learned whole, with all rows that it had then")


def _before(known: LearnedFile, name: str, ledger: Ledger) -> str:
    """When a file was learned, and under which name if it was another."""
    when = ledger.run_of(known).when
    return f"learned on {when}{'' if known.name == name else f' as {known.name}'}"


def _learned_otherwise(file: str, source: Source, part: _Part, ledger: Ledger) -> str:
    """What to report of a file that is learned as a whole, though it is not quite new."""
    other = _learned_before(file, source, part, filter(part.may_meet, ledger.files))
    name = os.path.basename(file)
    if other is not None:
        return _twice(other, name, ledger)
    assert source.extent is not None
    # A log of lines is often named as another one; a table that is written anew has its old rows again.
    named = () if source.extent.is_lines else (one for one in ledger.files if one.name == name and part.is_in(one))
    for known in named:
        before = _before(known, name, ledger)
        return f"has another content than what was {before} under this name; learned whole, with all rows it had then"
    return ""


def _twice(known: LearnedFile, name: str, ledger: Ledger) -> str:
    before = _before(known, name, ledger)
    return f"was {before}, with {known.part}; rows that were learned then and are read now as well count twice"


def _learned_before(file: str, source: Source, part: _Part, known: Iterable[LearnedFile]) -> LearnedFile | None:
    """The longest content that was learned and that the file begins with; the file is read only if it may."""
    assert source.extent is not None
    candidates = list(_candidates(file, source.extent.size, list(known)))
    if not candidates:
        return None
    best: LearnedFile | None = None
    reader = ContentReader(file)
    try:
        for candidate in sorted(candidates, key=lambda one: (one.size, one.part == part.words)):
            if reader.advance(candidate.size).digest == candidate.digest:
                best = candidate
    finally:
        reader.close()
    return best


def _candidates(file: str, size: int, known: Sequence[LearnedFile]) -> Iterator[LearnedFile]:
    shorter = [one for one in known if one.size <= size]
    heads = head_digests(file, {one.size for one in shorter})
    return (one for one in shorter if heads[one.size] == one.head)


def _continued(file: str, source: Source, part: _Part, known: LearnedFile, ledger: Ledger) -> Selected:
    extent = source.extent
    assert extent is not None
    before = _before(known, os.path.basename(file), ledger)
    if known.size == extent.size:
        return Selected(file, None, f"was {before}")
    with open(file, "rb", buffering=0) as opened:
        opened.seek(known.size - 1)
        last, following = opened.read(1), opened.read(1)
    if not extent.is_lines or known.rows is None:
        why = "and such a file can't be learned from there on"
    elif known.part != part.words:
        why = "with all rows, so that it is unknown which of the rows that a condition keeps are new"
    elif b"\n" not in (last, following) and following != b"\r" and known.goes_on is not None:
        return Selected(file, known.goes_on, f"has grown since it was {before}; learned from its last line then on")
    elif b"\n" not in (last, following) and following != b"\r":
        why = "when its last line was not whole, so that one row would be learned twice"
    else:
        return Selected(file, known.rows, f"has grown since it was {before}; learned from row {known.rows + 1:,} on")
    raise KnownContentError(f"{file} begins with the {known.size:,} bytes that were {before}, {why}")


def _equal(file: str, other: str, size: int) -> bool:
    if head_digest(file, size) != head_digest(other, size):
        return False
    readers = ContentReader(file), ContentReader(other)
    try:
        return readers[0].advance(size) == readers[1].advance(size)
    finally:
        for reader in readers:
            reader.close()
