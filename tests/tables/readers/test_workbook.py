import datetime as dt
import sys
import zipfile
from pathlib import Path

import pytest

from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.options import ReadOptions
from onepass.tables.readers.registry import open_source
from tests.helpers.commands import run_here
from tests.helpers.tables import read_rows, trips
from tests.helpers.workbooks import Cell, write_ods, write_xlsx

pytest.importorskip("python_calamine", reason="workbooks need the extra excel")

MESSY: list[list[Cell]] = [
    ["Sales of spring"],
    [],
    [None, "day", "shop ", "units", None, "price", "paid"],
    [None, "=45292", "north", 3, "x", 1.5, True],
    [None, "=45293", 7, 4, None, 2, False],
    [],
    [None, "Total", None, 7],
]


def test_a_sheet_as_people_write_them(tmp_path: Path) -> None:
    file = write_xlsx(tmp_path / "sales.xlsx", sales=MESSY)
    source = open_source(str(file))
    assert source.columns() == ["day", "shop", "units", "column_4", "price", "paid"]
    assert [note.words for note in source.notes] == [
        f"{file}: column 4 has no name and is called 'column_4'",
        f"{file}: the names of the columns are those of row 3",
    ]
    (batch,) = source.batches(None, 0)
    assert list(batch.lines) == [4, 5, 7]
    assert batch.record_batch.to_pydict() == {
        "day": ["2024-01-01", "2024-01-02", "Total"],
        "shop": ["north", "7", None],
        "units": [3, 4, 7],
        "column_4": ["x", None, None],
        "price": [1.5, 2.0, None],
        "paid": [True, False, None],
    }


def test_dates_are_dates_and_whole_numbers_whole(tmp_path: Path) -> None:
    file = write_xlsx(tmp_path / "a.xlsx", a=[["day", "class", "x"], ["=45292", 1, 0.5], ["=45293", 2, 1]])
    assert read_rows(file) == [
        {"day": dt.date(2024, 1, 1), "class": 1, "x": 0.5},
        {"day": dt.date(2024, 1, 2), "class": 2, "x": 1.0},
    ]


@pytest.mark.parametrize("skip", [0, 1, 8191, 8192, 8999])
def test_rows_after_some_and_some_columns(skip: int, tmp_path: Path) -> None:
    rows = [{"id": row["id"], "car": row["car"]} for row in trips(9000)]
    file = write_xlsx(tmp_path / "a.xlsx", a=[["id", "car"], *([row["id"], row["car"]] for row in rows)])
    source = open_source(str(file))
    batches = list(source.batches({"id": None}, skip))
    assert [row for batch in batches for row in batch.record_batch.to_pylist()] == [
        {"id": row["id"]} for row in rows[skip:]
    ]
    assert [line for batch in batches for line in batch.lines] == list(range(skip + 2, 9002))
    assert batches[-1].share == 1.0


def test_sheets_are_read_by_name_and_the_first_with_content_otherwise(tmp_path: Path) -> None:
    file = write_xlsx(
        tmp_path / "a.xlsx", hidden=["secret"], empty=[], secret=[["s"], [1]], spring=[["a"], [2]], more=[["b"], [3]]
    )
    source = open_source(str(file))
    assert (source.table, source.columns()) == ("spring", ["a"])
    assert [(note.words, note.setting) for note in source.notes] == [
        (f"{file}: of 3 sheets, 'spring' is read", "table")
    ]
    assert open_source(str(file), ReadOptions(table="secret")).columns() == ["s"]
    for table, code in (("autumn", "no_such_table"), ("empty", "")):
        with pytest.raises(StreamError) as caught:
            open_source(str(file), ReadOptions(table=table))
        assert (caught.value.setting, caught.value.code) == ("table", code)
    with pytest.raises(StreamError, match="is a workbook and not a database") as caught:
        open_source(str(file), ReadOptions(sql="select 1"))
    assert caught.value.setting == "sql"


def test_a_sheet_without_names(tmp_path: Path) -> None:
    file = write_xlsx(tmp_path / "a.xlsx", a=[[1, "x"], [2, "y"]])
    source = open_source(str(file), ReadOptions(no_header=True))
    assert source.columns() == ["column_1", "column_2"]
    (batch,) = source.batches(None, 0)
    assert list(batch.lines) == [1, 2]


def test_open_documents_are_read(tmp_path: Path) -> None:
    assert read_rows(write_ods(tmp_path / "a.ods", [["km", "car"], [1.5, "van"]])) == [{"km": 1.5, "car": "van"}]


def test_what_is_no_sound_workbook_is_refused(tmp_path: Path) -> None:
    file = write_xlsx(tmp_path / "a.xlsx", a=[["a"], [1]])
    for content in (file.read_bytes()[:900], b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)):
        file.write_bytes(content)
        with pytest.raises(StreamError, match="is not a valid workbook: "):
            open_source(str(file))
    with pytest.raises(StreamError, match="is a workbook with nothing in it"):
        open_source(str(write_xlsx(file, a=[])))
    with pytest.raises(StreamError, match="has no row below the names of its columns"):
        open_source(str(write_xlsx(file, a=[["a", "b"]])))


def test_a_sheet_whose_part_is_missing_is_named(tmp_path: Path) -> None:
    whole, damaged = write_xlsx(tmp_path / "a.xlsx", Daten=[["a"], [1]]), tmp_path / "b.xlsx"
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(damaged, "w") as new:
        for part in old.namelist():
            if "worksheets/" not in part:
                new.writestr(part, old.read(part))
    with pytest.raises(StreamError, match="is damaged: its sheet 'Daten' can't be read"):
        open_source(str(damaged))


def test_an_archive_of_workbooks_is_refused(tmp_path: Path) -> None:
    file = write_xlsx(tmp_path / "a.xlsx", a=[["a"], [1]])
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(file, "a.xlsx")
    with pytest.raises(StreamError, match="can't be read inside zip; name the file itself"):
        open_source(str(tmp_path / "a.zip"))


def test_a_package_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_xlsx(tmp_path / "a.xlsx", a=[["a"], [1]])
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(StreamError, match=r"needs python_calamine: pip install 'onepass-learn\[excel\]'") as caught:
        open_source(str(file))
    assert caught.value.code == "missing_extra"


def test_a_workbook_is_learned_and_predicted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    header = ["km", "car", "price"]
    file = write_xlsx(tmp_path / "trips.xlsx", trips=[header, *([row[name] for name in header] for row in trips(200))])
    assert run_here("fit", str(file), "--target", "price", "--model-kind", "perceptron") == 0
    assert run_here("predict", "trips.onepass", str(file), "--out", "p.csv") == 0
    assert len(Path("p.csv").read_text().splitlines()) == 201
