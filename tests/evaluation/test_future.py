"""The future test: what is learned, what is predicted, and in which order."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import onepass
from onepass.evaluation.held_out import LastRows
from onepass.tables.inputs import Inputs
from onepass.tables.readers.errors import StreamError


def table(n: int, *, turn: int) -> pa.Table:
    """A line whose slope turns round after some rows."""
    x = np.random.default_rng(0).normal(size=n)
    slope = np.where(np.arange(n) < turn, 2.0, -2.0)
    return pa.table({"x": x, "y": slope * x + 0.01 * np.cos(np.arange(n))})


def written(folder: Path, rows: pa.Table, *cuts: int) -> list[str]:
    """The rows in as many files as there are pieces between the cuts."""
    ends = [0, *cuts, rows.num_rows]
    files = [folder / f"{k}.csv" for k in range(len(ends) - 1)]
    for file, start, end in zip(files, ends, ends[1:], strict=False):
        csv.write_csv(rows.slice(start, end - start), file)
    return [str(file) for file in files]


def test_the_first_rows_are_fitted_and_the_rest_is_predicted_without_learning_it(tmp_path: Path) -> None:
    rows = table(500, turn=400)
    (file,) = written(tmp_path, rows)
    trial = onepass.evaluation.future_test(file, "y", model_kind="perceptron")
    (first,) = written(tmp_path, rows.slice(0, 400))
    model = onepass.tables.fit(first, "y", model_kind="perceptron")
    rest = rows.slice(400)
    expected = np.sqrt(np.mean((model.predict(rest)["mean"].to_numpy() - rest["y"].to_numpy()) ** 2))
    assert (trial.model.n_rows, trial.rows) == (400, 100)
    assert trial.scores()["onepass"]["rmse"] == pytest.approx(expected, rel=1e-9)
    assert trial.scores()["onepass"]["rmse"] > 3.0  # it has not seen the turn


@pytest.mark.parametrize("options", [{"model_kind": "perceptron"}, {"hidden": (3,)}])
def test_rows_in_several_files_are_divided_like_those_of_one(tmp_path: Path, options: dict[str, Any]) -> None:
    rows = table(300, turn=300)
    folder = tmp_path / "whole"
    folder.mkdir()
    given = {"target": "y", "share": 0.3, "shuffle": "off", "sample": 120, **options}
    expected = onepass.evaluation.future_test(written(folder, rows), **given)
    trial = onepass.evaluation.future_test(written(tmp_path, rows, 120, 120, 250), **given)
    assert (trial.model.n_rows, trial.rows) == (expected.model.n_rows, expected.rows) == (210, 90)
    assert trial.scores()["onepass"] == pytest.approx(expected.scores()["onepass"], rel=1e-9)


def test_nothing_of_the_model_is_inferred_from_the_rows_to_predict(tmp_path: Path) -> None:
    rows = table(100, turn=100)
    later = pa.table({"x": rows["x"].to_numpy() * 1e3, "y": rows["y"].to_numpy() * 1e3}).slice(80)
    (file,) = written(tmp_path, pa.concat_tables([rows.slice(0, 80), later]))
    trial = onepass.evaluation.future_test(file, "y", model_kind="perceptron")
    assert trial.model.target.scale == pytest.approx(np.std(rows["y"].to_numpy()[:80]), rel=0.05)


def test_what_can_not_be_divided_is_refused(tmp_path: Path) -> None:
    (file,) = written(tmp_path, table(1, turn=1))
    with pytest.raises(StreamError, match="too few rows"):
        onepass.evaluation.future_test(file, "y")
    with pytest.raises(ValueError, match="share must be in"):
        onepass.evaluation.future_test(file, "y", share=1.0)
    with pytest.raises(StreamError, match="standard input"):
        LastRows.of(Inputs(("-",)), [], "y", 0.2)
