"""--time, from the user's side."""

import csv
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Run
from tests.helpers.tables import Row, write_csv

START = date(2024, 1, 1)


def trips(first: int, n: int) -> list[Row]:
    rng = np.random.default_rng(0)
    level, km = np.cumsum(rng.normal(size=first + n)), rng.normal(size=first + n)
    days = range(first, first + n)
    return [
        {"date": str(START + timedelta(days=k)), "km": round(km[k], 3), "price": round(20 + 3 * km[k] + level[k], 3)}
        for k in days
    ]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "trips.csv", trips(0, 200))


def stds(run: Run, model: Path, rows: Path) -> list[float]:
    done = run("predict", model, rows, "--out", rows.with_suffix(".out.csv"), "-q")
    assert done.code == 0, done
    with rows.with_suffix(".out.csv").open() as opened:
        return [float(row["std"]) for row in csv.DictReader(opened)]


def test_a_model_is_fitted_learns_on_is_undone_and_predicts_by_the_distance(
    run: Run, file: Path, tmp_path: Path
) -> None:
    model, tonight = tmp_path / "m.onepass", write_csv(tmp_path / "tonight.csv", trips(200, 20))
    done = run("fit", file, "--target", "price", "--time", "date", "--model", model, "--model-kind", "perceptron")
    assert done.code == 0, done
    assert "time:" in done.out
    ahead = write_csv(tmp_path / "ahead.csv", [row for k in (220, 320) for row in trips(k, 1)])
    before = stds(run, model, ahead)
    assert before[1] > before[0]
    assert run("learn", model, tonight).code == 0
    after = stds(run, model, ahead)
    assert after[0] < before[0]
    shown = run("show", model)
    assert "level now:" in shown.err + shown.out
    report = run("report", tonight, "--model", model, "--out", tmp_path / "report.html")
    assert report.code == 0, report
    assert run("undo", model).code == 0
    assert stds(run, model, ahead) == before
    assert run("evaluate", file, "--target", "price", "--time", "date", "--test-split", "last:20%").code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--passes", "2"), "it can't be used with passes=2"),
        (("--shuffle", "on"), "shuffle='on'"),
        (("--executor", "dask"), "--time can't be used with --executor dask"),
        (("--by", "km"), "a model per key"),
        (("--hidden", "5"), "hidden layers"),
    ],
)
def test_what_needs_rows_in_no_order_is_refused_before_anything_is_written(
    run: Run, file: Path, tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    model = tmp_path / "m.onepass"
    done = run("fit", file, "--target", "price", "--time", "date", "--model", model, *options)
    assert done.code != 0
    assert words in done.err
    assert not model.exists()


def test_a_model_in_time_learns_rows_once(run: Run, file: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.onepass"
    run("fit", file, "--target", "price", "--time", "date", "--model", model, "--model-kind", "perceptron")
    done = run("learn", model, write_csv(tmp_path / "more.csv", trips(200, 5)), "--passes", "2")
    assert done.code != 0
    assert "--time needs --passes 1" in done.err
