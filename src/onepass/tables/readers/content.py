"""The content of a file as a digest, taken while the file is read: by it a file is recognised under any name.

The digest is SHA-256, which processors compute faster than files are parsed. A second one, of the first MiB, costs
nothing to look up: only a file that begins like one that is known has to be read to be distinguished from it.
"""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.extent import Extent

__all__ = ["HEAD", "Content", "ContentReader", "content_of", "head_digest", "head_digests"]

HEAD = 2**20
"""Bytes that the digest of a file's beginning is of."""
_PIECE = 2**20


@dataclass(frozen=True)
class Content:
    """The first bytes of a file."""

    size: int
    head: str  # digest of the first MiB of them
    digest: str  # of all of them


class ContentReader:
    """Takes the digest of a file, as far as asked for."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.size: int = 0
        self._stopped = False
        self._head, self._all = _head_hash(), hashlib.sha256()
        self._buffer = memoryview(bytearray(_PIECE))
        try:
            self._opened: Any = open(file, "rb", buffering=0)  # noqa: SIM115 (see close)
        except OSError as error:
            raise StreamError(f"{file} can't be read: {error.strerror}") from None

    def advance(self, size: int) -> Content:
        """Go on up to so many bytes from the beginning, or to the end of the file, and say what is there."""
        while self.size < size and not self._stopped:
            end = min(size, HEAD) if self.size < HEAD else size  # no piece goes beyond the head
            n = self._opened.readinto(self._buffer[: min(_PIECE, end - self.size)])
            if not n:
                break
            if self.size < HEAD:
                self._head.update(self._buffer[:n])
            self._all.update(self._buffer[:n])
            self.size += n
        return Content(self.size, self._head.hexdigest(), self._all.hexdigest())

    def stop(self) -> None:
        """Ask another thread to stop soon."""
        self._stopped = True

    def close(self) -> None:
        """Close the file."""
        self._opened.close()

    def final_content(self, extent: Extent, known: Content | None = None) -> Content:
        """The content of a file that has been read to its end: all of it, or as many whole lines as were read.

        Parameters
        ----------
        extent : what was read of the file
        known : its content, if all of it was read before

        Raises
        ------
        StreamError
            If the file has changed while it was read.
        """
        so_far = known or self.advance(extent.size)
        end = known.size if known else extent.size
        if extent.cut and known is None:
            end = extent.whole_lines(self._opened.fileno())
        if extent.is_untouched(self.file) and end == so_far.size:
            return so_far
        found = so_far
        for size in sorted({so_far.size, end}):
            now = content_of(self.file, size)
            if size == so_far.size and now != so_far:
                raise StreamError(f"{self.file} was changed while it was read; start the run again")
            found = now if size == end else found
        return found


def content_of(file: str, size: int) -> Content:
    """What the first bytes of a file are."""
    reader = ContentReader(file)
    try:
        return reader.advance(size)
    finally:
        reader.close()


def head_digests(file: str, sizes: Collection[int]) -> dict[int, str]:
    """Digest of the first MiB of the file's first bytes, for each of these numbers of bytes."""
    try:
        with open(file, "rb") as opened:
            beginning = memoryview(opened.read(min(HEAD, max(sizes, default=0))))
    except OSError as error:
        raise StreamError(f"{file} can't be read: {error.strerror}") from None
    digest, done, found = _head_hash(), 0, {}
    for size in sorted(set(sizes)):
        digest.update(beginning[done : min(size, HEAD)])
        done = min(size, HEAD)
        found[size] = digest.hexdigest()
    return found


def head_digest(file: str, size: int) -> str:
    """Digest of the first MiB of the file's first bytes."""
    return head_digests(file, [size])[size]


def _head_hash() -> Any:
    return hashlib.blake2b(digest_size=16)
