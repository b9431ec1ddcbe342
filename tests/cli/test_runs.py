"""Nothing lost and nothing twice: several runs over one model, from the user's side."""

import calendar
import gzip
import hashlib
import os
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onepass
from onepass.cli.main import main
from onepass.cli.training_run import stoppable
from onepass.files.lock import lock_path, locked
from onepass.tables.inputs import ContentLog
from onepass.tables.model import TabularModel
from onepass.tables.readers.origins import _LocalBytes
from tests.cli.conftest import Done, Run
from tests.helpers.commands import COMMAND, started
from tests.helpers.tables import trips, write_csv, write_jsonl, write_parquet
from tests.helpers.waiting import wait_until

TRIPS = trips(6000)
COLUMNS = ("km", "car", "price")
ROWS = [{name: row[name] for name in COLUMNS} for row in TRIPS]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the first thousand rows."""
    folder = tmp_path_factory.mktemp("made")
    file = write_csv(folder / "start.csv", ROWS[:1000])
    options = ("--target", "price", "--model", str(folder / "start.onepass"), "--shuffle", "off", "-q")
    with pytest.raises(SystemExit, match="0"):
        main(["fit", str(file), *options])
    return folder / "start.onepass"


@pytest.fixture
def model(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(made, tmp_path / "m"))


def n_rows(path: Path) -> int:
    found: int = onepass.load(path).n_rows
    return found


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def kill_after(monkeypatch: pytest.MonkeyPatch, blocks: int, *command: object) -> None:
    """Run a command that dies as if by a kill after so many blocks."""
    learn, count = TabularModel.learn, 0

    def dying(self: TabularModel, rows: Any) -> None:
        nonlocal count
        count += 1
        if count > blocks:
            raise MemoryError("killed")
        learn(self, rows)

    with monkeypatch.context() as patched:
        patched.setattr(TabularModel, "learn", dying)
        with pytest.raises(MemoryError):
            main([str(argument) for argument in command])


def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TabularModel, "rows_per_block", 100)


# One writer at a time.


def test_four_processes_that_wait_for_each_other_learn_all_rows(model: Path, tmp_path: Path) -> None:
    files = [write_csv(tmp_path / f"{i}.csv", ROWS[1000 * i : 1000 * i + 1000]) for i in range(1, 5)]
    command = [*COMMAND, "learn", str(model), "--wait", "5m", "-q"]
    going = [subprocess.Popen([*command, str(file)], stderr=subprocess.PIPE) for file in files]
    for one in going:
        _, errors = one.communicate(timeout=300)
        assert one.returncode == 0, errors
    assert n_rows(model) == 5000
    assert {file.name for file in onepass.load(model).history.files} == {"start.csv", *(file.name for file in files)}
    assert not lock_path(model).exists()


def test_who_writes_a_model_is_told_to_others(run: Run, model: Path, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "a.csv", ROWS[1000:1100])
    before = model.read_bytes()
    with locked(model):
        for command in (["learn", model, file], ["fit", file, "--target", "price", "--model", model], ["undo", model]):
            done = run(*command, "-q")
            assert done.code == 1
            assert f"m is being written by process {os.getpid()} on " in done.err
            assert "; --wait 10m waits for it." in done.err
        assert "for longer than --wait 0.2s" in run("learn", model, file, "--wait", "0.2s").err
        assert run("learn", model, file, "--out", tmp_path / "other", "-q").code == 0  # which only reads it
    assert model.read_bytes() == before
    assert "is not a time such as 30s" in run("learn", model, file, "--wait", "soon").err
    assert run("learn", model, file, "--wait", "-q").code == 0


def test_a_killed_holder_leaves_nothing_locked_and_no_draft(run: Run, model: Path, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "a.csv", ROWS[1000:1100])
    command = [*COMMAND, "learn", str(model), "-", "-q"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as going:  # which waits for rows
        wait_until(lock_path(model).exists, "the lock")
        wait_until(lambda: b"pid" in lock_path(model).read_bytes(), "its holder")
        going.kill()
        going.wait(60)
    assert lock_path(model).exists()
    for name in (".m.0123456789ab.part", ".m.partial.ba9876543210.part"):
        (tmp_path / name).write_bytes(b"half")
    assert run("learn", model, file, "-q").code == 0
    assert {name for name in names(tmp_path) if "previous" not in name} == {"m", "a.csv"}


def test_what_somebody_else_wrote_meanwhile_is_not_written_over(
    run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_csv(tmp_path / "a.csv", ROWS[1000:1100])
    learn = TabularModel.learn

    def disturbed(self: TabularModel, rows: Any) -> None:
        learn(self, rows)
        other = onepass.load(model)
        other.n_rejected = 77
        onepass.save(other, model)

    with monkeypatch.context() as patched:
        patched.setattr(TabularModel, "learn", disturbed)
        done = run("learn", model, file, "-q")
    assert done.code == 1
    assert "was changed by something else during this run" in done.err
    assert f"the model that this run learned is in {model}.learned." in done.err
    assert (n_rows(model), onepass.load(model).n_rejected) == (1000, 77)
    assert n_rows(tmp_path / "m.learned") == 1100
    assert names(tmp_path) == {"m", "m.learned", "a.csv"}


# What was learned is known.


def learned(done: Done) -> int:
    assert done.code == 0, done
    rows: int = done.events[-1]["rows"]
    return rows


def test_a_file_is_learned_once_under_any_name_until_it_is_asked_for_again(
    run: Run, model: Path, tmp_path: Path
) -> None:
    a, b = (write_csv(tmp_path / f"{name}.csv", ROWS[i : i + 500]) for name, i in (("a", 1000), ("b", 2000)))
    for file in (a, b):
        assert learned(run("learn", model, file, "--json")) == 500
    shutil.copy(a, tmp_path / "copy.csv")
    for more in ([], ["--resume"]):
        before = model.read_bytes()
        done = run("learn", model, a, tmp_path / "copy.csv", *more, "--json")
        assert learned(done) == 0
        assert model.read_bytes() == before
        told = [event["text"] for event in done.events if event["event"] == "note"]
        assert told[0].startswith(f"{a} was learned on 2023-11-14T22:13:20Z and is left out; --again")
        assert "copy.csv was learned on 2023-11-14T22:13:20Z as a.csv" in told[1]
    c = write_csv(tmp_path / "c.csv", ROWS[3000:3100])
    assert learned(run("learn", model, a, c, b, "--json")) == 100
    assert learned(run("learn", model, a, "--again", "--json")) == 500
    assert n_rows(model) == 2600


@pytest.mark.parametrize("command", ["fit", "learn"])
def test_a_file_that_is_given_several_times_counts_once(
    run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "a.csv", ROWS[1000:1100])
    os.symlink("a.csv", "link.csv")
    shutil.copy("a.csv", "copy.csv")
    start = ["fit", "--target", "price", "--model", "new"] if command == "fit" else ["learn", model]
    given = ["a.csv", "./a.csv", "link.csv", "copy.csv"]
    done = run(*start, *given, "--json")
    assert learned(done) == 100
    told = [event["text"] for event in done.events if event["event"] == "note"]
    assert [words.split(" ")[0] for words in told] == ["./a.csv", "link.csv", "copy.csv"]
    assert "has the same content as a.csv and is left out" in told[2]
    assert learned(run(*start, *given, "--again", "--json")) == 400


@pytest.mark.parametrize("write", [write_csv, write_jsonl])
def test_a_file_that_has_grown_is_learned_from_where_it_ended(
    run: Run, model: Path, tmp_path: Path, write: Callable[[Path, Any], Path]
) -> None:
    file = write(tmp_path / "log", ROWS[1000:1300])
    assert learned(run("learn", model, file, "--json")) == 300
    for end, new in ((1350, 50), (1350, 0), (2000, 650)):
        write(file, ROWS[1000:end])
        done = run("learn", model, file, "--json")
        assert learned(done) == new
    assert "has grown since it was learned on 2023-11-14T22:13:20Z; learned from row 351 on" in done.events[0]["text"]
    whole = write_csv(tmp_path / "whole", ROWS[:2000])
    at_once = (
        "fit",
        whole,
        "--target",
        "price",
        "--model",
        tmp_path / "w",
        "--sample",
        "1000",
        "--shuffle",
        "off",
        "-q",
    )
    assert run(*at_once).code == 0
    np.testing.assert_allclose(
        onepass.load(model).estimator.coef_, onepass.load(tmp_path / "w").estimator.coef_, rtol=1e-9
    )


def test_a_last_line_that_was_completed_later_is_neither_lost_nor_learned_twice(
    run: Run, model: Path, tmp_path: Path
) -> None:
    file = tmp_path / "log.csv"
    file.write_text("km,car,price\n1.5,van,12.1\n2.5,van,13")
    assert learned(run("learn", model, file, "--json")) == 2
    file.write_text("km,car,price\n1.5,van,12.1\n2.5,van,13\n3.5,van,15.5\n")  # it was whole
    assert learned(run("learn", model, file, "--json")) == 1
    other = tmp_path / "other.csv"
    other.write_text("km,car,price\n1.6,van,12.1\n2.6,van,13")
    assert learned(run("learn", model, other, "--json")) == 2
    other.write_text("km,car,price\n1.6,van,12.1\n2.6,van,13.75\n3.6,van,15.5\n")
    done = run("learn", model, other, "-q")
    assert done.code == 1
    assert "when its last line was not whole, so that one row would be learned twice; --again learns all" in done.err
    assert learned(run("learn", model, other, "--again", "--json")) == 3


def test_a_grown_gzip_is_refused_and_a_changed_file_is_another(run: Run, model: Path, tmp_path: Path) -> None:
    zipped = write_csv(tmp_path / "a.csv.gz", ROWS[1000:1200])
    assert learned(run("learn", model, zipped, "--json")) == 200
    assert learned(run("learn", model, zipped, "--json")) == 0
    with zipped.open("ab") as opened:
        opened.write(gzip.compress(b"3.5,van,15.5\n"))
    done = run("learn", model, zipped, "-q")
    assert done.code == 1
    assert "such a file can't be learned from there on; --again learns all of it once more" in done.err
    parquet = write_parquet(tmp_path / "a.parquet", ROWS[2000:2100])
    for end, new in ((2100, 100), (2100, 0), (2150, 150)):
        write_parquet(parquet, ROWS[2000:end])
        assert learned(run("learn", model, parquet, "--json")) == new


def test_a_file_that_grows_while_it_is_read_is_learned_up_to_where_it_ended(
    run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_blocks(monkeypatch)
    file = write_csv(tmp_path / "log.csv", ROWS[1000:1500])
    content = file.read_text()
    file.write_text(content + "9.5,va")  # the writer's buffer was full
    read = _LocalBytes.read

    def grown(self: _LocalBytes, n: int) -> bytes:
        if self.name == str(file) and self.at and file.stat().st_size == self.size:
            with file.open("a") as end:
                end.write("n,28.5\n1,van,3.1\n")
        return read(self, n)

    with monkeypatch.context() as patched:
        patched.setattr(_LocalBytes, "read", grown)
        assert learned(run("learn", model, file, "--json")) == 500
    assert [one.size for one in onepass.load(model).history.runs[-1].files] == [len(content)]
    assert learned(run("learn", model, file, "--json")) == 2


@pytest.mark.parametrize("how", ["cut", "changed", "gone"])
def test_a_file_that_changes_while_it_is_read_is_an_error(
    run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    file, before = write_csv(tmp_path / "a.csv", ROWS[1000:5000]), model.read_bytes()
    content = file.read_bytes()
    so_far = ContentLog.so_far

    def disturbed(self: ContentLog, share: float) -> Any:
        found = so_far(self, share)
        if how == "cut":
            os.truncate(file, len(content) // 2)
        elif how == "changed":
            file.write_bytes(content.replace(b"van", b"bus"))
        else:
            file.unlink(missing_ok=True)
        return found

    small_blocks(monkeypatch)
    monkeypatch.setattr(ContentLog, "so_far", disturbed)
    done = run("learn", model, file, "-q")
    assert done.code == 1
    words = {
        "cut": "became shorter while it was read, from ",
        "changed": "was changed while",
        "gone": "can't be read any more",
    }
    assert words[how] in done.err
    assert model.read_bytes() == before


# Resuming.


@pytest.fixture
def interrupted(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The command of a run that was killed in the middle of its second file."""
    small_blocks(monkeypatch)
    a, b = write_csv(tmp_path / "a.csv", ROWS[1000:1500]), write_csv(tmp_path / "b.csv", ROWS[2000:3000])
    command = ["learn", model, a, b, "--checkpoint-every", "100", "-q"]
    kill_after(monkeypatch, 9, *command)
    assert (tmp_path / "m.partial").exists()
    return command


