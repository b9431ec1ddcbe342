"""``onepass forecast``: what it finds, prints and writes, goes on with, and refuses."""

import csv
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from onepass.files.checkpoint import load
from onepass.tables import forecast
from onepass.tables.series_model import SeriesModel
from tests.cli.conftest import Run

DAYS = [str(day) for day in np.arange("2024-01-01", "2024-05-01", dtype="datetime64[D]")]
SOLD = np.round(
    50 + 10 * np.sin(2 * np.pi * np.arange(len(DAYS)) / 7) + np.random.default_rng(0).normal(size=len(DAYS)), 2
)
OPTIONS = ("--time", "date", "--target", "sold", "--horizon", 7)


def write(path: Path, *lines: str, header: str = "date,sold") -> Path:
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "secret-folder"
    folder.mkdir()
    return write(folder / "sales.csv", *(f"{day},{n}" for day, n in zip(DAYS, SOLD, strict=True)))


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as opened:
        return list(csv.DictReader(opened))


def test_it_says_what_it_found_tests_itself_and_writes_the_forecast(run: Run, file: Path, tmp_path: Path) -> None:
    out, html = tmp_path / "next.csv", tmp_path / "next.html"
    lines = file.read_text().splitlines()
    lines = [lines[0], *lines[11:20], *lines[1:10], *lines[20:50], lines[49], *lines[53:]]
    file.write_text("\n".join(lines) + "\n")
    done = run("forecast", file, *OPTIONS, "--level", 0.8, "--level", 0.95, "--out", out, "--html", html)
    assert done.code == 0, done.err
    printed = {line.split(":")[0]: line for line in done.out.splitlines() if ":" in line}
    assert {"series", "frequency", "seasons", "gaps", "order", "repeated", "backtest", "forecasts", "page"} <= set(
        printed
    )
    assert "daily" in printed["frequency"]
    found = rows(out)
    assert list(found[0]) == ["date", "mean", "std", "lower_80", "upper_80", "lower_95", "upper_95"]
    assert [row["date"] for row in found] == [f"2024-05-0{i}" for i in range(1, 8)]
    expected = 50 + 10 * np.sin(2 * np.pi * np.arange(len(DAYS), len(DAYS) + 7) / 7)
    assert np.abs(np.array([float(row["mean"]) for row in found]) - expected).max() < 3
    for row in found:
        limits = [float(row[name]) for name in ("lower_95", "lower_80", "mean", "upper_80", "upper_95")]
        assert limits == sorted(limits)
    page = html.read_text()
    assert [name in page for name in ('id="forecast"', 'id="backtest"', 'id="found"', "sales.csv")] == [True] * 4
    assert "secret-folder" not in page


def test_one_line_per_fact_for_programs(run: Run, file: Path) -> None:
    done = run("forecast", file, *OPTIONS, "--json")
    (tested,) = [event for event in done.events if event["event"] == "backtest"]
    assert tested["scores"]["onepass"]["mase"] < tested["scores"]["last value"]["mase"]
    assert len(tested["coverage"]["onepass"][1]) == 7
    last = done.events[-1]
    assert (last["event"], last["steps"], last["values"], last["rejected"]) == ("done", 7, len(DAYS), 0)


def test_the_table_has_the_level_that_was_asked_for(run: Run, file: Path) -> None:
    found = {level: run("forecast", file, *OPTIONS, "--no-backtest", "--level", level).out for level in (0.5, 0.95)}
    first = {}
    for level, text in found.items():
        assert f"{100 * level:g} % from" in text
        *_, low, high = next(line for line in text.splitlines() if line.startswith("2024-05-01")).split()
        first[level] = float(high) - float(low)
    assert first[0.5] < 0.5 * first[0.95]


def test_many_series_and_inputs_known_ahead(run: Run, tmp_path: Path) -> None:
    lines = [
        f"{day},{'' if i >= 115 else round(n * scale + 20 * (i % 9 == 0), 2)},{'yes' if i % 9 == 0 else 'no'},{shop}"
        for i, (day, n) in enumerate(zip(DAYS, SOLD, strict=True))
        for shop, scale in (("north", 1.0), ("south", 2.0))
    ]
    file = write(tmp_path / "shops.csv", *lines, "2024-04-30,1,no,new", header="date,sold,promo,shop")
    out = tmp_path / "next.parquet"
    done = run(
        "forecast", file, *OPTIONS, "--by", "shop", "--inputs", "promo", "--out", out, "--html", tmp_path / "p.html"
    )
    assert done.code == 0, done.err
    assert "not forecast: 1 series with fewer than 2 values: new" in done.err
    assert "inputs known ahead: promo for 6 of 7 steps; what is missing" in done.err
    import pyarrow.parquet as pq

    table = pq.read_table(out)
    assert table["shop"].to_pylist() == ["north"] * 7 + ["south"] * 7
    mean = table["mean"].to_numpy()
    promoted = SOLD[117] + 20  # the third step, in the one week that is like the others
    assert abs(mean[2] - promoted) < 6


