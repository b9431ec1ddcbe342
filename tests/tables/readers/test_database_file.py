import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.options import ReadOptions
from onepass.tables.readers.registry import open_source
from tests.helpers.tables import trips

ROWS = [{name: row[name] for name in ("id", "km", "car", "wait")} for row in trips(9000)]
CREATE = "create table {} (id integer, km double, car varchar, wait double)"


@pytest.fixture(params=["sqlite", "duckdb"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Makes a database with some tables."""

    def make(*tables: str) -> Path:
        file = tmp_path / "data"
        connect = sqlite3.connect if request.param == "sqlite" else duckdb.connect
        with closing(connect(str(file))) as opened:
            for table in tables:
                opened.execute(CREATE.format(table))
                if request.param == "sqlite":
                    opened.executemany(f"insert into {table} values (:id, :km, :car, :wait)", ROWS)
                else:
                    rows = pa.Table.from_pylist(ROWS)  # noqa: F841 (DuckDB finds it by its name)
                    opened.execute(f"insert into {table} select * from rows")
            opened.commit()
        return file

    return make


def rows_of(file: Path, skip: int = 0, types: dict[str, Any] | None = None, **options: Any) -> list[dict[str, Any]]:
    batches = open_source(str(file), ReadOptions(**options)).batches(types, skip)
    return [row for batch in batches for row in batch.record_batch.to_pylist()]


def test_the_only_table_is_read_and_told(database: Any) -> None:
    file = database("trips")
    source = open_source(str(file))
    assert source.columns() == ["id", "km", "car", "wait"]
    assert [(note.words, note.setting) for note in source.notes] == [(f"{file}: the table 'trips' is read", "table")]
    assert rows_of(file) == ROWS
    for skip in (1, 8192, 8999, 9000):
        assert rows_of(file, skip, {"id": pa.int64()}) == [{"id": row["id"]} for row in ROWS[skip:]]
    batches = list(source.batches(None, 8000))
    assert [line for batch in batches for line in batch.lines] == list(range(8001, 9001))
    assert batches[-1].share == 1.0


def test_of_several_tables_one_must_be_named(database: Any) -> None:
    file = database("trips", '"other ""ones"""')
    with pytest.raises(StreamError, match=r"has several tables, .*say which one to read") as caught:
        open_source(str(file))
    assert caught.value.setting == "table"
    assert rows_of(file, table='other "ones"') == ROWS
    assert open_source(str(file), ReadOptions(table="trips")).notes == ()
    with pytest.raises(StreamError, match="has no table 'trip'; it has "):
        open_source(str(file), ReadOptions(table="trip"))


def test_a_query_is_read_in_its_order(database: Any) -> None:
    file = database("trips", "others")
    query = "select id, 2 * km as twice from trips where car = 'van' order by id desc"
    expected = [{"id": row["id"], "twice": 2 * row["km"]} for row in reversed(ROWS) if row["car"] == "van"]
    assert rows_of(file, sql=query) == expected
    for wrong in ("selct", "drop table trips", "select nothing from trips"):
        with pytest.raises(StreamError, match=r"data can't be read: "):
            rows_of(file, sql=wrong)


def test_sqlite_columns_of_several_types_are_texts(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as opened:
        opened.execute("create table t (a)")
        opened.executemany("insert into t values (?)", [(1,), (2.5,), ("x",), (None,), (b"y",)])
        opened.commit()
    for types in (None, {"a": pa.float64()}):
        assert [row["a"] for row in rows_of(tmp_path / "a.db", types=types)] == ["1", "2.5", "x", None, "y"]


def test_what_is_no_database_has_no_tables(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(StreamError, match="is CSV and not a database, so it has no tables"):
        rows_of(tmp_path / "a.csv", table="a")


def test_a_package_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    duckdb.connect(str(tmp_path / "a")).close()
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(StreamError, match=r"needs duckdb: pip install 'onepass-learn\[duckdb\]'"):
        open_source(str(tmp_path / "a"))


@pytest.mark.parametrize("where", [None, "b >= 0"])
def test_sqlite_columns_of_several_types_are_texts_from_their_first_row_on(tmp_path: Path, where: str | None) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as opened:
        opened.execute('create table t (a, b, "c ""d""", e)')
        rows = ((i, i, i if i < 8192 else i + 0.5, "x" if i < 9000 else b"y") for i in range(10_000))
        opened.executemany("insert into t values (?, ?, ?, ?)", rows)
        opened.execute("update t set a = 'n' || a where a >= 8192")
        opened.commit()
    found = open_source(str(tmp_path / "a.db"), ReadOptions(where=where)).head(10_000)
    table = pa.concat_tables([pa.table(one.record_batch) for one in found], promote_options="permissive")
    assert table.schema.types == [pa.string(), pa.int64(), pa.float64(), pa.string()]
    assert (table["a"][0].as_py(), table["a"][9_999].as_py()) == ("0", "n9999")


def test_rows_of_sqlite_can_be_closed_by_another_thread(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as opened:
        opened.execute("create table t (a)")
        opened.executemany("insert into t values (?)", ((i,) for i in range(9000)))
        opened.commit()
    coming: Any = open_source(str(tmp_path / "a.db")).batches(None, 0)
    with ThreadPoolExecutor(1) as other:
        other.submit(next, coming).result()
    coming.close()


@pytest.mark.parametrize("query", ["select a from t;", "select a from t -- all", "pragma table_info(t)"])
def test_any_query_of_sqlite_that_gives_rows_is_read(tmp_path: Path, query: str) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as opened:
        opened.execute("create table t (a)")
        opened.execute("insert into t values (1)")
        opened.commit()
    assert len(rows_of(tmp_path / "a.db", sql=query)) == 1
