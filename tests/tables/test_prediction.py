"""Rows that a Python program has, predicted by the model of a table as the command does."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import onepass
from onepass.tables.columns.errors import SchemaError
from onepass.tables.model import TabularModel
from tests.helpers.commands import run_here
from tests.helpers.tables import clicks, trips, write_csv

FORMS: dict[str, Callable[[Path], Any]] = {
    "pandas": pd.read_csv,
    "pandas, categories": lambda path: pd.read_csv(path, dtype={"car": "category"}),
    "polars": lambda path: pl.read_csv(path, try_parse_dates=True),
    "Arrow": lambda path: pa.Table.from_pandas(pd.read_csv(path)),
    "raw rows": lambda path: list(csv.DictReader(path.read_text(encoding="utf-8").splitlines())),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models of numbers and of classes, new rows, and what the command predicts for them."""
    folder = tmp_path_factory.mktemp("models")
    for name, rows, target in (("trips", trips(300), "price"), ("clicks", clicks(300), "kind")):
        data, model = write_csv(folder / f"{name}.csv", rows), folder / f"{name}.onepass"
        assert run_here("fit", data, "--target", target, "--model", model, "--quiet") == 0
        assert (
            run_here(
                "predict", model, data, "--out", folder / f"{name}.predicted.csv", "--level", "0.8", "--full-precision"
            )
            == 0
        )
    return folder


@pytest.mark.parametrize("form", FORMS)
def test_rows_in_any_form_are_predicted_as_by_the_command(form: str, folder: Path) -> None:
    for name in ("trips", "clicks"):
        found = onepass.load(folder / f"{name}.onepass").predict(FORMS[form](folder / f"{name}.csv"), level=0.8)
        true = pd.read_csv(folder / f"{name}.predicted.csv", dtype={"label": str})
        pd.testing.assert_frame_equal(found.to_pandas(), true, check_dtype=False, rtol=1e-12)


def test_a_row_that_can_not_be_predicted_is_empty_and_told(folder: Path) -> None:
    model: TabularModel = onepass.load(folder / "trips.onepass")
    rows = pd.read_csv(folder / "trips.csv", dtype=str, nrows=4)
    rows.loc[2, "km"] = "far"
    with pytest.warns(UserWarning, match=r"^1 of 4 rows .* row 2, counted from 0: "):
        found = model.predict(rows)
    assert found["mean"].is_null().to_pylist() == [False, False, True, False]


def test_many_rows_are_predicted_in_parts(folder: Path) -> None:
    model: TabularModel = onepass.load(folder / "trips.onepass")
    rows = pd.concat([pd.read_csv(folder / "trips.csv")] * 40)
    found = model.predict(rows)
    assert found.num_rows == len(rows) > model.rows_per_prediction
    assert np.array_equal(found["mean"].to_numpy()[-300:], found["mean"].to_numpy()[:300])


@pytest.mark.parametrize(
    ("rows", "error", "words"),
    [
        (3.0, TypeError, "rows must be a data frame, an Arrow table or a list of mappings .* got float"),
        ([], TypeError, "not empty; got list"),
        (pd.DataFrame({"km": []}), ValueError, "there is no row to predict"),
        ([{"kmh": 1.0}], SchemaError, "the table has no column 'km'"),
        ([{"km": 1.0}, {"km": "far"}], TypeError, "km must have values of one kind"),
    ],
)
def test_what_is_no_such_table_is_refused(rows: Any, error: type[Exception], words: str, folder: Path) -> None:
    with pytest.raises(error, match=words):
        onepass.load(folder / "trips.onepass").predict(rows)
    with pytest.raises(ValueError, match=r"level must be in \(0, 1\), got 95"):
        onepass.load(folder / "trips.onepass").predict([{"km": 1.0}], level=95)
