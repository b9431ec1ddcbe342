"""Perceptrons as rows of numbers."""

import numpy as np
import pytest

from onepass import BayesianPerceptron
from onepass.engine.step import PerceptronProgress
from onepass.models.fleet.records import (
    AT_PRIOR,
    HEAD,
    check_records,
    make_record,
    means_of,
    natural_of,
    packed_mixtures,
    record_width,
    roots_of,
)

rng = np.random.default_rng(0)
MEAN, ROOT = rng.normal(size=3), np.tril(rng.normal(size=(3, 3))) + 2.0 * np.eye(3)
RECORD = make_record(MEAN, ROOT, PerceptronProgress(0.1))


def test_a_record_has_the_mean_and_the_root() -> None:
    assert record_width(3) == HEAD + 3 + 6
    np.testing.assert_array_equal(means_of(RECORD[None], 3)[0], MEAN)
    np.testing.assert_array_equal(roots_of(RECORD[None], 3)[0], ROOT)


def test_precisions_are_those_of_the_covariance() -> None:
    precisions, means = natural_of(RECORD[None], 3)
    expected = np.linalg.inv(ROOT.T @ ROOT)
    found = np.linalg.inv(BayesianPerceptron(2, mean=MEAN, cov=ROOT.T @ ROOT).cov)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(precisions[0], expected, rtol=1e-9)
    np.testing.assert_allclose(means[0], expected @ MEAN, rtol=1e-9)
    with pytest.raises(ValueError, match="a covariance is singular, so it has no precision"):
        natural_of(make_record(MEAN, np.zeros((3, 3)), PerceptronProgress(0.1))[None], 3)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_mixture_of_covariances_is_their_weighted_sum(share: float) -> None:
    other = np.tril(rng.normal(size=(3, 3)))
    packed = packed_mixtures(ROOT[None], other[None], np.array([share]))[0]
    root = np.zeros((3, 3))
    root[np.tril_indices(3)] = packed
    np.testing.assert_allclose(root.T @ root, (1.0 - share) * ROOT.T @ ROOT + share * other.T @ other, atol=1e-12)


def test_records_that_learning_cannot_produce_are_refused() -> None:
    check_records(RECORD[None], 1)
    wrong = RECORD.copy()
    wrong[AT_PRIOR] = 1.0
    with pytest.raises(ValueError, match="name a prior that is not there"):
        check_records(wrong[None], 1)
    wrong[AT_PRIOR] = -1.0
    with pytest.raises(ValueError, match="must not be negative"):
        check_records(wrong[None], 1)
