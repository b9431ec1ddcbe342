"""Files learned on a cluster by the command, beside the same files in one process."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onepass
from onepass.merging import Merging
from onepass.tables.inputs import Inputs
from onepass.tables.readers.errors import StreamError
from onepass.tables.schema import SchemaOptions, infer_model
from onepass.tables.settings import Settings
from tests.helpers.commands import run_command as command
from tests.helpers.commands import run_here
from tests.helpers.tables import clicks, trips, write_csv, write_parquet

pytest.importorskip("distributed")

from onepass.integrations.dask.training import fit_files


def weights(path: Path) -> tuple[Any, Any]:
    """Mean weights and their standard deviations."""
    estimator = onepass.load(path).estimator
    return estimator.coef_, np.sqrt(np.diag(estimator.coef_cov_))


def test_a_cluster_learns_what_one_process_does(tmp_path: Path) -> None:
    rows = trips(3000)
    for k in range(3):
        write_parquet(tmp_path / f"p{k}.parquet", rows[k::3])
    shared = ["fit", str(tmp_path / "p*.parquet"), "--target", "price", "--ignore", "id,town", "--quiet"]
    one, many = tmp_path / "one.onepass", tmp_path / "many.onepass"
    assert run_here(*shared, "--model", one) == 0
    done = command(*shared, "--model", str(many), "--executor", "dask", "--workers", "2")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert onepass.load(many).n_rows == 3000
    (mean, std), (merged, _) = weights(one), weights(many)
    assert np.sqrt(np.mean(((merged - mean) / std) ** 2)) < 0.3  # another order of the rows moves it as far
    again = run_here("learn", many, write_parquet(tmp_path / "more.parquet", trips(100, seed=1)), "--quiet")
    assert (again, onepass.load(many).n_rows) == (0, 3100)


def test_what_workers_reject_is_written_down_once(tmp_path: Path) -> None:
    rows = clicks(600)
    files = [write_csv(tmp_path / f"c{k}.csv", rows[k::2]) for k in range(2)]
    with files[1].open("a") as file:
        file.write("1,2\nold,desk,1,ad\n")
    model, rejects = tmp_path / "kind.onepass", tmp_path / "rejects.csv"
    shared = ["--target", "kind", "--ignore", "clicked", "--model", str(model), "--rejects", str(rejects)]
    done = command("fit", *map(str, files), *shared, "--executor", "dask", "--workers", "1", "--json")
    assert done.returncode == 3, done.stderr
    with rejects.open() as file:
        found = [(Path(row["file"]).name, int(row["line"])) for row in csv.DictReader(file)]
    assert found == [("c1.csv", 302), ("c1.csv", 303)]
    learned = onepass.load(model)
    assert (learned.n_rows, learned.n_rejected, learned.labels) == (600, 2, ("ad", "news", "none"))


def test_rows_that_a_condition_leaves_out_on_workers_are_told(tmp_path: Path) -> None:
    files = [write_csv(tmp_path / f"{k}.csv", trips(300, seed=k)) for k in range(2)]
    shared = ["--target", "price", "--model", str(tmp_path / "m"), "--where", "id < 100", "--json"]
    done = command("fit", *map(str, files), *shared, "--executor", "dask", "--workers", "1")
    assert done.returncode == 0, done.stderr
    (told,) = [json.loads(line) for line in done.stdout.splitlines() if '"left out"' in line]
    assert told["left_out"] == 400


@pytest.mark.parametrize("settings", [Settings(weight="km"), Settings(by="car")])
def test_weights_and_keys_are_refused_before_anything_is_read(tmp_path: Path, settings: Settings) -> None:
    inputs = Inputs((str(write_csv(tmp_path / "a.csv", trips(300))),))
    options = SchemaOptions("price", settings=settings)
    model, _ = infer_model(inputs.sources(), options, rereadable=True)
    with pytest.raises(StreamError, match="only by one process"):
        fit_files(model, inputs, None, 1, lambda done, total: None)  # type: ignore[arg-type]


def test_a_cluster_learns_a_covariance_that_adds_up(tmp_path: Path) -> None:
    inputs = Inputs((str(write_csv(tmp_path / "a.csv", trips(300))),))
    options = SchemaOptions("price", settings=Settings(hidden=(600,)))
    model, _ = infer_model(inputs.sources(), options, rereadable=True)
    assert model.covariance == "low_rank"
    training = pytest.importorskip("onepass.integrations.dask.training")
    training._learn_first_rows(model, inputs)
    assert model.estimator.covariance_ == "kronecker"
    Merging(model.estimator)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--executor", "dask", "--passes", "2"), "--passes can't be used with --executor dask"),
        (("--executor", "dask", "--resume"), "--resume can't be used with --executor dask"),
        (("--workers", "2"), "--rounds need --executor dask"),
    ],
)
def test_what_a_cluster_cannot_do_is_said(
    tmp_path: Path, options: tuple[str, ...], sentence: str, capfd: pytest.CaptureFixture[str]
) -> None:
    file = write_csv(tmp_path / "a.csv", clicks(50))
    assert run_here("fit", file, "--target", "clicked", "--model", tmp_path / "m", *options) == 2
    assert sentence in capfd.readouterr().err
    assert not (tmp_path / "m").exists()
