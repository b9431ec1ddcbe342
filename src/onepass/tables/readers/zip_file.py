"""Zip archives: the tables in them, one behind the other, as one table.

Line numbers go on from one file of the archive to the next, as if they stood in one file.
"""

import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from onepass.tables.readers.batches import LineNumbers, RowBatch, rows_after
from onepass.tables.readers.byte_stream import ByteStream
from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.notes import Note
from onepass.tables.readers.options import ReadOptions
from onepass.tables.readers.origins import OpenedOrigin, Origin
from onepass.tables.readers.source import TableFile

__all__ = ["ZippedTables", "is_zip"]

_MAGICS = (b"PK\x03\x04", b"PK\x05\x06")  # of an archive, and of one with nothing in it


def is_zip(head: bytes) -> bool:
    """Whether a file that begins so is a zip archive."""
    return head.startswith(_MAGICS)


class ZippedTables(TableFile):
    """All files of an archive, which must have the same columns.

    Parameters
    ----------
    stream : the archive
    options : ReadOptions
    recognised : opens a file of the archive
    """

    def __init__(
        self, stream: ByteStream, options: ReadOptions, recognised: Callable[[ByteStream, ReadOptions], TableFile]
    ) -> None:
        self.name: str = stream.name
        if stream.is_stdin or stream.is_compressed:
            what = "from standard input" if stream.is_stdin else f"inside {stream.compression} ({stream.name})"
            raise StreamError(f"zip can't be read {what}, since its index is at the end; name the file itself")
        with _archive(stream.origin) as archive:
            members = [one for one in archive.infolist() if _holds_a_table(one)]
        if not members:
            raise StreamError(f"{self.name} is a zip archive without a file in it")
        self._sizes = [one.file_size for one in members]
        self._tables = [_opened(_Member(stream.origin, one), options, recognised) for one in members]
        self._check_columns()

    def _check_columns(self) -> None:
        first = self._tables[0]
        for table in self._tables[1:]:
            if set(table.columns() or ()) != set(first.columns() or ()):
                raise StreamError(
                    f"{table.name} has other columns than {first.name}; unpack the archive and name the files to read"
                )

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was found out about the files so far."""
        files = [table.name for table in self._tables]
        listed = ", ".join(files[:3]) + (", ..." if len(files) > 3 else "")
        several = (Note(f"{len(files)} files of an archive are read as one table: {listed}"),) if files[1:] else ()
        return (*several, *(note for table in self._tables for note in table.notes))

    def columns(self) -> list[str] | None:
        """Names of the columns, or None where every row may have its own."""
        return self._tables[0].columns()

    def batches(self, types: dict[str, Any] | None, skip: int) -> Iterator[RowBatch]:
        """Rows of all files after the first ``skip``."""
        rows, line, done, total = 0, 0, 0, sum(self._sizes)
        for table, size in zip(self._tables, self._sizes, strict=True):
            place = _Place(rows, line, done / total, size / total)
            last = None
            for batch in table.batches(types, 0):  # all of them: where the lines of the next file begin must be known
                last = place.moved(batch)
                yield from rows_after(skip, last)
            if last is not None:
                rows, line = last.start + len(last), _last_line(last)
            done += size


@dataclass(frozen=True)
class _Place:
    """What precedes a file of the archive."""

    rows: int
    lines: int
    share: float
    width: float  # share of the file itself

    def moved(self, batch: RowBatch) -> RowBatch:
        """A batch of the file as one of the archive."""
        return replace(
            batch,
            start=self.rows + batch.start,
            line_numbers=_moved_lines(batch.line_numbers, self.lines),
            share_before=self.share + self.width * batch.share_before,
            share=self.share + self.width * batch.share,
            malformed=tuple(
                replace(bad, line=self.lines + bad.line, before=self.rows + bad.before) for bad in batch.malformed
            ),
        )


def _last_line(batch: RowBatch) -> int:
    return max([0, *batch.lines[-1:], *(bad.line for bad in batch.malformed[-1:])])


def _moved_lines(numbers: LineNumbers, by: int) -> LineNumbers:
    return numbers if not by else lambda: [by + line for line in numbers()]


def _holds_a_table(member: zipfile.ZipInfo) -> bool:
    """Leave out folders, what systems put into archives by themselves, and empty files."""
    parts = member.filename.split("/")
    hidden = any(part.startswith((".", "__MACOSX")) for part in parts)
    return not member.is_dir() and not hidden and member.file_size > 0


def _opened(
    member: "_Member", options: ReadOptions, recognised: Callable[[ByteStream, ReadOptions], TableFile]
) -> TableFile:
    stream = ByteStream.opened(member, options)
    stream.compression = stream.compression or "zip"
    try:
        return recognised(stream, options)
    finally:
        stream.close()


@contextmanager
def _archive(origin: Origin) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(origin.seekable()) as archive:
            yield archive
    except (zipfile.BadZipFile, EOFError) as error:
        raise StreamError(f"{origin.name} is not a valid zip archive, or is cut short: {error}") from None
    except OSError as error:
        raise StreamError(f"{origin.name} can't be read: {error.strerror or error}") from None


@dataclass(frozen=True)
class _Member:
    """A file of an archive as an origin."""

    archive: Origin
    info: zipfile.ZipInfo

    @property
    def name(self) -> str:
        return f"{self.archive.name}/{self.info.filename}"

    def open(self) -> OpenedOrigin:
        return _OpenedMember(self)

    def seekable(self) -> Any:
        raise StreamError(f"{self.name} can be read only from its beginning to its end; unpack it")


class _OpenedMember:
    def __init__(self, member: _Member) -> None:
        self.size = member.info.file_size
        self._name = member.name
        try:
            self._archive = zipfile.ZipFile(member.archive.seekable())
            self._file = self._archive.open(member.info)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError) as error:  # RuntimeError: a password
            raise self._unsound(error) from None

    def read(self, n: int) -> bytes:
        try:
            return self._file.read(n)
        except (zipfile.BadZipFile, EOFError, OSError, ValueError, zlib.error) as error:
            raise self._unsound(error) from None

    def ready(self, seconds: float) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
        self._archive.close()

    def _unsound(self, error: Exception) -> StreamError:
        words = str(error) or "it is cut short"
        return StreamError(f"{self._name} can't be read: {words[0].lower()}{words[1:]}".rstrip("."))
