"""How much of a file is read, and whether it is still the file that was opened.

A file is read up to where it ended when it was opened, in every pass over it, whatever is added meanwhile: what was
learned is then a definite content, and the rest can be learned another time.
"""

import os
import stat

from onepass.tables.readers.errors import StreamError

__all__ = ["Extent"]

_LINE_ENDS = (b"\n", b"\r")


class Extent:
    """The part of a file that is read.

    Parameters
    ----------
    found : the status of the file when it was opened
    """

    def __init__(self, found: os.stat_result) -> None:
        self.size: int = found.st_size
        self.is_lines = False
        """Whether the file is plain text, which may grow by lines at its end."""
        self.cut: bool | None = None
        """Whether the last line was left out, since it was still being written; None: not decided yet."""
        self._seen = _signature(found)

    @classmethod
    def of(cls, found: os.stat_result) -> "Extent | None":
        """That of an ordinary file; a device has none."""
        return cls(found) if stat.S_ISREG(found.st_mode) and found.st_size else None

    def decide_end(self, handle: int, last: bytes) -> None:
        """Leave out the last line, which ends with ``last``, if the file has grown, and the line too."""
        if self.cut is None:
            grown = os.fstat(handle).st_size > self.size
            self.cut = self.is_lines and grown and last not in _LINE_ENDS and not self.line_ends(handle)

    def line_ends(self, handle: int) -> bool:
        """Whether a line of the file ends where the part ends, if there is more of the file."""
        more = _read_at(handle, self.size, 1)
        return not more or more in _LINE_ENDS or _read_at(handle, self.size - 1, 1) in _LINE_ENDS

    def whole_lines(self, handle: int) -> int:
        """Bytes up to the end of the last whole line."""
        end = self.size
        while end:
            start = max(end - 2**16, 0)
            place = _read_at(handle, start, end - start).rfind(b"\n")
            if place >= 0:
                return start + place + 1
            end = start
        return 0

    def is_untouched(self, file: str) -> bool:
        """Whether nothing has happened to the file since this was asked last.

        Raises
        ------
        StreamError
            If the file has lost some of what was to be read, or is another one now.
        """
        try:
            now = os.stat(file)
        except OSError as error:
            raise StreamError(f"{file} can't be read any more: {error.strerror}") from None
        if now.st_size < self.size:
            raise StreamError(
                f"{file} became shorter while it was read, from {self.size:,} to {now.st_size:,} bytes; the run ends "
                "here, because the rest can't be learned"
            )
        before, self._seen = self._seen, _signature(now)
        return before == self._seen


def _signature(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _read_at(handle: int, place: int, n: int) -> bytes:
    os.lseek(handle, place, os.SEEK_SET)
    return os.read(handle, n)
