from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from onepass.tables.columns.boolean import Boolean
from onepass.tables.columns.category import Category, Hashed
from onepass.tables.columns.date import Date
from onepass.tables.columns.encoding import Encoding
from onepass.tables.columns.errors import SchemaError
from onepass.tables.columns.inference import infer
from onepass.tables.columns.number import Number
from onepass.tables.readers.registry import open_source
from onepass.tables.reasons import Reason
from tests.helpers.tables import trips, write_csv, write_jsonl, write_parquet

ROWS = trips(600)


def batch(**columns: Any) -> Any:
    return pa.RecordBatch.from_pydict(columns)


def encoded(**columns: Any) -> Any:
    table = batch(**columns)
    return infer(table, []).encode(table).X


def test_every_kind_of_column_is_recognised_in_every_format(tmp_path: Path) -> None:
    kinds = {"km": Number, "car": Category, "start": Date, "vip": Boolean, "town": Hashed, "wait": Number}
    matrices = []
    for write, name in ((write_csv, "a.csv"), (write_jsonl, "a.jsonl"), (write_parquet, "a.parquet")):
        (rows,) = open_source(str(write(tmp_path / name, ROWS))).head(1000)
        encoding = infer(rows.record_batch, ["price"])
        assert {column.name: type(column) for column in encoding.columns} == kinds, name
        assert encoding.ignored == {"id": "it numbers the rows"}
        matrices.append(encoding.encode(rows.record_batch).X)
    np.testing.assert_array_equal(matrices[0], matrices[1])
    np.testing.assert_array_equal(matrices[0], matrices[2])


def test_numbers_are_centred_and_scaled_and_missing_ones_say_so() -> None:
    X = encoded(a=[1.0, None, 3.0, float("nan")], b=[5.0, 5.0, 5.0, 5.0])
    np.testing.assert_allclose(X, [[-1.0, 0.0, 0.0], [np.nan, 1.0, 0.0], [1.0, 0.0, 0.0], [np.nan, 1.0, 0.0]])


def test_a_value_missing_later_is_unknown() -> None:
    encoding = infer(batch(a=["1", "3"]), [])
    assert encoding.features == ["a"]
    np.testing.assert_array_equal(encoding.encode(batch(a=[None, "3"])).X, [[np.nan], [1.0]])
    np.testing.assert_array_equal(encoding.encode(batch(b=["7"])).X, [[np.nan]])


def test_categories_unseen_or_missing_are_other() -> None:
    encoding = infer(batch(a=["x", "y", "x"]), [])
    assert encoding.encode(batch(a=["y", "z", None])).X.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 1]]


def test_many_categories_are_hashed_the_same_way_for_ever() -> None:
    texts = [f"town {i % 30}" for i in range(100)]
    encoding = infer(batch(a=texts), [], buckets=8)
    X = encoding.encode(batch(a=["town 1", "town 2", None, "never seen"])).X
    assert X.sum(axis=1).tolist() == [1, 1, 0, 1]
    assert X.argmax(axis=1)[[0, 1, 3]].tolist() == [3, 4, 7]  # what earlier versions gave, or old models break
    assert infer(batch(a=[f"key {i}" for i in range(200)]), []).ignored == {
        "a": "nearly every row has its own value, as a name or a key has"
    }


def test_dates_become_trend_weekday_season_and_time_of_day() -> None:
    encoding = infer(batch(a=["2024-01-01T06:00:00", "2024-07-01T18:00:00"]), [])
    first = dict(zip(encoding.features, encoding.encode(batch(a=["2024-01-01T06:00:00"])).X[0], strict=True))
    assert first["a Monday"] == 1.0
    assert sum(value for name, value in first.items() if name.endswith("day")) == 1.0
    assert first["a time of day (sin)"] == pytest.approx(1.0)
    late = encoding.encode(batch(a=["2025-01-01T06:00:00"])).X[0]
    assert late[0] - first["a in years"] == pytest.approx(366 / 365.25)
    assert "a time of day (sin)" not in infer(batch(a=["2024-01-01", "2024-07-01"]), []).features
    zoned = encoding.encode(batch(a=["2024-01-01T07:00:00+01:00"])).X[0]
    np.testing.assert_allclose(zoned, list(first.values()), atol=1e-12)


def test_what_a_column_cannot_be_is_named() -> None:
    table = batch(a=["1", "2"], b=["true", "no"], c=["2024-01-01", "2024-01-02"])
    encoding = infer(table, [])
    bad = encoding.encode(batch(a=["1", "x", "inf"], b=["yes", "no", "maybe"], c=["2024-01-01", "soon", None])).bad
    assert bad == {1: Reason("not_a_number", "a", "x", manner=""), 2: Reason("infinite", "a")}
    odd = encoding.encode(batch(a=["1", "2"], b=["yes", "maybe"], c=["soon", "2024-01-01"])).bad
    assert odd == {
        0: Reason("not_an_iso_date", "c", "soon"),
        1: Reason("not_boolean", "b", "maybe"),
    }
    with pytest.raises(SchemaError) as refused:
        encoding.encode(batch(a=pa.array([0], pa.timestamp("s"))))
    assert refused.value.reason == Reason("wrong_type", "a", "dates", expected="numbers")


