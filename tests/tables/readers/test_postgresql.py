import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import onepass
from onepass.tables.model import TabularModel
from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.options import ReadOptions
from onepass.tables.readers.registry import open_source
from tests.helpers.commands import run_here
from tests.helpers.postgres_server import running

pytest.importorskip("adbc_driver_postgresql", reason="PostgreSQL as an input needs the extra sql")

AWAY = "postgresql://ann:secret@127.0.0.1:1/data"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A database with a table ``trips`` of 20,000 rows, and ``sales.trips`` of one."""
    with running() as server, server.new_database() as name:
        for statement in (
            "create schema sales",
            "create table public.trips (id int, km float8, fee numeric(8, 2), car text, at timestamptz, "
            "day date, vip bool, tags jsonb, wait interval)",
            "insert into public.trips select i, i / 4.0, i * 0.25, case when i % 3 > 0 then 'van' end, "
            "to_timestamp(i), '2024-01-01', i % 2 = 0, '[1]', '1 day' from generate_series(1, 20000) i",
            "create table sales.trips as select 7 as only",
        ):
            server.execute(statement, database=name)
        yield server.address(database=name)


def rows_of(address: str, skip: int = 0, types: dict[str, object] | None = None, **options: Any) -> pa.Table:
    batches = open_source(address, ReadOptions(**options)).batches(types, skip)
    return pa.Table.from_batches([batch.record_batch for batch in batches])


def test_a_table_is_read_in_its_order_and_from_any_row(address: str) -> None:
    assert rows_of(address, table="trips", types={"id": None})["id"].to_pylist() == list(range(1, 20001))
    for skip in (1, 8192, 19_999):
        assert rows_of(address, skip, {"id": None}, table="trips")["id"].to_pylist() == list(range(skip + 1, 20001))
    source = open_source(address, ReadOptions(table="trips"))
    batches = list(source.batches({"id": None}, 0))
    assert max(map(len, batches)) == 8192
    assert batches[-1].share == 1.0
    assert [batch.lines[0] for batch in batches] == [1, 8193, 16385]


def test_types_that_arrow_does_not_have_become_numbers_and_texts(address: str) -> None:
    found = rows_of(address, sql="select * from trips where id = 4")
    assert found.drop_columns("at").to_pylist() == [
        {
            "id": 4,
            "km": 1.0,
            "fee": 1.0,
            "car": "van",
            "day": found["day"][0].as_py(),
            "vip": True,
            "tags": "[1]",
            "wait": found["wait"][0].as_py(),
        }
    ]
    assert found.schema.field("fee").type == pa.float64()
    assert pa.types.is_timestamp(found.schema.field("at").type)
    assert pa.types.is_date32(found.schema.field("day").type)
    assert pa.types.is_string(found.schema.field("wait").type)


def test_tables_are_named_with_their_schema_where_that_is_needed(address: str) -> None:
    assert rows_of(address, table="sales.trips").to_pylist() == [{"only": 7}]
    with pytest.raises(StreamError, match=r"has several tables, trips, sales\.trips; say which one") as several:
        open_source(address)
    with pytest.raises(StreamError, match="has no table 'trip'; it has trips") as none:
        open_source(address, ReadOptions(table="trip"))
    assert [(error.value.code, error.value.setting) for error in (several, none)] == [
        ("several_tables", "table"),
        ("no_such_table", "table"),
    ]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("selct", "can't be read: syntax error"),
        ("select nothing from trips", 'column "nothing" does not exist'),
        ("drop table trips", "must be a single 'select'"),
        ("delete from trips returning id", "cannot execute DELETE in a read-only transaction"),
        ("select id, km as id from trips", "more than one column 'id'"),
    ],
)
def test_queries_that_are_wrong_or_would_write_are_refused(address: str, query: str, message: str) -> None:
    with pytest.raises(StreamError, match=message):
        rows_of(address, sql=query)
    assert len(rows_of(address, table="trips", types={"id": None})) == 20_000


def test_a_server_that_is_away_is_told_without_the_password() -> None:
    with pytest.raises(StreamError, match="can't be reached: Connection refused") as caught:
        open_source(AWAY)
    assert caught.value.code == "server_away"
    assert "secret" not in str(caught.value)


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    with pytest.raises(StreamError, match=r"pip install 'onepass-learn\[sql\]'") as caught:
        open_source(AWAY)
    assert caught.value.code == "missing_extra"


def test_a_table_of_a_server_is_learned_and_predicted(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = f"{address}{'&' if '?' in address else '?'}table=trips"
    options = ["--target", "km", "--columns", "car,vip,fee", "--where", "id <= 500", "--model-kind", "perceptron"]
    assert run_here("fit", given, *options) == 0
    model = onepass.load("trips.onepass")
    assert isinstance(model, TabularModel)
    assert model.n_rows == 500
    assert run_here("predict", "trips.onepass", given, "--where", "id <= 5", "--out", "p.csv") == 0
    assert len(Path("p.csv").read_text().splitlines()) == 6
