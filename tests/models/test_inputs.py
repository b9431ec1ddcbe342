"""Rows as perceptrons take them."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from onepass import BayesianPerceptron
from onepass.models.inputs import as_inputs

X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
FULL, DIAGONAL = (BayesianPerceptron(2, covariance=form)._state.belief for form in ("full", "diagonal"))


def test_one_row_and_many() -> None:
    rows, variances, single = as_inputs([1.0, 2.0], None, 2, FULL)
    assert (rows.tolist(), variances, single) == ([[1.0, 2.0]], None, True)
    rows, variances, single = as_inputs(X, None, 2, FULL)
    assert (rows.tolist(), variances, single) == (X.tolist(), None, False)


@pytest.mark.parametrize(
    ("given", "expected"),
    [(0.5, [[0.5, 0.5]] * 3), ([0.1, 0.2], [[0.1, 0.2]] * 3), (X / 10.0, (X / 10.0).tolist())],
    ids=["a number", "per feature", "per row"],
)
def test_variances_are_those_of_every_row(given: Any, expected: list[list[float]]) -> None:
    _, variances, _ = as_inputs(X, given, 2, FULL)
    assert variances is not None
    assert variances.tolist() == expected
    assert variances.flags.c_contiguous


@pytest.mark.parametrize(
    ("given", "words"),
    [([0.1, 0.2, 0.3], r"have shape \(2,\).*got shape \(3,\)"), (-0.1, "must not be negative, got -0.1")],
)
def test_wrong_variances_are_refused(given: Any, words: str) -> None:
    with pytest.raises(ValueError, match=f"^X_var must.*{words}" if "negative" not in words else f"^X_var {words}"):
        as_inputs(X, given, 2, FULL)


def test_sparse_rows_stay_so_where_a_belief_takes_them() -> None:
    rows, _, single = as_inputs(csr_array(X), None, 2, DIAGONAL)
    assert isinstance(rows, csr_array)
    assert not single
    rows, _, _ = as_inputs(csr_array(X), None, 2, FULL)
    np.testing.assert_array_equal(rows, X)
    with pytest.raises(ValueError, match="X_var needs dense rows, got sparse X"):
        as_inputs(csr_array(X), 0.1, 2, DIAGONAL)
