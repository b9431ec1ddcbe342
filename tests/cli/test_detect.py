"""``onepass detect``: what it prints and writes, goes on with, and refuses."""

import csv
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Run

HOURS = np.arange("2024-01-01", "2024-01-29", dtype="datetime64[h]")
CPU = 50 + 10 * np.sin(2 * np.pi * np.arange(len(HOURS)) / 24) + np.random.default_rng(0).normal(size=len(HOURS))
CPU[500] += 30.0
CPU[600:] += 40.0
OPTIONS = ("--time", "ts", "--target", "cpu")


def write(path: Path, part: slice = slice(None)) -> Path:
    rows = [f"{hour},{value:.3f}\n" for hour, value in zip(HOURS[part], CPU[part], strict=True)]
    path.write_text("ts,cpu\n" + "".join(rows))
    return path


def rows(path: Path) -> list[dict[str, str]]:
    with path.open() as opened:
        return list(csv.DictReader(opened))


def test_alarms_are_printed_and_scores_written(run: Run, tmp_path: Path) -> None:
    out, html = tmp_path / "scores.csv", tmp_path / "page.html"
    done = run("detect", write(tmp_path / "metrics.csv"), *OPTIONS, "--out", out, "--html", html)
    assert done.code == 0, done.err
    alarms = [line for line in done.out.splitlines() if line.startswith(("spike:", "level:", "run:"))]
    assert [line.split()[0] for line in alarms] == ["spike:", "spike:", "level:"]
    assert all(str(HOURS[place]) in line for place, line in zip((500, 600, 602), alarms, strict=True))
    assert "3 alarms in 672 values" in done.out
    found = rows(out)
    assert list(found[0]) == ["ts", "cpu", "expected", "low", "high", "tail", "score", "alarm"]
    assert {i: row["alarm"] for i, row in enumerate(found) if row["alarm"]} == {
        500: "spike",
        600: "spike",
        602: "level",
    }
    assert float(found[500]["cpu"]) > float(found[500]["high"]) > float(found[500]["expected"])
    page = html.read_text()
    assert [name in page for name in ('id="alarms"', 'id="found"', "metrics.csv")] == [True] * 3
    assert str(tmp_path) not in page


def test_a_table_of_a_database_is_read_by_its_address(run: Run, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "t.db")) as database, database:
        database.execute("CREATE TABLE hosts (ts TEXT, cpu REAL)")
        database.executemany("INSERT INTO hosts VALUES (?, ?)", zip(map(str, HOURS), CPU.tolist(), strict=True))
    done = run("detect", f"sqlite:///{tmp_path / 't.db'}?table=hosts", *OPTIONS)
    assert done.code == 0, done.err
    assert "3 alarms in 672 values" in done.out


def test_the_share_of_rejected_rows_is_that_of_all_rows(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "m.csv"
    file.write_text("ts,cpu\n" + "".join(f"{hour},{'x' if i % 2 else i}\n" for i, hour in enumerate(HOURS[:90])))
    done = run("detect", file, *OPTIONS, "--max-rejects", "40%")
    assert done.code == 1
    assert "45 of 90 rows" in done.err


def test_events_for_programs(run: Run, tmp_path: Path) -> None:
    done = run("detect", write(tmp_path / "metrics.csv"), *OPTIONS, "--json", "--side", "below")
    assert done.code == 0, done.err
    assert not [
        event for event in done.events if event["event"] == "alarm" and event["time"].startswith(str(HOURS[500]))
    ]
    above = run("detect", write(tmp_path / "metrics.csv"), *OPTIONS, "--side", "above", "--html", tmp_path / "p.html")
    assert "(at most " in above.out
    assert "inf" not in above.out
    assert "at most " in (tmp_path / "p.html").read_text()
    both = run("detect", write(tmp_path / "metrics.csv"), *OPTIONS, "--json")
    first = next(event for event in both.events if event["event"] == "alarm")
    assert first["name"] == "spike"
    assert first["time"].startswith(str(HOURS[500]))
    assert first["low"] < first["expected"] < first["high"] < first["value"]
    assert (both.events[-1]["values"], both.events[-1]["alarms"]) == (672, 3)


def test_a_kept_model_goes_on_with_later_values(run: Run, tmp_path: Path) -> None:
    kept, out = tmp_path / "cpu.onepass", tmp_path / "scores.csv"
    whole = tmp_path / "whole.csv"
    assert run("detect", write(tmp_path / "all.csv"), *OPTIONS, "--season", "24", "--out", whole).code == 0
    first = write(tmp_path / "first.csv", slice(0, 550))
    assert run("detect", first, *OPTIONS, "--season", "24", "--model", kept).code == 0
    done = run("detect", write(tmp_path / "more.csv", slice(550, None)), "--model", kept, "--out", out)
    assert done.code == 0, done.err
    assert rows(out) == rows(whole)[550:]
    assert run("undo", kept).code == 0
    assert run("detect", tmp_path / "more.csv", "--model", kept).code == 0
    before = kept.read_bytes()
    overlap = run("detect", write(tmp_path / "overlap.csv", slice(540, None)), "--model", kept)
    assert overlap.code == 1
    assert "132 of the times" in overlap.err
    assert kept.read_bytes() == before


def test_scores_stay_as_they_are_if_nothing_is_new(run: Run, tmp_path: Path) -> None:
    kept, out, html = tmp_path / "cpu.onepass", tmp_path / "scores.csv", tmp_path / "page.html"
    file = write(tmp_path / "metrics.csv", slice(0, 60))
    assert run("detect", file, *OPTIONS, "--model", kept, "--out", out).code == 0
    before = out.read_bytes(), kept.read_bytes()
    done = run("detect", file, "--model", kept, "--out", out, "--html", html)
    assert (done.code, "has learned these files already" in done.out) == (0, True)
    assert (out.read_bytes(), kept.read_bytes()) == before
    assert not html.exists()
    assert "page.html" not in done.out
    last = run("detect", file, "--model", kept, "--out", out, "--html", html, "--json").events[-1]
    assert (last["values"], last["out"], last["html"], last["model"]) == (0, None, None, None)


def test_a_model_of_detect_is_not_said_to_learn_values_again(run: Run, tmp_path: Path) -> None:
    kept, file = tmp_path / "cpu.onepass", write(tmp_path / "metrics.csv", slice(0, 60))
    assert run("detect", file, *OPTIONS, "--model", kept).code == 0
    for done in (run("detect", file, "--model", kept), run("learn", kept, file)):
        assert (done.code, "and is left out" in done.err, "again" in done.err) == (0, True, False)
    before = kept.read_bytes()
    unread = tmp_path / "unread.csv"
    unread.write_text("neither times nor values")
    done = run("learn", kept, unread, "--again")
    assert done.code == 2
    assert f"--again does not apply to {kept}: " in done.err
    assert "takes each value only once" in done.err
    assert kept.read_bytes() == before


def test_an_overlap_can_be_left_out_by_a_condition(run: Run, tmp_path: Path) -> None:
    kept, overlap = tmp_path / "cpu.onepass", write(tmp_path / "overlap.csv", slice(540, 560))
    assert run("detect", write(tmp_path / "first.csv", slice(0, 550)), *OPTIONS, "--model", kept).code == 0
    done = run("detect", overlap, "--model", kept)
    assert done.code == 1
    condition = f'ts > "{HOURS[549]}:00"'
    assert f"--where '{condition}'" in done.err
    done = run("detect", overlap, "--model", kept, "--where", condition)
    assert (done.code, "in 10 values" in done.out) == (0, True), done.err


def test_missing_values_are_not_counted_as_scored(run: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "metrics.csv", slice(0, 60))
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:20], *lines[23:]]) + "\n")
    done = run("detect", file, *OPTIONS)
    assert f"3 steps have no value, from {HOURS[19]}:00 to {HOURS[21]}:00; " in done.out
    assert "0 alarms in 57 values" in done.out


