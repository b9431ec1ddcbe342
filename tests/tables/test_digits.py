"""Digits of predictions in text files: enough for a millionth of a standard deviation, and no more."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from onepass.tables.digits import rounded_predictions

NAMES = ["mean", "std", "lower", "upper", "p_a", "p_b", "add_km", "std_km", "baseline", "std_baseline"]


def _batch(**columns: Any) -> Any:
    return pa.RecordBatch.from_pydict({name: np.atleast_1d(values) for name, values in columns.items()})


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 0.7, 12.0, 3e5, 1e12])
def test_numbers_lose_less_than_a_millionth_of_their_standard_deviation(scale: float) -> None:
    random = np.random.default_rng(0)
    mean, std = random.normal(size=1000) * 50.0 * scale, random.uniform(0.1, 10.0, 1000) * scale
    batch = _batch(mean=mean, std=std, lower=mean - 2 * std, upper=mean + 2 * std)
    found = rounded_predictions(batch, NAMES)
    for name in ("mean", "std", "lower", "upper"):
        lost = np.abs(np.array(found[name]) - np.array(batch[name]))
        assert (lost <= 1e-6 * std).all()
    longest = max(len(repr(value).replace(".", "").replace("-", "").strip("0")) for value in found["std"].to_pylist())
    assert longest <= 11


def test_probabilities_near_0_and_1_keep_their_distance_from_them() -> None:
    p = np.array([1e-12, 0.123456789012, 1 - 3.3333333e-9])
    found = rounded_predictions(_batch(p_a=p, p_b=1 - p), NAMES)
    assert np.allclose(found["p_a"].to_numpy(), p, rtol=1e-6, atol=0)
    assert np.allclose(1 - np.array(found["p_a"])[2], 3.3333333e-9, rtol=1e-6)
    assert repr(found["p_a"][1].as_py()) == "0.1234568"


def test_parts_of_an_explanation_are_rounded_by_their_own_standard_deviation() -> None:
    found = rounded_predictions(_batch(add_km=1.2345678912, std_km=0.0123456789), NAMES).to_pylist()
    assert found == [{"add_km": 1.23456789, "std_km": 0.01234568}]


def test_what_is_missing_infinite_or_certain_stays_and_other_columns_are_not_touched() -> None:
    third = 0.1 + 0.2
    batch = pa.RecordBatch.from_pydict({"mean": [None, np.inf, third], "std": [None, 1.0, 0.0], "x": [third] * 3})
    assert rounded_predictions(batch, NAMES).to_pylist() == batch.to_pylist()
