"""The belief that a perceptron starts with: what a user may give, and what is made of it."""

from typing import Any

import numpy as np
import pytest

from onepass.beliefs.diagonal import DiagonalGaussian
from onepass.beliefs.full import FullGaussian
from onepass.beliefs.prior import (
    as_prior,
    as_scales,
    perceptron_belief,
    prior_variances,
    simplest_form,
    takes_sparse_rows,
)


@pytest.mark.parametrize(
    ("cov", "expected"),
    [
        (None, np.eye(2)),
        (3.0, 3.0 * np.eye(2)),
        ([1.0, 2.0], np.diag([1.0, 2.0])),
        ([[2.0, 1.0], [1.0, 3.0]], np.array([[2.0, 1.0], [1.0, 3.0]])),
    ],
    ids=["default", "number", "variances", "matrix"],
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_covariance_is_given_as_a_number_variances_or_a_matrix(cov: Any, expected: np.ndarray, dtype: str) -> None:
    prior = as_prior(None, cov, 2, "full", dtype)
    assert prior.mean.dtype == prior.cov.dtype == dtype
    np.testing.assert_array_equal(prior.mean, 0.0)
    np.testing.assert_allclose(prior.cov, expected, rtol=1e-6)


def test_independent_weights_take_a_diagonal_matrix_and_no_other() -> None:
    prior = as_prior([1.0, 2.0], np.diag([3.0, 4.0]), 2, "diagonal", "float64")
    assert isinstance(prior, DiagonalGaussian)
    np.testing.assert_array_equal(prior.cov, [3.0, 4.0])
    with pytest.raises(ValueError, match="cov must be diagonal with covariance='diagonal'"):
        as_prior(None, [[1.0, 0.1], [0.1, 1.0]], 2, "diagonal", "float64")


def test_what_is_no_prior_is_refused() -> None:
    with pytest.raises(ValueError, match=r"mean must have shape \(2,\), got shape \(3,\)"):
        as_prior([1.0, 2.0, 3.0], None, 2, "full", "float64")
    with pytest.raises(ValueError, match="cov"):
        as_prior(None, [[1.0, 2.0], [2.0, 1.0]], 2, "full", "float64")  # a correlation of 2
    with pytest.raises(MemoryError, match="40000 weights would take 13 GB; use covariance='diagonal'"):
        as_prior(None, None, 40_000, "full", "float64")


def test_a_prior_of_independent_weights_is_forgotten_towards_as_its_diagonal() -> None:
    simple = simplest_form(FullGaussian(np.ones(2), np.array([2.0, 3.0])))
    assert isinstance(simple, DiagonalGaussian)
    np.testing.assert_allclose(simple.cov, [2.0, 3.0])
    correlated = FullGaussian(np.ones(2), np.array([[2.0, 1.0], [1.0, 3.0]]))
    copy = simplest_form(correlated)
    assert isinstance(copy, FullGaussian)
    copy.mean[0] = 5.0
    assert correlated.mean[0] == 1.0


def test_capabilities_are_known_by_the_name_of_a_covariance() -> None:
    assert perceptron_belief("full") is FullGaussian
    assert perceptron_belief("kronecker") is perceptron_belief(("full", "full")) is None
    assert [takes_sparse_rows(name) for name in ("full", "diagonal", "kronecker")] == [False, True, False]


def test_scales_are_one_for_all_weights_or_one_each_and_one_of_the_intercept() -> None:
    np.testing.assert_array_equal(prior_variances(2, 0, 3.0, None), [9.0, 9.0])
    np.testing.assert_array_equal(prior_variances(2, 1, np.array([1.0, 2.0]), None), [4.0, 1.0, 4.0])
    np.testing.assert_array_equal(prior_variances(2, 1, 3.0, 5.0), [25.0, 9.0, 9.0])
    with pytest.raises(ValueError, match=r"one number or 2, one per feature, got shape \(3,\)"):
        as_scales(np.ones(3), 2)
