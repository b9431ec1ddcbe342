"""How rows are learned, apart from the belief."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.forgetting import Forgetting
from onepass.beliefs.rows import RowPlan
from onepass.engine.rows import Rows


@pytest.mark.parametrize(
    ("drift", "process_noise", "added"),
    [
        (0.0, [], []),
        (0.0, [0.1, 0.2], [0.1, 0.2]),
        (0.5, [], [1.0, 2.0]),
        (0.5, [0.1, 0.2], [1.1, 2.2]),
    ],
)
def test_drift_and_process_noise_add_to_the_variances(
    drift: float, process_noise: list[float], added: list[float]
) -> None:
    prior = DiagonalGaussian(np.zeros(2), np.array([2.0, 4.0]))
    plan = RowPlan(None, Forgetting(1.0, 2), prior, drift, np.array(process_noise), "auto")  # type: ignore[arg-type]
    assert plan.drifts == bool(added)
    np.testing.assert_allclose(plan.added, added)


@pytest.mark.parametrize("sparse", [True, False])
def test_a_part_of_rows_has_its_part_of_every_array(sparse: bool) -> None:
    X = np.arange(12.0).reshape(6, 2)
    record = np.arange(18.0).reshape(6, 3)
    rows = Rows(csr_array(X) if sparse else X, np.arange(6.0), np.empty((0, 2)), record, np.empty((0, 3)))
    part = rows.part(2, 5)
    assert (len(rows), len(part)) == (6, 3)
    np.testing.assert_array_equal(part.X.toarray() if sparse else part.X, X[2:5])
    np.testing.assert_array_equal(part.y, [2.0, 3.0, 4.0])
    assert len(part.X_var) == len(part.sites) == 0
    part.record[0] = -1.0  # a view: what is known of rows is written to the caller's array
    np.testing.assert_array_equal(rows.record[2], -1.0)