def test_a_run_is_resumed_only_from_the_model_that_it_started_from(
    run: Run, model: Path, tmp_path: Path, interrupted: list[Any]
) -> None:
    start = model.read_bytes()
    other = onepass.load(model)
    other.n_rejected = 5
    onepass.save(other, model)
    done = run(*interrupted, "--resume")
    assert done.code == 1
    assert "was changed since the interrupted run started" in done.err
    model.write_bytes(start)
    assert run(*interrupted, "--resume").code == 0
    assert n_rows(model) == 2500


def test_a_change_of_what_was_learned_is_found_wherever_it_is(
    run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{**row, "text": "x" * 2000} for row in ROWS[1000:4000]]  # 6 MB
    file = write_csv(tmp_path / "a.csv", rows)
    small_blocks(monkeypatch)
    command = ["learn", model, file, "--checkpoint-every", "100", "-q"]
    kill_after(monkeypatch, 20, *command)
    content = bytearray(file.read_bytes())
    content[3_000_000] ^= 1
    file.write_bytes(content)
    done = run(*command, "--resume")
    assert done.code == 1
    assert "a.csv has changed since the run was interrupted" in done.err
    content[3_000_000] ^= 1
    file.write_bytes(content)
    assert run(*command, "--resume").code == 0
    assert n_rows(model) == 4000


