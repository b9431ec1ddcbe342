"""Too many rejected rows are a failure with nothing written, and what readers find out is told."""

import csv
import io
import json
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

import onepass
from onepass.cli.main import main
from onepass.cli.rejects import RejectOptions, Rejects, TooManyRejectsError
from onepass.tables.reasons import Reason
from onepass.tables.rejects import Reject
from tests.cli.conftest import Run
from tests.helpers.commands import run_command as process
from tests.helpers.tables import trips, write_csv

ODD = Reject(1, Reason("unreadable", why="is odd"))
ROWS = [{name: row[name] for name in ("km", "car", "price")} for row in trips(1000)]


def with_bad(path: Path, n_bad: int, n: int = 1000) -> Path:
    """Rows, of which the first ones can't be learned."""
    rows = [dict(row) for row in ROWS[:n]]
    for i in range(n_bad):
        rows[i]["price"] = f"x{rows[i]['price']}"
    return write_csv(path, rows)


FIT = ("--target", "price", "--task", "regression", "--as", "km=number", "--model-kind", "perceptron", "-q")


def test_a_table_that_is_misread_makes_no_model(run: Run, tmp_path: Path) -> None:
    file, model = with_bad(tmp_path / "a.csv", 985), tmp_path / "m"
    done = run("fit", file, "--model", model, *FIT, "--checkpoint-every", "1")
    assert done.code == 1
    assert sorted(tmp_path.iterdir()) == [file]  # no model, and no progress
    first, reason, way_out = done.err.splitlines()
    assert "985 of 1,000 rows were rejected, more than --max-rejects 5% allows; nothing" in first
    assert reason.startswith("  985 like this: price is 'x")
    assert reason.endswith("a.csv, line 2)")
    assert "--rejects FILE" in way_out
    assert "--max-rejects 100%" in way_out
    done = run("fit", file, "--model", model, *FIT, "--max-rejects", "100%")
    assert done.code == 3
    assert onepass.load(model).n_rows == 15


def test_the_message_has_what_helps_against_the_commonest_reasons() -> None:
    log = Rejects(RejectOptions())
    commas = tuple(Reject(i, Reason("decimal_comma", "km", f"{i},5", manner="")) for i in range(50))
    bytes_lost = tuple(Reject(i, Reason("not_in_encoding")) for i in range(30))
    short = Reject(99, Reason("wrong_field_count", given=3, expected=8))
    log.add("a.csv", commas + bytes_lost + (short,) * 40)
    log.add("b.csv", (ODD,))
    with pytest.raises(TooManyRejectsError) as caught:
        log.judge(200, 1.0)
    text = caught.value.message
    assert "50 like this: km is '0,5', not a number: " in text
    assert text.index("50 like") < text.index("40 like") < text.index("30 like")
    assert "odd" not in text
    for option in ("--decimal ,", "--encoding NAME", "--delimiter CHAR", "--rejects FILE", "--max-rejects 100%"):
        assert option in text


@pytest.mark.parametrize(("bad", "is_shown"), [(2, False), (90, True)])
def test_another_delimiter_is_suggested_only_if_most_lines_were_rejected(
    run: Run, tmp_path: Path, bad: int, is_shown: bool
) -> None:
    file = write_csv(tmp_path / "a.csv", ROWS[: 100 - bad])
    file.write_text(file.read_text() + "oops\n" * bad)
    done = run("fit", file, "--model", tmp_path / "m", "--target", "price", "--max-rejects", "100%")
    assert done.code == 3
    assert "has 1 field where the first line has 3" in done.err
    assert ("--delimiter" in done.err) == is_shown


def test_an_interrupted_run_is_judged_by_all_its_rows(tmp_path: Path) -> None:
    first = Rejects(RejectOptions())
    first.add("a.csv", (ODD,) * 30)
    first.judge(900, 0.9)
    second = Rejects(RejectOptions(), first.note())
    second.judge(100, 1.0)
    second.judge_all()  # 30 of 1,000
    second.add("a.csv", (ODD,) * 21)
    with pytest.raises(TooManyRejectsError, match="51 of 1,000 rows"):
        second.judge_all()


@pytest.mark.parametrize(
    ("n_bad", "n", "limit", "code"),
    [
        (50, 1000, None, 3),
        (51, 1000, None, 1),
        (19, 30, None, 3),  # too few to judge
        (20, 30, None, 1),
        (300, 1000, "30%", 3),
        (301, 1000, "30%", 1),
        (60, 1000, "60", 3),
        (61, 1000, "60", 1),
        (1, 1000, "0", 1),
        (0, 1000, "0", 0),
    ],
)
def test_the_limit_is_a_share_or_a_count(
    n_bad: int, n: int, limit: str | None, code: int, run: Run, tmp_path: Path
) -> None:
    file, model = with_bad(tmp_path / "a.csv", n_bad, n), tmp_path / "m"
    asked = () if limit is None else ("--max-rejects", limit)
    done = run("fit", file, "--model", model, *FIT, *asked)
    assert done.code == code, done
    assert model.exists() == (code != 1)


