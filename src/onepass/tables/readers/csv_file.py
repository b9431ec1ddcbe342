"""CSV: its delimiter found out from the first lines, parsed by Arrow in chunks.

A chunk that Arrow can't parse, or that a stray quote may have spoiled, is parsed record by record (see `csv_records`),
so that a bad line costs that line only. All values stay texts; what they mean is found out later.
"""

import csv
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyarrow import csv as arrow_csv

from onepass.tables.readers.batches import Malformed, RowBatch, as_record_batch, rows_after, shortened, shortened_bytes
from onepass.tables.readers.byte_stream import ByteStream, LongLine, chunks, is_text
from onepass.tables.readers.csv_header import is_row_of_numbers, mended_names
from onepass.tables.readers.csv_records import CsvLineNumbers, end_of_records, has_stray_quote, records
from onepass.tables.readers.notes import Note
from onepass.tables.readers.options import ReadOptions
from onepass.tables.readers.source import FileFormat, TableFile
from onepass.tables.reasons import Reason

__all__ = ["CSV", "CsvFile"]

_NULLS = [""]  # words such as NA may be values: what they mean is a matter of their column
_DELIMITERS = ",;\t|"


class CsvFile(TableFile):
    """A CSV file whose first line names the columns, unless it is said not to."""

    grows_by_lines = True

    def __init__(self, stream: ByteStream, options: ReadOptions) -> None:
        self._stream = stream
        self.name: str = stream.name
        text = stream.peek(2**16).decode("utf-8", errors="replace")
        lines = [line for line in text.split("\n")[:10] if line.strip()]
        # A delimiter is in every line; the last line may have been cut.
        self._delimiter = options.delimiter or max(
            _DELIMITERS, key=lambda sign: min(line.count(sign) for line in lines[:-1] or lines)
        )
        first = [field.strip() for field in next(csv.reader(lines[:1], delimiter=self._delimiter))]
        self._has_header = not options.no_header
        self._names, mended = mended_names(first if self._has_header else [""] * len(first))
        self._notes: tuple[Note, ...] = ()
        if self._has_header and mended:
            self._notes = (Note(f"{self.name}: {mended}"),)
        elif self._has_header and is_row_of_numbers(first):
            self._notes = (
                Note(f"the first line of {self.name} has nothing but numbers; if it is a row, say so", "no_header"),
            )

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was found out about the file so far."""
        return (*self._stream.notes, *self._notes)

    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._names)

    def batches(self, types: dict[str, Any] | None, skip: int) -> Iterator[RowBatch]:
        """Rows after the first ``skip``, every value as a text."""
        wanted = self._names if types is None else [name for name in self._names if name in types]
        stream = self._stream.again()
        line, rows, header, share_before = 1, 0, self._has_header, 0.0
        for chunk in chunks(stream, end_of_records):
            text = chunk
            if header:
                body = text.lstrip(b"\r\n")
                end = body.find(b"\n") + 1 or len(body)
                line += text[: len(text) - len(body) + end].count(b"\n")
                text, header = body[end:], False
            if not text.strip():
                line += text.count(b"\n")
                continue
            if isinstance(text, LongLine):
                batch = self._no_rows(wanted, rows, Malformed(line, text.reason, shortened_bytes(text), rows))
            else:
                batch = self._parsed(text, wanted, line, rows)
            line += text.count(b"\n")
            rows += len(batch)
            yield from rows_after(skip, replace(batch, share_before=share_before, share=stream.share))
            share_before = stream.share

    def _no_rows(self, wanted: list[str], rows: int, *malformed: Malformed) -> RowBatch:
        none = pa.RecordBatch.from_arrays([pa.array([], pa.string()) for _ in wanted], names=wanted)
        return RowBatch(none, rows, tuple, malformed=malformed)

    def _parsed(self, text: bytes, wanted: list[str], line: int, rows: int) -> RowBatch:
        table = self._parsed_by_arrow(text, wanted)
        if table is None or has_stray_quote(text, table.num_rows, self._delimiter):
            return self._parsed_one_by_one(text, wanted, line, rows)
        record_batch = as_record_batch(table)
        numbers = CsvLineNumbers(text, line, record_batch.num_rows, self._delimiter)
        return RowBatch(record_batch, rows, numbers)

    def _parsed_by_arrow(self, text: bytes, wanted: list[str]) -> Any:
        """All records as an Arrow table, or None if one of them is malformed."""
        options = {
            "read_options": arrow_csv.ReadOptions(
                column_names=self._names, use_threads=False, block_size=max(len(text), 1)
            ),
            "parse_options": arrow_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
            "convert_options": arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(wanted, pa.string()),
                include_columns=wanted,
                null_values=_NULLS,
                strings_can_be_null=True,
            ),
        }
        try:
            return arrow_csv.read_csv(pa.BufferReader(text), **options)
        except pa.ArrowInvalid:
            return None

    def _parsed_one_by_one(self, text: bytes, wanted: list[str], line: int, rows: int) -> RowBatch:
        width, nulls = len(self._names), set(_NULLS)
        good: list[list[str]] = []
        lines: list[int] = []
        malformed: list[Malformed] = []
        for number, fields, record in records(text, line, self._delimiter, width):
            if isinstance(fields, Reason):
                reason = fields
            elif len(fields) == width:
                good.append(fields)
                lines.append(number)
                continue
            else:
                reason = Reason("wrong_field_count", given=len(fields), expected=width)
            malformed.append(Malformed(number, reason, shortened(record), rows + len(good)))
        columns = [[None if row[i] in nulls else row[i] for row in good] for i in map(self._names.index, wanted)]
        record_batch = pa.RecordBatch.from_arrays([pa.array(column, pa.string()) for column in columns], names=wanted)
        return RowBatch(record_batch, rows, lambda: lines, malformed=tuple(malformed))


CSV = FileFormat("CSV", is_text, CsvFile)
