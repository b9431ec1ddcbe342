import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

import onepass.tables
from onepass.tables.readers.addresses import located
from onepass.tables.readers.errors import StreamError
from onepass.tables.readers.options import ReadOptions
from tests.helpers.commands import run_here
from tests.helpers.tables import trips


@pytest.fixture
def database(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "trips.db")) as opened:
        for table in ("old", "new"):
            opened.execute(f"create table {table} (km double, price double)")
            opened.executemany(f"insert into {table} values (:km, :price)", trips(200))
        opened.commit()
    return tmp_path / "trips.db"


def test_addresses_of_database_files_are_paths_with_a_table(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(database.parent)
    for address, file in (("sqlite:///trips.db", "trips.db"), (f"sqlite:///{database}", str(database))):
        assert located(address) == ((file,), ReadOptions())
        assert located(f"{address}?table=old") == ((file,), ReadOptions(table="old"))
        assert located(f"{address}?sql=select%20*%20from+old") == ((file,), ReadOptions(sql="select * from old"))
    asked = ReadOptions(table="old", where="km > 1")
    assert located("sqlite:///trips.db?table=old", asked) == (("trips.db",), asked)
    assert located(["sqlite:///trips.db?table=old"] * 2, asked)[0] == ("trips.db", "trips.db")


def test_addresses_of_servers_keep_what_is_not_about_the_table() -> None:
    address = "postgresql://ann:secret@host:5433/data?sslmode=require"
    assert located(f"{address}&table=a+b") == ((address,), ReadOptions(table="a b"))
    assert located(address, ReadOptions(sql="select 1")) == ((address,), ReadOptions(sql="select 1"))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["sqlite:///a.db?table=a", "sqlite:///a.db?table=b"], "name different tables"),
        (["sqlite:///a.db?table=a", "sqlite:///a.db"], "name different tables"),
        (["sqlite:///a.db?table=a&sql=b"], "names a table and a query"),
        (["sqlite:///a.db?tabel=a"], r"can be followed by \?table= or \?sql=, got 'tabel'"),
        (["sqlite://a.db"], "write sqlite:///trips.db"),
        (["duckdb:///"], "write duckdb:///trips.db"),
        (["sqlite:///none.db"], "none.db does not exist"),
    ],
)
def test_addresses_that_say_too_much_or_too_little(
    files: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StreamError, match=message):
        located(files)


@pytest.mark.parametrize("setting", ["table", "sql"])
def test_an_option_that_contradicts_the_address_is_refused(setting: str) -> None:
    with pytest.raises(StreamError, match="the address says already") as caught:
        located("sqlite:///a.db?table=a", replace(ReadOptions(), **cast(Any, {setting: "b"})))
    assert caught.value.setting == setting


def test_commands_and_functions_take_addresses(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(database.parent)
    address = "sqlite:///trips.db?table=old"
    assert run_here("fit", address, "--target", "price", "--model-kind", "perceptron") == 0
    assert run_here("learn", "trips.onepass", "sqlite:///trips.db?table=new") == 0
    assert run_here("evaluate", address, "--target", "price") == 0
    assert run_here("predict", "trips.onepass", address, "--out", "p.csv") == 0
    model = onepass.load("trips.onepass")
    assert isinstance(model, onepass.tables.TabularModel)
    assert model.n_rows == 400
    assert [file.part.table for run in model.history.runs for file in run.files] == ["old", "new"]
    assert onepass.tables.fit(address, "price", model_kind="perceptron").n_rows == 200
    assert onepass.tables.predict("trips.onepass", address).num_rows == 200
