"""The file formats that can be read, and how a file finds its own.

Formats are recognised by content, not by name. To add one, write a module with two things:

1. a subclass of `TableFile` whose ``columns`` returns the names of the columns and whose ``batches`` yields the rows as
   `RowBatch` objects: an Arrow record batch, the number of rows of the file before it, and a function that returns the
   line number of each row for messages. A record that can't be read is not an error but a `Malformed` of its batch.
   Use `rows_after` to leave out rows that are to be skipped, and ``stream.again()`` to read from the beginning;
2. a `FileFormat` with the format's name, a function that recognises it by its first bytes (decompressed, and asked
   twice: as they are stored, and as UTF-8), and the subclass.

Then add the `FileFormat` to ``_FORMATS`` below; a table that is not in a file, but on a server, is opened by the scheme
of its address, from ``_SERVERS``. A package of its own declares it as an entry point in the group
``onepass.formats``; a program calls `register_format` with it (in every process that reads).
The format registered last is asked first, so CSV, which takes any text, comes last.
Everything else (`onepass fit`, `learn`, `predict`, `evaluate`) then reads the format.
"""

from collections.abc import Callable
from functools import cache

from onepass._plugins import loaded
from onepass.tables.readers.addresses import SERVERS, scheme_of
from onepass.tables.readers.byte_stream import ByteStream
from onepass.tables.readers.condition import Condition
from onepass.tables.readers.csv_file import CSV
from onepass.tables.readers.database_file import DUCKDB, SQLITE
from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.filtering import FilteredTable
from onepass.tables.readers.json_lines import JSON
from onepass.tables.readers.options import AS_FOUND, ReadOptions
from onepass.tables.readers.parquet_file import PARQUET
from onepass.tables.readers.postgresql import PostgreSQLTable
from onepass.tables.readers.source import FileFormat, Source, StandardInput, TableFile
from onepass.tables.readers.workbook import WORKBOOK
from onepass.tables.readers.zip_file import ZippedTables, is_zip

__all__ = ["open_source", "register_format"]

_HEAD = 2**16  # bytes that a format is recognised by


def register_format(file_format: FileFormat) -> None:
    """Make a file format known, to be asked before all that are known already."""
    _FORMATS.append(file_format)


def open_source(file: str, options: ReadOptions = AS_FOUND) -> Source:
    """Open a file, a URL, or standard input ("-"), in the format that its first bytes show; or a table of a server."""
    server = _SERVERS.get(scheme_of(file))
    if server is not None:
        return _filtered(server(file, options), options, rereadable=True)
    stream = ByteStream.open(file, options)
    try:
        table = _recognised(stream, options)
        if stream.extent is not None:
            table.extent = stream.extent
            table.extent.is_lines = stream.is_lines and table.grows_by_lines
    finally:
        stream.close()  # there may be more files than can be open at once
    table = _filtered(table, options, rereadable=not stream.is_stdin)
    return StandardInput(table, stream) if stream.is_stdin else table


def _filtered(table: TableFile, options: ReadOptions, *, rereadable: bool) -> TableFile:
    """A table without the rows that a condition leaves out."""
    if options.where is None:
        return table
    return FilteredTable(table, Condition.parse(options.where), options.notation, rereadable=rereadable)


def _recognised(stream: ByteStream, options: ReadOptions) -> TableFile:
    stored, text = stream.stored_head, stream.peek(_HEAD)
    if not text.strip():
        raise StreamError(f"{stream.name} is empty")
    _add_plugins()
    for file_format in reversed(_FORMATS):
        if file_format.recognises(stored) or file_format.recognises(text):
            _check_takes(file_format, stream.name, options)
            return file_format.open(stream, options)
    *names, last = (file_format.name for file_format in _FORMATS)
    raise StreamError(
        f"{stream.name} is neither {', '.join(names)} nor {last}: it contains zero bytes; if it is text, give its "
        "encoding",
        "encoding",
    )


@cache
def _add_plugins() -> None:
    """Make the formats of other packages known, once."""
    _FORMATS.extend(loaded("formats"))


def _check_takes(file_format: FileFormat, name: str, options: ReadOptions) -> None:
    for setting in ("table", "sql"):
        if getattr(options, setting) is not None and setting not in file_format.takes:
            what = "not a database, so it has no tables" if not file_format.takes else "not a database"
            raise StreamError(f"{name} is {file_format.name} and {what}", setting)


_ZIP = FileFormat("zip", is_zip, lambda stream, options: ZippedTables(stream, options, _recognised))
_FORMATS: list[FileFormat] = [CSV, JSON, PARQUET, SQLITE, DUCKDB, _ZIP, WORKBOOK]
_SERVERS: dict[str, Callable[[str, ReadOptions], TableFile]] = dict.fromkeys(SERVERS, PostgreSQLTable)
