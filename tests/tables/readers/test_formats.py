import gzip
import os
import resource
from pathlib import Path

import pytest

from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.registry import open_source
from tests.helpers.tables import read_rows, trips, write_csv, write_jsonl, write_parquet

ROWS = trips(2500)


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.jsonl", "a.parquet", "no_ending"])
def test_every_format_gives_all_rows_in_their_order(name: str, tmp_path: Path) -> None:
    write = {"a.jsonl": write_jsonl, "a.parquet": write_parquet}.get(name, write_csv)
    rows = read_rows(write(tmp_path / name, ROWS))
    assert [int(row["id"]) for row in rows] == list(range(len(ROWS)))
    assert [row["town"] for row in rows] == [row["town"] for row in ROWS]
    assert [row["wait"] is None for row in rows] == [row["wait"] is None for row in ROWS]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_reading_can_go_on_behind_any_row(name: str, tmp_path: Path) -> None:
    write = {"a.jsonl": write_jsonl, "a.parquet": write_parquet}.get(name, write_csv)
    file = write(tmp_path / name, ROWS)
    for skip in (1, 999, 1000, 1001, 2499, 2500):
        assert [int(row["id"]) for row in read_rows(file, skip)] == list(range(skip, len(ROWS)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b"a\0b\n", "neither CSV, JSON, Parquet, SQLite, DuckDB, zip nor a workbook"),
        (b"PAR1 but no more", "is not valid Parquet"),
        (gzip.compress(b"a,b\n1,2\n" * 10_000)[:-20], "is cut short|not valid gzip"),
    ],
)
def test_files_that_cannot_be_read_are_refused_in_one_sentence(content: bytes, message: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(StreamError, match=message):
        read_rows(file)


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.jsonl", "a.parquet"])
def test_files_are_open_only_while_they_are_read(name: str, tmp_path: Path) -> None:
    write = {"a.jsonl": write_jsonl, "a.parquet": write_parquet}.get(name, write_csv)
    file = write(tmp_path / name, ROWS[:20])
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = max(map(int, os.listdir("/dev/fd"))) + 20
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
    try:
        sources = [open_source(str(file)) for _ in range(few)]
        for _ in range(2):
            assert [sum(map(len, source.batches(None, 0))) for source in sources] == [20] * few
            assert [sum(map(len, source.head(3))) for source in sources] == [3] * few
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
