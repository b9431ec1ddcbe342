"""The digest of a file is taken before its rows are read, so that a change in between can't go unnoticed."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onepass.tables import inputs as module
from onepass.tables.inputs import ContentLog, Inputs
from onepass.tables.readers.content import content_of


def test_every_share_of_a_file_is_covered_by_a_digest_that_is_ahead_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": list(range(20_000))}), file, compression="none")
    size = file.stat().st_size
    monkeypatch.setattr(module, "_AHEAD", 1000)
    monkeypatch.setattr(module, "_FAR_AHEAD", 8000)
    given = Inputs((str(file),))
    log = ContentLog(given, given.sources())
    with log.reading(0):
        for share in (0.0, 0.1, 0.1001, 0.5, 0.93, 1.0):
            found = log.so_far(share)
            assert found is not None
            assert min(int(share * size) + 1000, size) <= found.size <= min(int(share * size) + 8000, size)
            assert found == content_of(str(file), found.size)
        learned = log.end(20_000)
        assert learned is not None
        assert learned.digest == content_of(str(file), size).digest