def test_a_model_goes_on_with_new_and_corrected_values(run: Run, file: Path, tmp_path: Path) -> None:
    model, out = tmp_path / "m.onepass", tmp_path / "next.csv"
    assert run("forecast", file, *OPTIONS, "--model", model, "--no-backtest").code == 0
    evening = write(tmp_path / "evening.csv", "2024-04-29,58", "2024-05-01,50", "2024-05-02,57")
    done = run("forecast", evening, "--model", model, "--horizon", 3, "--out", out)
    assert done.code == 0, done.err
    assert [row["date"] for row in rows(out)] == ["2024-05-03", "2024-05-04", "2024-05-05"]
    known = load(model)
    assert isinstance(known, SeriesModel)
    (one,) = known.forecasts(1)
    assert one.recent[-4:].tolist() == [58.0, SOLD[-1], 50.0, 57.0]
    before = out.read_text()
    assert run("forecast", "--model", model, "--horizon", 3, "--out", out).code == 0
    assert out.read_text() == before
    old = write(tmp_path / "old.csv", "2024-01-05,58", "2024-05-03,57")
    content = model.read_bytes()
    done = run("forecast", old, "--model", model, "--horizon", 3)
    assert (done.code, "older than what can still be corrected" in done.err) == (1, True)
    assert model.read_bytes() == content
    assert run("undo", model).code == 0
    assert load(model).n_seen == len(DAYS)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--by", "sold"), "'sold' is given twice"),
        (("--inputs", "price"), "no column 'price'"),
        (("--horizon", "0"), "--horizon"),
        (("--season", "0.5"), "season_length must be"),
        (("--out", "next.txt"), "does not end in .csv"),
        (("--target", "date"), "'date' is given twice"),
    ],
)
def test_what_cannot_be_meant_is_refused(run: Run, file: Path, options: tuple[str, ...], words: str) -> None:
    done = run("forecast", file, *OPTIONS, *options)
    assert done.code in (1, 2)
    assert words in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["2024-01-01,1"], "needs at least 2 values"),
        (["2024-01-01,", "2024-01-02,"], "has no values"),
        (["2024-01-01,1", "2024-01-02,2", "2024-01-02,3"], "--duplicates last|mean|sum"),
        (["2024-01-01,1", "2024-01-02,2", "2024-01-02T06:00,3", "2024-01-03,3", "2024-01-04,3"], "line 4"),
        (["soon,1", "later,2"], "neither a date nor a number"),
        (["2024-01-01,few", "2024-01-02,many"], "not numbers either"),
    ],
)
def test_a_series_that_is_none_leaves_no_file_behind(run: Run, tmp_path: Path, lines: list[str], words: str) -> None:
    file = write(tmp_path / "bad.csv", *lines)
    outputs = ("--out", tmp_path / "o.csv", "--html", tmp_path / "o.html", "--model", tmp_path / "o.onepass")
    done = run("forecast", file, *OPTIONS, *outputs)
    assert (done.code, done.out.count("Traceback")) == (1, 0)
    assert words in done.err
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.endswith(".lock")) == ["bad.csv"]


@pytest.mark.parametrize("values", [(3, 3), (1, 2, 4), (0, 0, 0, 0), (5,) * 40])
def test_short_and_constant_series_have_a_forecast_and_a_page(
    run: Run, tmp_path: Path, values: tuple[int, ...]
) -> None:
    file = write(tmp_path / "short.csv", *(f"{day},{n}" for day, n in zip(DAYS, values, strict=False)))
    done = run("forecast", file, *OPTIONS, "--out", tmp_path / "o.csv", "--html", tmp_path / "o.html")
    assert done.code == 0, done.err
    assert ("too few values for a backtest" in done.err) == (len(values) < 9)
    assert len(rows(tmp_path / "o.csv")) == 7
    assert 'id="figure-fan"' in (tmp_path / "o.html").read_text()


