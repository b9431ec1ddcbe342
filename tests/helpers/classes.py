"""The moments of logits given a class, by draws, and how far two such moments are apart."""

import numpy as np
from benchmarks.classes import Logits
from scipy.special import log_softmax

from onepass._typing import FloatArray

__all__ = ["error", "sampled_logits"]


def error(exact: Logits, ours: Logits) -> FloatArray:
    """Errors of the log probability, and of means and standard deviations in standard deviations."""
    return np.array(
        [
            abs(ours.log_p - exact.log_p),
            np.abs((ours.mean - exact.mean) / exact.std).max(),
            np.abs(ours.std / exact.std - 1.0).max(),
        ]
    )


def sampled_logits(mean: FloatArray, cov: FloatArray, label: int, near: Logits, n: int = 100_000) -> Logits:
    """Correlated logits by weighted draws around what is known to be near, half of them mirrored."""
    rng = np.random.default_rng(0)
    root, prior = np.linalg.cholesky(1.6 * near.cov), np.linalg.cholesky(cov)
    z = rng.normal(size=(n // 2, len(mean)))
    z = np.vstack([z, -z])
    a = near.mean + z @ root.T
    inner = np.linalg.solve(prior, (a - mean).T)
    logs = log_softmax(a, axis=1)[:, label] - 0.5 * (inner**2).sum(axis=0) + 0.5 * (z**2).sum(axis=1)
    weights = np.exp(logs - logs.max())
    scale = np.log(np.diag(root)).sum() - np.log(np.diag(prior)).sum()
    log_p = float(logs.max() + np.log(weights.mean()) + scale)
    weights /= weights.sum()
    assert 1.0 / (weights**2).sum() > 0.05 * n
    moved = weights @ a
    return Logits(log_p, moved, ((a - moved).T * weights) @ (a - moved))