def test_a_resumed_run_leaves_alone_what_came_later_and_the_next_learns_it(
    run: Run, model: Path, tmp_path: Path, interrupted: list[Any]
) -> None:
    write_csv(tmp_path / "b.csv", ROWS[2000:3200])
    assert run(*interrupted, "--resume").code == 0
    assert n_rows(model) == 2500
    assert [file.rows for file in onepass.load(model).history.runs[-1].files] == [500, 1000]
    assert run(*interrupted).code == 0
    assert n_rows(model) == 2700


def test_a_run_killed_between_its_last_two_steps_has_ended(
    run: Run, model: Path, tmp_path: Path, interrupted: list[Any]
) -> None:
    partial = (tmp_path / "m.partial").read_bytes()
    assert run(*interrupted, "--resume").code == 0
    ended = model.read_bytes()
    for more in ([], ["--resume"]):
        (tmp_path / "m.partial").write_bytes(partial)
        assert run(*interrupted, *more).code == 0
        assert model.read_bytes() == ended
        assert not (tmp_path / "m.partial").exists()


def test_a_kill_loses_no_row_and_learns_none_twice(model: Path, tmp_path: Path) -> None:
    a, b = (write_csv(tmp_path / f"{i}.csv", ROWS[i : i + 1000]) for i in (1000, 2000))
    command = [*COMMAND, "learn", str(model), str(a), str(b), "--passes", "30", "--checkpoint-every", "1", "-q"]
    with started(command) as going:
        wait_until((tmp_path / "m.partial").exists, "a checkpoint")
        going.kill()
    done = subprocess.run([*command, "--resume"], capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert n_rows(model) == 1000 + 30 * 2000
    assert names(tmp_path) - {"1000.csv", "2000.csv", "m"} == {path.name for path in tmp_path.glob("m.previous-*")}


# Stopping.


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="a system without SIGHUP")
def test_the_end_of_a_terminal_stops_a_run_as_an_interruption_does(model: Path, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "a.csv", ROWS[1000:])
    command = [*COMMAND, "learn", str(model), str(file), "--passes", "100000", "--checkpoint-every", "1"]
    with started(command) as going:
        wait_until((tmp_path / "m.partial").exists, "a checkpoint")
        going.send_signal(signal.SIGHUP)
        _, errors = going.communicate(timeout=60)
    assert going.returncode == 130
    assert "interrupted after" in errors


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="a system without SIGHUP")
def test_a_signal_that_nohup_has_ignored_stays_ignored(run: Run) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert run("--version").code == 0
        with stoppable() as stopping:
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            signal.raise_signal(signal.SIGTERM)
            assert stopping()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_block_of_any_model_is_short(tmp_path: Path) -> None:
    """Blocks of 953 classes, which took minutes, are a few rows."""
    rng = np.random.default_rng(0)
    rows = [
        {**{f"x{i}": f"{x:.3f}" for i, x in enumerate(rng.normal(size=20))}, "y": f"k{n % 953}"} for n in range(2000)
    ]
    file = write_csv(tmp_path / "a.csv", rows)
    command = [*COMMAND, "fit", str(file), "--target", "y", "--model", str(tmp_path / "m"), "--checkpoint-every", "1"]
    with started([*command, "--passes", "1000"]) as going:
        wait_until((tmp_path / "m.partial").exists, "a checkpoint")
        first = onepass.load(tmp_path / "m.partial").n_rows
        going.send_signal(signal.SIGTERM)
        _, errors = going.communicate(timeout=60)
    assert (going.returncode, first < 2000) == (130, True), errors


