"""Long tables of several libraries are read and written alike."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from onepass.forecasting.long_tables import as_input_names, as_level, as_library, columns_of, library_of

COLUMNS = {
    "unique_id": np.array(["a", "a", "b"]),
    "ds": np.array(["2024-01-01", "2024-01-02", "2024-01-01"], dtype="datetime64[ns]"),
    "y": np.array([1.0, np.nan, 3.0]),
    "price": np.array([7, 8, 9]),
}


@pytest.mark.parametrize(("library", "make"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame), (None, dict)])
def test_tables_of_all_libraries_have_the_same_columns(library: str | None, make: type) -> None:
    frame = make(COLUMNS)
    names, times, values, inputs = columns_of(frame, ("unique_id", "ds", "y"), ["price"])
    assert names.tolist() == ["a", "a", "b"]
    np.testing.assert_array_equal(times, COLUMNS["ds"].astype(np.int64))
    np.testing.assert_array_equal(values, COLUMNS["y"])
    np.testing.assert_array_equal(inputs, [[7.0], [8.0], [9.0]])
    assert library_of(frame) == library
    assert isinstance(as_library(COLUMNS, library), make)


def test_columns_that_are_missing_are_named() -> None:
    with pytest.raises(ValueError, match="it lacks ds, holiday"):
        columns_of({"unique_id": ["a"]}, ("unique_id", "ds"), ["holiday"])


def test_names_of_inputs_and_levels_are_checked() -> None:
    assert as_input_names(["price", "holiday"]) == ("price", "holiday")
    for wrong in (["y"], ["price", "price"], [3]):
        with pytest.raises(ValueError, match="different names of columns"):
            as_input_names(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="sequence of names"):
        as_input_names("price")
    assert as_level(80) == 0.8
    with pytest.raises(ValueError, match="percentages"):
        as_level(0.0)
    with pytest.raises(ValueError, match="percentages"):
        as_level(0.95)  # a share
