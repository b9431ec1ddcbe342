"""Files and standard input as a stream of rows, in constant memory: CSV, JSON lines (both may be gzipped) and Parquet.

What a source gives are pieces: record batches of raw columns that know where in the file each row stands, and the
records that are no rows at all. `blocks` cuts them at multiples of a fixed number of rows of their file, so that where
reading once stopped does not show in what is made of them. Text is parsed by Arrow; a chunk that Arrow can't parse is
gone through record by record, so that one bad line costs that line only.
"""

import csv
import glob
import hashlib
import json
import os
import select
import stat
import sys
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from queue import Empty, Full, Queue
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv as arrow_csv
from pyarrow import json as arrow_json

__all__ = [
    "STDIN",
    "Block",
    "Malformed",
    "Piece",
    "Source",
    "StreamError",
    "ahead",
    "blocks",
    "expand",
    "fingerprint",
    "open_source",
]

STDIN = "-"
NULLS = ["", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A"]
_CHUNK = 2**21  # bytes of text parsed at a time
_LONGEST_RECORD = 2**23  # bytes; what is longer has a quote that was never closed
_READ = 2**18
_IDLE = 0.5  # seconds after which rows of a slow stream are handed on
_PARQUET_ROWS = 8192
_PATIENCE = 1.0  # seconds for a thread to end
_SHOWN = 200  # characters of a bad record that are kept
_NOT_UTF8 = "is no sound UTF-8; if the file is in Latin-1, convert it first: iconv -f LATIN1 -t UTF-8"
_STRAY_QUOTE = "has a quote that is never closed, or one inside a field"
# Python's own limit of 131,072 would refuse fields that Arrow reads.
csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_RECORD))

T = TypeVar("T")


class StreamError(ValueError):
    """Input that can't be read at all; the message says which and why."""


@dataclass(frozen=True)
class Malformed:
    """A record that is no row."""

    line: int
    reason: str
    text: str
    before: int  # rows of the file that stand before it


class Places(Protocol):
    """Where rows of a piece stand in their file."""

    def __call__(self) -> Sequence[int]:
        """Line number of every row; worked out only when somebody asks."""


