"""Parquet: typed columns, read in small batches through a buffer, so that a large row group is never in memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from onepass._messages import first_line
from onepass.tables.readers.batches import RowBatch, rows_after
from onepass.tables.readers.byte_stream import ByteStream
from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.options import ReadOptions
from onepass.tables.readers.source import FileFormat, TableFile

__all__ = ["PARQUET", "ParquetFile"]

_MAGIC = b"PAR1"
_ROWS = 8192  # read at a time


class ParquetFile(TableFile):
    """A Parquet file; the line of a row in messages is its number."""

    def __init__(self, stream: ByteStream, options: ReadOptions) -> None:
        if stream.is_stdin or stream.is_compressed:
            what = "from standard input" if stream.is_stdin else f"inside {stream.compression} ({stream.name})"
            raise StreamError(
                f"Parquet can't be read {what}, since its index is at the end; "
                + ("name the file" if stream.is_stdin else "decompress the file")
            )
        self.name: str = stream.file
        self._origin = stream.origin
        try:
            with self._opened() as opened:
                self._metadata, self._names = opened.metadata, list(opened.schema_arrow.names)
        except (OSError, pa.ArrowInvalid) as error:
            raise StreamError(f"{self.name} is not valid Parquet: {first_line(error)}") from None
        if not self._metadata.num_rows:
            raise StreamError(f"{self.name} is empty")

    def _opened(self, metadata: Any = None) -> Any:
        # Read through a buffer: a column of a large row group is never in memory as a whole.
        return pq.ParquetFile(
            self._origin.seekable(),
            metadata=metadata,
            buffer_size=2**18,  # of each column: small ones stay in the cache
            pre_buffer=False,
            page_checksum_verification=True,  # of pages that have a checksum
        )

    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._names)

    def batches(self, types: dict[str, Any] | None, skip: int) -> Iterator[RowBatch]:
        """Rows after the first ``skip``."""
        wanted = None if types is None else [name for name in self.columns() if name in types]
        metadata = self._metadata
        groups, rows = list(range(metadata.num_row_groups)), 0
        while groups and rows + metadata.row_group(groups[0]).num_rows <= skip:
            rows += metadata.row_group(groups.pop(0)).num_rows
        if not groups:
            return
        try:
            with self._opened(metadata) as opened:
                for found in opened.iter_batches(_ROWS, row_groups=groups, columns=wanted, use_threads=False):
                    before, share = (n / metadata.num_rows for n in (rows, rows + found.num_rows))
                    numbers = _RowNumbers(rows + 1, found.num_rows)
                    batch = RowBatch(found, rows, numbers, share_before=before, share=share)
                    rows += found.num_rows
                    yield from rows_after(skip, batch)
        except (OSError, pa.ArrowInvalid) as error:
            raise StreamError(f"{self.name} is not valid Parquet: {first_line(error)}") from None


PARQUET = FileFormat("Parquet", lambda head: head.startswith(_MAGIC), ParquetFile)


@dataclass(frozen=True)
class _RowNumbers:
    """In Parquet the line is the number of the row."""

    first: int
    n_rows: int

    def __call__(self) -> Sequence[int]:
        return range(self.first, self.first + self.n_rows)
