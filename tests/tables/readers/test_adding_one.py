"""The example on the page about adding a file format, taken from there and tried out."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import onepass
from onepass.cli.main import main
from onepass.tables.readers import registry
from onepass.tables.readers.registry import open_source
from tests.helpers.extending import run_page
from tests.helpers.tables import read_rows, trips, write_parquet

ROWS = [{name: row[name] for name in ("km", "car", "price")} for row in trips(900)]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An Arrow file of three batches, whose format is known for one test only."""
    monkeypatch.setattr(registry, "_FORMATS", list(registry._FORMATS))
    run_page("file-format")
    table = pa.Table.from_pylist(ROWS)
    path = tmp_path / "trips.arrow"
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=300)
    return path


def test_its_files_are_recognised_and_read(file: Path) -> None:
    assert open_source(str(file)).columns() == ["km", "car", "price"]
    as_parquet = write_parquet(file.with_suffix(".parquet"), ROWS)
    assert read_rows(file) == read_rows(as_parquet)
    prices = {"price": pa.float64()}
    assert read_rows(file, skip=450, types=prices) == read_rows(as_parquet, skip=450, types=prices)


def test_every_row_keeps_its_line_number(file: Path) -> None:
    batches = list(open_source(str(file)).batches(None, 450))  # all of them, before the first is asked
    assert [line for batch in batches for line in batch.lines] == list(range(451, 901))


def test_it_is_learned_as_any_other_format(file: Path) -> None:
    write_parquet(file.with_suffix(".parquet"), ROWS)
    models = []
    for name in (file, file.with_suffix(".parquet")):
        options = ["--target", "price", "--model", f"{name}.onepass", "--model-kind", "perceptron", "-q"]
        with pytest.raises(SystemExit) as end:
            main(["fit", str(name), *options])
        assert end.value.code == 0
        models.append(onepass.load(f"{name}.onepass"))
    assert models[0].n_rows == 900
    np.testing.assert_array_equal(models[0].estimator.coef_, models[1].estimator.coef_)


def test_standard_input_is_refused_in_a_sentence(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with file.open("rb") as stream:
        monkeypatch.setattr("sys.stdin", stream)
        with pytest.raises(SystemExit) as end:
            main(["fit", "-", "--target", "price", "--model", str(file.with_suffix(".onepass"))])
    assert end.value.code == 1
    assert capsys.readouterr().err.endswith("can't be read from standard input; name the file.\n")