@dataclass(frozen=True)
class Piece:
    """Some rows in a row."""

    batch: Any  # pyarrow.RecordBatch
    start: int  # rows of the file before it
    places: Places = field(repr=False)
    offset: int = 0  # of its first row among the places
    begun: float = 0.0  # share of the file before it
    share: float = 0.0  # and with it
    malformed: tuple[Malformed, ...] = ()

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    @property
    def lines(self) -> Sequence[int]:
        """Line number of every row."""
        return self.places()[self.offset : self.offset + len(self)]

    def first(self, n: int) -> "Piece":
        """The first ``n`` rows, and what is malformed before each of them."""
        end = self.start + n
        malformed = tuple(bad for bad in self.malformed if bad.before < end)
        return replace(self, batch=self.batch.slice(0, n), malformed=malformed, share=self._share_at(n))

    def rest(self, n: int) -> "Piece":
        """All behind the first ``n`` rows; it may be no row but something malformed."""
        begin = self.start + n
        malformed = tuple(bad for bad in self.malformed if bad.before >= begin)
        batch = self.batch.slice(n)
        return replace(
            self, batch=batch, start=begin, offset=self.offset + n, malformed=malformed, begun=self._share_at(n)
        )

    def _share_at(self, n: int) -> float:
        return self.begun + (self.share - self.begun) * (n / len(self) if len(self) else 1.0)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do for it."""
        return not len(self) and not self.malformed


@dataclass(frozen=True)
class Block:
    """The rows of one step of learning."""

    pieces: tuple[Piece, ...]

    @property
    def end(self) -> int:
        """Rows of the file up to the end of this block."""
        return self.pieces[-1].start + len(self.pieces[-1])

    @property
    def share(self) -> float:
        """Share of the file that has been read."""
        return self.pieces[-1].share


class Source(Protocol):
    """One file, or standard input."""

    name: str

    def columns(self) -> list[str] | None:
        """Names of the columns, or None where rows may have any."""

    def head(self, n: int) -> list[Piece]:
        """The first rows, all columns; they will come again."""

    def pieces(self, types: dict[str, Any] | None, skip: int) -> Iterator[Piece]:
        """Rows behind the first ``skip``; of these columns, or of all."""

    def stop(self) -> None:
        """End after what has come so far, where more may come for ever."""


# Which files.


def expand(patterns: Iterable[str]) -> list[str]:
    """Files that are named, or match a pattern, in this order; those of one pattern sorted.

    Examples
    --------
    >>> expand(["-"])
    ['-']
    """
    files: list[str] = []
    for pattern in patterns:
        if pattern == STDIN or os.path.exists(pattern):
            found = [pattern]
        else:
            found = sorted(glob.glob(pattern, recursive=True))
            if not found:
                what = "matches no file" if glob.has_magic(pattern) else "does not exist"
                raise StreamError(f"{pattern} {what}")
        files += found
    for file in files:
        if os.path.isdir(file):
            raise StreamError(f"{file} is a folder; name its files, e.g. '{os.path.join(file, '*.parquet')}'")
    if STDIN in files and len(files) > 1:
        raise StreamError("standard input ('-') can't be mixed with files")
    return files


def fingerprint(file: str) -> dict[str, Any]:
    """By what a file is known again: its name, its size and a digest of its beginning."""
    try:
        with open(file, "rb") as opened:
            digest = hashlib.blake2b(opened.read(2**20), digest_size=16).hexdigest()
            return {"name": os.path.basename(file), "size": os.fstat(opened.fileno()).st_size, "digest": digest}
    except OSError as error:
        raise StreamError(f"{file} can't be read: {error.strerror}") from None


def open_source(file: str, delimiter: str | None = None) -> Source:
    """Look at how a file begins, and take it for what it is."""
    raw = _Raw(file)
    try:
        source = _recognised(raw, file, delimiter)
    finally:
        raw.close()  # there may be more files than can be open at once
    return _Once(source, raw) if file == STDIN else source


def _recognised(raw: "_Raw", file: str, delimiter: str | None) -> "_File":
    start = raw.peek(4)
    if start == b"PAR1":
        if file == STDIN:
            raise StreamError("Parquet can't be read from standard input, since its index is at the end; name the file")
        return _Parquet(file)
    if start[:2] == b"\x1f\x8b":
        raw.unzip()
    text = raw.peek(2**16)
    if not text.strip():
        raise StreamError(f"{raw.name} is empty")
    if b"\0" in text[:1024]:
        raise StreamError(
            f"{raw.name} is neither CSV, JSON lines nor Parquet: it has bytes of value 0; if it is in UTF-16, "
            "convert it first: iconv -f UTF-16 -t UTF-8"
        )
    if text.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        return _JsonLines(raw)
    return _Csv(raw, delimiter)


class _File:
    """What can be read from its beginning as often as one likes."""

    name: str

    def columns(self) -> list[str] | None:
        raise NotImplementedError

    def pieces(self, types: dict[str, Any] | None, skip: int) -> Iterator[Piece]:
        raise NotImplementedError

    def head(self, n: int) -> list[Piece]:
        return list(_until(n, self.pieces(None, 0)))

    def stop(self) -> None:
        """A file ends by itself."""


class _Once:
    """Standard input: what was looked at is kept, and comes first when the rows are read."""

    def __init__(self, source: _File, raw: "_Raw") -> None:
        self.name = source.name
        self._source, self._raw = source, raw
        self._coming = source.pieces(None, 0)
        self._held: list[Piece] = []

    def columns(self) -> list[str] | None:
        return self._source.columns()

    def head(self, n: int) -> list[Piece]:
        while sum(map(len, self._held)) < n:
            piece = next(self._coming, None)
            if piece is None:
                break
            self._held.append(piece)
        return list(_until(n, self._held))

    def pieces(self, types: dict[str, Any] | None, skip: int) -> Iterator[Piece]:
        held, self._held = self._held, []
        yield from held
        yield from self._coming

    def stop(self) -> None:
        self._raw.stopping.set()


def _until(n: int, pieces: Iterable[Piece]) -> Iterator[Piece]:
    found = 0
    for piece in pieces:
        part = piece.first(min(n - found, len(piece)))
        yield part
        found += len(part)
        if found >= n:
            return


# Bytes.


class _Raw:
    """The bytes of a file or of standard input, unzipped on the way, some of them looked at beforehand."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.name = "standard input" if file == STDIN else file
        self.stopping = threading.Event()
        self.consumed = 0
        self._handle: int | None = None
        self._held = b""
        self._inflate: Any = None
        self._ended = False
        try:
            self._handle = sys.stdin.fileno() if file == STDIN else os.open(file, os.O_RDONLY)
            found = os.fstat(self._handle)
        except OSError as error:
            raise StreamError(f"{self.name} can't be read: {error.strerror}") from None
        self.size = found.st_size if file != STDIN else 0
        if file != STDIN and stat.S_ISFIFO(found.st_mode):
            raise StreamError(f"{file} is a pipe, which can be read only once; give it as standard input, '-'")

    def close(self) -> None:
        """Let go of a file; standard input would be lost."""
        if self.file != STDIN and self._handle is not None:
            os.close(self._handle)
            self._handle, self._held, self._ended = None, b"", True

    def unzip(self) -> None:
        held, self._held = self._held, b""
        self._inflate = zlib.decompressobj(31)
        self._held = self._inflated(held)

    def peek(self, n: int) -> bytes:
        """Look at the first bytes, as many as there are, and a whole line at least."""
        while len(self._held) < n and not self._ended and not (b"\n" in self._held.lstrip() and not self._ready(_IDLE)):
            self._held += self._more()
        return self._held[:n]

    def read(self) -> bytes:
        """Some more bytes; none at the end."""
        if self._held:
            held, self._held = self._held, b""
            return held
        return self._more()

    @property
    def waits(self) -> bool:
        """Whether nothing more has come for a while."""
        return not self._held and not self._ended and not self._ready(_IDLE)

    @property
    def share(self) -> float:
        return min(self.consumed / self.size, 1.0) if self.size else 0.0

    def again(self) -> "_Raw":
        """The same from its beginning, for one reader; standard input can only go on."""
        if self.file == STDIN:
            return self
        fresh = _Raw(self.file)
        fresh._inflate = None if self._inflate is None else zlib.decompressobj(31)
        return fresh

    def _ready(self, seconds: float) -> bool:
        return self.file != STDIN or bool(select.select([sys.stdin.fileno()], [], [], seconds)[0])

    def _more(self) -> bytes:
        while not self._ended and self._handle is not None:
            while not self._ready(0.2) and not self.stopping.is_set():
                pass
            if self.stopping.is_set():  # also of a stream that never pauses
                self._ended = True
                return b""
            try:
                content = os.read(self._handle, _READ)
            except OSError as error:
                raise StreamError(f"{self.name} can't be read: {error.strerror}") from None
            self.consumed += len(content)
            self._ended = not content
            if self._inflate is None:
                return content
            inflated = self._inflated(content)
            if inflated:
                return inflated
        return b""

    def _inflated(self, content: bytes) -> bytes:
        try:
            out = [self._inflate.decompress(content)]
            while self._inflate.eof and self._inflate.unused_data:  # files put one behind the other
                rest = self._inflate.unused_data
                self._inflate = zlib.decompressobj(31)
                out.append(self._inflate.decompress(rest))
        except zlib.error as error:
            raise StreamError(f"{self.name} is not sound gzip: {error}") from None
        if self._ended and not content and not self._inflate.eof:
            raise StreamError(f"{self.name} is cut short: its gzip has no end")
        return b"".join(out)

    def __del__(self) -> None:
        self.close()