def test_a_row_that_would_take_seconds_is_refused(run: Run, tmp_path: Path) -> None:
    rows = [{"x": i * 0.1, "z": i % 7, "y": f"k{i}"} for i in range(900)]
    file = write_csv(tmp_path / "a.csv", rows)
    for more in (["--hidden", "50"], ["--covariance", "full"]):
        done = run("fit", file, "--target", "y", "--model", tmp_path / "m", *more, "-q")
        assert done.code == 1
        assert "s, with 900 outputs" in done.err
        assert "use a cheaper covariance" in done.err


# Back, and elsewhere.


def test_undo_takes_back_the_last_run_and_no_more(run: Run, model: Path, tmp_path: Path) -> None:
    versions = [model.read_bytes()]
    for i in (1000, 2000):
        assert run("learn", model, write_csv(tmp_path / f"{i}.csv", ROWS[i : i + 100]), "-q").code == 0
        versions.append(model.read_bytes())
    assert len(list(tmp_path.glob("m.previous-*"))) == 1
    done = run("undo", model)
    assert (done.code, done.out) == (
        0,
        f"{model} is what it was before its last run: it has seen 1,100 rows, no longer 1,200\n",
    )
    assert model.read_bytes() == versions[1]
    done = run("undo", model)
    assert done.code == 1
    assert "can't be undone: only one earlier model is kept" in done.err
    assert run("learn", model, tmp_path / "2000.csv", "-q").code == 0  # its files are not known any more
    assert model.read_bytes() == versions[2]
    model.write_bytes(versions[0])
    done = run("undo", model)
    assert done.code == 1
    assert "was changed after its last run, so that run can't be undone" in done.err
    assert run("undo", tmp_path / "none").code == 1
    model.write_bytes(versions[2])
    (tmp_path / "m.partial").write_bytes(b"")
    assert "is the progress of an interrupted run of this model" in run("undo", model).err
    (tmp_path / "m.partial").unlink()
    assert run("undo", model, "--json").events[-1] == {
        "event": "done",
        "model": str(model),
        "rows_before": 1200,
        "rows_in_all": 1100,
    }


