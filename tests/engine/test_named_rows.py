import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from onepass.engine.named_rows import named_row

COLUMNS = {"a": 0, ("b", 1): 1, 7: 3}


def test_numbers_stand_in_their_columns() -> None:
    loaded = named_row({7: np.float32(2.5), "a": True, "new": -3, "other": 4.0}, COLUMNS, 5, 1e150, 0.0)
    assert loaded is not None
    row, n_new, squares = loaded
    assert row.tolist() == [1.0, 0.0, 0.0, 2.5, 0.0]
    assert (n_new, squares) == (2, 25.0)


def test_rows_do_not_share_memory() -> None:
    first, second = (named_row({"a": value}, COLUMNS, 4, 1e150, 0.0) for value in (1.0, 2.0))
    assert first is not None
    assert second is not None
    assert first[0][0] == 1.0


def test_new_numbers_count_as_the_largest_at_most() -> None:
    loaded = named_row({"x": -1e300}, {}, 0, 1e3, 0.0)
    assert loaded is not None
    assert len(loaded[0]) == 0
    assert loaded[1:] == (1, 1e6)


@pytest.mark.parametrize("value", [None, "1.0", math.nan, math.inf, -math.inf, [1.0], 10**400, 1j])
@pytest.mark.parametrize("name", ["a", "new"])
def test_what_is_no_finite_number_is_told(name: str, value: Any) -> None:
    assert named_row({"a": 1.0, name: value}, COLUMNS, 4, 1e150, 0.0) is None


def test_all_kinds_of_numbers() -> None:
    for value in (np.float64(0.5), Fraction(1, 2), np.array(0.5)):
        loaded = named_row({"a": value}, COLUMNS, 4, 1e150, 0.0)
        assert loaded is not None
        assert loaded[0][0] == 0.5


def test_a_column_that_is_not_there_is_no_memory_to_write_to() -> None:
    with pytest.raises(IndexError, match="no column 3"):
        named_row({7: 1.0}, COLUMNS, 3, 1e150, 0.0)
    with pytest.raises(TypeError):
        named_row(Counter("abc"), COLUMNS, 4, 1e150, 0.0)


def test_gaps_are_not_numbers_where_they_may_be() -> None:
    x = {"a": None, 7: math.nan, ("b", 1): 2.0, "new": None, "newer": math.nan, "newest": 2.0}
    loaded = named_row(x, {"a": 0, ("b", 1): 1, "left out": 2, 7: 3}, 5, 1e150, math.nan)
    assert loaded is not None
    assert loaded[0].tolist() == pytest.approx([math.nan, 2.0, math.nan, math.nan, 0.0], nan_ok=True)
    assert loaded[1:] == (1, 4.0)
    for wrong in (math.inf, "1.0", [1.0]):
        assert named_row({"a": wrong}, COLUMNS, 4, 1e150, math.nan) is None
    with pytest.raises(IndexError, match="no column 2"):
        named_row({}, COLUMNS, 2, 1e150, math.nan)