def _chunks(raw: _Raw, boundary: Callable[[bytes], int]) -> Iterator[bytes]:
    """Text in chunks of whole records; ``boundary`` says where the last whole one ends."""
    parts: list[bytes] = []
    size = 0
    try:
        while True:
            content = raw.read()
            parts.append(content)
            size += len(content)
            if content and size < _CHUNK and not raw.waits:
                continue
            text = b"".join(parts)
            # The last line may lack its break, but one that was cut by whoever stops the stream is no line.
            last = _end_of_lines(text) if raw.stopping.is_set() else len(text)
            end = boundary(text) if content else last
            if end == 0 and len(text) > _LONGEST_RECORD:
                end = text.rfind(b"\n") + 1 or len(text)
            if end:
                yield text[:end]
            parts, size = [text[end:]], len(text) - end
            if not content:
                return
    finally:
        raw.close()


def _n_lines(text: bytes) -> int:
    return text.count(b"\n") + (not text.endswith(b"\n"))


# CSV.


def _end_of_records(text: bytes) -> int:
    """Where the last whole record ends: a line break outside quotes."""
    end = text.rfind(b"\n") + 1
    if b'"' not in text:
        return end
    view = np.frombuffer(text, dtype=np.uint8)
    inside = np.cumsum(view == ord('"')) % 2
    ends = np.flatnonzero((view == ord("\n")) & (inside == 0))
    return int(ends[-1]) + 1 if len(ends) else 0