def test_damaged_rows_are_rejected_and_too_many_fail(run: Run, file: Path, tmp_path: Path) -> None:
    lines = file.read_text().splitlines()
    lines[5] = f"{DAYS[4]},hot"
    file.write_text("\n".join(lines) + "\n")
    out, bad = tmp_path / "o.csv", tmp_path / "bad.csv"
    done = run("forecast", file, *OPTIONS, "--out", out, "--rejects", bad)
    assert (done.code, len(rows(out)), len(rows(bad))) == (3, 7, 1)
    out.unlink()
    assert run("forecast", file, *OPTIONS, "--out", out, "--strict").code == 1
    assert not out.exists()


def test_the_share_of_rejected_rows_is_that_of_all_rows(run: Run, file: Path) -> None:
    lines = file.read_text().splitlines()[:91]
    file.write_text("\n".join([lines[0], *(f"{line}x" if i % 2 else line for i, line in enumerate(lines[1:]))]) + "\n")
    done = run("forecast", file, *OPTIONS, "--max-rejects", "40%")
    assert done.code == 1
    assert "45 of 90 rows" in done.err


def test_a_table_of_a_database_is_read_by_its_address(run: Run, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "t.db")) as database, database:
        database.execute("CREATE TABLE sales (date TEXT, sold REAL)")
        database.executemany("INSERT INTO sales VALUES (?, ?)", zip(DAYS, SOLD.tolist(), strict=True))
    out = tmp_path / "o.csv"
    done = run("forecast", f"sqlite:///{tmp_path / 't.db'}?table=sales", *OPTIONS, "--out", out)
    assert done.code == 0, done.err
    assert rows(out)[0]["date"] == "2024-05-01"
    found = forecast(f"sqlite:///{tmp_path / 't.db'}?table=sales", "date", "sold", horizon=7)
    assert found["date"].to_pylist() == [row["date"] for row in rows(out)]


def test_a_known_model_takes_no_options_of_a_new_one(run: Run, file: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.onepass"
    assert run("forecast", file, *OPTIONS, "--model", model, "-q").code == 0
    done = run("forecast", file, "--model", model, "--horizon", 3, "--by", "shop")
    assert (done.code, "--by is for a new model" in done.err) == (2, True)
    done = run("forecast", file, "--horizon", 3)
    assert (done.code, "--time" in done.err) == (2, True)
    done = run("predict", model, file)
    assert (done.code, f"'onepass forecast --model {model} --horizon STEPS'" in done.err) == (1, True)


def test_a_further_file_with_one_time_and_two_values_is_refused_in_words(run: Run, file: Path, tmp_path: Path) -> None:
    assert run("forecast", file, *OPTIONS, "--model", tmp_path / "m").code == 0
    done = run(
        "forecast", write(tmp_path / "b.csv", "2024-05-01,1", "2024-05-01,2"), "--model", tmp_path / "m", *OPTIONS[-2:]
    )
    assert done.code == 1
    assert "--duplicates last|mean|sum" in done.err
    assert "Warning" not in done.err


def test_counts_have_whole_limits_and_other_values_are_rejected(run: Run, tmp_path: Path) -> None:
    sold = np.random.default_rng(0).poisson(0.7, len(DAYS))
    lines = [f"{day},{n}" for day, n in zip(DAYS, sold, strict=True)]
    file, out, bad = tmp_path / "counts.csv", tmp_path / "next.csv", tmp_path / "bad.csv"
    write(file, *lines, "2024-05-01,1.5")
    model = tmp_path / "counts.onepass"
    done = run("forecast", file, *OPTIONS, "--counts", "--out", out, "--model", model, "--rejects", bad)
    assert done.code == 3, done.err
    assert "1.5, not a count 0, 1, 2, ..." in bad.read_text()
    for row in rows(out):
        for name in ("lower", "upper"):
            assert float(row[name]).is_integer()
    more = write(tmp_path / "more.csv", "2024-05-01,2", "2024-05-02,0.5")
    done = run("forecast", more, "--model", model, "--horizon", 7, "--out", out)
    assert done.code == 3, done.err
    assert {float(row["upper"]).is_integer() for row in rows(out)} == {True}
    done = run("forecast", more, "--model", model, "--horizon", 7, "--counts")
    assert done.code == 2
    assert "--counts is for a new model" in done.err
