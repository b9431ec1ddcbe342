"""What a model of series remembers, and how further files compare with it."""

from pathlib import Path

import numpy as np
import pytest

from onepass.files.checkpoint import from_bytes, to_bytes
from onepass.tables.columns.errors import SchemaError
from onepass.tables.history import LearnedRun
from onepass.tables.known_series import NewValues
from onepass.tables.readers.registry import open_source
from onepass.tables.selection import as_learned, select
from onepass.tables.series import SeriesTable, read_series
from onepass.tables.series_model import SeriesModel
from onepass.tables.series_rows import SeriesColumns

DAYS = np.arange("2024-01-01", "2024-04-01", dtype="datetime64[D]")
COLUMNS = SeriesColumns("date", "sold", "shop", ("price",))


def rows(first: int, stop: int, shop: str = "a") -> list[str]:
    return [f"{DAYS[i]},{10 + i % 7},{shop},{1 + i % 2}\n" for i in range(first, stop)]


def write(path: Path, lines: list[str]) -> str:
    path.write_text("date,sold,shop,price\n" + "".join(lines))
    return str(path)


def known(file: str, revisions: int = 5) -> tuple[SeriesModel, SeriesTable]:
    table = read_series([open_source(file)], COLUMNS)
    return SeriesModel(table, 3, revisions), table


def test_values_are_new_corrected_or_known(tmp_path: Path) -> None:
    model, _ = known(write(tmp_path / "a.csv", [*rows(0, 60), *rows(0, 60, "b")]))
    corrected = [line.replace(f",{10 + 58 % 7},", ",99,") for line in rows(58, 59)]
    more = [*rows(57, 58), *corrected, *rows(60, 62), *rows(60, 61, "b"), *rows(60, 61, "new")]
    table = model.read([open_source(write(tmp_path / "b.csv", more))])
    assert model.compared(table) == NewValues(new=4, corrected=1, repeated=1)
    n = model.n_seen
    assert model.learn(table).n_seen == n + 4
    assert model.compared(table) == NewValues(new=0, corrected=0, repeated=6)


def test_gaps_are_counted_from_the_last_value_of_each_series(tmp_path: Path) -> None:
    model, _ = known(write(tmp_path / "a.csv", [*rows(0, 60), *rows(0, 58, "b")]))
    more = [*rows(57, 58), *rows(59, 61), *rows(63, 64), *rows(62, 63, "b")]
    summary = model.read([open_source(write(tmp_path / "b.csv", more))]).summary
    assert (summary.missing, summary.longest_gap) == (2 + 4, 4)
    assert (summary.longest_from, summary.longest_to) == (str(DAYS[58]), str(DAYS[61]))
    plans = [f"{DAYS[i]},,{shop},2\n" for i in range(70, 75) for shop in "ab"]
    assert model.read([open_source(write(tmp_path / "c.csv", plans))]).summary.missing == 0


def test_inputs_known_ahead_are_counted_one_by_one(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    ahead = [
        f"{DAYS[60 + i]},,{price},{promo}\n" for i, (price, promo) in enumerate([("1", "0"), ("", "0"), ("2", "")])
    ]
    past = [f"{DAYS[i]},{10 + i % 7},1,0\n" for i in range(60)]
    file.write_text("date,sold,price,promo\n" + "".join([*past, *ahead]))
    table = read_series([open_source(str(file))], SeriesColumns("date", "sold", inputs=("price", "promo")))
    assert SeriesModel(table, 3).known_ahead() == {"price": 1, "promo": 2}


def test_a_file_is_remembered_and_goes_on_where_it_ended(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", rows(0, 60))
    model, table = known(file)
    sources = [open_source(file)]
    model.record(table, as_learned([file], sources, table.ends), model.n_seen)
    model = from_bytes(to_bytes(model))
    (run,) = model.history.runs
    assert isinstance(run, LearnedRun)
    assert (run.rows, run.rejected, [one.rows for one in run.files]) == (60, 0, [60])
    assert [one.start for one in select([file], sources, model.history)] == [None]
    with open(file, "a") as opened:
        opened.writelines(rows(60, 63))
    sources = [open_source(file)]
    starts = [one.start for one in select([file], sources, model.history)]
    assert starts == [60]
    table = model.read(sources, starts=starts)
    assert (table.summary.values, table.ends) == (3, (63,))
    assert model.learn(table).n_seen == 63


def test_times_that_are_too_old_come_with_a_condition_that_leaves_them_out(tmp_path: Path) -> None:
    model, _ = known(write(tmp_path / "a.csv", rows(0, 60)))
    with pytest.raises(SchemaError) as caught:
        model.learn(model.read([open_source(write(tmp_path / "b.csv", rows(0, 62)))]))
    assert caught.value.suggestions == {"where": f"'date > \"{DAYS[59]}\"'"}
    assert model.n_seen == 60
    with pytest.raises(SchemaError) as caught:  # nothing would be left
        model.learn(model.read([open_source(write(tmp_path / "b.csv", rows(0, 40)))]))
    assert caught.value.suggestions == {}