@dataclass
class _CsvPlaces:
    """Lines of the records of a chunk: counted one by one only if a record may have more or less than a line."""

    text: bytes
    first: int
    n_rows: int
    delimiter: str
    known: list[int] | None = None

    def __call__(self) -> Sequence[int]:
        if self.known is None:
            if _n_lines(self.text) == self.n_rows:
                return range(self.first, self.first + self.n_rows)
            self.known = [line for line, _, _ in _records(self.text, self.first, self.delimiter, None)]
        return self.known


def _records(text: bytes, first: int, delimiter: str, width: int | None) -> Iterator[tuple[int, list[str] | str, str]]:
    """Line, fields and text of every record; in place of fields that can't be read the reason.

    If a record of several lines can't be read, or has the wrong number of fields, a stray quote is to blame, and only
    its first line.
    """
    lines = _joined(text.decode("utf-8", errors="surrogateescape").splitlines(keepends=True))
    at = 0
    while at < len(lines):
        # Not a slice, which would be copied once for every bad line.
        reader = csv.reader(map(lines.__getitem__, range(at, len(lines))), delimiter=delimiter, strict=True)
        start = at
        try:
            for fields in reader:
                used = start + reader.line_num - at
                if used > 1 and width is not None and len(fields) != width:
                    raise csv.Error
                if any("\udc80" <= sign <= "\udcff" for value in fields for sign in value):
                    yield first + at, _NOT_UTF8, lines[at]
                elif fields:
                    yield first + at, fields, "".join(lines[at : at + used])
                at += used
        except csv.Error as error:
            too_long = f"has a field of more than {csv.field_size_limit():,} characters"
            yield first + at, too_long if "field limit" in str(error) else _STRAY_QUOTE, lines[at]
            at += 1


def _quotes_pair(text: bytes, delimiter: str) -> bool:
    """Whether every quote begins a field, ends it, or is one of two in the midst of it."""
    view = np.frombuffer(text, dtype=np.uint8)
    quotes = np.flatnonzero(view == ord('"'))
    if len(quotes) % 2:
        return False
    around = np.frombuffer(f'\n\r"{delimiter}'.encode(), dtype=np.uint8)
    before = view[np.maximum(quotes[::2] - 1, 0)]
    behind = view[np.minimum(quotes[1::2] + 1, len(view) - 1)]
    return bool(np.isin(before, around).all() and np.isin(behind, around).all())


