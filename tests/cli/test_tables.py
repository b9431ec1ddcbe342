"""The commands that work on tables, from the user's side: files in, files, words and an exit code out."""

import csv
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
import pytest

import onepass
from onepass.cli.main import main
from onepass.evaluation.references import LAST, MEAN, SAME_TIME
from onepass.files.checkpoint import load_with_parameters, save_with_parameters
from onepass.tables.inputs import Inputs
from onepass.tables.schema import SchemaOptions, infer_model
from onepass.tables.targets import NumberTarget
from tests.cli.conftest import Done, Run
from tests.helpers.browser import needs_browser, open_in_browser
from tests.helpers.commands import COMMAND, run_here, started, unread_bytes
from tests.helpers.commands import run_command as process
from tests.helpers.tables import clicks, trips, write_csv, write_jsonl, write_parquet
from tests.helpers.waiting import wait_until

TRIPS, CLICKS = trips(3000), clicks(3000)
WIDE = ("--as", "town=hashed", "--buckets", "20000", "--covariance", "full")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables, and a model of each kind that the real command made of them."""
    folder = tmp_path_factory.mktemp("tables")
    write_csv(folder / "trips.csv", TRIPS)
    write_csv(folder / "clicks.csv", CLICKS)
    done = process("fit", folder / "trips.csv", "--target", "price", "--model", folder / "price.onepass")
    assert done.returncode == 0, done.stderr
    (folder / "told.txt").write_text(done.stdout)
    clicked = ("--target", "clicked", "--model", folder / "clicks.onepass")
    assert run_here("fit", folder / "clicks.csv", *clicked) == 0
    return folder


def sentence(done: Done, code: int = 1) -> str:
    """The one line that a failure says."""
    assert done.code == code, done
    assert done.err.startswith("onepass: ")
    assert len(done.err.strip().splitlines()) == 1
    assert "Traceback" not in done.err
    return done.err


def table(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


# What is asked for and can't be.


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (
            ["y", "--as", "kind=number"],
            1,
            "all of them were rejected, the first in reg.csv, line 2: kind is 'z', not a number",
        ),
        (["y", "--covariance", "kronecker"], 2, "--covariance kronecker needs hidden layers"),
        (["y", "--covariance", "layer"], 2, "--covariance layer needs hidden layers, e.g. --hidden 50"),
        (["y", "--covariance", "neuron"], 1, "needs classes or hidden layers (--covariance full"),
        (["y", "--activation", "foo"], 2, "--activation must be one of sigmoid, tanh"),
        (["Y"], 1, "reg.csv has no column 'Y'"),
        (["x"], 2, "reg.onepass exists, and is not a model of 'x'"),
    ],
)
def test_what_cannot_be_learned_is_said(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], code: int, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("reg.csv").write_text("kind,x,y\n" + "".join(f"z,{i - 9.5},{i * i}.5\n" for i in range(9)))
    if "--as" not in options:
        told = run("fit", "reg.csv", "--target", "y", "--columns", "x")
        assert "perceptron with 1 feature, next to a network of 50 relu units" in told.out
        assert "(x + 5.5) / " in told.out
        assert repr(onepass.load("reg.onepass")) == (
            "TabularModel(target='y', model=BayesianPerceptronRegressor, n_rows=9)"
        )
    done = run("fit", "reg.csv", "--target", *options)
    assert words in sentence(done, code)
    assert done.out == "" or code == 1


# What is chosen and told.


def test_every_choice_is_told_in_one_line(data: Path) -> None:
    told = (data / "told.txt").read_text().splitlines()
    names = [line.split(":")[0] for line in told]
    columns = [f"column {name}" for name in ("km", "car", "start", "vip", "town", "wait", "id")]
    chosen = ["task", "target", *columns, "model", "activation", "covariance", "noise", "prior", "order"]
    *first, learned, answers, future, model = names
    assert (first, answers, future, model) == (chosen, "answers", "future", "model")
    assert learned.startswith("learned 3,000 rows in ")
    assert "regression" in told[0]
    assert "ignored: it numbers the rows" in told[8]


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        (["clicks.csv", "--target", "clicked"], {"task": "two classes", "activation": "sigmoid"}),
        (["clicks.csv", "--target", "kind"], {"task": "3 classes", "activation": "softmax"}),
        (["clicks.csv", "--target", "kind", "--covariance", "neuron"], {"covariance": "neuron: "}),
        (["clicks.csv", "--target", "age"], {"task": "regression", "activation": "linear", "noise": "learned"}),
        (["clicks.csv", "--target", "clicked", "--task", "regression"], {"task": "regression"}),
        (
            ["clicks.csv", "--target", "age", "--noise", "4", "--ignore", "kind", "--forgetting", "0.999"],
            {"noise": "variance 4, as given", "forgetting": "0.999"},
        ),
        (
            ["clicks.csv", "--target", "age", "--ignore", "kind", "--drift", "auto"],
            {"drift": "several rates side by side"},
        ),
        (
            ["clicks.csv", "--target", "age", "--ignore", "kind", "--drift", "0.01"],
            {"drift": "0.01: before each row the weights move by this share of the prior's variance"},
        ),
        (
            ["clicks.csv", "--target", "age", "--hidden", "4,3", "--activation", "tanh", "--covariance", "diagonal"],
            {"model": "network 8-4-3-1", "activation": "tanh", "covariance": "diagonal"},
        ),
        (
            ["clicks.csv", "--target", "age", "--hidden", "4", "--covariance", "kronecker"],
            {"covariance": "kronecker: correlations between weights of one layer are kept"},
        ),
        (["clicks.csv", "--target", "age", "--hidden", "4"], {"covariance": "full: all correlations"}),
        (
            ["clicks.csv", "--target", "age", "--hidden", "4", "--covariance", "auto"],
            {"covariance": "full: all correlations"},
        ),
        (["trips.csv", "--target", "vip", "--columns", "km,car"], {"task": "two classes", "model": "5 features"}),
        (
            ["trips.csv", "--target", "price", "--as", "town=category", "--one-hot", "100"],
            {"column town": "80 categories"},
        ),
        (
            ["trips.csv", "--target", "price", "--buckets", "8", "--passes", "2"],
            {"column town": "8 features", "passes": "2"},
        ),
        (["trips.csv", "--target", "price", "--prior-scale", "auto"], {"prior": "several scales"}),
    ],
)
def test_what_is_asked_for_is_what_is_made(
    run: Run, data: Path, tmp_path: Path, options: list[str], facts: dict[str, str]
) -> None:
    done = run("fit", data / options[0], *options[1:], "--model", tmp_path / "m", "--json")
    assert done.code == 0, done
    told = {event["name"]: event["value"] for event in done.events if event["event"] == "choice"}
    for name, words in facts.items():
        assert words in told[name]
    assert done.events[-1]["event"] == "done"
    assert done.events[-1]["rows"] == 3000 * (2 if "passes" in facts else 1)


def test_counts_are_learned_scored_and_predicted_as_such(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sizes = rng.normal(size=800)
    visits = rng.poisson(np.exp(1.0 + 0.5 * sizes) * rng.gamma(2.0, 0.5, 800)).tolist()
    rows: list[dict[str, Any]] = [{"size": x, "visits": y} for x, y in zip(sizes.tolist(), visits, strict=True)]
    rows += [{"size": 1.0, "visits": -2}, {"size": 1.0, "visits": 2.5}]
    file, model = write_csv(tmp_path / "shops.csv", rows), tmp_path / "visits.onepass"
    fitted = run("fit", file, "--target", "visits", "--task", "counts", "--model", model)
    assert fitted.code == 3
    assert "counts (visits: as asked)" in fitted.out
    assert "dispersion:    learned from the rows" in fitted.out
    assert "line 803: the target visits is 2.5, not a count 0, 1, 2, ..." in fitted.err
    assert onepass.load(model).estimator.noise_ == pytest.approx(0.5, rel=0.3)
    assert "dispersion now:" in run("show", model).out
    done = run("predict", model, file, "--out", tmp_path / "out.csv")
    assert done.code == 0
    low, high = np.loadtxt(tmp_path / "out.csv", delimiter=",", skiprows=1)[:800, 2:].T
    assert 0.93 < ((low <= visits) & (visits <= high)).mean() <= 1.0
    scores = run("evaluate", file, "--target", "visits", "--task", "counts", "--json").events[-1]["scores"]["onepass"]
    plain = run("evaluate", file, "--target", "visits", "--json").events[-1]["scores"]["onepass"]
    assert scores["log_likelihood"] > plain["log_likelihood"] + 0.1
    assert 0.0 < scores["poisson_deviance"] < 4.0
    refused = run("fit", file, "--target", "size", "--task", "counts", "--model", model)
    assert refused.code != 0
    assert "does not hold counts" in refused.err
    network = run(
        "fit", file, "--target", "visits", "--task", "counts", "--hidden", "5", "--noise", "0.5", "--model", model
    )
    assert "dispersion:    0.5, as given" in network.out


def test_quiet_is_quiet(run: Run, data: Path, tmp_path: Path) -> None:
    assert run("fit", data / "clicks.csv", "--target", "age", "--model", tmp_path / "m", "-q") == Done(0, "", "")


# Where the model goes.


def test_a_model_without_a_name_is_named_after_the_first_file(
    run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "rides.csv.gz", TRIPS[:500])
    done = run("fit", data / "trips.csv", "rides.csv.gz", "--target", "price")
    assert done.code == 0, done
    assert done.out.splitlines()[-1] == "model: trips.onepass"
    assert {path.name for path in tmp_path.iterdir()} == {"rides.csv.gz", "trips.onepass"}
    done = run("fit", "rides.csv.gz", "--target", "price", "--json")
    assert done.events[-1]["model"] == "rides.onepass"
    assert onepass.load("rides.onepass").n_rows == 500
    assert "give --model" in sentence(run("fit", "-", "--target", "price"), 2)


def test_a_file_that_was_not_named_is_replaced_only_by_the_same_command(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file, model = write_csv(tmp_path / "trips.csv", TRIPS[:500]), Path("trips.onepass")
    fit = ("fit", "trips.csv", "-q", "--target")
    assert run(*fit, "price").code == 0
    first = model.read_bytes()
    assert run(*fit, "price").code == 0
    assert model.read_bytes() == first

    def refused(*command: str) -> None:
        before = model.read_bytes()
        assert "trips.onepass exists, and is not a model of" in sentence(run(*command), 2)
        assert model.read_bytes() == before

    refused(*fit, "km")
    assert run("learn", model, "trips.csv", "--passes", "2", "--again", "-q").code == 0
    refused(*fit, "price")
    model.write_bytes(first)
    write_csv(file, TRIPS[:600])
    refused(*fit, "price")
    model.write_text("notes of mine")
    refused(*fit, "price")
    assert run(*fit, "price", "--model", "trips.onepass").code == 0  # who names it means it
    assert onepass.load(model).n_rows == 600


# Formats.


def test_the_same_rows_in_any_format_and_any_number_of_files_give_the_same_model(
    run: Run, data: Path, tmp_path: Path
) -> None:
    write_jsonl(tmp_path / "a.jsonl", TRIPS)
    write_parquet(tmp_path / "a.parquet", TRIPS)
    write_csv(tmp_path / "a.csv.gz", TRIPS)
    weights = []
    for file in (data / "trips.csv", tmp_path / "a.jsonl", tmp_path / "a.parquet", tmp_path / "a.csv.gz"):
        done = run("fit", file, "--target", "price", "--model", tmp_path / "m")
        assert done.code == 0, done
        weights.append(onepass.load(tmp_path / "m").estimator.coef_)
    for found in weights:
        np.testing.assert_array_equal(found, weights[0])


def test_learning_on_is_the_same_as_learning_all_at_once(run: Run, tmp_path: Path) -> None:
    for i in range(3):
        write_csv(tmp_path / f"part{i}.csv", TRIPS[i * 1000 : i * 1000 + 1000])
    target = ("--target", "price", "--model")
    assert run("fit", tmp_path / "part0.csv", *target, tmp_path / "a", "--shuffle", "off").code == 0
    assert run("learn", tmp_path / "a", tmp_path / "part1.csv", tmp_path / "part2.csv").code == 0
    assert run("fit", tmp_path / "part*.csv", *target, tmp_path / "b", "--sample", "1000", "--shuffle", "off").code == 0
    first, second = onepass.load(tmp_path / "a"), onepass.load(tmp_path / "b")
    np.testing.assert_array_equal(first.estimator.coef_, second.estimator.coef_)
    np.testing.assert_array_equal(first.estimator.coef_cov_, second.estimator.coef_cov_)
    assert first.n_rows == second.n_rows == 3000


def test_standard_input_is_learned_and_predicted(run: Run, data: Path, tmp_path: Path) -> None:
    text = (data / "clicks.csv").read_text()
    done = process("fit", "-", "--target", "clicked", "--model", tmp_path / "m", input=text)
    assert done.returncode == 0, done.stderr
    in_order = ("--target", "clicked", "--model", tmp_path / "file", "--shuffle", "off")
    assert run("fit", data / "clicks.csv", *in_order).code == 0
    expected = onepass.load(tmp_path / "file").estimator.coef_
    np.testing.assert_allclose(onepass.load(tmp_path / "m").estimator.coef_, expected, rtol=1e-9)
    lines = "".join(json.dumps(row) + "\n" for row in CLICKS[:5])
    done = process("predict", tmp_path / "m", "-", "--format", "jsonl", input=lines)
    assert done.returncode == 0, done.stderr
    assert [sorted(json.loads(line)) for line in done.stdout.splitlines()] == [["label", "p_0", "p_1"]] * 5
    assert "predicted 5 rows" in done.stderr


def test_a_stream_that_goes_on_is_learned_as_it_comes_and_kept(run: Run, data: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    model.write_bytes((data / "clicks.onepass").read_bytes())
    command = [*COMMAND, "learn", str(model), "-", "--checkpoint-every", "5"]
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, text=True, **pipes) as going:
        assert going.stdin is not None
        for row in CLICKS[:7]:
            going.stdin.write(json.dumps(row) + "\n")
        going.stdin.flush()
        wait_until(lambda: onepass.load(model).n_rows == 3007, "seven rows more in the model's file")
        going.stdin.write(json.dumps(CLICKS[8]) + "\n")
        going.stdin.flush()
        pipe = going.stdin
        wait_until(lambda: unread_bytes(pipe) == 0, "the row that has come, but makes no checkpoint")
        going.send_signal(signal.SIGTERM)
        assert going.wait(120) == 0
        assert going.stderr is not None
        assert "interrupted; the rows that had come by then are learned and saved" in going.stderr.read()
    assert onepass.load(model).n_rows == 3008
    assert run("undo", model, "-q").code == 0  # one step for the whole stream, whatever its checkpoints
    assert model.read_bytes() == (data / "clicks.onepass").read_bytes()
    assert list(tmp_path.iterdir()) == [model]


def test_a_pause_does_not_keep_a_checkpoint_or_a_failure_waiting(data: Path, tmp_path: Path) -> None:
    model = tmp_path / "m"
    model.write_bytes((data / "clicks.onepass").read_bytes())
    command = [*COMMAND, "learn", str(model), "-", "--checkpoint-every", "1s", "--strict"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as going:
        assert going.stdin is not None
        going.stdin.write("".join(json.dumps(row) + "\n" for row in CLICKS[:7]).encode())
        going.stdin.flush()
        wait_until(lambda: onepass.load(model).n_rows == 3007, "seven rows more in the model's file")
        going.stdin.write(b'{"age": "old"}\n')
        going.stdin.flush()
        try:
            assert going.wait(120) == 1
        finally:
            going.kill()


# Predictions.


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_numbers_are_predicted_with_their_uncertainty_in_order(
    run: Run, data: Path, tmp_path: Path, ending: str
) -> None:
    out = tmp_path / f"out.{ending}"
    done = run("predict", data / "price.onepass", data / "trips.csv", "--keep", "id", "--level", "0.8", "--out", out)
    assert done.code == 0, done
    if ending == "parquet":
        found = pq.read_table(out).to_pylist()
    else:
        found = table(out) if ending == "csv" else [json.loads(line) for line in out.read_text().splitlines()]
    assert list(found[0]) == ["id", "mean", "std", "lower", "upper"]
    assert [int(row["id"]) for row in found] == list(range(3000))
    price = np.array([row["price"] for row in TRIPS])
    mean, low, high = (np.array([float(row[name]) for row in found]) for name in ("mean", "lower", "upper"))
    assert np.sqrt(np.mean((mean - price) ** 2)) < 2.2
    assert ((low < price) & (price < high)).mean() == pytest.approx(0.8, abs=0.03)


def test_classes_are_predicted_with_their_probabilities(run: Run, data: Path, tmp_path: Path) -> None:
    assert run("predict", data / "clicks.onepass", data / "clicks.csv", "--out", tmp_path / "out.csv").code == 0
    found = table(tmp_path / "out.csv")
    assert list(found[0]) == ["label", "p_0", "p_1"]
    assert np.mean([int(row["label"]) == seen["clicked"] for row, seen in zip(found, CLICKS, strict=True)]) > 0.7
    assert all(float(row["p_0"]) + float(row["p_1"]) == pytest.approx(1.0) for row in found)


def test_rows_that_cannot_be_predicted_stay_empty_and_are_told(run: Run, data: Path, tmp_path: Path) -> None:
    lines = (data / "trips.csv").read_text().splitlines()[:5]
    lines[2] = lines[2].replace(lines[2].split(",")[1], "far")
    (tmp_path / "new.csv").write_text("\n".join([*lines, "1,2", ""]))
    out, bad = tmp_path / "out.csv", tmp_path / "bad.csv"
    done = run("predict", data / "price.onepass", tmp_path / "new.csv", "--out", out, "--rejects", bad)
    assert done.code == 3, done
    assert [bool(row["mean"]) for row in table(out)] == [True, False, True, True]
    assert [(row["line"], row["reason"]) for row in table(bad)] == [
        ("3", "km is 'far', not a number"),
        ("6", "has 2 fields where the first line has 8"),
    ]


def test_whoever_has_seen_enough_may_close_the_pipe(data: Path, tmp_path: Path) -> None:
    many = write_csv(tmp_path / "many.csv", TRIPS * 12)
    command = [*COMMAND, "predict", str(data / "price.onepass"), str(many)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stderr is not None
        assert writer.stdout.readline() == "mean,std,lower,upper\n"
        writer.stdout.close()
        assert "Traceback" not in writer.stderr.read()
        assert writer.wait(120) == 141


# Evaluation, and reports.


def test_evaluate_scores_every_row_before_it_is_learned(run: Run, data: Path) -> None:
    done = run("evaluate", data / "trips.csv", "--target", "price", "--json")
    assert done.code == 0, done
    scores = done.events[-1]["scores"]["onepass"]
    assert 2.0 < scores["rmse"] < 2.4
    for level in (50, 80, 95):
        assert scores[f"coverage_{level}"] == pytest.approx(level / 100, abs=0.04)
    assert scores["calibration_error"] < 0.03
    over_time = done.events[-1]["over_time"]
    assert over_time["rows"][-1] == 3000
    assert over_time["rmse"][0] > over_time["rmse"][-1]
    sources = Inputs((str(data / "trips.csv"),)).sources()
    fresh, _ = infer_model(sources, SchemaOptions("price"), rereadable=True)
    rows = fresh.rows(list(sources[0].batches(fresh.types(target=True), 0)))
    assert isinstance(fresh.target, NumberTarget)
    before = fresh.target.log_density(rows.y, fresh.predict_then_learn(rows).log_density)
    assert scores["log_likelihood"] == pytest.approx(before.mean(), abs=1e-9)
    # Nearly so much is what the model calls its evidence, over all noises that could have been.
    model = onepass.load(data / "price.onepass")
    evidence = model.estimator.log_evidence_ / 3000 - np.log(model.target.scale)
    assert evidence == pytest.approx(before.mean(), abs=1e-3)


def test_evaluate_compares_with_others_on_the_same_rows(run: Run, data: Path, tmp_path: Path) -> None:
    pytest.importorskip("river")
    for name in ("clicks.csv", "trips.csv"):  # others learn with many settings, which takes time
        lines = (data / name).read_text().splitlines(keepends=True)
        (tmp_path / name).write_text("".join(lines[:401]))
    for options in (
        ["clicks.csv", "--target", "clicked", "--ignore", "kind"],
        ["clicks.csv", "--target", "kind", "--ignore", "clicked"],
        ["trips.csv", "--target", "price"],
    ):
        done = run("evaluate", tmp_path / options[0], *options[1:], "--compare", "--json")
        assert done.code == 0, done
        scores = done.events[-1]["scores"]
        others = done.events[-1]["settings"]
        assert len(others) == 3
        assert scores.keys() == {"onepass", MEAN, LAST, SAME_TIME, *others}
        main_score = "rmse" if "rmse" in scores["onepass"] else "log_loss"
        for name, found in scores.items():
            assert np.isfinite(list(found.values())).all(), name
            assert scores["onepass"][main_score] <= 1.001 * found[main_score], name


def test_a_model_of_others_that_gives_up_is_left_out(run: Run, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.linear_model import SGDRegressor

    def overflow(*arguments: Any, **options: Any) -> None:
        raise ValueError("Floating-point under-/overflow occurred")

    monkeypatch.setattr(SGDRegressor, "partial_fit", overflow)
    done = run("evaluate", data / "trips.csv", "--target", "price", "--compare", "--json")
    assert done.code == 0, done
    assert "scikit-learn SGDRegressor" not in done.events[-1]["scores"]
    assert any("SGDRegressor could not go on" in event.get("text", "") for event in done.events)


def test_evaluate_goes_on_from_a_model_and_leaves_it_alone(run: Run, data: Path) -> None:
    before = (data / "clicks.onepass").read_bytes()
    done = run("evaluate", data / "clicks.csv", "--model", data / "clicks.onepass", "--json")
    fresh = run("evaluate", data / "clicks.csv", "--target", "clicked", "--json")
    assert (done.code, fresh.code) == (0, 0)
    assert done.events[-1]["scores"]["onepass"]["log_loss"] < fresh.events[-1]["scores"]["onepass"]["log_loss"]
    assert (data / "clicks.onepass").read_bytes() == before
    assert "either --target" in sentence(run("evaluate", data / "clicks.csv"), 2)


def test_show_says_what_the_model_is(run: Run, data: Path) -> None:
    done = run("show", data / "price.onepass", "--weights", "3")
    assert done.code == 0, done
    for text in ("rows learned:  3,000", "noise now:", "column km:", "covariance:", "last run:      trips.csv"):
        assert text in done.out
    assert "\nweights:       how price changes for one standard deviation more of a number, or " in done.out
    weights = [line for line in done.out.splitlines() if line.startswith("weight ")]
    assert len(weights) == 3
    assert weights[0].startswith("weight km: ")
    mean, std = weights[0].split()[2], weights[0].split()[4]
    scale = onepass.load(data / "price.onepass").encoding.columns[0].scale
    assert float(mean) == pytest.approx(1.8 * scale, abs=4 * float(std))
    (event,) = [one for one in run("show", data / "price.onepass", "--weights", "1", "--json").events if "std" in one]
    assert (event["feature"], event["of"]) == ("km", "price")
    assert event["mean"] == pytest.approx(float(mean), rel=1e-3)


@needs_browser
@pytest.mark.parametrize("what", ["numbers", "classes", "network", "model"])
def test_a_browser_opens_the_report(run: Run, data: Path, tmp_path: Path, what: str) -> None:
    html = tmp_path / "report.html"
    command = {
        "numbers": ["evaluate", data / "trips.csv", "--target", "price"],
        "classes": ["evaluate", data / "clicks.csv", "--target", "kind"],
        "network": ["evaluate", data / "clicks.csv", "--target", "clicked", "--hidden", "3"],
        "model": ["show", data / "price.onepass"],
    }[what]
    done = run(*command, "--html", html)
    assert done.code == 0, done
    text = html.read_text(encoding="utf-8")
    assert "http" not in text.replace("http://www.w3.org", "")
    figures = {"learning", "reliability", "certainty", "weights-0"} if what != "model" else {"weights-0"}
    figures |= {"importance"} if what != "model" else set()
    figures |= {"predicted"} if what == "numbers" else set()
    figures |= {"weights-1", "weights-2"} if what == "classes" else set()
    seen, console = open_in_browser(text, tmp_path)
    assert (seen.pop("overflow"), seen.pop("cut")) == ("false", "false")
    assert seen == {f"figure-{name}": "true" for name in figures}
    assert console == []


# Rejected rows.

BAD_ROWS = (
    ("7,9.9", "has 2 fields where the first line has 8"),
    ("8,far,van,2024-01-01T00:30:00,true,town 1,1.0,9.5", "km is 'far', not a number"),
    ("9,1.0,van,2024-01-01T00:30:00,true,town 1,1.0,", "the target price is missing"),
    ("9,1.0,van,2024-01-01T00:30:00,true,town 1,1.0,nan", "the target price is missing"),
    ("9,1.0,van,2024-01-01T00:30:00,true,town 1,1.0,-inf", "price is infinite"),
    ("9,inf,van,2024-01-01T00:30:00,true,town 1,1.0,3", "km is infinite"),
    (
        "9,1.0,van,yesterday,true,town 1,1.0,3",
        "start is 'yesterday', not a date such as 2024-12-31 or 2024-12-31T23:59:59",
    ),
)


@pytest.fixture
def with_bad_rows(data: Path, tmp_path: Path) -> Path:
    """The trips, with a bad row behind every 300 good ones."""
    lines = (data / "trips.csv").read_text().splitlines()
    for i, (bad, _) in reversed(list(enumerate(BAD_ROWS, 1))):
        lines.insert(300 * i, bad)
    file = tmp_path / "bad_trips.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_bad_rows_are_written_down_counted_and_not_learned(
    run: Run, data: Path, with_bad_rows: Path, tmp_path: Path
) -> None:
    rejects, model = tmp_path / "rejects.csv", tmp_path / "m"
    done = run("fit", with_bad_rows, "--target", "price", "--model", model, "--rejects", rejects)
    assert done.code == 3, done
    assert "5 rejected" in done.out
    assert "left out: 2 rows have no target" in done.err
    found = table(rejects)
    assert [row["reason"] for row in found] == [reason for _, reason in BAD_ROWS]
    lines = with_bad_rows.read_text().splitlines()
    assert [lines[int(row["line"]) - 1] for row in found] == [bad for bad, _ in BAD_ROWS]
    assert (onepass.load(model).n_rows, onepass.load(model).n_rejected) == (3000, 5)
    # The good rows around them are learned as if the bad ones were not there.
    weights = []
    for file in (with_bad_rows, data / "trips.csv"):
        model.write_bytes((data / "price.onepass").read_bytes())
        run("learn", model, file, "--again")
        weights.append(onepass.load(model).estimator.coef_)
    np.testing.assert_array_equal(*weights)


def test_strict_stops_at_the_first_bad_row(run: Run, with_bad_rows: Path, tmp_path: Path) -> None:
    done = run("fit", with_bad_rows, "--target", "price", "--model", tmp_path / "m", "--strict", "-q")
    assert "bad_trips.csv, line 301: has 2 fields where the first line has 8 (--strict)." in sentence(done)
    assert not (tmp_path / "m").exists()


def test_labels_that_were_not_declared_are_rejected(run: Run, data: Path, tmp_path: Path) -> None:
    options = ("--target", "kind", "--model", tmp_path / "m", "--classes", "none,ad")
    done = run(
        "fit", data / "clicks.csv", *options, "--json", "--rejects", tmp_path / "bad.csv", "--max-rejects", "100%"
    )
    assert done.code == 3, done
    reasons = {row["reason"] for row in table(tmp_path / "bad.csv")}
    assert reasons == {"the target kind is 'news', none of the known classes ad, none"}
    assert done.events[-1]["rejected"] == sum(row["kind"] == "news" for row in CLICKS)


# Failures.


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["fit", "{data}/trips.csv", "--target", "prise", "--model", "{out}"], 1, "did you mean 'price'?"),
        (["fit", "{data}/none.csv", "--target", "price", "--model", "{out}"], 1, "none.csv does not exist"),
        (["fit", "{data}/*.tsv", "--target", "price", "--model", "{out}"], 1, "matches no file"),
        (["fit", "{data}", "--target", "price", "--model", "{out}"], 1, "is a folder"),
        (["fit", "{data}/trips.csv", "--target", "price", "--model", "{out}/x/m"], 1, "cannot write to --model"),
        (["fit", "{data}/trips.csv", "--model", "{out}"], 2, "Missing option '--target'"),
        (["fit", "{data}/trips.csv", "--target", "car", "--task", "regression", "--model", "{out}"], 1, "no numbers"),
        (["fit", "{data}/trips.csv", "--target", "price", "--model", "{out}", "--hidden", "many"], 2, "whole numbers"),
        (["fit", "{data}/trips.csv", "--target", "price", "--model", "{out}", "--as", "km=size"], 2, "COLUMN=KIND"),
        (
            ["fit", "{data}/trips.csv", "--target", "price", "--model", "{out}", "--ignore", "kmm"],
            1,
            "did you mean 'km'?",
        ),
        (["fit", "{data}/trips.csv", "--target", "price", "--model", "{out}", "--activation", "warp"], 2, "warp"),
        (["fit", "{data}/trips.csv", "--target", "price", "--model", "{out}", "--noise", "0"], 2, "positive number"),
        (["fit", "{data}/trips.csv", "--target", "price", "--model", "{out}", "--checkpoint-every", "x"], 2, "30s"),
        (["fit", "{data}/trips.csv", "--target", "town", "--classes", "a", "--model", "{out}"], 1, "only one class"),
        (
            ["fit", "{data}/trips.csv", "--target", "price", "--model", "{out}", "--rejects", "{out}/a/b"],
            1,
            "--rejects",
        ),
        (["fit", "{empty}", "--target", "price", "--model", "{out}"], 1, "is empty"),
        (["fit", "{header}", "--target", "price", "--model", "{out}"], 1, "has no rows"),
        (["learn", "{data}/price.onepass", "{data}/clicks.csv"], 1, "has no column 'km'"),
        (["learn", "{data}/price.onepass", "{header}"], 1, "has no column 'km'"),
        (["learn", "{data}/clicks.csv", "{data}/trips.csv"], 1, "clicks.csv"),
        (["learn", "{data}/none.onepass", "{data}/trips.csv"], 1, "does not exist"),
        (["learn", "{data}/price.onepass", "-", "--resume"], 2, "can be read only once"),
        (["predict", "{data}/price.onepass", "{data}/clicks.csv"], 1, "has no column 'km'"),
        (["predict", "{data}/price.onepass", "{data}/trips.csv", "--out", "{out}"], 2, "give --format"),
        (["predict", "{data}/price.onepass", "{data}/trips.csv", "--out", "{out}/x/a.csv"], 1, "cannot write to --out"),
        (["predict", "{data}/price.onepass", "{data}/trips.csv", "--keep", "kn"], 1, "has no column 'kn'"),
        (["predict", "{data}/price.onepass", "{named}", "--keep", "std"], 2, "the same name as an output column"),
        (
            ["fit", "{data}/trips.csv", "--target", "price", "--model", "{out}", "--rounds", "3"],
            2,
            "need --executor dask",
        ),
        (
            ["fit", "-", "--target", "price", "--model", "{out}", "--executor", "dask"],
            2,
            "can't be divided among workers",
        ),
        (
            ["fit", "{data}/trips.csv", "--target", "price", "--model", "{out}", "--drift", "1.5"],
            2,
            "neither a rate from 0 to 1 nor 'auto'",
        ),
        (
            ["fit", "{data}/trips.csv", "--target", "price", "--model", "{out}", "--drift", "auto", "--passes", "2"],
            2,
            "--drift auto compares rates",
        ),
        (
            [
                "fit",
                "{data}/trips.csv",
                "--target",
                "price",
                "--model",
                "{out}",
                "--drift",
                "0.1",
                "--executor",
                "dask",
            ],
            2,
            "--drift can't be used with --executor dask",
        ),
        (
            ["fit", "{data}/trips.csv", "--target", "price", "--model", "{out}", "--delimiter", "ab"],
            2,
            "not a single character",
        ),
        (
            ["fit", "{data}/trips.csv", "--target", "price", "--model", "{out}", *WIDE],
            1,
            "a full covariance of 20,0",
        ),
        (["show", "{other}"], 1, "has a BayesianPerceptron; this command needs a model made by 'onepass fit'"),
    ],
)
def test_failures_are_one_clear_sentence(
    run: Run, data: Path, tmp_path: Path, arguments: list[str], code: int, words: str
) -> None:
    other = tmp_path / "other"
    onepass.save(onepass.BayesianPerceptron(1), other)
    (tmp_path / "empty").touch()
    (tmp_path / "header").write_text("price,x\n")
    write_csv(tmp_path / "named", [row | {"std": 1.0} for row in TRIPS[:3]])
    places = {"data": data, "out": tmp_path / "m", "other": other}
    places |= {name: tmp_path / name for name in ("empty", "header", "named")}
    before = (data / "price.onepass").read_bytes()
    done = run(*(argument.format(**places) for argument in arguments), *(["-q"] if arguments[0] != "show" else []))
    assert words in sentence(done, code)
    assert (data / "price.onepass").read_bytes() == before
    assert not (tmp_path / "m").exists()


def test_machines_hear_of_failures_as_an_event(run: Run, data: Path, tmp_path: Path) -> None:
    done = run("fit", data / "trips.csv", "--target", "prise", "--model", tmp_path / "m", "--json")
    assert done.events == [{"event": "error", "text": sentence(done).removeprefix("onepass: ").strip()}]


def test_one_row_is_one_row(run: Run, data: Path, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "one.csv", TRIPS[:1])
    assert "predicted 1 row," in run("predict", data / "price.onepass", file, "--out", tmp_path / "p.csv").out
    model = tmp_path / "one.onepass"
    assert "predictions mean nothing yet" in run("fit", file, "--target", "price", "--model", model).out
    assert "predictions mean nothing yet" not in run("learn", model, write_csv(file, TRIPS[1:2])).out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("fit t.csv --target price --model t.csv", "--model t.csv is also an input"),
        ("fit t.csv --target price --model new --rejects t.csv", "--rejects t.csv is also an input"),
        ("fit t.csv --target price --model new --rejects ./new", "--rejects new is also --model"),
        ("learn m t.csv --rejects m", "--rejects m is also MODEL"),
        ("learn t.csv t.csv", "MODEL t.csv is also an input"),
        ("predict m t.csv --out t.csv", "--out t.csv is also an input"),
        ("predict m *.csv --out link.csv", "--out link.csv is also an input"),
        ("predict m t.csv --out m --format csv", "--out m is also an input"),
        ("predict m t.csv --out o.csv --rejects o.csv", "--rejects o.csv is also --out"),
        ("evaluate t.csv --target price --html t.csv", "--html t.csv is also an input"),
        ("evaluate t.csv --model m --html m", "--html m is also an input"),
        ("evaluate t.csv --model m --rejects hard.csv", "--rejects hard.csv is also an input"),
        ("show m --html m", "--html m is also an input"),
    ],
)
def test_what_is_read_is_never_written_over(
    run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    contents = {"t.csv": (data / "trips.csv").read_bytes(), "m": (data / "price.onepass").read_bytes()}
    for name, content in contents.items():
        Path(name).write_bytes(content)
    Path("link.csv").symlink_to("t.csv")
    os.link("t.csv", "hard.csv")
    assert words in sentence(run(*arguments.split()), 2)
    assert {name: Path(name).read_bytes() for name in contents} == contents
    assert {path.name for path in tmp_path.iterdir()} == {*contents, "link.csv", "hard.csv"}


def test_one_class_only_is_nothing_to_learn(run: Run, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "a.csv", [row for row in CLICKS if row["kind"] == "ad"])
    done = run("fit", file, "--target", "kind", "--model", tmp_path / "m", "-q")
    assert "has only one class, 'ad'" in sentence(done)
    assert sentence(done).endswith("(--classes a,b).\n")
    done = run("fit", file, "--target", "clicked", "--model", tmp_path / "m", "-q")
    assert "or is it a number? (--classes a,b or --task regression)" in sentence(done)


def test_messages_name_the_option_that_is_to_blame(run: Run, data: Path, tmp_path: Path) -> None:
    fit = ("fit", data / "trips.csv", "--model", tmp_path / "m", "-q", "--target")
    assert "onepass: --target: " in sentence(run(*fit, "prise"))
    assert "onepass: --as: " in sentence(run(*fit, "price", "--as", "kmm=number"))
    assert "(--covariance diagonal or --buckets)." in sentence(run(*fit, "price", *WIDE))


@pytest.mark.parametrize("command", ["learn", "predict"])
def test_a_full_disk_is_a_clear_error_and_the_old_file_stays(command: str, data: Path, tmp_path: Path) -> None:
    model, out = tmp_path / "m", tmp_path / "out.csv"
    model.write_bytes((data / "price.onepass").read_bytes())
    out.write_text("earlier")
    arguments = [command, model, data / "trips.csv", *(["--out", out] if command == "predict" else ["--again"])]
    # No file may grow beyond 20 kB, less than either has: what a full disk does, without filling one.
    done = process(*arguments, "-q", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)))
    assert done.returncode == 1, done
    assert done.stderr.startswith("onepass: ")
    assert "File too large" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert model.read_bytes() == (data / "price.onepass").read_bytes()
    assert out.read_text() == "earlier"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["m", "out.csv"]


# Interruptions.


class Long(NamedTuple):
    """A run that takes a while: two files, bad rows, several passes."""

    arguments: list[str]
    folder: Path

    @property
    def model(self) -> Path:
        return self.folder / "m"

    @property
    def partial(self) -> Path:
        return self.folder / "m.partial"

    def checkpoint_time(self) -> int:
        """When progress was kept last, in nanoseconds; 0 where there is none."""
        try:
            return self.partial.stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def command(self, *more: str) -> list[str]:
        return [*self.arguments, "--model", str(self.model), "--rejects", str(self.folder / "rejects.csv"), *more]

    def result(self) -> tuple[bytes, bytes]:
        assert not self.partial.exists()
        return self.model.read_bytes(), (self.folder / "rejects.csv").read_bytes()


@pytest.fixture(scope="module")
def long_input(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("long")
    rows = clicks(20_000, seed=1)
    file = write_csv(folder / "a.csv", rows)
    lines = file.read_text().splitlines()
    for place in (20_000, 16_385, 16_384, 8_194, 8_193, 8_192, 5):  # around the ends of blocks too
        lines.insert(place, f"bad line before {place}")
    file.write_text("\n".join([*lines, "bad at the end"]) + "\n")
    write_parquet(folder / "b.parquet", rows[:9000])
    return ["fit", str(file), str(folder / "b.parquet"), "--target", "clicked"]


@pytest.mark.parametrize(
    "cuts", [(1, 4, 5, 10), pytest.param(range(1, 11), marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_a_run_cut_anywhere_ends_with_the_same_bytes(
    run: Run, long_input: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuts: Sequence[int]
) -> None:
    """The run dies as if by a kill after some of its blocks, or just before it."""
    from onepass.tables.model import TabularModel

    arguments = [*long_input, "--passes", "2", "-q"]
    whole = Long(arguments, tmp_path / "whole")
    whole.folder.mkdir()
    assert run(*whole.command()).code == 3
    learn = TabularModel.learn
    for cut in cuts:  # a run has ten blocks, five of each pass
        job = Long([*arguments, "--checkpoint-every", "1" if cut % 2 else "10000"], tmp_path / f"cut{cut}")
        job.folder.mkdir()
        count = 0

        def dying(self: TabularModel, rows: Any, cut: int = cut) -> None:
            nonlocal count
            count += 1
            if count == cut:
                raise MemoryError("killed")
            learn(self, rows)

        with monkeypatch.context() as patched:
            patched.setattr(TabularModel, "learn", dying)
            with pytest.raises(MemoryError):
                main(job.command())
        assert not job.model.exists()
        assert run(*job.command("--resume")).code == 3
        assert job.result() == whole.result(), cut


def kill_until_done(job: Long, kills: int, seed: int) -> int:
    """Run the command, kill it at random moments and let it go on, until it ends; the number of kills that hit."""
    rng = random.Random(seed)
    hits = 0
    while not job.model.exists():
        known = job.checkpoint_time()
        process = subprocess.Popen([*COMMAND, *job.command("--resume")], stderr=subprocess.PIPE)

        def moved(known: int = known, process: subprocess.Popen[bytes] = process) -> bool:
            return process.poll() is not None or job.checkpoint_time() != known

        if hits < kills:
            wait_until(moved, "a checkpoint, or the end of the run")
            time.sleep(rng.uniform(0.0, 0.15))
            process.kill()
        _, errors = process.communicate(timeout=300)
        assert process.returncode in (-signal.SIGKILL, 3), errors
        hits += process.returncode == -signal.SIGKILL
    return hits


@pytest.mark.parametrize(
    ("moments", "passes"), [(2, 12), pytest.param(20, 300, marks=pytest.mark.slow)], ids=["few", "twenty"]
)
def test_kill_at_random_moments_does_not_show(
    run: Run, long_input: list[str], tmp_path: Path, moments: int, passes: int
) -> None:
    arguments = [*long_input, "--passes", str(passes), "-q"]
    whole = Long(arguments, tmp_path / "whole")
    whole.folder.mkdir()
    assert run(*whole.command()).code == 3
    job = Long([*arguments, "--checkpoint-every", "8192"], tmp_path / "cut")
    job.folder.mkdir()
    assert kill_until_done(job, moments, seed=moments) == moments
    assert job.result() == whole.result()


@pytest.mark.slow
def test_two_runs_end_with_the_same_bits(long_input: list[str], tmp_path: Path) -> None:
    for name in ("first", "second"):
        done = process(*long_input, "--model", tmp_path / name, "-q")
        assert done.returncode == 3, done.stderr
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_networks_and_learning_on_resume_bit_for_bit_too(
    run: Run, long_input: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onepass.tables.model import TabularModel

    first = Long([*long_input, "--hidden", "3", "-q"], tmp_path)
    assert run(*first.command()).code == 3
    start = first.model.read_bytes()
    learning = ("learn", first.model, long_input[2], "-q", "--checkpoint-every", "2000", "--again")
    assert run(*learning).code == 0
    expected = first.model.read_bytes()
    first.model.write_bytes(start)
    learn, count = TabularModel.learn, 0

    def dying(self: TabularModel, rows: Any) -> None:
        nonlocal count
        count += 1
        if count == 6:
            raise MemoryError("killed")
        learn(self, rows)

    with monkeypatch.context() as patched:
        patched.setattr(TabularModel, "learn", dying)
        with pytest.raises(MemoryError):
            main([str(argument) for argument in learning])
    assert first.model.read_bytes() == start
    assert "continue that run with --resume, or delete the file" in sentence(run(*learning))
    assert run(*learning, "--resume").code == 0
    assert first.model.read_bytes() == expected
    # Once more, as a scheduler does that did not hear of the end: nothing is learned twice.
    assert run(*learning[:-1], "--resume").code == 0
    assert first.model.read_bytes() == expected


def test_only_the_same_run_is_gone_on_with(
    run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onepass.tables.model import TabularModel

    rows = clicks(9000)
    file = write_csv(tmp_path / "a.csv", rows)
    options = ("fit", file, "--target", "clicked", "--model", tmp_path / "m", "--checkpoint-every", "1", "-q")
    learn = TabularModel.learn

    def dying(self: TabularModel, rows: Any) -> None:
        if self.n_rows:
            raise MemoryError("killed")
        learn(self, rows)

    with monkeypatch.context() as patched:
        patched.setattr(TabularModel, "learn", dying)
        with pytest.raises(MemoryError):
            main([str(option) for option in options])
    assert "--seed is not what the interrupted run was given" in sentence(run(*options, "--resume", "--seed", "1"))
    shutil.copy(data / "clicks.onepass", tmp_path / "m")
    assert "of another command" in sentence(run("learn", tmp_path / "m", file, "--resume", "-q"))
    (tmp_path / "m").unlink()
    assert "the input is not that" in sentence(run(*options, "--resume", "--delimiter", ","))
    assert "progress:      of a run that has not ended" in run("show", tmp_path / "m.partial").out
    kept = (tmp_path / "m.partial").read_bytes()
    broken, parameters = load_with_parameters(tmp_path / "m.partial")
    for name, value in (("asked", [1]), ("input", {"files": []}), ("position", [0])):
        progress = {**parameters["progress"], name: value}
        save_with_parameters(broken, tmp_path / "m.partial", {"progress": progress})
        assert "holds no progress of a run" in sentence(run(*options, "--resume"))
    (tmp_path / "m.partial").write_bytes(kept)
    write_csv(file, rows[1:])
    assert "that run had a.csv and passes=1" in sentence(run(*options, "--resume"))
    (tmp_path / "m.partial").unlink()
    assert run(*options, "--resume").code == 0  # nothing to go on with: from the first row on


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM], ids=lambda stop: stop.name)
def test_an_interruption_keeps_what_was_learned_and_says_how_to_go_on(
    run: Run, long_input: list[str], tmp_path: Path, stop: signal.Signals
) -> None:
    job = Long([*long_input, "--passes", "12" if stop is signal.SIGINT else "100000"], tmp_path)
    with started([*COMMAND, *job.command("--checkpoint-every", "1")]) as going:
        wait_until(job.partial.exists, "a checkpoint")
        going.send_signal(stop)
        _, errors = going.communicate(timeout=120)
    assert going.returncode == 130
    assert "interrupted after" in errors
    assert errors.strip().endswith("--resume")
    assert not job.model.exists()
    assert job.partial.exists()
    assert "Traceback" not in errors
    if stop is signal.SIGINT:
        again = errors.strip().split("continue with: onepass ")[1].split()
        assert run(*again).code == 3
        assert onepass.load(job.model).n_rows == 29_000 * 12


# Help.


def test_help_of_every_command_has_examples_and_is_light() -> None:
    heavy = {"numpy", "scipy", "matplotlib", "rich", "numba", "sklearn", "pyarrow"}
    for command in ("fit", "learn", "predict", "evaluate", "show", "completion"):
        code = (
            f"import sys; sys.argv[1:] = ['{command}', '--help']\nfrom onepass.cli.main import main\n"
            "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
            f"print('heavy:', *({heavy} & set(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1].strip() == "heavy:"
        assert f"onepass {command} " in done.stdout.split("Examples:")[1]
        assert "3 done but rows were rejected" in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(run: Run, shell: str) -> None:
    done = run("completion", shell)
    assert done.code == 0
    assert "_ONEPASS_COMPLETE" in done.out
    environment = {
        **os.environ,
        "_ONEPASS_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": "onepass ev",
        "COMP_CWORD": "1",
    }
    offered = process(env=environment | ({"COMP_CWORD": "ev"} if shell == "fish" else {}))
    assert "evaluate" in offered.stdout


def test_only_the_rejects_of_the_interrupted_run_are_gone_on_with(tmp_path: Path) -> None:
    from click import ClickException

    from onepass.cli.rejects import RejectOptions, Rejects
    from onepass.tables.reasons import Reason
    from onepass.tables.rejects import Reject

    path = tmp_path / "bad.csv"
    with Rejects(RejectOptions(path)) as log:
        log.add("a.csv", (Reject(1, Reason("unreadable", why="is bad")),))
        note = log.note()
        log.add("a.csv", (Reject(2, Reason("unreadable", why="is lost")),))
    written = path.read_bytes()
    with Rejects(RejectOptions(path), note) as log:
        assert log.count == 1
    assert path.read_bytes() == written[: note["rejects_bytes"]]
    for notes, contents in (
        (note, (None, b"short", written.replace(b"is bad", b"is gut"))),
        ({"rejects": 2, "rejects_bytes": -1}, (written,)),
        ({"rejects": "two"}, (written,)),
    ):
        for content in contents:
            path.unlink(missing_ok=True)
            if content is not None:
                path.write_bytes(content)
            with pytest.raises(ClickException, match=r"rejects"):
                Rejects(RejectOptions(path), notes)
            assert (path.read_bytes() if path.exists() else None) == content


# Which model answers.


def test_the_better_model_answers_and_is_told(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(400, 2)).round(4)
    file = write_csv(tmp_path / "a.csv", [{"a": a, "b": b, "y": round(a * b, 4)} for a, b in X.tolist()])
    told = run("fit", file, "--target", "y", "--model", tmp_path / "m")
    assert "next to a network of 50 relu units: whichever predicts the first 2,000 rows better is kept" in told.out
    assert "answers: network 2-50-1: its log-score was so far" in told.out
    assert "model:         network 2-50-1: its log-score was so far" in run("show", tmp_path / "m").out
    told = run("evaluate", file, "--target", "y", "--json")
    assert json.loads(told.out.splitlines()[-1])["answers"].startswith("network 2-50-1")
    told = run("fit", file, "--target", "y", "--model", tmp_path / "m", "--model-kind", "perceptron")
    assert "perceptron with 2 features\n" in told.out
    assert "answers:" not in told.out
    told = run("fit", file, "--target", "y", "--model", tmp_path / "m", "--model-kind", "network")
    assert "network 2-50-1\n" in told.out


def test_a_perceptron_has_no_hidden_layers(run: Run, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "a.csv", trips(30))
    told = run("fit", file, "--target", "price", "--hidden", "5,3", "--model-kind", "perceptron")
    assert told.code == 2
    assert "--model-kind perceptron has no hidden layers: leave out --hidden 5,3" in told.err
