"""The bytes of a file or of standard input: decompressed, as UTF-8, peeked at, and cut into chunks of whole records.

Between what is stored and what a reader gets are layers, each a function from parts of the content to parts: one
decompresses, one decodes, one mends line breaks. They are chosen by a look at the first bytes, and are the same
whenever the file is read again. Standard input can be read only once and may pause forever, so bytes that were peeked
at are read again from memory, and reading waits in short steps between which it can be stopped.
"""

import threading
from collections.abc import Callable, Iterator
from itertools import chain

from onepass.tables.readers.compression import recognised_compression
from onepass.tables.readers.encoding import decoded_as, encoding_of, has_carriage_returns_only, with_line_feeds
from onepass.tables.readers.extent import Extent
from onepass.tables.readers.notes import Note
from onepass.tables.readers.options import AS_FOUND, ReadOptions
from onepass.tables.readers.origins import LocalFile, OpenedOrigin, Origin, StandardInputBytes
from onepass.tables.readers.paths import STDIN, is_url
from onepass.tables.reasons import Reason

__all__ = ["LONGEST_RECORD", "ByteStream", "LongLine", "chunks", "end_of_lines", "is_text", "n_lines"]

LONGEST_RECORD = 2**23  # bytes; anything longer has a quote that was never closed, or is not a row
_CHUNK = 2**21  # bytes of text parsed at a time
_READ = 2**18
_HEAD = 2**16  # bytes that encoding and line breaks are recognised by
_IDLE = 0.5  # seconds after which rows of a slow stream are handed on
_SHOWN = 1000  # bytes that are kept of a line that is too long

Layer = Callable[[Iterator[bytes]], Iterator[bytes]]


class _Stopped(Exception):  # noqa: N818 (it is not an error)
    """Reading was stopped; raised through all layers, none of which then finds that its content is cut short."""