def _joined(lines: list[str]) -> list[str]:
    """Lines as line breaks make them, and nothing else that Python takes for one."""
    out: list[str] = []
    for line in lines:
        if out and not out[-1].endswith("\n"):
            out[-1] += line
        else:
            out.append(line)
    return out


class _Csv(_File):
    def __init__(self, raw: _Raw, delimiter: str | None) -> None:
        self._raw = raw
        self.name = raw.name
        head = raw.peek(2**16).removeprefix(b"\xef\xbb\xbf")
        self._bom = len(raw.peek(3)) - len(raw.peek(3).removeprefix(b"\xef\xbb\xbf"))
        lines = [line for line in head.decode("utf-8", errors="replace").split("\n")[:10] if line.strip()]
        # What stands between fields stands in every line; the last may have been cut.
        self._delimiter = delimiter or max(
            ",;\t|", key=lambda sign: min(line.count(sign) for line in lines[:-1] or lines)
        )
        self._names = [name.strip() for name in next(csv.reader(lines[:1], delimiter=self._delimiter))]
        twice = sorted({name for name in self._names if self._names.count(name) > 1})
        if twice:
            raise StreamError(f"{self.name} has more than one column {twice[0]!r}; the first line must name each once")

    def columns(self) -> list[str]:
        return list(self._names)

    def pieces(self, types: dict[str, Any] | None, skip: int) -> Iterator[Piece]:
        wanted = self._names if types is None else [name for name in self._names if name in types]
        raw = self._raw.again()
        line, rows, header, begun = 1, 0, True, 0.0
        for chunk in _chunks(raw, _end_of_records):
            text = chunk
            if header:
                text = text[self._bom :]
                body = text.lstrip(b"\r\n")
                end = body.find(b"\n") + 1 or len(body)
                line += text[: len(text) - len(body) + end].count(b"\n")
                text, header = body[end:], False
            if not text.strip():
                line += text.count(b"\n")
                continue
            piece = self._parsed(text, wanted, line, rows)
            line += text.count(b"\n")
            rows += len(piece)
            yield from _behind(replace(piece, begun=begun, share=raw.share), skip)
            begun = raw.share

    def _parsed(self, text: bytes, wanted: list[str], line: int, rows: int) -> Piece:
        bad: list[Any] = []

        def note(row: Any) -> str:
            bad.append(row)
            return "skip"

        options = {
            "read_options": arrow_csv.ReadOptions(
                column_names=self._names, use_threads=False, block_size=max(len(text), 1)
            ),
            "parse_options": arrow_csv.ParseOptions(
                delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=note
            ),
            "convert_options": arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(wanted, pa.string()),
                include_columns=wanted,
                null_values=NULLS,
                strings_can_be_null=True,
            ),
        }
        try:
            table = arrow_csv.read_csv(pa.BufferReader(text), **options)
        except pa.ArrowInvalid:
            table = None
        if table is None or bad or self._swallows(text, table.num_rows):
            return self._one_by_one(text, wanted, line, rows)
        batch = _one_batch(table)
        places = _CsvPlaces(text, line, batch.num_rows, self._delimiter)
        return Piece(batch, rows, places)

    def _swallows(self, text: bytes, n_rows: int) -> bool:
        """Whether a stray quote may have made one record of many lines, which Arrow does not mind."""
        if text.count(b'"') % 2:
            return True
        return n_rows != _n_lines(text) and not _quotes_pair(text, self._delimiter)

    def _one_by_one(self, text: bytes, wanted: list[str], line: int, rows: int) -> Piece:
        width, nulls = len(self._names), set(NULLS)
        good: list[list[str]] = []
        places: list[int] = []
        malformed: list[Malformed] = []
        for place, fields, record in _records(text, line, self._delimiter, width):
            if isinstance(fields, str):
                reason = fields
            elif len(fields) == width:
                good.append(fields)
                places.append(place)
                continue
            else:
                count = f"{len(fields)} field" + "s" * (len(fields) != 1)
                reason = f"has {count} where the first line has {width}"
            malformed.append(Malformed(place, reason, _shown(record), rows + len(good)))
        columns = [[None if row[i] in nulls else row[i] for row in good] for i in map(self._names.index, wanted)]
        batch = pa.RecordBatch.from_arrays([pa.array(column, pa.string()) for column in columns], names=wanted)
        return Piece(batch, rows, lambda: places, malformed=tuple(malformed))


