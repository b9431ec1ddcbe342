"""The block kernel: many rows by products of matrices are the rows one by one."""

from typing import Any

import numpy as np
import pytest

from onepass import BayesianPerceptron, PiecewiseLinear
from onepass.engine.blocks import block_size
from tests.helpers.regression import linear_posterior, linear_rows

D = 9


def perceptron(kernel: str, **options: Any) -> BayesianPerceptron:
    return BayesianPerceptron(D, **{"activation": "linear", "noise": 0.09, **options}, kernel=kernel)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])  # a block has 64 rows
def test_blocks_come_to_linear_regression_in_closed_form(n: int) -> None:
    X, y = linear_rows(n, D)
    model = perceptron("blocks").learn(X, y[:, 0])
    expected = linear_posterior(X, y, np.ones(D + 1), 0.09)
    np.testing.assert_allclose(model.mean, expected.mean[0], atol=1e-10)
    np.testing.assert_allclose(model.cov, expected.cov, atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"process_noise": 0.01},
        {"drift": 0.02},
        {"forgetting": 0.97},
        {"noise": "learn"},
        {"outliers": 0.05},
        {"activation": PiecewiseLinear([-1.0, 1.0], [0.0])},  # whose rows may widen the belief
        {"activation": "sigmoid", "noise": None},
    ],
    ids=str,
)
def test_a_block_is_its_rows_one_by_one(options: dict[str, Any]) -> None:
    X, y = linear_rows(150, D, seed=1)
    target = (y[:, 0] > 0).astype(float) if options.get("activation") == "sigmoid" else y[:, 0]
    blocks, rows = (perceptron(kernel, **options).learn(X, target) for kernel in ("blocks", "rows"))
    scale = np.abs(rows.cov).max()
    np.testing.assert_allclose(blocks.mean, rows.mean, atol=1e-8)
    np.testing.assert_allclose(blocks.cov, rows.cov, atol=1e-8 * scale)
    assert blocks.log_evidence == pytest.approx(rows.log_evidence, rel=1e-8)


def test_a_covariance_that_would_lose_its_digits_is_learned_by_its_root() -> None:
    """A precise target after a vague belief: the difference of large numbers, of which nothing would be left."""
    X, y = linear_rows(130, D, seed=2)
    wide = np.full(D + 1, 1e12)
    model = perceptron("blocks", cov=wide, noise=1e-6).learn(X, y[:, 0])
    expected = linear_posterior(X, y, wide, 1e-6)
    np.testing.assert_allclose(model.mean, expected.mean[0], rtol=1e-5)
    np.testing.assert_allclose(model.cov, expected.cov, rtol=1e-4, atol=1e-14)


def test_larger_covariances_have_larger_blocks() -> None:
    assert block_size(10) == block_size(767) == 64
    assert block_size(768) == 128