@pytest.mark.parametrize("limit", ["x", "5 %%", "-1", "101%", "0.05"])
def test_a_limit_that_is_none_is_refused(limit: str, run: Run, tmp_path: Path) -> None:
    done = run("fit", with_bad(tmp_path / "a.csv", 0), "--model", tmp_path / "m", *FIT, "--max-rejects", limit)
    assert done.code == 2
    assert "is neither a share such as 5% or 100% nor a count" in done.err


def test_bad_rows_at_the_beginning_are_judged_by_all_rows(run: Run, tmp_path: Path) -> None:
    bad, good = with_bad(tmp_path / "a.csv", 200), with_bad(tmp_path / "b.csv", 0)
    assert run("fit", bad, *[good] * 4, "--again", "--model", tmp_path / "m", *FIT).code == 3  # 200 of 5,000
    assert run("fit", bad, *[good] * 2, "--model", tmp_path / "n", *FIT).code == 1  # 200 of 3,000


def test_learning_on_leaves_the_model_alone_and_evaluate_writes_no_report(run: Run, tmp_path: Path) -> None:
    bad, model, report = with_bad(tmp_path / "a.csv", 100), tmp_path / "m", tmp_path / "r.html"
    assert run("fit", with_bad(tmp_path / "b.csv", 0), "--model", model, *FIT).code == 0
    before = model.read_bytes()
    assert run("learn", model, bad, "-q").code == 1
    assert model.read_bytes() == before
    assert run("evaluate", bad, "--model", model, "--html", report, "-q").code == 1
    assert not report.exists()
    assert run("evaluate", bad, "--model", model, "--html", report, "-q", "--max-rejects", "10%").code == 3


def test_predict_keeps_row_for_row_unless_it_is_given_a_limit(run: Run, tmp_path: Path) -> None:
    model, out = tmp_path / "m", tmp_path / "p.csv"
    assert run("fit", with_bad(tmp_path / "b.csv", 0), "--model", model, *FIT).code == 0
    bad = write_csv(tmp_path / "a.csv", [{**row, "km": "far"} for row in ROWS])
    assert run("predict", model, bad, "--out", out, "-q").code == 3
    assert len(out.read_text().splitlines()) == 1001
    out.unlink()
    assert run("predict", model, bad, "--out", out, "-q", "--max-rejects", "5%").code == 1
    assert not out.exists()


def test_a_stream_is_judged_by_what_has_come(tmp_path: Path) -> None:
    text = with_bad(tmp_path / "a.csv", 30, 300).read_text()
    done = process("fit", "-", "--model", tmp_path / "m", *FIT, input=text)
    assert done.returncode == 1
    assert "30 of 300 rows were rejected" in done.stderr
    assert not (tmp_path / "m").exists()
    log = Rejects(RejectOptions())
    log.add("-", (ODD,) * 900)
    log.judge(999, 0.0)  # more may come
    with pytest.raises(TooManyRejectsError):
        log.judge(1, 0.0)


def test_what_readers_find_out_is_told_once(run: Run, tmp_path: Path) -> None:
    file, model = tmp_path / "a.csv", tmp_path / "m"
    text = write_csv(file, [{**row, "car": "Käfer"} if i > 900 else row for i, row in enumerate(ROWS)]).read_text()
    file.write_bytes(text.replace("km,", "car,", 1).encode("latin-1"))
    done = run("fit", file, "--model", model, "--target", "price")
    assert done.code == 0
    assert done.err == (
        f"{file} is not in UTF-8 and is read as Windows-1252; another encoding can be named (--encoding)\n"
        f"{file}: another column 'car' is called 'car_2'\n"
    )
    done = run("learn", model, file, "--again", "--json", "--encoding", "latin-1")
    assert [event["text"] for event in done.events if event["event"] == "note"] == [
        f"{file}: another column 'car' is called 'car_2'"
    ]


