"""A file format added as the registry says: one module with a `TableFile` and a `FileFormat`, and a registration."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import onepass
from onepass.cli.main import main
from onepass.tables.readers import registry
from onepass.tables.readers.batches import Malformed, RowBatch, rows_after
from onepass.tables.readers.byte_stream import ByteStream, chunks, end_of_lines
from onepass.tables.readers.options import ReadOptions
from onepass.tables.readers.registry import open_source, register_format
from onepass.tables.readers.source import FileFormat, TableFile
from onepass.tables.reasons import Reason
from tests.helpers.tables import malformed, read_rows, trips, write_csv

MAGIC = b"%pairs\n"


class PairsFile(TableFile):
    """Lines such as ``km=3 price=9``, after a first line that names the format."""

    def __init__(self, stream: ByteStream, options: ReadOptions) -> None:
        self.name = stream.name
        self._stream = stream

    def columns(self) -> None:
        return None

    def batches(self, types: dict[str, Any] | None, skip: int) -> Iterator[RowBatch]:
        line, start = 1, 0
        for text in chunks(self._stream.again(), end_of_lines):
            rows, lines, bad = [], [], []
            for number, record in enumerate(text.decode().splitlines(), line):
                pairs = [pair.split("=") for pair in record.split()]
                if all(len(pair) == 2 for pair in pairs) and pairs:
                    rows.append(dict(pairs))
                    lines.append(number)
                elif number > 1:
                    bad.append(Malformed(number, Reason("unreadable", why="has no pairs"), record, start + len(rows)))
            line += text.count(b"\n")
            names = list(types or dict.fromkeys(name for row in rows for name in row))
            arrays = [pa.array([row.get(name) for row in rows], pa.string()) for name in names]
            record_batch = pa.RecordBatch.from_arrays(arrays, names)
            batch = RowBatch(record_batch, start, lines.copy, malformed=tuple(bad))
            start += len(rows)
            yield from rows_after(skip, batch)


PAIRS = FileFormat("pairs", lambda head: head.startswith(MAGIC), PairsFile)
ROWS = [{name: row[name] for name in ("km", "car", "price")} for row in trips(800)]


@pytest.fixture
def pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in the format, which is known for one test only."""
    monkeypatch.setattr(registry, "_FORMATS", list(registry._FORMATS))
    register_format(PAIRS)
    file = tmp_path / "trips.pairs"
    lines = [" ".join(f"{name}={value}" for name, value in row.items()) for row in ROWS]
    lines.insert(100, "oops")
    file.write_bytes(MAGIC + "\n".join([*lines, ""]).encode())
    return file


def test_a_new_format_is_read_by_its_content(pairs: Path) -> None:
    assert read_rows(pairs) == [{name: str(value) for name, value in row.items()} for row in ROWS]
    assert read_rows(pairs, skip=790, types={"km": pa.float64()}) == [{"km": str(row["km"])} for row in ROWS[790:]]
    (bad,) = malformed(pairs)
    assert (bad.line, bad.before) == (102, 100)


def test_a_new_format_is_learned_and_predicted_as_any_other(pairs: Path, tmp_path: Path) -> None:
    write_csv(tmp_path / "trips.csv", ROWS)
    for file, code in (("trips.pairs", 3), ("trips.csv", 0)):
        options = ["--target", "price", "--model-kind", "perceptron", "--model", str(tmp_path / f"{file}.onepass")]
        with pytest.raises(SystemExit) as end:
            main(["fit", str(tmp_path / file), *options, "-q"])
        assert end.value.code == code
    first, second = (onepass.load(tmp_path / f"{file}.onepass") for file in ("trips.pairs", "trips.csv"))
    assert (first.n_rows, first.n_rejected) == (800, 1)
    np.testing.assert_array_equal(first.estimator.coef_, second.estimator.coef_)
    out = tmp_path / "predictions.csv"
    with pytest.raises(SystemExit):
        main(["predict", str(tmp_path / "trips.csv.onepass"), str(pairs), "--out", str(out), "-q"])
    assert len(out.read_text().splitlines()) == 801


def test_formats_that_are_not_registered_are_not_known(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(MAGIC + b"km=3\n")
    assert open_source(str(file)).columns() == ["%pairs"]  # text of any kind may be CSV
