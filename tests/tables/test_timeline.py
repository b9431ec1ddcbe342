"""Tables in time: what the time of rows does to a model, and what it can't be combined with."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import onepass
from onepass import BayesianTabularRegressor
from onepass.tables import fit
from onepass.tables.columns.date import YEAR, Date
from onepass.tables.columns.encoding import Encoding
from onepass.tables.columns.errors import SchemaError
from onepass.tables.explanation import explain
from onepass.tables.forward_record import LEVEL, ForwardTest
from onepass.tables.model import TabularModel
from onepass.tables.readers.batches import RowBatch
from tests.helpers.exported import numpy_module

N = 240


def trips(kind: str = "walk", n: int = N, seed: int = 1) -> pd.DataFrame:
    """Prices around a level that walks, or around none, a day apart."""
    rng = np.random.default_rng(seed)
    km, steps = rng.normal(size=n), rng.normal(size=n)
    level = np.cumsum(steps) if kind == "walk" else steps
    days = pd.date_range("2024-01-01", periods=n)
    return pd.DataFrame({"date": days, "km": km, "price": 20.0 + 3.0 * km + level})


def ahead(*days: int) -> pd.DataFrame:
    """Rows of average length some days after the last one of `trips`."""
    last = pd.Timestamp("2024-01-01") + pd.Timedelta(days=N - 1)
    return pd.DataFrame({"date": [last + pd.Timedelta(days=one) for one in days], "km": 0.0})


def fitted(folder: Path, table: pd.DataFrame, **options: Any) -> TabularModel:
    file = folder / "trips.csv"
    table.to_csv(file, index=False)
    return fit(str(file), "price", **{"time": "date", "model_kind": "perceptron", **options})


@pytest.fixture(scope="module")
def walking(tmp_path_factory: pytest.TempPathFactory) -> TabularModel:
    return fitted(tmp_path_factory.mktemp("walking"), trips())


def test_a_prediction_starts_from_the_last_rows_and_widens_with_the_distance(walking: TabularModel) -> None:
    found, table = walking.predict(ahead(1, 5, 30, 200)).to_pandas(), trips()
    residual = (table.price - 3.0 * table.km).iloc[-1]
    assert abs(found["mean"][0] - residual) < 2.0
    assert found["std"][0] < 2.5
    assert (np.diff(found["std"]) > 0.0).all()
    assert found["std"][3] > 3.0 * found["std"][0]
    assert walking.estimator.level_probability_ > 0.99


def test_independent_rows_have_intervals_that_do_not_widen(tmp_path: Path) -> None:
    with_time = fitted(tmp_path, trips("none"))
    near, far = with_time.predict(ahead(1, 30))["std"].to_pylist()
    assert far / near < 1.1
    assert with_time.estimator.level_probability_ < 0.3


def test_forward_tests_choose_the_level_where_there_is_one(tmp_path: Path) -> None:
    model = fitted(tmp_path, trips(), model_kind="auto")
    assert model.forward_test is not None
    assert model.forward_test.candidate is LEVEL
    assert model.has_level
    words = dict(model.choices())
    assert "around a level that moves with time" in words["model"]
    assert words["time"].startswith("date: ")


def test_what_forward_tests_widen_is_what_the_distance_adds(tmp_path: Path, walking: TabularModel) -> None:
    plain = walking.predict(ahead(1, 100))["std"].to_pylist()
    walking.forward_test = ForwardTest(LEVEL.name, {LEVEL.name: 0.0}, 100, 20, 2.0)
    try:
        wider = walking.predict(ahead(1, 100))["std"].to_pylist()
        share = walking.share_ahead(walking.encode(_batch(ahead(1, 100))).X)
    finally:
        walking.forward_test = None
    np.testing.assert_allclose(np.divide(wider, plain), np.sqrt(1.0 + 3.0 * share), rtol=1e-6)
    assert wider[1] / plain[1] > max(1.7, wider[0] / plain[0])


def _batch(table: pd.DataFrame) -> RowBatch:
    (batch,) = pa.Table.from_pandas(table, preserve_index=False).to_batches()
    return RowBatch(batch, 0, tuple)


def test_a_file_keeps_the_time_and_the_level(walking: TabularModel, tmp_path: Path) -> None:
    onepass.save(walking, tmp_path / "m.onepass")
    again = onepass.load(tmp_path / "m.onepass")
    assert again.time == walking.time
    assert again.predict(ahead(1, 50)).equals(walking.predict(ahead(1, 50)))


def test_columns_and_baseline_add_up_to_the_prediction(walking: TabularModel) -> None:
    rows = walking.encode(_batch(ahead(1, 10)))
    found = explain(walking, rows.X)
    np.testing.assert_allclose(found.total, walking.distribution(rows.X).mean)


def test_a_row_without_a_time_is_rejected_and_not_predicted(walking: TabularModel, tmp_path: Path) -> None:
    table = trips()
    table.loc[5, "date"] = pd.NaT
    assert fitted(tmp_path, table).n_rejected == 1
    with pytest.warns(UserWarning, match="1 of 1 rows can't be predicted"):
        walking.predict([{"date": None, "km": 0.0}])


def test_a_number_can_be_the_time(tmp_path: Path) -> None:
    table = trips().assign(date=np.arange(N) * 10.0)
    near, far = fitted(tmp_path, table).predict(pd.DataFrame({"date": [2400.0, 5000.0], "km": 0.0}))["std"].to_pylist()
    assert far > 2.0 * near


def test_rows_have_the_seasons_that_they_cover_twice(tmp_path: Path) -> None:
    hours = pd.DataFrame({"date": pd.date_range("2024-01-01", periods=24 * 20, freq="h"), "km": 0.0})
    hours["price"] = np.sin(2.0 * np.pi * np.arange(len(hours)) / 24.0) + np.random.default_rng(0).normal(
        size=len(hours)
    )
    names = fitted(tmp_path, hours.assign(km=hours.price)).encoding.features
    assert not any("season" in name for name in names)
    assert "date time of day / 2 (sin)" in names
    assert "date week (sin)" in names


def test_any_split_of_calls_gives_the_same_model() -> None:
    table = trips()
    whole, parts = (BayesianTabularRegressor(time="date", model_kind="perceptron") for _ in range(2))
    X, y = table[["date", "km"]], table.price
    whole.partial_fit(X[:100], y[:100])
    parts.partial_fit(X[:100], y[:100])
    whole.partial_fit(X[100:], y[100:])
    for start, stop in ((100, 101), (101, 170), (170, N)):
        parts.partial_fit(X[start:stop], y[start:stop])
    np.testing.assert_array_equal(whole.predict(ahead(1, 20)), parts.predict(ahead(1, 20)))


def test_a_logarithm_has_a_level_too(tmp_path: Path) -> None:
    table = trips()
    table["price"] = np.exp(table.price / 20.0)
    model = fitted(tmp_path, table, log_target=True)
    near, far = model.predict(ahead(1, 100))["std"].to_pylist()
    assert far > 2.0 * near


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"by": "km"}, "a model per key"),
        ({"hidden": (5,), "model_kind": "auto"}, "hidden layers"),
        ({"task": "counts"}, "counts"),
        ({"task": "classification"}, "classes"),
        ({"drift": "auto"}, "drift: what moves is the level"),
        ({"forgetting": 0.9}, "forgetting"),
        ({"outliers": 0.1}, "outliers"),
        ({"intervals": "adaptive"}, "intervals='adaptive'"),
        ({"noise": 1.0}, "a noise that is given"),
        ({"passes": 3}, "passes=3"),
        ({"shuffle": "on"}, "shuffle='on'"),
        ({"time": "price"}, "'price' is the target"),
        ({"time": "day"}, "has no column 'day'"),
    ],
)
def test_what_a_model_in_time_does_not_have_is_refused(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    table = trips(n=60)
    if options.get("task"):
        table["price"] = np.arange(60) % 3
    with pytest.raises(SchemaError, match=words):
        fitted(tmp_path, table, **options)


def test_rows_in_another_order_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="row 2 is earlier than the one before it; sort them"):
        fitted(tmp_path, trips()[::-1])
    with pytest.raises(SchemaError, match="have the same time in 'date'"):
        fitted(tmp_path, trips().assign(date=pd.Timestamp("2024-01-01")))


def test_a_column_that_is_no_time_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="'date' can't be the time of the rows, because it is a category"):
        fitted(tmp_path, trips().assign(date=["a", "b"] * (N // 2)))


def test_a_year_that_numbers_the_rows_can_be_the_time(tmp_path: Path) -> None:
    table = trips().assign(date=np.arange(1700, 1700 + N))
    near, far = fitted(tmp_path, table).predict(pd.DataFrame({"date": [1940, 2140], "km": 0.0}))["std"].to_pylist()
    assert far > 2.0 * near
    with pytest.raises(SchemaError, match="its first values are neither"):
        fitted(tmp_path, table.assign(date=[f"trip {k}" for k in range(N)]))


def test_a_level_can_not_be_exported(walking: TabularModel) -> None:
    with pytest.raises(ValueError, match="depend on the distance from the last row"):
        numpy_module(walking)


def test_a_date_is_a_time_before_its_seasons_are_known() -> None:
    date = Date("date", 0.0, clock=False, missing=True)
    alone = Encoding((date.as_time(),), {})
    days = pa.array(["1970-01-01", None, "1971-01-01"])
    (batch,) = pa.table({"date": days}).to_batches()
    np.testing.assert_allclose(alone.encode(batch).X[:, 0], [0.0, np.nan, 365 / YEAR])
    assert date.turns
    assert not date.as_time().turns
    assert [turn.name for turn in date.as_time().with_seasons(3.0, 0.25).turns] == ["season", "season / 2"]