def test_an_encoding_that_shows_late_is_told_in_the_end(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(b"town,price\n" + b"Ulm,1\nBonn,3\n" * 30_000 + "Köln,2\n".encode("latin-1"))
    done = run("fit", file, "--model", tmp_path / "m", "--target", "price")
    assert done.code == 0
    assert done.err.splitlines() == [
        f"{file} is not in UTF-8 and is read as Windows-1252; another encoding can be named (--encoding)"
    ]


def test_a_first_line_of_numbers_may_be_a_row(run: Run, tmp_path: Path) -> None:
    file, model = tmp_path / "a.csv", tmp_path / "m"
    file.write_text("".join(f"{row['km']},{row['price']}\n" for row in ROWS))
    done = run("evaluate", file, "--target", "3")
    assert "if it is a row, say so (--no-header)" in done.err
    assert run("fit", file, "--no-header", "--target", "column_2", "--model", model, "-q").code == 0
    assert onepass.load(model).n_rows == 1000


def test_a_model_made_without_a_header_reads_later_files_without_one(run: Run, tmp_path: Path) -> None:
    file, named, model = tmp_path / "a.csv", tmp_path / "named.csv", tmp_path / "m"
    lines = "".join(f"{row['km']},{row['price']}\n" for row in ROWS[:200])
    file.write_text(lines)
    named.write_text(f"column_1,column_2\n{lines}")
    fitted = ("--target", "column_2", "--model", model, "--model-kind", "perceptron", "-q")
    assert run("fit", file, "--no-header", *fitted).code == 0
    for one in (file, named):
        assert run("predict", model, one, "--out", tmp_path / "out.csv", "-q").code == 0
        assert len((tmp_path / "out.csv").read_text().splitlines()) == 201
        assert run("evaluate", one, "--model", model, "--json").events[-1]["rows"] == 200
        assert onepass.tables.predict(model, one).num_rows == 200
    more = tmp_path / "more.csv"
    more.write_text("".join(f"{row['km']},{row['price']}\n" for row in ROWS[200:300]))
    assert run("learn", model, more, "-q").code == 0
    assert onepass.load(model).n_rows == 300


def test_links_in_a_circle_are_told(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    done = run("fit", tmp_path / "a", "--target", "y", "--model", tmp_path / "m")
    assert (done.code, done.err) == (1, f"onepass: {tmp_path}/a can't be read: Too many levels of symbolic links.\n")


def test_output_that_is_closed_or_full_is_no_traceback(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "m"
    assert run("fit", with_bad(tmp_path / "a.csv", 0), "--model", model, *FIT).code == 0
    script = f"{sys.executable} -m onepass show {model} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (141, "")
    for opened, arguments, words in (
        ("/dev/full", ["show", model], "No space left on device."),
        (None, ["predict", model, tmp_path / "a.csv"], "standard output is closed, so there is nowhere to write to;"),
    ):
        with nullcontext() if opened is None else Path(opened).open("wb", buffering=0) as raw:
            monkeypatch.setattr("sys.stdout", raw and io.TextIOWrapper(raw, write_through=True))
            with pytest.raises(SystemExit, match="1"):
                main([str(argument) for argument in arguments])
        assert words in capfd.readouterr().err


def test_a_row_with_an_absurd_target_is_set_aside_and_told(run: Run, tmp_path: Path) -> None:
    rows = [dict(row) for row in ROWS]
    known, new = write_csv(tmp_path / "known.csv", rows[:500]), tmp_path / "new.csv"
    rows[700]["price"] = 1e12
    write_csv(new, rows[500:])
    model, log = tmp_path / "m", tmp_path / "rejects.csv"
    assert run("fit", known, "--model", model, *FIT).code == 0
    before = onepass.load(model).predict(ROWS[:20])
    done = run("learn", model, new, "--out", tmp_path / "kept", "--rejects", log)
    words = "1 row was set aside: its target is absurdly far from what was predicted"
    assert done.code == 0
    assert words in done.out
    kept = onepass.load(tmp_path / "kept")
    assert (kept.n_rows, kept.n_set_aside, kept.n_rejected) == (1000, 1, 0)
    assert "rows set aside:" not in run("show", model).out
    assert "rows set aside: 1, with targets absurdly far" in " ".join(run("show", tmp_path / "kept").out.split())
    moved = np.abs(np.subtract(kept.predict(ROWS[:20])["mean"], before["mean"]))
    assert moved.max() < np.min(before["std"])
    assert not log.exists() or log.read_text().count("\n") <= 1
    rows[600]["price"] = -1e12
    write_csv(new, rows[500:])
    done = run("evaluate", new, "--model", model)
    assert "2 rows were set aside: their targets are absurdly far from what was predicted" in done.out
    assert run("evaluate", new, "--model", model, "--json").events[-1]["set_aside"] == 2
    assert run("learn", model, new, "--out", tmp_path / "both", "--json").events[-1]["set_aside"] == 2
    assert words not in run("learn", model, write_csv(tmp_path / "calm.csv", ROWS[500:])).out


@pytest.mark.parametrize("how", [("--ignore", "id"), ("--columns", "km,car")])
def test_rejects_have_the_columns_that_are_not_learned_too(run: Run, tmp_path: Path, how: tuple[str, str]) -> None:
    rows = [{"id": f"trip {i}", **row} for i, row in enumerate(ROWS[:300])]
    rows[7]["km"] = rows[9]["km"] = "far"
    file, model, rejects = write_csv(tmp_path / "a.csv", rows), tmp_path / "m", tmp_path / "rejects.csv"
    assert run("fit", file, "--model", model, *FIT, *how, "--rejects", rejects).code == 3
    with rejects.open(newline="") as opened:
        found = [json.loads(row["text"]) for row in csv.DictReader(opened)]
    assert [(row["id"], row["km"]) for row in found] == [("trip 7", "far"), ("trip 9", "far")]
    done = run("predict", model, file, "--out", tmp_path / "out.csv", "--rejects", rejects, "-q")
    assert done.code == 3
    with rejects.open(newline="") as opened:
        assert [json.loads(row["text"])["id"] for row in csv.DictReader(opened)] == ["trip 7", "trip 9"]
    assert onepass.load(model).encoding.unused == {"id"}