def test_a_promotion_explains_a_jump(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    days = np.arange("2022-01-01", "2024-01-01", dtype="datetime64[D]")
    promo = rng.random(len(days)) < 0.2
    promo[[600, 700]] = True, False
    sold = np.round(100 + 60 * promo + rng.normal(size=len(days)), 2)
    sold[700] += 60.0
    file, out, kept = tmp_path / "sales.csv", tmp_path / "scores.csv", tmp_path / "m.onepass"
    lines = (f"{day},{y},{'yes' if on else 'no'}\n" for day, y, on in zip(days, sold, promo, strict=True))
    file.write_text("ts,cpu,promo\n" + "".join(lines))
    done = run("detect", file, *OPTIONS, "--inputs", "promo", "--out", out, "--model", kept, "--json")
    assert done.code == 0, done.err
    assert [event["time"] for event in done.events if event["event"] == "alarm"] == [str(days[700])]
    found = rows(out)
    assert abs(float(found[600]["expected"]) - 160.0) < 5.0
    assert abs(float(found[700]["expected"]) - 100.0) < 5.0
    more = tmp_path / "more.csv"
    more.write_text("ts,cpu,promo\n2024-01-05,160,yes\n2024-01-06,100,no\n2024-01-07,160,no\n")
    done = run("detect", more, "--model", kept)
    assert (done.code, "1 alarm in 3 values" in done.out) == (0, True), done.out
    assert "spike: " in done.out
    assert "2024-01-07" in done.out


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ((), "--time"),
        (("--time", "ts"), "--target"),
        ((*OPTIONS, "--false-alarms", "0"), "--false-alarms"),
        ((*OPTIONS, "--out", "scores.txt"), ".csv"),
    ],
)
def test_bad_options_are_refused(run: Run, tmp_path: Path, options: tuple[str, ...], match: str) -> None:
    done = run("detect", write(tmp_path / "metrics.csv", slice(0, 60)), *options)
    assert done.code == 2
    assert match in done.err


def test_what_a_model_knows_is_not_given_again(run: Run, tmp_path: Path) -> None:
    kept, file = tmp_path / "cpu.onepass", write(tmp_path / "metrics.csv", slice(0, 60))
    assert run("detect", file, *OPTIONS, "--model", kept).code == 0
    done = run("detect", file, "--model", kept, "--false-alarms", "1e-3")
    assert done.code == 2
    assert "--false-alarms is for a new model" in done.err
    assert "onepass detect" in run("evaluate", file, "--model", kept).err
    assert "alarms" in run("show", kept).out
    other = tmp_path / "other.onepass"
    assert run("forecast", file, *OPTIONS, "--horizon", 3, "--model", other).code == 0
    done = run("detect", file, "--model", other)
    assert done.code == 1
    assert "was made by 'onepass forecast', not by 'onepass detect'" in done.err
