from pathlib import Path

import numpy as np
import pytest

from onepass.tables.readers.batches import row_blocks
from onepass.tables.readers.registry import open_source
from tests.helpers.tables import malformed, trips, write_csv, write_jsonl, write_parquet

ROWS = trips(2500)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
@pytest.mark.parametrize("skip", [0, 400, 2000])
def test_blocks_begin_at_multiples_of_their_size(
    name: str, skip: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onepass.tables.readers.byte_stream._CHUNK", 10_000)
    write = {"a.jsonl": write_jsonl, "a.parquet": write_parquet}.get(name, write_csv)
    source = open_source(str(write(tmp_path / name, ROWS)))
    found = list(row_blocks(source.batches(None, skip), 400))
    assert [block.end for block in found] == [*range(skip + 400, 2500, 400), 2500]
    ids = [int(row["id"]) for block in found for batch in block.batches for row in batch.record_batch.to_pylist()]
    assert ids == list(range(skip, 2500))


def test_what_is_malformed_comes_once_wherever_reading_stops(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    lines = [f"{i},{i}" if i % 3 else f"{i}" for i in range(60)]
    file.write_text("a,b\n" + "\n".join(lines) + "\n")
    every = [one.line for one in malformed(file)]
    assert len(every) == 20
    source = open_source(str(file))
    for size in (1, 7, 10, 40):
        seen: list[int] = []
        end = 0
        for block in row_blocks(source.batches(None, 0), size):
            seen += [bad.line for batch in block.batches for bad in batch.malformed]
            end = block.end
            rest = [
                bad.line
                for one in row_blocks(source.batches(None, end), size)
                for batch in one.batches
                for bad in batch.malformed
            ]
            if end < 40:
                assert seen + rest == every
        assert seen == every


def test_the_share_that_was_read_grows_with_the_rows(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a\n" + "1\n" * 1000)
    found = [block.share for block in row_blocks(open_source(str(file)).batches(None, 0), 100)]
    np.testing.assert_allclose(found, np.arange(1, 11) / 10, atol=1e-9)
