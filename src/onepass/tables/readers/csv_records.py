"""CSV record by record: which lines belong to a record, what its fields are, and what is wrong with it.

Arrow parses whole chunks much faster, but can't say where a record is, takes a stray quote for a field of many
lines, and gives up on bytes that are not UTF-8. This is what is used where that matters.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from onepass.tables.readers.byte_stream import LONGEST_RECORD, n_lines
from onepass.tables.reasons import Reason

__all__ = ["CsvLineNumbers", "end_of_records", "has_stray_quote", "records"]

_LONGEST_FIELD = LONGEST_RECORD  # characters


class _UnreadableRecordError(Exception):
    """A record that can't be read, and why."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


_STRAY_QUOTE = Reason("stray_quote")


def end_of_records(text: bytes) -> int:
    r"""Return where the last whole record ends: a line break outside quotes.

    Examples
    --------
    >>> end_of_records(b'1,"x\ny"\n2,"z\n')
    8
    """
    end = text.rfind(b"\n") + 1
    if b'"' not in text:
        return end
    view = np.frombuffer(text, dtype=np.uint8)
    quotes, breaks = np.flatnonzero(view == ord('"')), np.flatnonzero(view == ord("\n"))
    ends = breaks[np.searchsorted(quotes, breaks) % 2 == 0]  # an even number of quotes before it
    return int(ends[-1]) + 1 if len(ends) else 0


def has_stray_quote(text: bytes, n_rows: int, delimiter: str) -> bool:
    """Whether a stray quote may have made one of ``n_rows`` records of many lines, which Arrow does not mind."""
    if text.count(b'"') % 2:
        return True
    return n_rows != n_lines(text) and not _quotes_pair(text, delimiter)


def _quotes_pair(text: bytes, delimiter: str) -> bool:
    """Whether every quote begins a field, ends it, or is one of two inside of it."""
    view = np.frombuffer(text, dtype=np.uint8)
    quotes = np.flatnonzero(view == ord('"'))
    if len(quotes) % 2:
        return False
    around = np.frombuffer(f'\n\r"{delimiter}'.encode(), dtype=np.uint8)
    before = view[np.maximum(quotes[::2] - 1, 0)]
    behind = view[np.minimum(quotes[1::2] + 1, len(view) - 1)]
    return bool(np.isin(before, around).all() and np.isin(behind, around).all())


@dataclass
class CsvLineNumbers:
    """Lines of the records of a chunk: counted one by one only if a record may have more or less than a line."""

    text: bytes
    first: int
    n_rows: int
    delimiter: str
    known: list[int] | None = None

    def __call__(self) -> Sequence[int]:
        """Return the line number of every record."""
        if self.known is None:
            if n_lines(self.text) == self.n_rows:
                return range(self.first, self.first + self.n_rows)
            self.known = [line for line, _, _ in records(self.text, self.first, self.delimiter, None)]
        return self.known


def records(
    text: bytes, first: int, delimiter: str, width: int | None
) -> Iterator[tuple[int, list[str] | Reason, str]]:
    """Line, fields and text of every record; in place of fields that can't be read the reason.

    If a record of several lines can't be read, or has the wrong number of fields, a stray quote is to blame, and only
    its first line is lost.
    """
    lines = _split_at_line_breaks(text.decode("utf-8", errors="surrogateescape"))
    at = 0
    while at < len(lines):
        try:
            for fields, used in _parsed(lines, at, delimiter):
                if used > 1 and width is not None and len(fields) != width:
                    raise _UnreadableRecordError(_STRAY_QUOTE)
                if any("\udc80" <= sign <= "\udcff" for value in fields for sign in value):
                    yield first + at, Reason("not_in_encoding"), lines[at]
                elif fields:
                    yield first + at, fields, "".join(lines[at : at + used])
                at += used
        except _UnreadableRecordError as error:
            yield first + at, error.reason, lines[at]
            at += 1


def _parsed(lines: list[str], at: int, delimiter: str) -> Iterator[tuple[list[str], int]]:
    """Fields and number of lines of every record from a line on; an error gives the reason to stop."""
    # Not a slice, which would be copied once for every bad line.
    reader = csv.reader(map(lines.__getitem__, range(at, len(lines))), delimiter=delimiter, strict=True)
    end = 0
    try:
        for fields in reader:
            yield fields, reader.line_num - end
            end = reader.line_num
    except csv.Error:
        size = sum(len(lines[at + line]) for line in range(end, reader.line_num))
        if size <= csv.field_size_limit():  # what the whole process has, and only a longer record may exceed
            raise _UnreadableRecordError(_STRAY_QUOTE) from None
        yield _long_record("".join(lines[at + end :]), delimiter)


def _long_record(text: str, delimiter: str) -> tuple[list[str], int]:
    """Fields and number of lines of the first record, as `csv.reader` would give them but for its limit.

    That limit is shared by the whole process, and smaller than what Arrow reads.
    """
    sign = re.escape(delimiter)
    field = re.compile(rf'(?:"((?:[^"]++|"")*+)"|((?:[^"{sign}\r\n][^{sign}\r\n]*+)?))({sign}|\r*\n|\r*\Z)')
    fields: list[str] = []
    end = 0
    while True:
        found = field.match(text, end)
        if found is None:
            raise _UnreadableRecordError(_STRAY_QUOTE)
        quoted, plain, stop = found.groups()
        fields.append(plain if quoted is None else quoted.replace('""', '"'))
        if len(fields[-1]) > _LONGEST_FIELD:
            raise _UnreadableRecordError(Reason("long_field", most=_LONGEST_FIELD))
        end = found.end()
        if stop != delimiter:
            return fields, text.count("\n", 0, end) + (text[end - 1] != "\n")


def _split_at_line_breaks(text: str) -> list[str]:
    """Lines as line feeds end them, and nothing else that Python takes for a line break."""
    out: list[str] = []
    for line in text.splitlines(keepends=True):
        if out and not out[-1].endswith("\n"):
            out[-1] += line
        else:
            out.append(line)
    return out
