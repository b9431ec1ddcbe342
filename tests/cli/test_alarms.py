"""Targets that are not to be trusted, from the user's side: what is told of them, and what they do no harm to."""

import csv
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onepass
from onepass.cli.main import main
from onepass.estimators.base import OUTLIERS
from onepass.estimators.rows import Rows
from onepass.tables.alarms import AlarmDetector
from onepass.tables.description import _drift_believed
from onepass.tables.model import TabularModel
from tests.helpers.commands import COMMAND
from tests.helpers.tables import write_csv, write_parquet
from tests.helpers.waiting import wait_until

SPIKES = (3, 500, 1200)
JUMP = 600  # of the second file


def sensor(n: int, seed: int, spikes: tuple[int, ...] = (), jump: int | None = None) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        flow, temp = rng.normal(5.0, 2.0), rng.normal(20.0, 3.0)
        level = 3.0 * flow - 0.5 * temp + 0.5 * rng.normal() + (12.0 if jump is not None and i >= jump else 0.0)
        rows.append({"flow": flow, "temp": temp, "level": level * (1000.0 if i in spikes else 1.0)})
    return rows


CALM, BUSY = sensor(2000, 0, SPIKES), sensor(1000, 1, (100, 900), JUMP)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sensor")
    write_csv(folder / "calm.csv", CALM)
    write_csv(folder / "busy.csv", BUSY)
    write_parquet(folder / "busy.parquet", BUSY)
    return folder


