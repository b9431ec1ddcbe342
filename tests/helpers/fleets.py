"""Rows by key, and how perceptrons of a fleet are compared."""

from typing import Any

import numpy as np

from onepass import BayesianPerceptron

N, D, KEYS = 600, 3, 40


def stream(options: dict[str, Any], seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    keys, X = rng.integers(-KEYS // 2, KEYS // 2, size=N) * 10**15, rng.normal(size=(N, D))
    scores = X[:, 0] - X[:, 1] + rng.normal(size=N)
    activation = options.get("activation", "sigmoid")
    if activation in ("sigmoid", "probit"):
        return keys, X, (scores > 0).astype(float)
    return keys, X, np.floor(np.abs(scores)) if activation == "exp" else scores


def same(one: BayesianPerceptron, other: BayesianPerceptron) -> None:
    np.testing.assert_array_equal(one.mean, other.mean)
    np.testing.assert_array_equal(one.cov, other.cov)
    assert (one.n_seen, one.noise, one.log_evidence) == (other.n_seen, other.noise, other.log_evidence)
