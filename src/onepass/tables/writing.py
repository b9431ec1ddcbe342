"""Tables written as they come, whole or not at all: CSV, JSON lines and Parquet.

A file is written beside its place and moved there when the last row is in it.
"""

import csv
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow.parquet as pq

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
    """The format that a file's name stands for.

    Examples
    --------
    >>> format_of(Path("a.parquet"))
    'parquet'
    """
    return _ENDINGS.get(path.suffix.lower())


class TableWriter:
    """Writes record batches to a file, or to standard output; as a context, which leaves no half of a file.

    Parameters
    ----------
    path : Path or None
        None is standard output.
    kind : one of `FORMATS`
    """

    def __init__(self, path: Path | None, kind: str) -> None:
        self._path, self._kind = path, kind
        self._writer: Any = None
        self._begun = False
        self._draft: str | None = None
        if path is None:
            self._sink: Any = sys.stdout.buffer
        else:
            handle, self._draft = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
            self._sink = os.fdopen(handle, "wb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._writer is not None and kind is None:
                self._writer.close()
            self._sink.flush()
            if self._path is not None and self._draft is not None:
                os.fsync(self._sink.fileno())
                self._sink.close()
                if kind is None:
                    umask = os.umask(0)
                    os.umask(umask)
                    os.chmod(self._draft, 0o666 & ~umask)
                    os.replace(self._draft, self._path)
        finally:
            if self._draft is not None:
                Path(self._draft).unlink(missing_ok=True)

    def write(self, batch: Any) -> None:
        """Write some rows; all batches have the columns of the first."""
        if self._kind == "parquet":
            if self._writer is None:
                self._writer = pq.ParquetWriter(self._sink, batch.schema)
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