def test_a_number_far_outside_costs_its_row_only() -> None:
    values = [*(float(i % 7) for i in range(50)), 1e308, -1e308]
    encoding = infer(batch(a=values, b=[0.0] * 51 + [1e308], c=[1e308, -1e308] * 26), [])
    (a, b, c) = encoding.columns
    assert isinstance(a, Number)
    assert isinstance(c, Number)
    assert (a.centre, a.scale) == pytest.approx((np.mean(values[:50]), np.std(values[:50])))
    assert b == Number("b", 0.0, 1.0, False)
    assert (c.centre, c.scale) == pytest.approx((0.0, 1e308))
    later = encoding.encode(batch(a=[1.0, 1e308, -1e200, 2.0], b=[0.0] * 4, c=[1e308] * 4))
    assert later.bad == {
        1: Reason("too_far", "a", 1e308),
        2: Reason("too_far", "a", -1e200),
    }
    assert np.isfinite(later.X).all()


def test_the_user_knows_better() -> None:
    table = batch(zip=[10115, 80331, 10115], note=["a", "b", "a"])
    encoding = infer(table, ["note"], kinds={"zip": "category"})
    assert encoding.features == ["zip=10115", "zip=80331", "zip=(other)"]
    assert encoding.encode(batch(zip=["80331"])).X.tolist() == [[0, 1, 0]]


def test_no_guard_objects_to_what_was_asked_for() -> None:
    table = batch(
        t=list(range(200)), id=[f"key {i}" for i in range(200)], none=pa.nulls(200), flag=[i % 2 for i in range(200)]
    )
    kinds = {"t": "number", "id": "category", "none": "category", "flag": "boolean"}
    encoding = infer(table, [], kinds=kinds)
    assert {column.name: column.kind for column in encoding.columns} == kinds | {"id": "hashed"}
    assert encoding.ignored == {}
    assert encoding.encode(table).X[:, encoding.features.index("none=(other)")].all()
    assert encoding.encode(batch(flag=[0, 1, 2])).bad == {2: Reason("not_boolean", "flag", "2")}
    assert infer(table, []).ignored.keys() == {"t", "id", "none"}


def test_numbers_are_written_as_in_files_not_as_in_python() -> None:
    encoding = infer(batch(a=["1000", "2000"]), [])
    assert encoding.encode(batch(a=["1_000", "1,5", " 1500 "])).bad == {
        0: Reason("not_a_number", "a", "1_000", manner=""),
        1: Reason("decimal_comma", "a", "1,5", manner=""),
    }


def test_dates_that_no_format_reads_are_called_so() -> None:
    (column,) = infer(batch(a=[("31/01/2024", "01/31/2024")[i % 2] for i in range(50)]), []).columns
    assert column.words().endswith("; looks like dates, but no one format reads them all")
    (column,) = infer(batch(a=["x", "1.12.2024"]), []).columns
    assert "looks like" not in column.words()


def test_an_encoding_survives_its_file() -> None:
    table = pa.Table.from_pylist(ROWS).combine_chunks().to_batches()[0]
    encoding = infer(table, ["price"])
    again = Encoding.from_state(encoding.state())
    assert again == encoding
    np.testing.assert_array_equal(again.encode(table).X, encoding.encode(table).X)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "magic"},
        {"scale": 0.0},
        {"scale": "wide"},
        {"centre": float("nan")},
        {"name": 3},
        {"missing": "yes"},
        {"more": 1},
    ],
)
def test_a_hostile_encoding_is_refused(change: dict[str, Any]) -> None:
    state = infer(batch(a=[1.0, 2.0]), []).state()
    state["columns"][0] |= change
    with pytest.raises((ValueError, TypeError)):
        Encoding.from_state(state)


def test_contrasts_compare_a_category_with_an_average_row() -> None:
    encoding = infer(batch(a=["x", "x", "x", "y"], b=[1.0, 2.0, 3.0, 4.0]), [])
    weights = np.array([4.0, 0.0, 9.0, 5.0])
    for most in (1, 8, 2**22):
        bands = np.vstack(list(encoding.contrasts(range(4), most)))
        np.testing.assert_array_equal(np.vstack(list(encoding.contrasts([2, 0], most))), bands[[2, 0]])
        np.testing.assert_allclose(bands @ weights, [1.0, -3.0, 9.0, 5.0])


def test_columns_that_are_scaled_in_groups_are_encoded_as_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    values: dict[str, Any] = {f"x{i}": rng.normal(i, 1.0 + i, 50) for i in range(7)}
    values["car"] = ["a", "b"] * 25
    rows = pa.RecordBatch.from_pydict(values)
    encoding = infer(rows, [])
    X = encoding.encode(rows).X
    for i in range(7):
        own = values[f"x{i}"]
        np.testing.assert_allclose(X[:, i], (own - np.mean(own)) / np.std(own), atol=1e-12)
    before = X.copy()
    monkeypatch.setattr("onepass.tables.columns.encoding._SCRATCH", 120)  # two columns of 50 rows at a time
    np.testing.assert_array_equal(encoding.encode(rows).X, before)
    np.testing.assert_array_equal(X, before)  # room that is used again is not what was handed out
