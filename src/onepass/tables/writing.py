"""Tables written batch by batch, complete or not at all: CSV, JSON lines and Parquet."""

import csv
import io
import json
import sys
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow.parquet as pq

from onepass.files.atomic import atomic_file
from onepass.tables.readers.errors import StreamError

__all__ = ["FORMATS", "TableWriter", "format_of"]

FORMATS = ("csv", "jsonl", "parquet")
_ENDINGS = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}


def format_of(path: Path) -> str | None:
    """The format for a file's extension.

    Examples
    --------
    >>> format_of(Path("a.parquet"))
    'parquet'
    """
    return _ENDINGS.get(path.suffix.lower())


class TableWriter:
    """Writes record batches to a file, or to standard output; as a context, after which the file is complete.

    Parameters
    ----------
    path : Path or None
        None is standard output.
    kind : one of `FORMATS`
    """

    def __init__(self, path: Path | None, kind: str) -> None:
        self._kind = kind
        self._writer: Any = None
        self._begun = False
        self._stack = ExitStack()
        if path is None and sys.stdout is None:
            raise StreamError("standard output is closed, so there is nowhere to write to; name a file")
        self._sink: Any = sys.stdout.buffer if path is None else self._stack.enter_context(atomic_file(path))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._stack.push(self._finish)
        self._stack.__exit__(kind, error, trace)

    def _finish(self, *_: object) -> None:
        """Write what is still missing, before the file is closed."""
        if self._writer is not None:
            self._writer.close()
        self._sink.flush()

    def write(self, batch: Any) -> None:
        """Write some rows; all batches have the columns of the first."""
        if self._kind == "parquet":
            if self._writer is None:
                self._writer = pq.ParquetWriter(self._sink, batch.schema, write_page_checksum=True)
            self._writer.write_batch(batch)
            return
        if self._kind == "jsonl":
            text = "".join(json.dumps(row) + "\n" for row in batch.to_pylist())
        else:
            lines = io.StringIO()
            writer = csv.writer(lines, lineterminator="\n")
            if not self._begun:
                writer.writerow(batch.schema.names)
            writer.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))
            text = lines.getvalue()
        self._begun = True
        self._sink.write(text.encode())