def test_a_fit_that_replaced_a_model_can_be_undone(run: Run, model: Path, tmp_path: Path) -> None:
    before = model.read_bytes()
    file = write_csv(tmp_path / "a.csv", ROWS[1000:1100])
    assert run("fit", file, "--target", "price", "--model", model, "-q").code == 0
    assert n_rows(model) == 100
    assert run("undo", model, "-q").code == 0
    assert model.read_bytes() == before
    same = write_csv(tmp_path / "b.csv", ROWS[1000:2000])
    assert run("fit", same, "--target", "price", "--model", model, "-q").code == 0
    assert run("undo", model).out.endswith("it has seen 1,000 rows, as before\n")


def test_learning_into_another_file_leaves_the_model_alone(
    run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, before, out = write_csv(tmp_path / "a.csv", ROWS[1000:2000]), model.read_bytes(), tmp_path / "new"
    small_blocks(monkeypatch)
    command = ["learn", model, file, "--out", out, "--checkpoint-every", "100", "-q"]
    kill_after(monkeypatch, 5, *command)
    assert names(tmp_path) == {"m", "a.csv", "new.partial"}
    assert run(*command, "--resume").code == 0
    assert model.read_bytes() == before
    assert names(tmp_path) == {"m", "a.csv", "new"}
    assert run("learn", model, file, "-q").code == 0
    assert model.read_bytes() == out.read_bytes()
    done = run("learn", model, file, "--out", model)
    assert done.code == 2
    assert "is also an input" in done.err


def test_history_lists_the_runs(run: Run, model: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("km,car,price\n1.5,van,12.1\n2.5,van,bad\n")
    assert run("learn", model, file, "--passes", "2", "-q").code == 3
    done = run("history", model)
    assert done.code == 0
    assert [line.split(", ", 1)[1] for line in done.out.splitlines()] == [
        "1,000 rows, 0 rejected, from start.csv",
        "2 rows in 2 passes, 2 rejected, from a.csv",
    ]
    event = run("history", model, "--json").events[-1]
    (found,) = event["files"]
    assert (event["event"], event["rows"], event["rejected"], event["when"]) == ("run", 2, 2, "2023-11-14T22:13:20Z")
    assert (found["name"], found["bytes"], found["rows"]) == ("a.csv", file.stat().st_size, 2)
    assert found["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()


def test_a_stream_is_a_run_of_its_own(run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    with write_jsonl(tmp_path / "a.jsonl", ROWS[1000:1010]).open() as opened:
        monkeypatch.setattr("sys.stdin", opened)
        assert run("learn", model, "-", "-q").code == 0
    last = onepass.load(model).history.runs[-1]
    assert (last.rows, last.files) == (10, ())
    assert abs(time.time() - calendar.timegm(time.strptime(last.when, "%Y-%m-%dT%H:%M:%SZ"))) < 600


def test_a_run_that_ends_with_too_many_rejects_leaves_no_progress_behind(
    run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, small = tmp_path / "a.csv", ["--checkpoint-every", "10"]
    rows = [f"{i / 10},van,{12 + i / 10}" for i in range(3000)] + [f"{i},van,none" for i in range(3000)]
    file.write_text("\n".join(["km,car,price", *rows, ""]))
    small_blocks(monkeypatch)
    for _ in range(2):
        done = run("learn", model, file, *small, "-q")
        assert (done.code, names(tmp_path)) == (1, {"m", "a.csv"}), done
        assert "more than --max-rejects" in done.err
    assert n_rows(model) == 1000


# Parts of files.


def notes(done: Done) -> list[str]:
    return [event["text"] for event in done.events if event["event"] == "note"]


def test_rows_that_may_count_twice_are_told(run: Run, model: Path, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "a.csv", ROWS[1000:1200])
    some = learned(run("learn", model, file, "--where", "km > 10", "--json"))
    assert 0 < some < 200
    assert learned(run("learn", model, file, "--where", "km > 10", "--json")) == 0
    for more, new in ((["--where", "km > 10.0"], some), ([], 200), (["--where", "km < 5"], 0), ([], 0)):
        done = run("learn", model, file, *more, "--json")
        assert learned(done) == new
        told = "was learned on 2023-11-14T22:13:20Z" + (", with where km > 10" if new else " and is left out")
        assert told in notes(done)[0]
        assert ("count twice" in notes(done)[0]) == (new > 0)


def test_a_file_that_was_learned_whole_and_has_grown_is_not_learned_by_a_condition(
    run: Run, model: Path, tmp_path: Path
) -> None:
    file = write_csv(tmp_path / "a.csv", ROWS[1000:1200])
    assert learned(run("learn", model, file, "--json")) == 200
    write_csv(file, ROWS[1000:1300])
    done = run("learn", model, file, "--where", "km > 10", "-q")
    assert done.code == 1
    assert "with all rows, so that it is unknown which of the rows that a condition keeps are new; " in done.err
    assert learned(run("learn", model, file, "--json")) == 100


def test_a_table_of_a_database_is_the_same_named_or_not(run: Run, model: Path, tmp_path: Path) -> None:
    file = tmp_path / "data.db"

    def insert(table: str, begin: int, end: int) -> None:
        with closing(sqlite3.connect(file)) as opened:
            opened.execute(f"create table if not exists {table} (km, car, price)")
            opened.executemany(f"insert into {table} values (:km, :car, :price)", ROWS[begin:end])
            opened.commit()

    insert("t", 1000, 1100)
    assert learned(run("learn", model, file, "--json")) == 100
    for more in (["--table", "t"], [], ["--where", "km > 10"]):
        assert learned(run("learn", model, file, *more, "--json")) == 0
    done = run("learn", model, file, "--sql", "select * from t limit 10", "--json")
    assert learned(done) == 10
    assert "with table t; rows that were learned then and are read now as well count twice" in notes(done)[0]
    insert("u", 1100, 1110)
    done = run("learn", model, file, "--table", "u", "--json")
    assert (learned(done), notes(done)) == (10, [])
    done = run("learn", model, file, "--table", "t", "--json")
    assert learned(done) == 100
    assert "data.db has another content than what was learned on" in notes(done)[0]


def test_a_model_that_has_nothing_to_learn_is_written_elsewhere_all_the_same(
    run: Run, model: Path, tmp_path: Path
) -> None:
    file = write_csv(tmp_path / "start.csv", ROWS[:1000])
    done = run("learn", model, file, "--out", tmp_path / "new", "--json")
    assert (learned(done), done.events[-1]["model"]) == (0, str(tmp_path / "new"))
    assert (tmp_path / "new").read_bytes() == model.read_bytes()


def test_copies_are_no_other_files_when_a_model_is_made_anew(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(write_csv(tmp_path / "a.csv", ROWS[:100]), "b.csv")
    for _ in range(2):
        assert run("fit", "a.csv", "b.csv", "--target", "price", "-q").code == 0
    write_csv(tmp_path / "b.csv", ROWS[:200])
    assert "is not a model of 'price' learned from these files" in run("fit", "a.csv", "b.csv", "--target", "price").err


@pytest.mark.parametrize("cut", ["2.5,va", "2.5,van,1e"])
def test_a_last_line_that_was_rejected_is_learned_once_it_is_whole(
    run: Run, model: Path, tmp_path: Path, cut: str
) -> None:
    file = tmp_path / "log.csv"
    file.write_text(f"km,car,price\n1.5,van,12.1\n{cut}")
    assert run("learn", model, file, "-q", "--max-rejects", "100%").code == 3
    assert learned(run("learn", model, file, "--json")) == 0
    file.write_text(
        "km,car,price\n1.5,van,12.1\n" + {"2.5,va": "2.5,van,13"}.get(cut, "2.5,van,1e1") + "\n3,van,15.5\n"
    )
    assert learned(run("learn", model, file, "--json")) == 2
    assert n_rows(model) == 1003
    assert learned(run("learn", model, file, "--json")) == 0