class ByteStream:
    """The bytes of a file or of standard input as a reader wants them.

    Parameters
    ----------
    origin : where they come from
    layers : what they go through
    notes : what was found out about them; shared by all streams of a file
    """

    def __init__(self, origin: Origin, layers: tuple[Layer, ...] = (), notes: list[Note] | None = None) -> None:
        self.origin = origin
        self.name: str = origin.name
        self.stopping: threading.Event = threading.Event()
        self.consumed: int = 0
        self.compression = ""  # its name
        self._notes = [] if notes is None else notes
        self._peeked = b""
        self._ended = False
        self._is_plain = True
        self._idle = False  # whether a look ahead has waited in vain; the next one then does not wait again
        self._opened: OpenedOrigin | None = origin.open()
        self._layers = layers
        self._parts = self._stored()
        for layer in layers:
            self._parts = layer(self._parts)

    @classmethod
    def open(cls, file: str, options: ReadOptions = AS_FOUND) -> "ByteStream":
        """Open a file, a URL, or standard input, decompressed and as UTF-8."""
        if file == STDIN:
            return cls.opened(StandardInputBytes(), options)
        if is_url(file):
            from onepass.tables.readers.remote import remote_file  # what few need takes a while to load

            return cls.opened(remote_file(file), options)
        return cls.opened(LocalFile(file), options)

    @classmethod
    def opened(cls, origin: Origin, options: ReadOptions = AS_FOUND) -> "ByteStream":
        """Open what is somewhere, decompressed and as UTF-8."""
        stream = cls(origin)
        compression = recognised_compression(stream.peek(16))
        if compression is not None:
            stream.compression = compression.name
            stream.go_through(lambda parts: compression.decompressed(parts, stream.name))
        stream.stored_head = stream.peek(_HEAD)
        encoding = options.encoding or encoding_of(stream.stored_head)
        stream.go_through(decoded_as(encoding, stream._tell_encoding))
        if encoding not in (None, "utf-8") and options.encoding is None:
            stream._tell_encoding(encoding.upper())
        stream._is_plain = encoding is None or not encoding.startswith("utf-16")
        if has_carriage_returns_only(stream.peek(_HEAD)):
            stream.go_through(with_line_feeds)
            stream._is_plain = False
        return stream

    stored_head: bytes = b""
    """The first bytes as they are stored, decompressed only: by which binary formats are recognised."""

    @property
    def file(self) -> str:
        """What the file is called to open it: its path or address, or "-"."""
        return STDIN if self.is_stdin else self.origin.name

    @property
    def is_stdin(self) -> bool:
        """Whether it can be read only once."""
        return isinstance(self.origin, StandardInputBytes)

    @property
    def is_compressed(self) -> bool:
        """Whether the bytes of the file are not those that are read."""
        return bool(self.compression)

    @property
    def is_lines(self) -> bool:
        """Whether what is stored are lines as they are read, to which more may be added at the end."""
        return self._is_plain and not self.is_compressed

    @property
    def extent(self) -> Extent | None:
        """What is read of a file of this machine."""
        return self.origin.extent if isinstance(self.origin, LocalFile) else None

    @property
    def size(self) -> int:
        """Bytes that are stored; 0 if that is not known."""
        return 0 if self._opened is None else self._opened.size

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was found out about the file so far."""
        return tuple(self._notes)

    def _tell_encoding(self, name: str) -> None:
        note = Note(f"{self.name} is not in UTF-8 and is read as {name}; another encoding can be named", "encoding")
        if note not in self._notes:  # a file may be read several times
            self._notes.append(note)

    def go_through(self, layer: Layer) -> None:
        """Have everything that has not been read yet go through one more layer."""
        peeked, self._peeked = self._peeked, b""
        before = self._parts
        self._parts = layer(chain([peeked] if peeked else [], before))
        self._layers = (*self._layers, layer)
        self._ended = False  # layers may hold something back

    def close(self) -> None:
        """Close a file; standard input stays open, since it could not be opened again."""
        if not self.is_stdin and self._opened is not None:
            self._opened.close()
            self._opened, self._peeked, self._ended = None, b"", True
            self._parts = iter(())

    def peek(self, n: int) -> bytes:
        """Return the first bytes without consuming them: as many as there are, and a whole line at least."""
        while len(self._peeked) < n and not self._ended:
            if self._has_line():
                self._idle = self._idle or not self._ready(_IDLE)
                if self._idle and not self._ready(0.0):
                    break
            self._peeked += self._more()
        return self._peeked[:n]

    def _has_line(self) -> bool:
        return b"\n" in self._peeked.lstrip() or b"\r" in self._peeked.strip()

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
    def share(self) -> float:
        """Share of the file that has been read; 0 for standard input."""
        return min(self.consumed / self.size, 1.0) if self.size else 0.0

    def again(self) -> "ByteStream":
        """The same file from its beginning, for one reader; standard input can only go on."""
        if self.is_stdin:
            return self
        return ByteStream(self.origin, self._layers, self._notes)

    def _ready(self, seconds: float) -> bool:
        return self._opened is None or self._opened.ready(seconds)

    def _more(self) -> bytes:
        try:
            while not self._ended:
                part = next(self._parts, None)
                if part:
                    return part
                self._ended = part is None
        except _Stopped:
            self._ended = True
        return b""

    def _stored(self) -> Iterator[bytes]:
        """The bytes as they are stored."""
        while self._opened is not None:
            while not self._ready(0.2) and not self.stopping.is_set():
                pass
            if self.stopping.is_set():  # also of a stream that never pauses
                raise _Stopped
            content = self._opened.read(_READ)
            if not content:
                if self.extent is not None and self.extent.cut:
                    self.stopping.set()  # the last line is not whole
                return
            self.consumed += len(content)
            yield content

    def __del__(self) -> None:
        if getattr(self, "_opened", None) is not None:
            self.close()


class LongLine(bytes):
    """The beginning of a line that is too long to be a row, in place of the line."""

    size: int  # bytes of the whole line

    @classmethod
    def of(cls, beginning: bytes, size: int) -> "LongLine":
        """Keep what can be shown of a line."""
        line = cls(beginning[:_SHOWN] + b"\n")
        line.size = size
        return line

    @property
    def reason(self) -> Reason:
        """Why it is not a row."""
        return Reason("long_record", size=self.size, most=LONGEST_RECORD)


def chunks(stream: ByteStream, boundary: Callable[[bytes], int]) -> Iterator[bytes]:
    """Text in chunks of whole records; ``boundary`` returns where the last whole record of a text ends.

    A line that is too long to be a row comes as a `LongLine`.
    """
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
                end = end_of_lines(text)
                if not end:
                    line, text = _rest_of_line(stream, text)
                    yield line
            if end:
                yield text[:end]
            parts, size = [text[end:]], len(text) - end
            if not content:
                return
    finally:
        stream.close()


def _rest_of_line(stream: ByteStream, begun: bytes) -> tuple[LongLine, bytes]:
    """Read a line to its end without keeping it; also what was read of the lines behind it."""
    size, rest = len(begun), b""
    while content := stream.read():
        end = content.find(b"\n") + 1
        if end:
            size, rest = size + end, content[end:]
            break
        size += len(content)
    return LongLine.of(begun, size), rest


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
    """Whether a file that begins so can be text."""
    return b"\0" not in head[:1024]
