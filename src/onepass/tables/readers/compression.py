"""Compressed content, recognised by its first bytes and decompressed as it is read.

A file may be several compressed streams one behind the other, as `cat` makes them. One that ends in the middle of a
stream is an error: the rows that are missing must not be lost in silence.
"""

import bz2
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from onepass.tables.readers.errors import StreamError

__all__ = ["Compression", "recognised_compression"]

_OUT = 2**18  # bytes decompressed at a time
_PADDING = b"\0"  # that xz allows between two streams


class Compression(NamedTuple):
    """A kind of compression."""

    name: str
    magic: re.Pattern[bytes]
    decompressed: Callable[[Iterator[bytes], str], Iterator[bytes]]
    """Decompresses parts of a file, whose name is given for messages."""


def recognised_compression(head: bytes) -> Compression | None:
    """The compression of content that begins so, if any."""
    return next((one for one in _COMPRESSIONS if one.magic.match(head)), None)


def _by_standard_library(kind: str, make: Callable[[], Any]) -> Callable[[Iterator[bytes], str], Iterator[bytes]]:
    def decompressed(parts: Iterator[bytes], name: str) -> Iterator[bytes]:
        machine = make()
        begun = False  # whether the current stream has
        for part in parts:
            left = part
            while left:
                if machine.eof:
                    left = left.lstrip(_PADDING)
                    if not left:
                        break
                    machine, begun = make(), False
                try:
                    begun = True
                    yield from _fed(machine, left)
                except (zlib.error, OSError, ValueError, lzma.LZMAError) as error:
                    raise StreamError(f"{name} is not valid {kind}: {error}") from None
                left = machine.unused_data if machine.eof else b""
        if begun and not machine.eof:
            raise _cut_short(name, kind)

    return decompressed


def _fed(machine: Any, part: bytes) -> Iterator[bytes]:
    """Everything that a part decompresses to, in pieces: a few bytes may stand for gigabytes."""
    piece = machine.decompress(part, _OUT)
    while piece:
        yield piece
        if machine.eof:
            return
        waiting = getattr(machine, "unconsumed_tail", b"")  # zlib gives back what it did not get to
        piece = machine.decompress(waiting, _OUT)


def _by_arrow(kind: str) -> Callable[[Iterator[bytes], str], Iterator[bytes]]:
    def decompressed(parts: Iterator[bytes], name: str) -> Iterator[bytes]:
        file = _PartsFile(parts)
        try:
            with pa.CompressedInputStream(pa.PythonFile(file, mode="r"), kind) as stream:
                while piece := stream.read(_OUT):
                    yield piece
        except OSError as error:
            if file.is_exhausted:
                raise _cut_short(name, kind) from None
            raise StreamError(f"{name} is not valid {kind}: {error}") from None

    return decompressed


class _PartsFile(io.RawIOBase):
    """Parts of a file as Arrow wants to read them."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts, self._left = parts, b""
        self.is_exhausted = False
        """Whether more was asked for than there is."""

    def readable(self) -> bool:
        return True

    def read(self, n: int = -1) -> bytes:
        if not self._left:
            self._left = next(self._parts, b"")
            self.is_exhausted = not self._left
        piece, self._left = self._left[:n], self._left[n:]
        return piece


def _cut_short(name: str, kind: str) -> StreamError:
    return StreamError(f"{name} is cut short: its {kind} has no end")


_COMPRESSIONS = (
    Compression("gzip", re.compile(rb"\x1f\x8b"), _by_standard_library("gzip", lambda: zlib.decompressobj(31))),
    # A block, or the end of an empty stream; a text may well begin with BZh.
    Compression(
        "bzip2",
        re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"),
        _by_standard_library("bzip2", bz2.BZ2Decompressor),
    ),
    Compression("xz", re.compile(rb"\xfd7zXZ\0"), _by_standard_library("xz", lzma.LZMADecompressor)),
    Compression("zstd", re.compile(rb"\x28\xb5\x2f\xfd"), _by_arrow("zstd")),
)
