"""--where, from the user's side."""

import csv
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import onepass
from onepass.files.versions import VersionedFile
from onepass.tables.inputs import Inputs
from onepass.tables.model import TabularModel
from onepass.tables.progress import resume
from onepass.tables.readers.batches import RowBatch
from onepass.tables.readers.condition import Condition
from onepass.tables.readers.filtering import FilteredTable
from onepass.tables.readers.options import ReadOptions
from onepass.tables.readers.registry import open_source
from onepass.tables.readers.source import TableFile
from onepass.tables.schema import SchemaOptions, infer_model
from onepass.tables.settings import Settings
from onepass.tables.training import Interrupted, TrainingRun, train
from tests.cli.conftest import Run
from tests.helpers.commands import run_command as process
from tests.helpers.tables import trips, write_csv

ROWS = trips(2000)


def _has_learned(model: TabularModel, rows: int) -> bool:
    return model.n_rows >= rows


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "trips.csv", ROWS)


def test_a_model_of_some_rows_is_that_of_a_file_with_these_rows_only(run: Run, file: Path, tmp_path: Path) -> None:
    kept = [row for row in ROWS if row["price"] > 15 and row["car"] != "van"]
    other = write_csv(tmp_path / "kept.csv", kept)
    condition = ("--where", "price > 15 and car != 'van'")
    first = run("fit", file, "--target", "price", "--model", tmp_path / "a", *condition, "--json")
    assert first.code == 0, first
    (told,) = [event for event in first.events if event.get("name") == "left out"]
    assert told["left_out"] == len(ROWS) - len(kept)
    assert run("fit", other, "--target", "price", "--model", tmp_path / "b", "-q").code == 0
    one, two = onepass.load(tmp_path / "a"), onepass.load(tmp_path / "b")
    assert one.n_rows == len(kept)
    assert one.n_rejected == 0
    assert (one.estimator.coef_ == two.estimator.coef_).all()
    scores = [
        [event for event in run("evaluate", *given, "--target", "price", "--json").events if event["event"] == "done"]
        for given in ((file, *condition), (other,))
    ]
    assert scores[0][0]["scores"] == scores[1][0]["scores"]


def test_rows_that_do_not_match_are_not_predicted(run: Run, file: Path, tmp_path: Path) -> None:
    assert run("fit", file, "--target", "price", "--model", tmp_path / "m", "-q").code == 0
    out = tmp_path / "out.csv"
    done = run("predict", tmp_path / "m", file, "--where", "id % 500 == 1", "--keep", "id", "--out", out)
    assert done.code == 0, done
    assert "left out:      1,996 rows by --where 'id % 500 == 1'" in done.out
    with out.open() as opened:
        assert [row["id"] for row in csv.DictReader(opened)] == ["1", "501", "1001", "1501"]
    done = run("predict", tmp_path / "m", file, "--where", "id < 0")
    assert done.code == 1
    assert "there is no row to predict: the condition left out all 2,000" in done.err


