"""Bayesian linear regression in closed form, all rows at once: what row by row every exact kernel must come to."""

from typing import NamedTuple

import numpy as np

from onepass._typing import FloatArray

__all__ = ["Posterior", "linear_posterior", "linear_rows"]


class Posterior(NamedTuple):
    mean: FloatArray
    """``(K, d + 1)``, the bias first."""
    cov: FloatArray
    """``(d + 1, d + 1)``, of each output alike."""


def linear_rows(n: int, d: int, n_outputs: int = 1, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Rows and targets ``(n, n_outputs)`` with noise of variance 0.09."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ rng.normal(size=(d, n_outputs)) + rng.normal(0.0, 0.3, (n, n_outputs))


def linear_posterior(X: FloatArray, y: FloatArray, prior_var: FloatArray, noise: float) -> Posterior:
    """The posterior of independent weights, ``(d + 1,)`` variances, given targets ``(n, K)`` with this noise."""
    Z = np.hstack([np.ones((len(X), 1)), X])
    cov: FloatArray = np.asarray(np.linalg.inv(Z.T @ Z / noise + np.diag(1.0 / prior_var)), dtype=np.float64)
    return Posterior((cov @ Z.T @ y / noise).T, cov)
