"""Workbooks of Excel and LibreOffice: one sheet as a table, read by the package python-calamine.

People write titles above a table and leave rows and columns empty. The first row with most of its cells filled has the
names of the columns; empty rows are left out. A sheet is in memory as a whole, as it is in the program that wrote it.
"""

import datetime as dt
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from onepass._extras import MissingExtraError, require
from onepass._messages import first_line
from onepass.tables.readers.batches import RowBatch, rows_after
from onepass.tables.readers.byte_stream import ByteStream
from onepass.tables.readers.csv_header import mended_names
from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.notes import Note
from onepass.tables.readers.options import ReadOptions
from onepass.tables.readers.source import FileFormat, TableFile

__all__ = ["WORKBOOK", "Workbook", "is_workbook"]

_ROWS = 8192  # in a batch
_LOOKED_AT = 50  # rows among which the names of the columns are looked for
_OLD_EXCEL = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OPEN_DOCUMENT = b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet"
_FIRST_PARTS = (b"[Content_Types].xml", b"_rels/", b"docProps/", b"customXml/", b"xl/")  # of the archive of a workbook
_EXCEL_PARTS = (b"xl/workbook", b"xl/worksheets/", b"xl/sharedStrings", b"xl/styles")


def is_workbook(head: bytes) -> bool:
    """Whether a file that begins so is a workbook: xlsx, xlsm, xlsb, xls or ods."""
    if head.startswith(_OLD_EXCEL) or head[30:].startswith(_OPEN_DOCUMENT):
        return True
    is_office = head.startswith(b"PK\x03\x04") and head[30:].startswith(_FIRST_PARTS)  # the name of the first part
    return is_office and any(part in head for part in _EXCEL_PARTS)


class Workbook(TableFile):
    """A sheet of a workbook; the line of a row in messages is its number in the sheet."""

    def __init__(self, stream: ByteStream, options: ReadOptions) -> None:
        self.name: str = stream.file
        try:
            require("excel", f"the workbook {stream.name}")
        except MissingExtraError as error:
            raise StreamError(str(error), code="missing_extra") from None
        if stream.is_stdin or stream.is_compressed:
            what = "from standard input" if stream.is_stdin else f"inside {stream.compression}"
            raise StreamError(f"the workbook {stream.name} can't be read {what}; name the file itself")
        self._origin = stream.origin
        self._notes: list[Note] = []
        self._has_header = not options.no_header
        self.table: str = self._sheet(options.table)
        rows = self._filled_rows
        if not rows:
            raise StreamError(f"the sheet {self.table!r} of {self.name} is empty", "table")
        first = self._header_place() if self._has_header else 0
        self._rows = rows[first + self._has_header :]
        if not self._rows:
            words = f"the sheet {self.table!r} of {self.name} has no row below the names of its columns"
            raise StreamError(words, "table")
        width = max(len(cells) for _, cells in rows[first:])
        cells = [cells for _, cells in rows[first:]]
        self._places = [place for place in range(width) if any(_at(row, place) is not None for row in cells)]
        header = rows[first][1] if self._has_header else []
        given = [(_as_text(_at(header, place)) or "").strip() for place in self._places]
        self._names, mended = mended_names(given)
        if self._has_header and mended:
            self._notes.append(Note(f"{self.name}: {mended}"))
        if self._has_header and rows[first][0] > 1:
            self._notes.append(Note(f"{self.name}: the names of the columns are those of row {rows[first][0]}"))

    @property
    def notes(self) -> tuple[Note, ...]:
        """Which sheet was chosen, if none was named, and what was mended."""
        return tuple(self._notes)

    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._names)

    def batches(self, types: dict[str, Any] | None, skip: int) -> Iterator[RowBatch]:
        """Rows after the first ``skip``."""
        table = self._table if types is None else self._table.select([name for name in self._names if name in types])
        total = len(self._rows)
        for start in range(0, total, _ROWS):
            found = table.slice(start, _ROWS)
            before, share = start / total, (start + found.num_rows) / total
            yield from rows_after(skip, RowBatch(found, start, self._lines, start, before, share))

    def _lines(self) -> Sequence[int]:
        return [line for line, _ in self._rows]

    @cached_property
    def _table(self) -> Any:
        columns = [_column([_at(cells, place) for _, cells in self._rows]) for place in self._places]
        return pa.RecordBatch.from_arrays(columns, names=self._names)

    def _sheet(self, asked: str | None) -> str:
        """The name of the sheet to read: the one asked for, or the first that has something in it."""
        import python_calamine as calamine

        try:
            book = calamine.load_workbook(self._origin.seekable())
            names = [
                one.name
                for one in book.sheets_metadata
                if one.typ == calamine.SheetTypeEnum.WorkSheet
                and (one.visible == calamine.SheetVisibleEnum.Visible or one.name == asked)
            ]
            if asked is not None and asked not in names:
                listed = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
                raise StreamError(f"{self.name} has no sheet {asked!r}; it has {listed}", "table", code="no_such_table")
            for name in names if asked is None else [asked]:
                try:
                    sheet = book.get_sheet_by_name(name)
                    self._cells = sheet.to_python(skip_empty_area=False) if sheet.start is not None else []
                except (calamine.CalamineError, OSError):
                    words = f"{self.name} is damaged: its sheet {name!r} can't be read"
                    raise StreamError(words, "table" if len(names) > 1 else None) from None
                if self._cells or asked is not None:
                    if len(names) > 1 and asked is None:
                        self._notes.append(Note(f"{self.name}: of {len(names)} sheets, {name!r} is read", "table"))
                    return name
        except (calamine.CalamineError, OSError) as error:
            raise StreamError(f"{self.name} is not a valid workbook: {first_line(error)}") from None
        raise StreamError(f"{self.name} is a workbook with nothing in it")

    @cached_property
    def _filled_rows(self) -> list[tuple[int, list[Any]]]:
        """Rows that are not empty, with their numbers in the sheet."""
        rows = enumerate(self.__dict__.pop("_cells"), 1)
        return [(number, cells) for number, cells in rows if any(cell != "" for cell in cells)]

    def _header_place(self) -> int:
        """Which of the rows has the names of the columns: the first of which more than half of the cells are filled."""
        filled = [sum(cell != "" for cell in cells) for _, cells in self._filled_rows[:_LOOKED_AT]]
        return next(place for place, n in enumerate(filled) if 2 * n > max(filled))


def _at(cells: Sequence[Any], place: int) -> Any:
    """The value of a cell, or None if it is empty."""
    value = cells[place] if place < len(cells) else ""
    return None if value == "" else value


def _column(values: Sequence[Any]) -> Any:
    """The values of a column: whole numbers, numbers, dates or truth values if all are, and else texts."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} and all(value is None or float(value).is_integer() for value in values):
        return pa.array([None if value is None else int(value) for value in values])
    if kinds <= {int, float}:
        return pa.array([None if value is None else float(value) for value in values])
    if kinds == {dt.date, dt.datetime}:
        return pa.array([dt.datetime(*value.timetuple()[:6]) if type(value) is dt.date else value for value in values])
    if len(kinds) == 1 and kinds <= {bool, dt.date, dt.datetime}:
        return pa.array(values)
    return pa.array([_as_text(value) for value in values], pa.string())


def _as_text(value: Any) -> str | None:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    return None if value is None else str(value)


WORKBOOK = FileFormat("a workbook", is_workbook, Workbook, ("table",))