def test_an_interrupted_run_over_some_rows_is_resumed_bit_for_bit(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    inputs = Inputs((str(file),), reading=ReadOptions(where="wait > 1"))
    settings = Settings(model_kind="perceptron", covariance="diagonal", prior_scale=1.0)
    options = SchemaOptions("price", buckets=40_000, settings=settings, sample=200)
    found = []
    for interrupted in (False, True):
        model, _ = infer_model(inputs.sources(), options, rereadable=True)
        assert model.rows_per_block < 300  # many features: small blocks
        sources, target = inputs.sources(), VersionedFile(tmp_path / f"{interrupted}.onepass")
        run = TrainingRun(model, target, inputs, sources)
        if interrupted:
            with pytest.raises(Interrupted):
                train(run, stopping=partial(_has_learned, model, 300), notes=lambda: {"asked": {}})
            resumed = resume(target.path, inputs, sources, {})
            assert resumed is not None
            run = TrainingRun(resumed.model, target, inputs, inputs.sources(), progress=resumed.progress)
        train(run)
        found.append(target.path.read_bytes())
    assert found[0] == found[1]


def test_a_condition_holds_for_standard_input_too(run: Run, file: Path, tmp_path: Path) -> None:
    # A file would be learned in a random order, which matters for rows with missing numbers.
    options = ("--target", "price", "--where", "price > 15", "--ignore", "id", "--shuffle", "off", "-q")
    with file.open() as opened:
        done = process("fit", "-", *options, "--model", tmp_path / "a", stdin=opened)
    assert done.returncode == 0, done
    assert run("fit", file, *options, "--model", tmp_path / "b").code == 0
    one, two = onepass.load(tmp_path / "a"), onepass.load(tmp_path / "b")
    assert one.n_rows == two.n_rows == sum(row["price"] > 15 for row in ROWS)
    np.testing.assert_allclose(one.estimator.coef_, two.estimator.coef_, atol=1e-12)


def test_a_run_over_other_rows_is_another_run(file: Path) -> None:
    one, other = (Inputs((str(file),), reading=ReadOptions(where=where)) for where in ("wait > 1", "wait > 2"))
    assert one.identity(one.sources()) != other.identity(other.sources())


def test_a_first_file_without_matching_rows_does_no_harm(run: Run, file: Path, tmp_path: Path) -> None:
    cheap = write_csv(tmp_path / "cheap.csv", [row for row in ROWS if row["price"] <= 15])
    done = run("fit", cheap, file, "--target", "price", "--model", tmp_path / "m", "--where", "price > 15", "-q")
    assert done.code == 0, done
    done = run("fit", cheap, "--target", "price", "--model", tmp_path / "n", "--where", "price > 15")
    assert done.code == 1
    assert "cheap.csv has no rows: the condition left out all" in done.err


def test_a_wrong_condition_is_refused_with_its_place(run: Run, file: Path) -> None:
    done = run("fit", file, "--target", "price", "--where", "price = 0")
    assert done.code == 2
    assert "\n    price = 0\n          ^\n" in done.err
    done = run("evaluate", file, "--target", "price", "--where", "prize > 0")
    assert done.code == 1
    assert "--where: " in done.err
    assert "(did you mean 'price'?)" in done.err


def test_a_file_of_malformed_lines_says_so(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a;b\n1;2,5\n2;3,5\n")
    done = run("fit", file, "--target", "b", "--delimiter", ",")
    assert done.code == 1
    assert "a.csv has no rows: line 2 has 2 fields where the first line has 1, and so on" in done.err


def _kept(file: Path, where: str, column: str = "id") -> list[str]:
    source = open_source(str(file), ReadOptions(where=where))
    found = [
        [str(value) for batch in source.batches(types, 0) for value in batch.column(column).to_pylist()]
        for types in (None, {column: pa.string()}, {name: pa.float64() for name in source.columns() or ()})
    ]
    assert found[0] == found[1] == found[2]
    return found[0]


@pytest.mark.parametrize(
    ("values", "where", "expected"),
    [
        (("60,5", "1.234,5", "1.000", "7"), "a > 60", "012"),
        (("60,5", "1.234,5", "1.000", "7"), "a / 2 >= 500", "12"),
        (("60,5", "1.234,5", "1.000", "7"), "a in (60.5, 1000)", "02"),
        (("$4,000", "$12", "-", "$3.50"), "a > 10", "01"),
        (("$4,000", "$12", "-", "$3.50"), "a is None", "2"),
        (("1", "NA", "", "?", "4"), "a is not None", "04"),
        (("1", "NA", "", "?", "4"), "a is None", "123"),
        (("1", "NA", "", "?", "4"), "not a > 1", "0"),
        (("x", "?", "y", "x"), "a is not None", "0123"),
        (("x", "NA", "y", "x"), "a == 'NA'", "1"),
    ],
)
def test_values_are_read_as_columns_read_them(
    tmp_path: Path, values: tuple[str, ...], where: str, expected: str
) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id;a\n" + "".join(f"{i};{value}\n" for i, value in enumerate(values)))
    assert "".join(_kept(file, where)) == expected


def test_another_column_shows_the_decimal_sign(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id;a;b\n0;1.000;3,5\n1;2.000;12\n")
    assert _kept(file, "a > 1500") == ["1"]


DATES = ("31/01/2024", "01/07/2024", "NA", "15/06/2023", "02/06/2024")


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("sold >= '2024-06-01'", "14"),
        ("sold < '01/07/2024'", "034"),
        ("sold in ('2024-01-31', '15/06/2023')", "03"),
        ("'2024' <= sold < '2024-07'", "04"),
        ("sold is None", "2"),
        ("text(sold) == '31/01/2024'", "0"),
        ("sold < paid", "034"),
    ],
)
def test_dates_compare_as_dates_however_they_are_written(tmp_path: Path, where: str, expected: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id,sold,paid\n" + "".join(f"{i},{value},2024-06-30\n" for i, value in enumerate(DATES)))
    assert "".join(_kept(file, where)) == expected


def test_a_date_column_does_not_compare_with_another_text(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("sold,b\n" + "".join(f"{value},{i}\n" for i, value in enumerate(DATES)))
    done = run("fit", file, "--target", "b", "--where", "sold >= 'June'", "--model", tmp_path / "m")
    assert done.code == 1
    assert "--where: " in done.err
    assert "'June' is not a date" in done.err
    assert "'2024-01-31' or '31/01/2024'" in done.err
    assert "text(sold)" in done.err
    done = run("fit", file, "--target", "b", "--where", "sold > 3", "--model", tmp_path / "m")
    assert "column 'sold' has dates, not numbers; compare it with a date in quotes, such as '2024-01-31'" in done.err


def test_days_of_digits_alone_are_numbers_and_dates(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id,day\n" + "".join(f"{i},202401{10 + i}\n" for i in range(8)))
    assert _kept(file, "day >= '2024-01-15'") == _kept(file, "day >= 20240115") == ["5", "6", "7"]


def test_a_column_without_values_is_missing_everywhere(tmp_path: Path) -> None:
    table = pa.table({"id": [0], "sold": pa.nulls(1, pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "a.parquet")
    assert [_sold(tmp_path, where) for where in ("sold > '2024'", "sold is None")] == [[], [0]]


def test_rows_that_come_singly_show_the_notation_too(tmp_path: Path) -> None:
    class Singly(TableFile):
        name = "singly"

        def columns(self) -> list[str]:
            return ["a"]

        def batches(self, types: dict[str, Any] | None, skip: int) -> Iterator[RowBatch]:
            for row, value in enumerate(["NA", "3,5", "1.000", "2.000", "x", "700"]):
                yield RowBatch(pa.RecordBatch.from_pydict({"a": [value]}), row, lambda row=row: [row])

    table = FilteredTable(Singly(), Condition.parse("a > 600"), rereadable=False)
    kept = [value for batch in table.batches(None, 0) for value in batch.column("a").to_pylist()]
    assert kept == ["1.000", "2.000", "700"]


def test_dates_of_parquet_compare_as_dates(tmp_path: Path) -> None:
    days = pa.array([datetime(2024, 1, 31), datetime(2024, 7, 1, 12), None], pa.timestamp("us"))
    pq.write_table(pa.table({"id": [0, 1, 2], "sold": days}), tmp_path / "a.parquet")
    assert [_sold(tmp_path, where) for where in ("sold > '2024-06'", "sold == '2024-01-31'")] == [[1], [0]]


def _sold(folder: Path, where: str) -> list[int]:
    source = open_source(str(folder / "a.parquet"), ReadOptions(where=where))
    return [one for batch in source.batches({"id": pa.int64()}, 0) for one in batch.column("id").to_pylist()]


def test_values_that_can_not_be_read_are_told_with_their_number_and_a_way_out(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a,b\n" + "".join(f"{'many' if i % 4 == 0 else i},{i % 7}\n" for i in range(200)))
    done = run("fit", file, "--target", "b", "--where", "a > 20", "--model", tmp_path / "m")
    assert done.code == 0, done
    assert "a.csv, line 2: a is 'many', not a number" in done.err
    assert "50 of 200 rows (25 %) are left out because a value can't be read" in done.err
    file.write_text("a,b\n" + "".join(f"{'many' if i % 50 == 0 else i},{i % 7}\n" for i in range(200)))
    assert "can't be read" not in run("fit", file, "--target", "b", "--where", "a > 20", "--model", tmp_path / "n").err
    file.write_text("a,b\n" + "many,1\nfew,2\n" * 30)
    done = run("fit", file, "--target", "b", "--where", "a > 20", "--model", tmp_path / "o")
    assert done.code == 1
    assert "the condition left out all 60" in done.err
    assert "a text compares in quotes, as in a == 'many'" in done.err


def test_standard_input_is_read_in_the_notation_of_its_first_rows(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a;b\n" + "".join(f"{i % 100},5;{i % 7}\n" for i in range(400)))
    with file.open() as opened:
        done = process("fit", "-", "--target", "b", "--where", "a > 50", "--model", tmp_path / "m", stdin=opened)
    assert done.returncode == 0, done
    assert onepass.load(tmp_path / "m").n_rows == 200


def test_a_condition_reads_values_as_the_options_say(run: Run, tmp_path: Path) -> None:
    file, model = tmp_path / "a.csv", tmp_path / "a.onepass"
    # 1,234 may be more than a thousand, or a little more than one; -1 may be a number, or stand for none.
    lines = [f"{1 + i % 9},{100 + i};{-1 if i % 4 == 0 else i % 5};{i % 7}" for i in range(100)]
    file.write_text("\n".join(["km;wait;y", *lines]) + "\n")
    for options, condition, rows in (
        ((), "km > 1000", 100),
        (("--decimal", ","), "km > 1000", 0),
        ((), "wait is None", 0),
        (("--missing", "-1"), "wait is None", 25),
        ((), "wait < 3", 70),
        (("--missing", "-1"), "wait < 3", 45),
    ):
        for command in (("fit", "--model", model), ("evaluate",)):
            done = run(command[0], file, "--target", "y", "--where", condition, *options, *command[1:], "--json")
            text = done.out + done.err
            if rows:
                assert f'"left_out": {100 - rows}' in text, (command, condition, options)
            else:
                assert "the condition left out all 100" in text, (command, condition, options)
