"""The moments of columns with gaps, against those of the values before each row, computed anew."""

import numpy as np
import pytest

from onepass._typing import FloatArray
from onepass.models.missing import ColumnMoments

rng = np.random.default_rng(0)
ROWS = np.where(rng.random((40, 3)) < 0.3, np.nan, 5.0 + rng.normal(size=(40, 3)))
WEIGHTS = rng.integers(1, 4, 40).astype(float)


def known_before(row: int, column: int, weights: FloatArray | None) -> FloatArray:
    """The values of a column before a row, each as often as its weight says."""
    values = ROWS[:row, column]
    if weights is not None:
        values = np.repeat(values, weights[:row].astype(int))
    return values[~np.isnan(values)]


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weighted"])
def test_gaps_are_filled_with_what_was_known_before_the_row(weights: FloatArray | None) -> None:
    filled, variances, after = ColumnMoments.start(3).filled_in_order(ROWS, weights)
    assert variances is not None
    for i, k in np.argwhere(np.isnan(ROWS)):
        values = known_before(i, k, weights)
        mean = values.mean() if len(values) else 0.0
        assert filled[i, k] == pytest.approx(mean)
        assert variances[i, k] == pytest.approx((1.0 + np.square(values - mean).sum()) / (1.0 + len(values)))
    known = ~np.isnan(ROWS)
    np.testing.assert_array_equal(filled[known], ROWS[known])
    assert not variances[known].any()
    for k in range(3):
        values = known_before(len(ROWS), k, weights)
        assert after.count[k] == len(values)
        assert after.mean[k] == pytest.approx(values.mean())
        assert after.square[k] == pytest.approx(np.square(values - values.mean()).sum())


def test_calls_may_divide_the_rows_anyhow() -> None:
    whole, _, after = ColumnMoments.start(3).filled_in_order(ROWS, WEIGHTS)
    moments, parts = ColumnMoments.start(3), []
    for part in np.split(np.arange(40), [1, 17, 18]):
        filled, _, moments = moments.filled_in_order(ROWS[part], WEIGHTS[part])
        parts.append(filled)
    np.testing.assert_allclose(np.concatenate(parts), whole)
    for name, values in after.arrays.items():
        np.testing.assert_allclose(moments.arrays[name], values)
    again = ColumnMoments.from_arrays(after.arrays, 3)
    np.testing.assert_array_equal(again.filled(ROWS)[0], after.filled(ROWS)[0])


def test_rows_without_gaps_stay_as_they_are() -> None:
    rows = rng.normal(size=(5, 3))
    moments = ColumnMoments.start(3)
    assert moments.filled(rows)[1] is None
    filled, variances, _ = moments.filled_in_order(rows)
    assert filled is rows
    assert variances is None
