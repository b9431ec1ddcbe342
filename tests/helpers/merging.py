"""Rows and models that are learned in parts, and how merged models are compared."""

import copy
from typing import Any

import numpy as np
import pytest

from onepass import BayesianPerceptron


def linear_rows(n: int, d: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ np.arange(1.0, d + 1) + rng.normal(0.0, 0.5, n)


def labelled_rows(n: int, d: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X, a = linear_rows(n, d, seed)
    return X, (a + np.random.default_rng(seed + 1).logistic(size=n) > 0).astype(float)


def learned_apart(prior: Any, X: Any, y: Any, parts: int) -> list[Any]:
    pieces = zip(np.array_split(X, parts), np.array_split(y, parts), strict=True)
    return [copy.deepcopy(prior).learn(*piece) for piece in pieces]


def close(one: BayesianPerceptron, other: BayesianPerceptron, tolerance: float) -> None:
    np.testing.assert_allclose(one.mean, other.mean, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(one.cov, other.cov, rtol=tolerance, atol=tolerance * np.abs(other.cov).max())
    assert one.log_evidence == pytest.approx(other.log_evidence, rel=tolerance)
    assert one.n_seen == other.n_seen
    assert one.noise == pytest.approx(other.noise)
