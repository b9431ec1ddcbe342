"""--where, from the user's side."""

import csv
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import onepass
from onepass.files.versions import VersionedFile
from onepass.tables.inputs import Inputs
from onepass.tables.model import TabularModel
from onepass.tables.progress import resume
from onepass.tables.readers.options import ReadOptions
from onepass.tables.schema import SchemaOptions, infer_model
from onepass.tables.settings import Settings
from onepass.tables.training import Interrupted, TrainingRun, train
from tests.cli.conftest import Run
from tests.helpers.commands import run_command as process
from tests.helpers.tables import trips, write_csv

ROWS = trips(2000)


def _has_learned(model: TabularModel, rows: int) -> bool:
    return model.n_rows >= rows


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "trips.csv", ROWS)


def test_a_model_of_some_rows_is_that_of_a_file_with_these_rows_only(run: Run, file: Path, tmp_path: Path) -> None:
    kept = [row for row in ROWS if row["price"] > 15 and row["car"] != "van"]
    other = write_csv(tmp_path / "kept.csv", kept)
    condition = ("--where", "price > 15 and car != 'van'")
    first = run("fit", file, "--target", "price", "--model", tmp_path / "a", *condition, "--json")
    assert first.code == 0, first
    (told,) = [event for event in first.events if event.get("name") == "left out"]
    assert told["left_out"] == len(ROWS) - len(kept)
    assert run("fit", other, "--target", "price", "--model", tmp_path / "b", "-q").code == 0
    one, two = onepass.load(tmp_path / "a"), onepass.load(tmp_path / "b")
    assert one.n_rows == len(kept)
    assert one.n_rejected == 0
    assert (one.estimator.coef_ == two.estimator.coef_).all()
    scores = [
        [event for event in run("evaluate", *given, "--target", "price", "--json").events if event["event"] == "done"]
        for given in ((file, *condition), (other,))
    ]
    assert scores[0][0]["scores"] == scores[1][0]["scores"]


def test_rows_that_do_not_match_are_not_predicted(run: Run, file: Path, tmp_path: Path) -> None:
    assert run("fit", file, "--target", "price", "--model", tmp_path / "m", "-q").code == 0
    out = tmp_path / "out.csv"
    done = run("predict", tmp_path / "m", file, "--where", "id % 500 == 1", "--keep", "id", "--out", out)
    assert done.code == 0, done
    assert "left out:      1,996 rows by --where 'id % 500 == 1'" in done.out
    with out.open() as opened:
        assert [row["id"] for row in csv.DictReader(opened)] == ["1", "501", "1001", "1501"]
    done = run("predict", tmp_path / "m", file, "--where", "id < 0")
    assert done.code == 1
    assert "there is no row to predict: the condition left out all 2,000" in done.err


def test_an_interrupted_run_over_some_rows_is_resumed_bit_for_bit(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    inputs = Inputs((str(file),), reading=ReadOptions(where="wait > 1"))
    settings = Settings(model_kind="perceptron", covariance="diagonal", prior_scale=1.0)
    options = SchemaOptions("price", buckets=40_000, settings=settings)
    found = []
    for interrupted in (False, True):
        model, _ = infer_model(inputs.sources(), options, rereadable=True)
        assert model.rows_per_block < 300  # many features: small blocks
        sources, target = inputs.sources(), VersionedFile(tmp_path / f"{interrupted}.onepass")
        run = TrainingRun(model, target, inputs, sources)
        if interrupted:
            with pytest.raises(Interrupted):
                train(run, stopping=partial(_has_learned, model, 300), notes=lambda: {"asked": {}})
            resumed = resume(target.path, inputs, sources, {})
            assert resumed is not None
            run = TrainingRun(resumed.model, target, inputs, inputs.sources(), progress=resumed.progress)
        train(run)
        found.append(target.path.read_bytes())
    assert found[0] == found[1]


def test_a_condition_holds_for_standard_input_too(run: Run, file: Path, tmp_path: Path) -> None:
    options = ("--target", "price", "--where", "price > 15", "--ignore", "id", "-q")
    with file.open() as opened:
        done = process("fit", "-", *options, "--model", tmp_path / "a", stdin=opened)
    assert done.returncode == 0, done
    assert run("fit", file, *options, "--model", tmp_path / "b").code == 0
    one, two = onepass.load(tmp_path / "a"), onepass.load(tmp_path / "b")
    assert one.n_rows == two.n_rows == sum(row["price"] > 15 for row in ROWS)
    np.testing.assert_allclose(one.estimator.coef_, two.estimator.coef_)


def test_a_run_over_other_rows_is_another_run(file: Path) -> None:
    one, other = (Inputs((str(file),), reading=ReadOptions(where=where)) for where in ("wait > 1", "wait > 2"))
    assert one.identity(one.sources()) != other.identity(other.sources())


def test_a_first_file_without_matching_rows_does_no_harm(run: Run, file: Path, tmp_path: Path) -> None:
    cheap = write_csv(tmp_path / "cheap.csv", [row for row in ROWS if row["price"] <= 15])
    done = run("fit", cheap, file, "--target", "price", "--model", tmp_path / "m", "--where", "price > 15", "-q")
    assert done.code == 0, done
    done = run("fit", cheap, "--target", "price", "--model", tmp_path / "n", "--where", "price > 15")
    assert done.code == 1
    assert "cheap.csv has no rows: the condition left out all" in done.err


def test_a_wrong_condition_is_refused_with_its_place(run: Run, file: Path) -> None:
    done = run("fit", file, "--target", "price", "--where", "price = 0")
    assert done.code == 2
    assert "\n    price = 0\n          ^\n" in done.err
    done = run("evaluate", file, "--target", "price", "--where", "prize > 0")
    assert done.code == 1
    assert "--where: " in done.err
    assert "(did you mean 'price'?)" in done.err


def test_a_file_of_malformed_lines_says_so(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a;b\n1;2,5\n2;3,5\n")
    done = run("fit", file, "--target", "b", "--delimiter", ",")
    assert done.code == 1
    assert "a.csv has no rows: line 2 has 2 fields where the first line has 1, and so on" in done.err
