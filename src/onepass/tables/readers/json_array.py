"""One JSON array of objects as JSON lines: its elements are found as the text arrives, and end with a line break each.

Strings and brackets are followed by arithmetic on whole parts of the text: a quote that is not escaped begins or ends a
string, and outside of strings brackets count up and down. A comma at depth 1 separates two elements.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from onepass.tables.readers.errors import StreamError

__all__ = ["elements_as_lines"]

_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_OPEN, _SHUT = np.frombuffer(b"[{", np.uint8), np.frombuffer(b"]}", np.uint8)
_BREAKS = np.frombuffer(b"\r\n", np.uint8)


def elements_as_lines(parts: Iterator[bytes], name: str) -> Iterator[bytes]:
    r"""Turn the parts of an array's text into lines; ``name`` is that of the file, for messages.

    Examples
    --------
    >>> b"".join(elements_as_lines(iter([b'[{"a": 1},\n {"a', b'": ","}]']), "it"))
    b' {"a": 1}\n  {"a": ","}\n'
    """
    place = _Place()
    held = b""  # a backslash whose character is in the next part
    for part in parts:
        text = held + part
        odd = (len(text) - len(text.rstrip(b"\\"))) % 2
        text, held = text[: len(text) - odd], text[len(text) - odd :]
        if place.ended:
            _check_end(text, name)
        elif text:
            lines, rest = place.lines(text)
            yield lines
            _check_end(rest, name)
    if not place.ended:
        raise StreamError(f"{name} is cut short: its JSON array has no end")


def _check_end(rest: bytes, name: str) -> None:
    if rest.strip():
        raise StreamError(f"{name} has content after the end of its JSON array; it must be one array, or JSON lines")


@dataclass
class _Place:
    """The position of the text in the array."""

    depth: int = 0
    in_string: bool = False
    ended: bool = False

    def lines(self, text: bytes) -> tuple[bytes, bytes]:
        """The next part of the text as lines, and what follows the array."""
        plain = _ESCAPED.sub(b"  ", text) if b"\\" in text else text
        view = np.frombuffer(plain, np.uint8)
        n_quotes = np.cumsum(view == ord('"'), dtype=np.int32) + self.in_string
        outside = n_quotes % 2 == 0
        steps = np.isin(view, _OPEN).astype(np.int8) - np.isin(view, _SHUT).astype(np.int8)
        depth = np.cumsum(steps * outside, dtype=np.int32) + self.depth
        out = np.frombuffer(text, np.uint8).copy()
        out[np.isin(view, _BREAKS)] = ord(" ")
        out[(view == ord(",")) & outside & (depth == 1)] = ord("\n")
        if self.depth == 0:
            out[np.argmax(depth > 0)] = ord(" ")  # the bracket that opens the array
        shut = np.flatnonzero((steps < 0) & outside & (depth <= 0))
        if len(shut):
            self.ended = True
            out[shut[0]] = ord("\n")
            return out[: shut[0] + 1].tobytes(), text[shut[0] + 1 :]
        self.depth, self.in_string = int(depth[-1]), not outside[-1]
        return out.tobytes(), b""
