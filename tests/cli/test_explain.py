"""predict --explain, from the user's side."""

import csv
import os
import pty
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Run
from tests.helpers.commands import COMMAND
from tests.helpers.tables import clicks, trips, write_csv


@pytest.fixture
def model(run: Run, tmp_path: Path) -> Path:
    write_csv(tmp_path / "trips.csv", trips(500))
    options = ("--target", "price", "--ignore", "id,town", "--model", tmp_path / "m", "-q")
    assert run("fit", tmp_path / "trips.csv", *options).code == 0
    return tmp_path / "m"


def test_what_columns_add_stands_beside_the_prediction(run: Run, model: Path, tmp_path: Path) -> None:
    new = write_csv(tmp_path / "new.csv", [*trips(3, seed=1), {**trips(1)[0], "km": "far"}])
    out = tmp_path / "out.csv"
    assert run("predict", model, new, "--explain", "--keep", "id", "--full-precision", "--out", out, "-q").code == 3
    with out.open() as opened:
        rows = list(csv.DictReader(opened))
    assert list(rows[0])[:8] == ["id", "mean", "std", "lower", "upper", "baseline", "std_baseline", "add_km"]
    for row in rows[:3]:
        total = float(row["baseline"]) + sum(float(row[name]) for name in row if name.startswith("add_"))
        assert total == pytest.approx(float(row["mean"]))
    assert rows[3]["add_km"] == rows[3]["baseline"] == ""
    assert run("predict", model, new, "--explain", "--out", tmp_path / "out.parquet", "-q").code == 3
    assert "std_vip" in pq.read_table(tmp_path / "out.parquet").column_names


def test_names_that_are_taken_are_refused(run: Run, model: Path, tmp_path: Path) -> None:
    new = write_csv(tmp_path / "new.csv", [{**row, "add_km": 1} for row in trips(3)])
    assert run("predict", model, new, "--keep", "add_km", "-q").code == 0
    done = run("predict", model, new, "--keep", "add_km", "--explain", "-q")
    assert done.code == 2
    assert "--keep add_km has the same name as an output column" in done.err


def test_a_terminal_shows_a_few_lines_per_row(model: Path, tmp_path: Path) -> None:
    new = write_csv(tmp_path / "new.csv", [{**row, "wait": None} for row in trips(2, seed=1)])
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [*COMMAND, "predict", model, new, "--explain"], stdout=theirs, stderr=subprocess.PIPE, check=True
    )
    os.close(theirs)
    shown = os.read(ours, 100_000).decode().replace("\r", "")
    os.close(ours)
    assert b"predicted 2 rows" in done.stderr
    head, baseline, *columns = shown.splitlines()[:7]  # five columns
    assert "new.csv, line 2: mean " in head
    assert baseline.startswith("  average row ")
    assert any(line.startswith("  wait = missing ") for line in columns)
    assert len({line.index(" ± ") for line in (baseline, *columns)}) == 1
    assert "new.csv, line 3: mean " in shown.splitlines()[7]


def test_classes_are_explained_in_log_odds(run: Run, tmp_path: Path) -> None:
    from onepass.cli.explained_rows import explained_rows
    from onepass.cli.paths import load_model
    from onepass.tables.prediction import predict_batch
    from onepass.tables.readers.registry import open_source

    file = write_csv(tmp_path / "clicks.csv", clicks(400))
    for target, words in (("clicked", "log odds of 1 "), ("kind", "log odds of ")):
        assert run("fit", file, "--target", target, "--model", tmp_path / "m", "-q").code == 0
        model = load_model(tmp_path / "m")
        (batch,) = open_source(str(file)).head(3)
        shown = list(explained_rows(model, "a", batch, predict_batch(model, batch, 0.9, explained=True)[0]))
        assert shown[0].startswith("a, line 2: label ")
        assert words in shown[1]
