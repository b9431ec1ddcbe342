from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onepass.tables.readers.errors import StreamError
from onepass.tables.writing import TableWriter
from tests.helpers.tables import read_rows


def test_a_page_that_was_damaged_is_an_error_and_not_other_numbers(tmp_path: Path) -> None:
    file, table = tmp_path / "a.parquet", pa.table({"a": [float(i) for i in range(1000)]})
    pq.write_table(table, file, compression="none", use_dictionary=False, write_page_checksum=True)
    content = bytearray(file.read_bytes())
    content[1000] ^= 1
    file.write_bytes(content)
    with pytest.raises(StreamError, match=r"a\.parquet is not valid Parquet: "):
        read_rows(file)


def test_what_is_written_can_be_verified(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    with TableWriter(file, "parquet") as writer:
        writer.write(pa.RecordBatch.from_pydict({"a": [i * 1.1 for i in range(1000)]}))
    content = bytearray(file.read_bytes())
    content[1000] ^= 1
    file.write_bytes(content)
    with pytest.raises(StreamError, match="is not valid Parquet"):
        read_rows(file)