def alarms(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as opened:
        return list(csv.DictReader(opened))


def places(path: Path, kind: str) -> list[tuple[str, int]]:
    return [(Path(one["file"]).name, int(one["line"])) for one in alarms(path) if one["kind"] == kind]


@pytest.mark.parametrize(
    "options", [(), ("--drift", "auto"), ("--hidden", "8")], ids=["perceptron", "drift", "network"]
)
def test_outliers_and_changes_are_listed_where_they_are(
    run: Any, data: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    model, found = tmp_path / "m", tmp_path / "alarms.csv"
    arguments = ("--target", "level", "--outliers", "0.05", *options, "--model", model, "--alarms", found)
    code, out, _ = run("fit", data / "calm.csv", data / "busy.csv", *arguments)
    assert code == 0
    calm = [line for file, line in places(found, "outlier") if file == "calm.csv"]
    busy = [line for file, line in places(found, "outlier") if file == "busy.csv"]
    assert {i + 2 for i in SPIKES} <= set(calm)  # after the heading, from 1 on
    assert {102, 902} <= set(busy)
    assert len(calm) + len(busy) <= 20
    ((file, line),) = places(found, "change")
    assert file == "busy.csv"
    assert JUMP + 2 <= line <= JUMP + 12
    counts = len(calm) + len(busy)
    assert f"alarms: {counts} outliers and 1 change; see {found}\n" in out
    (spike,) = (one for one in alarms(found) if one["line"] == "1202" and one["kind"] == "outlier")
    assert float(spike["target"]) == pytest.approx(CALM[1200]["level"], rel=1e-6)
    assert float(spike["predicted"]) == pytest.approx(CALM[1200]["level"] / 1000.0, abs=3.0)
    assert float(spike["probability"]) > 0.99
    _, out, _ = run("show", model, "--weights", "0")
    assert "outliers now:" in out
    assert "of the targets can't be trusted" in out
    assert "a share of 0.05 to begin with, then learned" in out
    assert ("drift now:     none with probability " in out) == ("--drift" in options)


def test_alarms_change_nothing_in_the_model(run: Any, data: Path, tmp_path: Path) -> None:
    for name, options in (("plain", ()), ("watched", ("--alarms", tmp_path / "alarms.csv"))):
        arguments = ("--target", "level", "--outliers", "0.05", "--drift", "auto", "--model", tmp_path / name, "-q")
        assert run("fit", data / "calm.csv", data / "busy.csv", *arguments, *options)[0] == 0
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "watched").read_bytes()


def test_one_wild_target_does_no_harm(run: Any, data: Path, tmp_path: Path) -> None:
    weights = []
    clean = write_csv(tmp_path / "clean.csv", sensor(2000, 0))
    for file, share in ((clean, 0.0), (data / "calm.csv", 0.05), (data / "calm.csv", 0.0)):
        options = ("--target", "level", "--outliers", share, "--shuffle", "off", "--model", tmp_path / "m", "-q")
        assert run("fit", file, *options)[0] == 0
        model = onepass.load(tmp_path / "m")
        weights.append(model.estimator.coef_ * model.target.scale)
    np.testing.assert_allclose(weights[1], weights[0], atol=0.05)
    assert abs(weights[2] - weights[0]).max() > 1.0


def test_wild_numbers_do_not_set_the_scale_of_their_column(run: Any, tmp_path: Path) -> None:
    rows = sensor(500, 4)
    rows[7]["flow"] *= 1e6
    file = write_csv(tmp_path / "a.csv", rows)
    scales = {}
    for share in (0.0, 0.05):
        run("fit", file, "--target", "level", "--outliers", share, "--model", tmp_path / "m", "-q")
        scales[share] = next(one for one in onepass.load(tmp_path / "m").encoding.columns if one.name == "flow").scale
    assert scales[0.05] == pytest.approx(2.0, rel=0.1)
    assert scales[0.0] > 1e4


def test_scores_of_the_rows_believed_stand_beside_those_of_all(run: Any, data: Path, tmp_path: Path) -> None:
    html = tmp_path / "report.html"
    code, out, _ = run("evaluate", data / "calm.csv", "--target", "level", "--outliers", "0.05", "--html", html)
    assert code == 0
    assert "3 targets not trusted" in out
    assert "Targets not trusted" in html.read_text()
    _, out, _ = run("evaluate", data / "calm.csv", "--target", "level", "--outliers", "0.05", "--json")
    done = json.loads(out.splitlines()[-1])
    everything, believed = done["scores"]["onepass"], done["scores"]["onepass, rows believed"]
    assert done["outliers"] == 3
    assert believed["rmse"] < 1.0 < 100.0 < everything["rmse"]
    assert everything["log_likelihood"] == pytest.approx(believed["log_likelihood"], abs=0.1)
    _, out, _ = run("evaluate", data / "calm.csv", "--target", "level", "--json")
    done = json.loads(out.splitlines()[-1])
    assert done["scores"]["onepass"]["log_likelihood"] < everything["log_likelihood"] - 1.0
    assert "outliers" not in done
    assert "onepass, rows believed" not in done["scores"]


def test_classes_and_counts_have_alarms_too(run: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=1500)
    labels = np.where(x > 0.0, "wet", "dry")
    labels[1400], x[1400] = "dry", 3.0
    counts = rng.poisson(np.exp(1.0 + 0.5 * x))
    counts[1300] = 5000
    file = write_csv(
        tmp_path / "a.csv",
        [{"x": a, "kind": str(b), "n": int(c)} for a, b, c in zip(x, labels, counts, strict=True)],
    )
    options = ("--outliers", "0.05", "--model", tmp_path / "m", "--alarms", tmp_path / "alarms.csv", "--columns", "x")
    assert run("fit", file, "--target", "kind", *options)[0] == 0
    (wrong,) = (one for one in alarms(tmp_path / "alarms.csv") if one["line"] == "1402")
    assert (wrong["kind"], wrong["target"], wrong["predicted"]) == ("outlier", "dry", "wet")
    assert run("fit", file, "--target", "n", "--task", "counts", *options)[0] == 0
    (wild,) = (one for one in alarms(tmp_path / "alarms.csv") if one["line"] == "1302")
    assert (wild["kind"], wild["target"]) == ("outlier", "5000")


def test_lines_are_counted_as_those_of_rejected_rows_are(run: Any, data: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    run("fit", data / "calm.csv", "--target", "level", "--outliers", "0.05", "--model", model, "-q")
    lines = (data / "busy.csv").read_text().splitlines()
    lines.insert(50, "oops")
    lines.insert(60, "1,2,")
    (tmp_path / "busy.csv").write_text("\n".join(lines) + "\n")
    found, bad = tmp_path / "alarms.csv", tmp_path / "bad.csv"
    code, out, _ = run(
        "learn", model, tmp_path / "busy.csv", data / "busy.parquet", "--alarms", found, "--rejects", bad
    )
    assert code == 3
    assert "3 changes" in out  # up, down with the second file, and up again
    assert [one["line"] for one in alarms(bad)] == ["51", "61"]
    outliers = places(found, "outlier")
    assert ("busy.csv", 104) in outliers
    assert ("busy.parquet", 101) in outliers  # rows from 1 on


def test_alarms_of_a_stream_are_there_as_they_come(run: Any, data: Path, tmp_path: Path) -> None:
    model, found = tmp_path / "m", tmp_path / "alarms.csv"
    run("fit", data / "calm.csv", "--target", "level", "--outliers", "0.05", "--model", model, "-q")
    command = [*COMMAND, "learn", str(model), "-", "--alarms", str(found), "--json"]
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, text=True, **pipes) as going:
        assert going.stdin is not None
        for row in BUSY[:101]:
            going.stdin.write(json.dumps(row) + "\n")
        going.stdin.flush()
        wait_until(lambda: found.exists() and found.read_text().count("\n") == 2, "the heading and an alarm")
        going.kill()
    assert places(found, "outlier") == [("standard input", 101)]


def test_a_run_cut_anywhere_ends_with_the_same_alarms(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = sensor(20_000, 3, tuple(range(10, 20_000, 997)), 12_000)
    file = write_csv(tmp_path / "a.csv", rows)
    options = ["fit", str(file), "--target", "level", "--outliers", "0.05", "-q", "--passes", "2"]
    options += ["--checkpoint-every", "1"]

    def files(name: str) -> list[str]:
        return ["--model", str(tmp_path / f"{name}.onepass"), "--alarms", str(tmp_path / f"{name}.csv")]

    assert run(*options, *files("whole"))[0] == 0
    whole = (tmp_path / "whole.csv").read_bytes()
    assert whole.count(b"outlier") >= 20
    assert whole.count(b"change") >= 1
    assert run(*options[:-4], *files("once"))[0] == 0
    assert (tmp_path / "once.csv").read_bytes() == whole  # a second pass tells nothing new
    learn = AlarmDetector.learn
    for cut in (1, 2, 3):
        count = 0

        def dying(self: AlarmDetector, rows: Rows, file: str, cut: int = cut) -> None:
            nonlocal count
            count += 1
            learn(self, rows, file)
            if count == cut:
                raise MemoryError("killed")

        with monkeypatch.context() as patched:
            patched.setattr(AlarmDetector, "learn", dying)
            with pytest.raises(MemoryError):
                main([*options, *files(f"cut{cut}")])
        assert run(*options, *files(f"cut{cut}"), "--resume")[0] == 0
        assert (tmp_path / f"cut{cut}.csv").read_bytes() == whole
        assert (tmp_path / f"cut{cut}.onepass").read_bytes() == (tmp_path / "whole.onepass").read_bytes()


def test_the_file_of_another_run_is_not_cut(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_csv(tmp_path / "a.csv", sensor(9000, 3, (10, 20)))
    options = ["fit", str(file), "--target", "level", "--outliers", "0.05", "-q", "--checkpoint-every", "1"]
    options += ["--model", str(tmp_path / "m"), "--alarms", str(tmp_path / "alarms.csv")]
    learn = AlarmDetector.learn

    def dying(self: AlarmDetector, rows: Rows, file: str) -> None:
        if self._model.n_rows:
            raise MemoryError("killed")
        learn(self, rows, file)

    with monkeypatch.context() as patched:
        patched.setattr(AlarmDetector, "learn", dying)
        with pytest.raises(MemoryError):
            main(options)
    (tmp_path / "alarms.csv").write_text("something else that is long enough to have been the file of that run\n" * 9)
    code, _, err = run(*options, "--resume")
    assert code == 1
    assert "is not the file that the interrupted run wrote" in err


def test_a_model_of_labels_that_trusts_everything_has_no_alarms(run: Any, tmp_path: Path) -> None:
    model, found, file = tmp_path / "m", tmp_path / "alarms.csv", tmp_path / "labels.csv"
    file.write_text("x,kind\n" + "1.5,good\n-1.5,bad\n" * 200)
    for options in ((), ("--drift", "0.01")):
        code, _, err = run("fit", file, "--target", "kind", *options, "--model", model, "--alarms", found)
        assert code == 2
        assert "--outliers" in err
        assert "--drift auto" in err
        assert not model.exists()
        assert not found.exists()
    run("fit", file, "--target", "kind", "--model", model, "-q")
    code, _, err = run("learn", model, file, "--again", "--alarms", found)
    assert code == 2
    assert "--alarms needs a model of numbers" in err
    assert not found.exists()


def test_numbers_that_are_set_aside_are_listed(run: Any, data: Path, tmp_path: Path) -> None:
    model, found, file = tmp_path / "m", tmp_path / "alarms.csv", tmp_path / "absurd.csv"
    assert run("fit", data / "calm.csv", "--target", "level", "--shuffle", "off", "--model", model, "-q")[0] == 0
    header, *rows = (data / "calm.csv").read_text().splitlines()
    place = header.split(",").index("level")
    fields = rows[7].split(",")
    fields[place] = "1e12"
    file.write_text("\n".join([header, *rows[:7], ",".join(fields), *rows[8:40], ""]))
    code, out, _ = run("learn", model, file, "--alarms", found)
    assert code == 0
    assert "1 row was set aside" in out
    assert "alarms: 1 outlier and 0 changes" in out
    _, line = found.read_text().splitlines()
    assert line.startswith(f"{file},9,outlier,1.0000,1e+12,")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--outliers", "0.5"), "0.5 is not in the range 0.0<=x<0.5"),
        (("--outliers", "many"), "'many' is not a valid float"),
        (("--outliers", "5%"), "'5%' is a percentage; as a share of 1 write 0.05."),
        (("--outliers", "x%"), "'x%' is not a valid float"),
        (("--outliers", "0.1", "--alarms", "-"), "'-' is not a file name"),
        (("--rejects", "-"), "'-' is not a file name"),
        (
            ("--drift", "auto", "--forgetting", "0.9"),
            "--drift auto finds out by itself how fast old rows lose their weight",
        ),
        (("--drift", "auto", "--passes", "3"), "and needs --passes 1, got 3"),
        (("--outliers", "0.1", "--alarms", "{data}/calm.csv"), "is also an input"),
        (("--outliers", "0.1", "--alarms", "/nowhere/alarms.csv"), "cannot write to --alarms /nowhere/alarms.csv"),
        (
            ("--outliers", "0.1", "--alarms", "{out}", "--executor", "dask"),
            "--alarms can't be used with --executor dask",
        ),
    ],
)
def test_what_can_not_be_is_refused(run: Any, data: Path, tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    given = [option.format(data=data, out=tmp_path / "a.csv") for option in options]
    code, out, err = run("fit", data / "calm.csv", "--target", "level", "--model", tmp_path / "m", *given)
    assert code == (1 if words.startswith("cannot write") else 2)
    assert words in err.replace("\n", " ")
    assert not out or code == 1  # options are judged before anything is said
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("name", "sign"), [("/dev/stdout", ">>"), ("/dev/stdout", ">"), ("/dev/fd/1", ">>"), ("{folder}/link", ">>")]
)
def test_what_the_shell_has_opened_is_not_emptied(data: Path, tmp_path: Path, name: str, sign: str) -> None:
    log, target = tmp_path / "log.txt", name.format(folder=tmp_path)
    (tmp_path / "link").symlink_to("/dev/stdout")
    log.write_text("kept\n")
    command = [*COMMAND, "fit", str(data / "calm.csv"), "--target", "level", "--outliers", "0.05"]
    command += ["--model", str(tmp_path / "m"), "--alarms", target]
    with log.open("a" if sign == ">>" else "w") as opened:
        subprocess.run(command, stdout=opened, check=True)
    lines = log.read_text().splitlines()
    assert (lines[0] == "kept") == (sign == ">>")
    assert lines[-1] == f"model: {tmp_path / 'm'}"
    assert any(line.startswith("task: ") for line in lines)  # said before the alarms, and still there
    assert lines.count("file,line,kind,probability,target,predicted") == 1
    assert any(",1202,outlier," in line for line in lines)


def test_a_file_given_by_its_name_begins_anew_and_a_pipe_is_written_to(run: Any, data: Path, tmp_path: Path) -> None:
    found = tmp_path / "alarms.csv"
    found.write_text("old\n")
    options = ("fit", data / "calm.csv", "--target", "level", "--outliers", "0.05", "--model", tmp_path / "m", "-q")
    assert run(*options, "--alarms", found)[0] == 0
    assert found.read_text().startswith("file,line,kind")
    code, out, _ = run(*options, "--alarms", "/dev/stdout")
    assert code == 0
    assert out == found.read_text()
    assert run(*options, "--alarms", "/dev/null")[0] == 0
    assert run(*options, "--alarms", "/dev/fd/987")[0] == 1


def test_programs_get_numbers_of_what_is_believed(run: Any, data: Path, tmp_path: Path) -> None:
    options = ("--outliers", "0.05", "--drift", "auto", "--model", tmp_path / "m", "-q")
    run("fit", data / "calm.csv", "--target", "level", *options)
    estimator = onepass.load(tmp_path / "m").estimator
    _, out, _ = run("show", tmp_path / "m", "--json")
    facts = {one["name"]: one for one in map(json.loads, out.splitlines()) if one["event"] == "fact"}
    assert facts["outliers now"]["outliers"] == estimator.outliers_
    assert list(facts["drift now"]["drift"]) == ["0", "1e-05", "0.001", "0.01", "0.1", "prior"]
    assert list(facts["drift now"]["drift"].values()) == list(estimator.drift_.values())
    assert "drift" not in facts["outliers now"]
    # Shuffled, so that no drift is chosen by tests of rows ahead.
    run("fit", data / "calm.csv", "--target", "level", "--shuffle", "on", "--model", tmp_path / "m", "-q")
    _, out, _ = run("show", tmp_path / "m", "--json")
    assert "outliers" not in out
    assert "drift" not in out


def test_a_return_to_the_prior_can_be_shown() -> None:
    words = _drift_believed({0.0: 0.3, 0.01: 0.1, "prior": 0.6})
    assert words == (
        "a quick return to the prior with probability 0.60, none with probability 0.30, rate 0.01 with probability 0.10"
    )


def test_the_log_loss_is_that_of_labels_as_they_come(run: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=800)
    wrong = rng.random(800) < 0.05
    for labels in (["dry", "wet"], ["dry", "moist", "wet"]):
        place = np.digitize(x, [0.0] if len(labels) == 2 else [-0.5, 0.5])
        place[wrong] = (place[wrong] + 1) % len(labels)
        file = write_csv(tmp_path / "a.csv", [{"x": a, "kind": labels[k]} for a, k in zip(x, place, strict=True)])
        scores = {}
        for share in (0.05, 0.0):
            options = ("--target", "kind", "--outliers", share)
            _, out, _ = run("evaluate", file, *options, "--json")
            scores[share] = json.loads(out.splitlines()[-1])["scores"]
            run("fit", file, *options, "--shuffle", "off", "--model", tmp_path / "m", "-q")
            estimator = onepass.load(tmp_path / "m").estimator
            # The evidence is the product of the probabilities of all labels, each before it was learned.
            assert scores[share]["onepass"]["log_loss"] == pytest.approx(-estimator.log_evidence_ / 800, rel=1e-6)
        assert scores[0.05]["onepass"]["log_loss"] < scores[0.0]["onepass"]["log_loss"]
        assert scores[0.05]["onepass, rows believed"]["log_loss"] < scores[0.05]["onepass"]["log_loss"]


def test_the_command_has_the_default_of_the_estimators(run: Any, data: Path, tmp_path: Path) -> None:
    run("fit", data / "calm.csv", "--target", "level", "--model", tmp_path / "m", "-q")
    assert onepass.load(tmp_path / "m").estimator.outliers == OUTLIERS


# When a change is told.


class _Seen:
    """A model that predicts what it is told to."""

    def __init__(self, model: TabularModel, changes: list[float]) -> None:
        self.target, self.changes = model.target, np.array(changes)

    def predict_then_learn(self, rows: Rows) -> Any:
        from onepass.estimators.rows import PredictedRows

        zeros = np.zeros(len(rows.y))
        return PredictedRows(zeros, zeros, zeros, zeros, zeros, self.changes) if len(zeros) else None


@pytest.mark.parametrize(
    ("before", "changes", "told", "after"),
    [
        (False, [0.0, 0.6, 0.9, 0.4, 0.7, 0.05, 0.6], [1, 6], True),
        (True, [0.6, 0.2, 0.7, 0.0], [], False),
        (True, [0.3, 0.3], [], True),
        (False, [0.3, 0.5], [], False),
        (False, [], [], False),
    ],
)
def test_a_change_is_told_once(
    run: Any, data: Path, tmp_path: Path, before: bool, changes: list[float], told: list[int], after: bool
) -> None:
    run("fit", data / "calm.csv", "--target", "level", "--model", tmp_path / "m", "-q")
    seen: Any = _Seen(onepass.load(tmp_path / "m"), changes)
    found: list[int] = []
    watch = AlarmDetector(seen, lambda file, alarms: found.extend(one.line for one in alarms), changing=before)
    n = len(changes)
    watch.learn(Rows(np.zeros((n, 2)), np.zeros(n), ids=lambda: range(n)), "a.csv")
    assert found == told
    assert watch.changing is after
