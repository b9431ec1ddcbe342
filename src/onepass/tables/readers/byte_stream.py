"""The bytes of a file or of standard input: decompressed, peeked at, and cut into chunks of whole records.

Standard input can be read only once and may pause for ever, so bytes that were peeked at are read again from memory,
and reading waits in short steps between which it can be stopped.
"""

import os
import select
import stat
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.extent import Extent
from onepass.tables.readers.paths import STDIN

__all__ = ["BOM", "LONGEST_RECORD", "ByteStream", "chunks", "end_of_lines", "is_text", "n_lines"]

BOM = b"\xef\xbb\xbf"
LONGEST_RECORD = 2**23  # bytes; anything longer has a quote that was never closed
_CHUNK = 2**21  # bytes of text parsed at a time
_READ = 2**18
_IDLE = 0.5  # seconds after which rows of a slow stream are handed on
_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 31  # zlib's way of asking for a gzip header


class ByteStream:
    """The bytes of a file or of standard input; gzip is recognised by its first bytes and decompressed."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.name = "standard input" if file == STDIN else file
        self.stopping = threading.Event()
        self.consumed = 0
        self._handle: int | None = None
        self._peeked = b""
        self._inflate: Any = None
        self._ended = False
        self._last = b""
        try:
            self._handle = sys.stdin.fileno() if file == STDIN else os.open(file, os.O_RDONLY)
            found = os.fstat(self._handle)
        except OSError as error:
            raise StreamError(f"{self.name} can't be read: {error.strerror}") from None
        self.extent = Extent.of(found) if file != STDIN else None
        if file != STDIN and stat.S_ISFIFO(found.st_mode):
            raise StreamError(f"{file} is a pipe, which can be read only once; give it as standard input, '-'")

    @classmethod
    def open(cls, file: str) -> "ByteStream":
        """Open a file or standard input, decompressed if its content is gzip."""
        stream = cls(file)
        if stream.peek(len(_GZIP)) == _GZIP:
            stream._decompress()
        return stream

    @property
    def is_stdin(self) -> bool:
        """Whether it can be read only once."""
        return self.file == STDIN

    @property
    def is_compressed(self) -> bool:
        """Whether the bytes of the file are not those that are read."""
        return self._inflate is not None

    def close(self) -> None:
        """Close a file; standard input stays open, since it could not be opened again."""
        if not self.is_stdin and self._handle is not None:
            os.close(self._handle)
            self._handle, self._peeked, self._ended = None, b"", True

    def peek(self, n: int) -> bytes:
        """Return the first bytes without consuming them: as many as there are, and a whole line at least."""
        while (
            len(self._peeked) < n
            and not self._ended
            and not (b"\n" in self._peeked.lstrip() and not self._ready(_IDLE))
        ):
            self._peeked += self._more()
        return self._peeked[:n]

    def read(self) -> bytes:
        """Return some more bytes; none at the end."""
        if self._peeked:
            peeked, self._peeked = self._peeked, b""
            return peeked
        return self._more()

    @property
    def waits(self) -> bool:
        """Whether nothing more has come for a while."""
        return not self._peeked and not self._ended and not self._ready(_IDLE)

    @property
    def size(self) -> int:
        """Bytes of the file; 0 where that is not known."""
        return self.extent.size if self.extent is not None else 0

    @property
    def share(self) -> float:
        """Share of the file that has been read; 0 for standard input."""
        return min(self.consumed / self.size, 1.0) if self.size else 0.0

    def again(self) -> "ByteStream":
        """The same file from its beginning, for one reader; standard input can only go on."""
        if self.is_stdin:
            return self
        fresh = ByteStream(self.file)
        fresh.extent = self.extent  # not what was added since
        fresh._inflate = zlib.decompressobj(_GZIP_WINDOW) if self.is_compressed else None
        return fresh

    def _decompress(self) -> None:
        peeked, self._peeked = self._peeked, b""
        self._inflate = zlib.decompressobj(_GZIP_WINDOW)
        self._peeked = self._inflated(peeked)

    def _ready(self, seconds: float) -> bool:
        return not self.is_stdin or bool(select.select([sys.stdin.fileno()], [], [], seconds)[0])

    def _more(self) -> bytes:
        while not self._ended and self._handle is not None:
            while not self._ready(0.2) and not self.stopping.is_set():
                pass
            if self.stopping.is_set():  # also of a stream that never pauses
                self._ended = True
                return b""
            try:
                content = self._read(self._handle)
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

    def _read(self, handle: int) -> bytes:
        """Some more bytes of the file, but none that were added since it was opened."""
        if self.extent is None:
            return os.read(handle, _READ)
        left = self.extent.size - self.consumed
        content = os.read(handle, min(_READ, left)) if left > 0 else b""
        if not content and not self.is_compressed and self.extent.decide_end(handle, self._last):
            self.stopping.set()  # the last line is not whole
        self._last = content[-1:] or self._last
        return content

    def _inflated(self, content: bytes) -> bytes:
        try:
            out = [self._inflate.decompress(content)]
            while self._inflate.eof and self._inflate.unused_data:  # gzip files may be concatenated
                rest = self._inflate.unused_data
                self._inflate = zlib.decompressobj(_GZIP_WINDOW)
                out.append(self._inflate.decompress(rest))
        except zlib.error as error:
            raise StreamError(f"{self.name} is not sound gzip: {error}") from None
        if self._ended and not content and not self._inflate.eof:
            raise StreamError(f"{self.name} is cut short: its gzip has no end")
        return b"".join(out)

    def __del__(self) -> None:
        self.close()


def chunks(stream: ByteStream, boundary: Callable[[bytes], int]) -> Iterator[bytes]:
    """Text in chunks of whole records; ``boundary`` returns where the last whole record of a text ends."""
    parts: list[bytes] = []
    size = 0
    try:
        while True:
            content = stream.read()
            parts.append(content)
            size += len(content)
            if content and size < _CHUNK and not stream.waits:
                continue
            text = b"".join(parts)
            # The last line may lack its line break, but a line that was cut by stopping the stream is not a line.
            last = end_of_lines(text) if stream.stopping.is_set() else len(text)
            end = boundary(text) if content else last
            if end == 0 and len(text) > LONGEST_RECORD:
                end = text.rfind(b"\n") + 1 or len(text)
            if end:
                yield text[:end]
            parts, size = [text[end:]], len(text) - end
            if not content:
                return
    finally:
        stream.close()


def end_of_lines(text: bytes) -> int:
    r"""Return where the last whole line ends.

    Examples
    --------
    >>> end_of_lines(b"one\ntwo\nth")
    8
    """
    return text.rfind(b"\n") + 1


def n_lines(text: bytes) -> int:
    """Return the number of lines, of which the last may lack its line break."""
    return text.count(b"\n") + (not text.endswith(b"\n"))


def is_text(head: bytes) -> bool:
    """Whether a file that begins so can be text in UTF-8 or a relative of it; UTF-16 is not."""
    return b"\0" not in head[:1024]
