"""Where bytes come from: a file, standard input, or a part of an archive, each read from its beginning on.

An `Origin` says where; opening it gives an `OpenedOrigin`, from which bytes are read and which is closed afterwards.
URLs have theirs in `remote`.
"""

import io
import os
import select
import stat
import sys
from dataclasses import dataclass
from typing import Any, Protocol

from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.extent import Extent

__all__ = ["GivenBytes", "LocalFile", "OpenedOrigin", "Origin", "StandardInputBytes"]


class OpenedOrigin(Protocol):
    """Bytes that are being read."""

    @property
    def size(self) -> int:
        """Of all of them; 0 if that is not known."""

    def read(self, n: int) -> bytes:
        """Return up to ``n`` more bytes; none at the end."""

    def ready(self, seconds: float) -> bool:
        """Whether `read` would return at once, or does within so many seconds."""

    def close(self) -> None:
        """Let go of what was opened."""


class Origin(Protocol):
    """What bytes can be read from."""

    @property
    def name(self) -> str:
        """Its name in messages."""

    def open(self) -> OpenedOrigin:
        """Open it at its beginning."""

    def seekable(self) -> Any:
        """What a reader that goes to and fro can open: a path, or a file object."""


@dataclass
class LocalFile:
    """A file of this machine, read up to where it ended when it was opened first."""

    name: str
    extent: Extent | None = None
    """What is read of it; None before it is opened, and for a device."""

    def open(self) -> OpenedOrigin:
        """Open the file."""
        try:
            handle = os.open(self.name, os.O_RDONLY)
        except OSError as error:
            raise StreamError(f"{self.name} can't be read: {error.strerror}") from None
        found = os.fstat(handle)
        if stat.S_ISFIFO(found.st_mode):
            os.close(handle)
            raise StreamError(f"{self.name} is a pipe, which can be read only once; give it as standard input, '-'")
        self.extent = self.extent or Extent.of(found)
        return _LocalBytes(self.name, handle, 0 if self.extent is None else self.extent.size, self.extent)

    def seekable(self) -> str:
        """The path."""
        return self.name


@dataclass(frozen=True)
class GivenBytes:
    """Bytes that a program has at hand."""

    name: str
    content: bytes

    def open(self) -> OpenedOrigin:
        """Read them from their beginning."""
        return _GivenBytes(self.content)

    def seekable(self) -> Any:
        """They, as a file object."""
        return io.BytesIO(self.content)


class _GivenBytes(io.BytesIO):
    @property
    def size(self) -> int:
        return len(self.getbuffer())

    def ready(self, seconds: float) -> bool:
        return True


@dataclass(frozen=True)
class StandardInputBytes:
    """Standard input, which continues where it was left whenever it is opened."""

    name: str = "standard input"

    def open(self) -> OpenedOrigin:
        """Read on."""
        try:
            return _StandardInput(self.name, sys.stdin.fileno(), 0)
        except (AttributeError, OSError, ValueError):  # AttributeError: Python has None for a closed one
            raise StreamError(f"{self.name} can't be read: it is closed") from None

    def seekable(self) -> Any:
        """Refuse: what has been read is gone."""
        raise StreamError(f"{self.name} can be read only once, from its beginning to its end")


@dataclass
class _Descriptor:
    name: str
    handle: int | None
    size: int

    def read(self, n: int) -> bytes:
        if self.handle is None:
            return b""
        try:
            return os.read(self.handle, n)
        except OSError as error:
            raise StreamError(f"{self.name} can't be read: {error.strerror}") from None

    def ready(self, seconds: float) -> bool:
        return True

    def close(self) -> None:
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None


@dataclass
class _LocalBytes(_Descriptor):
    extent: Extent | None
    at: int = 0
    last: bytes = b""

    def read(self, n: int) -> bytes:
        """Some more bytes of the file, but none that were added since it was opened first."""
        if self.extent is None or self.handle is None:
            return super().read(n)
        left = self.extent.size - self.at
        content = super().read(min(n, left)) if left > 0 else b""
        if not content:
            self.extent.decide_end(self.handle, self.last)
        self.at, self.last = self.at + len(content), content[-1:] or self.last
        return content


@dataclass
class _StandardInput(_Descriptor):
    def ready(self, seconds: float) -> bool:
        return self.handle is None or bool(select.select([self.handle], [], [], seconds)[0])

    def close(self) -> None:
        """Leave it open, since it could not be opened again."""
