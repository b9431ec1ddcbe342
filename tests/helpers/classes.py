"""The moments of logits given a class, by brute force: what the compiled match is compared with."""

from typing import NamedTuple

import numpy as np
from scipy.special import log_softmax

from onepass._typing import FloatArray
from onepass.engine.class_matches import CategoricalOutputs
from onepass.engine.vector_matches import NoiseState

_Z = np.linspace(-12.0, 12.0, 385)
_WEIGHTS = np.exp(-0.5 * _Z**2) / np.exp(-0.5 * _Z**2).sum()


class Logits(NamedTuple):
    """Log probability of a class, and mean and covariance of the logits given it."""

    log_p: float
    mean: FloatArray
    cov: FloatArray

    def error_of(self, other: "Logits") -> FloatArray:
        """How far off another one is: in logs, and mean and standard deviations in standard deviations."""
        std, theirs = np.sqrt(np.diag(self.cov)), np.sqrt(np.diag(other.cov))
        return np.array(
            [
                abs(other.log_p - self.log_p),
                np.abs((other.mean - self.mean) / std).max(),
                np.abs(theirs / std - 1.0).max(),
            ]
        )


def matched(mean: FloatArray, cov: FloatArray, label: int) -> Logits:
    """What the compiled match makes of a label."""
    state = NoiseState.start(len(mean), None, False)
    found = CategoricalOutputs(len(mean)).moment_match(mean, np.ascontiguousarray(cov), np.array([float(label)]), state)
    return Logits(found[0], mean + cov @ found[1], cov - cov @ found[2] @ cov)


def exact_independent(mean: FloatArray, var: FloatArray, label: int) -> Logits:
    """The same of independent logits, by trapezoidal rules of 385 nodes a logit and 160 of the largest value.

    With ``p_label = ∫ e^(a_label - u) exp(-Σ e^(a_j - u)) du`` the logits are independent given ``u``: no identity and
    no fit of the compiled match is used.
    """
    std = np.sqrt(var)

    def given(u: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Log density of ``u`` and the label, and the logits' means and variances given both, each ``(n, K)``."""
        a = mean[:, None] + std[:, None] * _Z
        logs = -np.exp(np.minimum(a[None] - u[:, None, None], 700.0))
        logs[:, label] += a[label] - u[:, None]
        top = logs.max(axis=2, keepdims=True)
        density = np.exp(logs - top) * _WEIGHTS
        mass = density.sum(axis=2)
        centre = (density * a).sum(axis=2) / mass
        spread = (density * (a[None] - centre[:, :, None]) ** 2).sum(axis=2) / mass
        return (np.log(mass) + top[:, :, 0]).sum(axis=1), centre, spread

    rough = np.linspace((mean - 9 * std).max() - 4.0, (mean + 9 * std).max() + 40.0, 160)
    logs = given(rough)[0]
    alive = np.flatnonzero(logs > logs.max() - 40.0)
    u = np.linspace(rough[max(alive[0] - 1, 0)], rough[min(alive[-1] + 1, 159)], 160)
    logs, centre, spread = given(u)
    weights = np.exp(logs - logs.max())
    log_p = float(logs.max() + np.log(weights.sum() * (u[1] - u[0])))
    weights /= weights.sum()
    moved = weights @ centre
    away = centre - moved
    return Logits(log_p, moved, np.diag(weights @ spread) + (away.T * weights) @ away)


def sampled(mean: FloatArray, cov: FloatArray, label: int, near: Logits, n: int = 100_000) -> Logits:
    """The same of correlated logits, by weighted draws around what is known to be near, half of them mirrored."""
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