# JSON lines.


def _end_of_lines(text: bytes) -> int:
    return text.rfind(b"\n") + 1


class _JsonLines(_File):
    def __init__(self, raw: _Raw) -> None:
        self._raw = raw
        self.name = raw.name
        if raw.peek(2**16).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"[":
            raise StreamError(f"{self.name} is one JSON array; JSON lines, an object a line, can be read as a stream")

    def columns(self) -> None:
        return None

    def pieces(self, types: dict[str, Any] | None, skip: int) -> Iterator[Piece]:
        raw = self._raw.again()
        line, rows, begun = 1, 0, 0.0
        for text in _chunks(raw, _end_of_lines):
            piece = None if types is None else self._parsed(text, types, line, rows)
            piece = piece or self._one_by_one(text, types, line, rows)
            line += text.count(b"\n")
            rows += len(piece)
            yield from _behind(replace(piece, begun=begun, share=raw.share), skip)
            begun = raw.share

    def _parsed(self, text: bytes, types: dict[str, Any], line: int, rows: int) -> Piece | None:
        """All of it at once, if all of it has the types that were asked for."""
        schema = pa.schema(list(types.items()))
        try:
            table = arrow_json.read_json(
                pa.BufferReader(text),
                read_options=arrow_json.ReadOptions(use_threads=False, block_size=max(len(text), 1)),
                parse_options=arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
            )
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        if table.num_rows != _n_lines(text):
            return None  # empty lines, or several objects in one
        batch = _one_batch(table)
        n = batch.num_rows
        return Piece(batch, rows, lambda: range(line, line + n))

    def _one_by_one(self, text: bytes, types: dict[str, Any] | None, line: int, rows: int) -> Piece:
        good: list[dict[str, Any]] = []
        places: list[int] = []
        malformed: list[Malformed] = []
        for place, record in enumerate(text.removeprefix(b"\xef\xbb\xbf").split(b"\n"), line):
            if not record.strip():
                continue
            try:
                row = json.loads(record)
                reason = "" if isinstance(row, dict) else "is no JSON object"
            except (ValueError, RecursionError):
                row, reason = None, "can't be read as JSON"
            if reason:
                malformed.append(Malformed(place, reason, _shown(record.decode("utf-8", "replace")), rows + len(good)))
            else:
                good.append(row)
                places.append(place)
        names = list(types) if types is not None else list(dict.fromkeys(name for row in good for name in row))
        columns = [pa.array([_text(row.get(name)) for row in good], pa.string()) for name in names]
        batch = pa.RecordBatch.from_arrays(columns, names=names) if names else _rows_without_columns(len(good))
        return Piece(batch, rows, lambda: places, malformed=tuple(malformed))


def _text(value: Any) -> str | None:
    """A JSON value as CSV would have it."""
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _rows_without_columns(n: int) -> Any:
    return pa.RecordBatch.from_struct_array(pa.array([{}] * n, pa.struct([])))


# Parquet.


