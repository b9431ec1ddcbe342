"""Conditions on rows: what they say, how they are refused, and the rows that are kept, compared with Python's own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from onepass.tables.columns.errors import SchemaError
from onepass.tables.readers.batches import row_blocks
from onepass.tables.readers.condition import Condition, ConditionError
from onepass.tables.readers.filtering import holds
from onepass.tables.readers.options import ReadOptions
from onepass.tables.readers.registry import open_source
from tests.helpers.tables import Row, trips, write_csv, write_jsonl, write_parquet

ROWS = trips(2500)
# Each condition beside what it means, written by hand for a row of Python values.
CASES: list[tuple[str, Callable[[Row], Any]]] = [
    ("price > 20", lambda r: r["price"] > 20),
    ("0 < km <= 5 or not (price < 30)", lambda r: 0 < r["km"] <= 5 or not r["price"] < 30),
    ("car in ('van', \"bike\") and km != 3", lambda r: r["car"] in ("van", "bike") and r["km"] != 3),
    ("car not in ['van']", lambda r: r["car"] != "van"),
    ("wait > 3", lambda r: r["wait"] is not None and r["wait"] > 3),
    ("not wait > 3", lambda r: r["wait"] is not None and not r["wait"] > 3),
    ("wait is None", lambda r: r["wait"] is None),
    ("wait is not None and wait < 1", lambda r: r["wait"] is not None and r["wait"] < 1),
    ("wait > 3 or vip", lambda r: r["vip"] or (r["wait"] is not None and r["wait"] > 3)),
    ("vip == False", lambda r: not r["vip"]),
    ("`start` >= '2024-06-15'", lambda r: r["start"] >= "2024-06-15"),
    ("price / km > 2 + 1e-3 and id % 3 == 1", lambda r: r["price"] / r["km"] > 2 + 1e-3 and r["id"] % 3 == 1),
    ("id in (3, 5, 7, -1)", lambda r: r["id"] in (3, 5, 7, -1)),
    ("-price**2 // 1 < -400", lambda r: -(r["price"] ** 2) // 1 < -400),
    ("price > km * 2", lambda r: r["price"] > r["km"] * 2),
    ("text(car) == text(car)", lambda r: True),
    ("id == '7'", lambda r: r["id"] == 7),
]


@pytest.fixture(scope="module", params=["csv", "jsonl", "parquet"])
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / f"trips.{request.param}"
    {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}[request.param](path, ROWS)
    return path


@pytest.mark.parametrize(("where", "meaning"), CASES, ids=[where for where, _ in CASES])
def test_the_rows_that_are_kept_are_those_the_condition_holds_for(
    file: Path, where: str, meaning: Callable[[Row], Any]
) -> None:
    source = open_source(str(file), ReadOptions(where=where))
    expected = [row["id"] for row in ROWS if meaning(row)]
    for types in (None, {"id": pa.float64(), "km": pa.float64()}):
        batches = list(source.batches(types, 0))
        assert [int(float(str(one))) for batch in batches for one in batch.column("id").to_pylist()] == expected
        assert source.left_out == len(ROWS) - len(expected)
        offset = 2 if file.suffix == ".csv" else 1
        assert [line - offset for batch in batches for line in batch.lines] == expected


def test_rows_are_skipped_and_cut_by_those_that_are_kept(file: Path) -> None:
    source = open_source(str(file), ReadOptions(where="car == 'van'"))
    vans = [row["id"] for row in ROWS if row["car"] == "van"]

    def ids(batches: Any) -> list[int]:
        return [int(float(str(one))) for batch in batches for one in batch.column("id").to_pylist()]

    assert ids(source.head(150)) == vans[:150]
    for skip in (0, 1, 64, 500):
        blocks = list(row_blocks(source.batches({"id": pa.float64()}, skip), 64))
        assert ids(batch for block in blocks for batch in block.batches) == vans[skip:]
        assert all(block.end % 64 == 0 for block in blocks[:-1])
        assert blocks[-1].end == len(vans)


def test_malformed_records_keep_their_place_among_the_rows_that_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a,b\n1,x\n5,x\nbad\n2,x\n7,x\nworse,x,x\n8,x\n")
    source = open_source(str(file), ReadOptions(where="a > 4"))
    (batch,) = source.batches({"a": pa.string()}, 0)
    assert [one.before for one in batch.malformed] == [1, 2]
    assert batch.lines == [3, 6, 8]
    (rest,) = source.batches({"a": pa.string()}, 2)
    assert [one.line for one in rest.malformed] == [7]


def test_texts_that_should_be_numbers_leave_their_row_out_and_are_told(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a,b\n1,x\nfive,x\n7,x\n")
    source = open_source(str(file), ReadOptions(where="a > 0"))
    assert [batch.column("a").to_pylist() for batch in source.batches(None, 0)] == [["1", "7"]]
    assert source.left_out == 1
    assert "line 3: a is 'five', not a number" in source.unreadable


def test_leading_zeros_count_where_a_text_is_meant(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("zip,b\n07,x\n7,x\n")
    rows = open_source(str(file), ReadOptions(where="zip == '07'")).batches({"zip": pa.float64()}, 0)
    assert [batch.column("zip").to_pylist() for batch in rows] == [["07"]]


def test_a_text_is_what_stands_in_the_file_whoever_else_wants_numbers(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"v": 7.0}\n{"v": 8.0}\n')
    source = open_source(str(file), ReadOptions(where="v == '7.0'"))
    for types in (None, {"v": pa.float64()}):
        assert sum(map(len, source.batches(types, 0))) == 1


def test_a_column_that_json_lines_never_have_is_missing_everywhere() -> None:
    rows = pa.RecordBatch.from_pydict({"a": ["1"]})
    assert holds(Condition.parse("b > 0"), rows, {}).tolist() == [False]
    assert holds(Condition.parse("b is None"), rows, {}).tolist() == [True]


def test_an_unknown_column_is_refused_with_the_likely_one(file: Path) -> None:
    if file.suffix == ".jsonl":
        pytest.skip("every row may have its own columns")
    with pytest.raises(SchemaError) as refused:
        open_source(str(file), ReadOptions(where="prise > 3"))
    assert (refused.value.reason.code, refused.value.reason.column) == ("no_such_column", "prise")


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("price = 0", 6, "write =="),
        ("price > ", 8, "can't be understood"),
        ("a > 1 AND b > 1", 6, "AND is unknown"),
        ("a > 1 and & b", 10, "can't be understood"),
        ("(a > 1) & (b > 1)", 0, "& and |"),
        ("a == None", 5, "is None"),
        ("a is 3", 5, "is for missing values"),
        ("'my column' > 3", 14, "backticks"),
        ("a in 3", 5, "a list of values"),
        ("a in (b, 3)", 6, "texts or numbers only"),
        ("a and 3", 6, "a condition is expected"),
        ("a + 'x' > 3", 4, "a number is expected"),
        ("`Größe m` > 1 and x.y > 3", 18, "a column, a number or a text"),
        ("__import__('os').system('ls')", 0, "a column, a number or a text"),
        ("a > True", 4, "compare with == and !="),
        ("1 < 2", 0, "names no column"),
        ("", 0, "a condition is expected"),
        ("-" * 1900 + "a > 1", 0, "too long"),
    ],
)
def test_a_condition_that_can_not_be_understood_shows_the_place(text: str, place: int, words: str) -> None:
    with pytest.raises(ConditionError) as error:
        Condition.parse(text)
    _, shown, caret, what = str(error.value).split("\n")
    assert shown == f"    {text}"
    assert caret == " " * (4 + place) + "^"
    assert words in what


def test_a_condition_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 2,000 characters, got 3,000"):
        Condition.parse("a" * 3000)
