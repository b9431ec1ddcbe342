"""JSON: one object per line, or one array of objects; values are taken as CSV would write them.

Arrow parses a chunk at once if all of it has the types that are asked for; otherwise it is parsed line by line, so that
a bad line costs that line only.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyarrow import json as arrow_json

from onepass.tables.readers.batches import Malformed, RowBatch, as_record_batch, rows_after, shortened_bytes
from onepass.tables.readers.byte_stream import ByteStream, LongLine, chunks, end_of_lines, is_text, n_lines
from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.json_array import elements_as_lines
from onepass.tables.readers.notes import Note
from onepass.tables.readers.options import ReadOptions
from onepass.tables.readers.source import FileFormat, TableFile
from onepass.tables.reasons import Reason

__all__ = ["JSON", "JsonFile"]


_GEO_JSON = re.compile(rb'\s*\{([^\[]{0,4096}"type"\s*:\s*"FeatureCollection"|\s*"features"\s*:\s*\[)')


def _first_sign(head: bytes) -> bytes:
    return head.lstrip(b" \t\r\n")[:1]


def _recognises(head: bytes) -> bool:
    return is_text(head) and _first_sign(head) in (b"{", b"[")


class JsonFile(TableFile):
    """A file of JSON lines, or of one array; the line of an array's element in messages is its number."""

    def __init__(self, stream: ByteStream, options: ReadOptions) -> None:
        self._stream = stream
        self.name: str = stream.name
        self.grows_by_lines: bool = _first_sign(stream.peek(2**16)) != b"["
        _check_is_table(stream.peek(2**16), stream.name)
        if not self.grows_by_lines:
            stream.go_through(lambda parts: elements_as_lines(parts, stream.name))

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was found out about the file so far."""
        return self._stream.notes

    def columns(self) -> None:
        """Every row may have its own columns."""
        return None

    def batches(self, types: dict[str, Any] | None, skip: int) -> Iterator[RowBatch]:
        """Rows after the first ``skip``."""
        stream = self._stream.again()
        line, rows, share_before = 1, 0, 0.0
        for text in chunks(stream, end_of_lines):
            batch = None
            if isinstance(text, LongLine):
                batch = _without_rows(types, rows, Malformed(line, text.reason, shortened_bytes(text), rows))
            elif types is not None:
                batch = _parsed(text, types, line, rows)
            if batch is None:
                batch = _parsed_line_by_line(text, types, line, rows)
            line += text.count(b"\n")
            rows += len(batch)
            yield from rows_after(skip, replace(batch, share_before=share_before, share=stream.share))
            share_before = stream.share


JSON = FileFormat("JSON", _recognises, JsonFile)


def _check_is_table(head: bytes, name: str) -> None:
    """Refuse one object that holds all rows, in which no line is a row."""
    rows = "the rows must be one array of objects, or one object per line"
    if _GEO_JSON.match(head):
        raise StreamError(
            f"{name} is GeoJSON, which holds its rows in 'features', and {rows}: convert it, such as with "
            "jq -c '.features[].properties'"
        )
    if head.lstrip().split(b"\n", 1)[0].strip() == b"{":
        raise StreamError(f"{name} is one JSON object over several lines, and {rows}: convert it, such as with jq -c")


def _parsed(text: bytes, types: dict[str, Any], line: int, rows: int) -> RowBatch | None:
    """A chunk parsed at once, if all of it has the types that were asked for."""
    schema = pa.schema(list(types.items()))
    try:
        table = arrow_json.read_json(
            pa.BufferReader(text),
            read_options=arrow_json.ReadOptions(use_threads=False, block_size=max(len(text), 1)),
            parse_options=arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    if table.num_rows != n_lines(text):
        return None  # empty lines, or several objects in one
    record_batch = as_record_batch(table)
    n = record_batch.num_rows
    return RowBatch(record_batch, rows, lambda: range(line, line + n))


def _parsed_line_by_line(text: bytes, types: dict[str, Any] | None, line: int, rows: int) -> RowBatch:
    good: list[dict[str, Any]] = []
    lines: list[int] = []
    malformed: list[Malformed] = []
    for number, record in enumerate(text.split(b"\n"), line):
        if not record.strip():
            continue
        try:
            row = json.loads(record)
            code = "" if isinstance(row, dict) else "not_an_object"
        except (ValueError, RecursionError):
            row, code = None, "not_json"
        if code:
            malformed.append(Malformed(number, Reason(code), shortened_bytes(record), rows + len(good)))
        else:
            good.append(row)
            lines.append(number)
    names = list(types) if types is not None else list(dict.fromkeys(name for row in good for name in row))
    columns = [pa.array([_as_text(row.get(name)) for row in good], pa.string()) for name in names]
    record_batch = pa.RecordBatch.from_arrays(columns, names=names) if names else _rows_without_columns(len(good))
    return RowBatch(record_batch, rows, lambda: lines, malformed=tuple(malformed))


def _without_rows(types: dict[str, Any] | None, rows: int, *malformed: Malformed) -> RowBatch:
    names = list(types or ())
    none = pa.RecordBatch.from_arrays([pa.array([], pa.string()) for _ in names], names=names)
    return RowBatch(none, rows, tuple, malformed=malformed)


def _as_text(value: Any) -> str | None:
    """A JSON value as CSV would have it."""
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _rows_without_columns(n: int) -> Any:
    return pa.RecordBatch.from_struct_array(pa.array([{}] * n, pa.struct([])))