class _Parquet(_File):
    def __init__(self, file: str) -> None:
        self.name = file
        try:
            with self._opened() as opened:
                self._metadata, self._names = opened.metadata, list(opened.schema_arrow.names)
        except (OSError, pa.ArrowInvalid) as error:
            raise StreamError(f"{file} is not sound Parquet: {_first_sentence(error)}") from None
        if not self._metadata.num_rows:
            raise StreamError(f"{file} is empty")

    def _opened(self, metadata: Any = None) -> Any:
        # Read through a buffer: a column of a large row group is never in memory as a whole.
        return pq.ParquetFile(self.name, metadata=metadata, buffer_size=2**20, pre_buffer=False)

    def columns(self) -> list[str]:
        return list(self._names)

    def pieces(self, types: dict[str, Any] | None, skip: int) -> Iterator[Piece]:
        wanted = None if types is None else [name for name in self.columns() if name in types]
        metadata = self._metadata
        groups, rows = list(range(metadata.num_row_groups)), 0
        while groups and rows + metadata.row_group(groups[0]).num_rows <= skip:
            rows += metadata.row_group(groups.pop(0)).num_rows
        if not groups:
            return
        try:
            with self._opened(metadata) as opened:
                for batch in opened.iter_batches(_PARQUET_ROWS, row_groups=groups, columns=wanted, use_threads=False):
                    begin = rows + 1
                    begun, share = (n / metadata.num_rows for n in (rows, rows + batch.num_rows))
                    piece = Piece(batch, rows, _RowPlaces(begin, batch.num_rows), begun=begun, share=share)
                    rows += batch.num_rows
                    yield from _behind(piece, skip)
        except (OSError, pa.ArrowInvalid) as error:
            raise StreamError(f"{self.name} is not sound Parquet: {_first_sentence(error)}") from None


@dataclass(frozen=True)
class _RowPlaces:
    """In Parquet the line is the number of the row."""

    first: int
    n_rows: int

    def __call__(self) -> Sequence[int]:
        return range(self.first, self.first + self.n_rows)


def _one_batch(table: Any) -> Any:
    return table.combine_chunks().to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], table.schema)


def _behind(piece: Piece, skip: int) -> Iterator[Piece]:
    """Leave out the rows before ``skip``, and what stood malformed between them."""
    drop = skip - piece.start
    left = piece if drop <= 0 else piece.rest(min(drop, len(piece)))
    # What follows the last row that is left out belongs to the row behind it.
    if drop <= len(piece) and not left.is_empty:
        yield left


def _shown(text: str) -> str:
    text = text.rstrip("\r\n").encode("utf-8", "replace").decode()
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def _first_sentence(error: Exception) -> str:
    return str(error).split("\n")[0].split(". ")[0].rstrip(".")


# Blocks.


def blocks(pieces: Iterable[Piece], size: int, *, aligned: bool = True) -> Iterator[Block]:
    """Cut pieces where the number of the row in the file is a multiple of ``size``.

    Without ``aligned`` rows don't wait until a block is full: for streams that may pause.
    """
    held: list[Piece] = []
    for piece in pieces:
        rest = piece
        while not rest.is_empty:
            room = size - rest.start % size
            if len(rest) < room:
                held.append(rest)
                break
            yield Block((*held, rest.first(room)))
            held, rest = [], rest.rest(room)
        if held and not aligned:
            yield Block(tuple(held))
            held = []
    if held:
        yield Block(tuple(held))


def ahead(items: Iterable[T], depth: int = 2, *, meanwhile: Callable[[], object] = lambda: None) -> Iterator[T]:
    """Have a thread work out the next items while the last one is used.

    ``meanwhile`` is called again and again for as long as there is nothing to hand on: streams may pause for ever.
    """
    queue: Queue[Any] = Queue(depth)
    stop = threading.Event()
    end = object()

    def put(item: Any) -> bool:
        while not stop.is_set():
            try:
                queue.put(item, timeout=0.1)
                return True
            except Full:
                continue
        return False

    def work() -> None:
        try:
            for item in items:
                if not put(item):
                    return
            put(end)
        except BaseException as error:  # to be raised where the items are used
            put(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while True:
            try:
                item = queue.get(timeout=0.1)  # in steps, so that Ctrl-C is heard
            except Empty:
                meanwhile()
                continue
            if item is end:
                return
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stop.set()
        thread.join(_PATIENCE)  # it may sit in a read that never ends; then it ends with the process
