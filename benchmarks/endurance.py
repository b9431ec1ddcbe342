"""A stream that is hard on a covariance, and a look at what it left.

Noise of 1e-6, input scales from 1e-8 to 1e8, collinear features and repeated rows: each of them alone makes a
covariance that is updated by subtraction lose its digits.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from onepass import BayesianPerceptron
from onepass._typing import FloatArray

__all__ = ["Health", "hard_stream", "inspect"]

_BATCH = 10_000


class Health(NamedTuple):
    """What there is to see of a belief."""

    finite: bool
    symmetric: bool
    smallest_eigenvalue: float
    largest_eigenvalue: float
    smallest_predictive_variance: float


def hard_stream(n: int, d: int, seed: int) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Batches of hard rows, ``n`` in all."""
    rng = np.random.default_rng(seed)
    scales = np.logspace(-8, 8, d)
    weights = rng.normal(size=d) / scales
    for start in range(0, n, _BATCH):
        size = min(_BATCH, n - start)
        X = rng.normal(size=(size, d)) * scales
        X[:, 1] = X[:, 0] * (scales[1] / scales[0])  # the same twice
        X[:, 3] = (X[:, 2] / scales[2] + 1e-7 * rng.normal(size=size)) * scales[3]  # nearly so
        X[size // 2 :] = X[0]  # one row over and over
        yield X, X @ weights + rng.normal(0, 1e-3, size)


def inspect(model: BayesianPerceptron) -> Health:
    """Look at the belief's covariance and at predictions along the axes and at random."""
    cov = model.cov
    values = np.linalg.eigvalsh(cov)
    d = model.n_features
    probes = np.vstack([np.eye(d), np.random.default_rng(1).normal(size=(100, d)) * np.logspace(-8, 8, d)])
    seen = model.predict(probes)
    finite = all(np.isfinite(part).all() for part in (model.mean, cov, seen.var))
    return Health(finite, bool((cov == cov.T).all()), values[0], values[-1], float(seen.pre_var.min()))
